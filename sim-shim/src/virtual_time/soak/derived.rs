//! A random graph as a streaming program with tensors: each node writes its cells and reads those of its producers, so that its
//! edges are derived. Scopes come and go, and the program may look at values on its way, and change them for a moment: `get` waits for who
//! writes them, `set` for who reads them as well. Some nodes are ranges, some are recorded and replayed.
//!
//! Some nodes find the table of their producers on a heap: the program allocates it in a scope of its own, fills it, and closes the scope after the node. A
//! heap holds few tables, so that a run takes it several times round: a table whose memory is given out too early says other producers.

use pto_abi::{CoreKind, Fault, TaskId};
use pto_graph::{
    Arg, Bindings, BuildError, DependencyMode, ElementType, Recording, ScopeId, StreamBuilder,
    TensorRange, TensorTask, TensorView, Variation,
};

use super::super::random::RandomStream;
use super::graph::{EdgesFrom, GraphNode, PublishOrder, STRIDE};
use super::program::{Program, publish_last};
use super::shaped::{self, NodeCall};

/// The program found another value than the node has.
const WRONG_VALUE: i32 = 77;
/// Scopes that are open at once: one fewer than heaps, the first of which is that of the program.
const DEEPEST: usize = 3;
/// Elements of a line.
const LINE: u32 = 16;
/// Bytes of the heap of each depth: a scope has two tensors of two lines at most, and wherever these begin there is room for them.
pub(super) const HEAP_BYTES: u64 = 6 * 64;
/// Which word of a node is the address of its table.
const TABLE_WORD: usize = 4;
/// Entries of a table on the heap, at most.
const TABLE: usize = LINE as usize;

pub(super) fn run<G: StreamBuilder>(program: &Program, stream: &mut G) -> Result<(), BuildError> {
    let graph = &program.graph;
    let mut random = RandomStream::new(graph.seed);
    let (expected, reads) = (graph.values(), graph.read_cells());
    let at_once = graph.order == PublishOrder::AtOnce;
    let mut templates = Templates::default();
    let mut scopes: Vec<ScopeId> = Vec::new();
    let mut ids: Vec<TaskId> = Vec::new();
    let mut first_producer = 0;
    while ids.len() < graph.nodes.len() {
        let index = ids.len();
        match random.below(6) {
            0 if at_once && scopes.len() < DEEPEST => {
                scopes.push(stream.open_scope(DependencyMode::DERIVED)?);
            }
            1 => scopes.pop().map_or(Ok(()), |scope| stream.close_scope(scope))?,
            _ => {}
        }
        let nodes = Nodes { program, index, first_producer };
        // A recording is a scope, too.
        let records = scopes.len() < DEEPEST;
        let part = if at_once {
            NextSubmission::draw(&nodes, records, &mut random)
        } else {
            NextSubmission::One
        };
        match part {
            NextSubmission::One => ids.push(nodes.add(stream)?),
            NextSubmission::Range(count) => nodes.submit_range(stream, count, &mut ids)?,
            NextSubmission::Recorded(count) => nodes.replay_them(stream, count, &mut ids)?,
            NextSubmission::Template => ids.push(templates.replay(stream, &nodes)?),
            NextSubmission::OnHeap(count) => {
                let reads = &reads[index..index + count];
                nodes.add_on_heap(stream, reads, &mut random, &mut ids)?;
            }
        }
        let added = index..ids.len();
        first_producer += program.reads[added].iter().copied().map(u64::from).sum::<u64>();
        if at_once && part == NextSubmission::One {
            publish_last(stream, &ids, 1)?;
        }
        if at_once && graph.edges == EdgesFrom::TensorsAndValues && random.below(4) == 0 {
            let of = random.below(u32::try_from(ids.len()).unwrap_or(0)) as usize;
            let cell = program.first_cells[of];
            look(program, stream, (cell, expected[cell as usize].0), random.below(3) == 0)?;
        }
    }
    while let Some(scope) = scopes.pop() {
        stream.close_scope(scope)?;
    }
    if !at_once {
        publish_last(stream, &ids, u32::MAX)?;
    }
    Ok(())
}

/// The program reads a value, which waits for who writes it; if it `changes` it, it does so for a moment, which waits for who reads it.
fn look<G: StreamBuilder>(
    program: &Program,
    stream: &mut G,
    (cell, expected): (u32, u64),
    changes: bool,
) -> Result<(), BuildError> {
    let (table, at) = (table(program), [cell * STRIDE]);
    if changes {
        stream.set(&table, &at, !expected)?;
        if stream.get(&table, &at)? != !expected {
            return Err(BuildError::Failed(WRONG_VALUE));
        }
        stream.set(&table, &at, expected)?;
    }
    if stream.get(&table, &at)? != expected {
        return Err(BuildError::Failed(WRONG_VALUE));
    }
    Ok(())
}

/// How the next nodes are submitted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum NextSubmission {
    /// One by itself.
    One,
    /// Submit this many as a range.
    Range(usize),
    /// Record this many, and replay them.
    Recorded(usize),
    /// One, as a replay of what was recorded for nodes like it.
    Template,
    /// So many in a scope, each with the table of its producers on the heap.
    OnHeap(usize),
}

impl NextSubmission {
    fn draw(nodes: &Nodes<'_>, records: bool, random: &mut RandomStream) -> Self {
        match random.below(8) {
            0 | 1 => match nodes.alike(1 + random.below(12)) {
                0 => Self::One,
                count => Self::Range(count),
            },
            2 if records => Self::Recorded((1 + random.below(4) as usize).min(nodes.left())),
            3 if records && nodes.alike(1) == 1 => Self::Template,
            // A heap that holds no more gives way to the program's waits only where the schedulers run at the same time.
            4..=6 if records && nodes.program.graph.edges == EdgesFrom::TensorsAndValues => {
                match nodes.with_tables(1 + random.below(2)) {
                    0 => Self::One,
                    count => Self::OnHeap(count),
                }
            }
            _ => Self::One,
        }
    }
}

/// The nodes from `index` on, whose producers are in the table from `first_producer` on.
struct Nodes<'p> {
    program: &'p Program,
    index: usize,
    first_producer: u64,
}

impl Nodes<'_> {
    fn left(&self) -> usize {
        self.program.graph.nodes.len() - self.index
    }

    /// How many of the next nodes, up to `most`, differ in numbers only: plain ones of one kind, with as many producers of one cell.
    fn alike(&self, most: u32) -> usize {
        let nodes = &self.program.graph.nodes[self.index..];
        let cells = &self.program.first_cells;
        let has_one_cell = |at: &u32| cells[*at as usize + 1] - cells[*at as usize] == 1;
        let is_like_the_first = |node: &&GraphNode| {
            node.block_shape.is_none()
                && (node.kind, node.producers.len()) == (nodes[0].kind, nodes[0].producers.len())
                && node.producers.iter().all(has_one_cell)
        };
        nodes.iter().take(most as usize).take_while(is_like_the_first).count()
    }

    /// How many of the next nodes, up to `most`, can have their tables on a heap: plain ones that read few cells, and at least one.
    fn with_tables(&self, most: u32) -> usize {
        let nodes =
            self.program.graph.nodes[self.index..].iter().zip(&self.program.reads[self.index..]);
        let has_table = |(node, reads): &(&GraphNode, &u32)| {
            node.block_shape.is_none() && (1..=TABLE).contains(&(**reads as usize))
        };
        nodes.take(most as usize).take_while(has_table).count()
    }

    /// What each of the next nodes is given: its words, and the addresses of the cells that it writes and reads.
    fn words(&self, count: usize) -> Vec<Vec<u64>> {
        let mut first_producer = self.first_producer;
        let at = |cell: u32| self.program.tables.values.offset(8 * u64::from(cell * STRIDE)).0;
        let words = |index: usize| {
            let mut words = self.program.args(index, first_producer).to_vec();
            first_producer += u64::from(self.program.reads[index]);
            let producers = self.program.graph.nodes[index].producers.iter().map(|at| *at as usize);
            let nodes = [index].into_iter().chain(producers);
            words.extend(nodes.map(|node| at(self.program.first_cells[node])));
            words
        };
        (self.index..self.index + count).map(words).collect()
    }

    /// The tensors of the next node, which has one cell, and whose producers have: its own and theirs.
    fn cells(&self) -> Vec<TensorView<'static>> {
        let producers =
            self.program.graph.nodes[self.index].producers.iter().map(|at| *at as usize);
        let nodes = [self.index].into_iter().chain(producers);
        let table = table(self.program);
        nodes.map(|node| table.slice(0, self.program.first_cells[node] * STRIDE, STRIDE)).collect()
    }

    /// Submits the next nodes as a range.
    fn submit_range<G: StreamBuilder>(
        &self,
        stream: &mut G,
        count: usize,
        ids: &mut Vec<TaskId>,
    ) -> Result<(), Fault> {
        let words = self.words(count);
        let columns = (0..words[0].len()).map(|at| words.iter().map(|words| words[at]).collect());
        let columns: Vec<Vec<u64>> = columns.collect();
        let varies = columns.iter().enumerate().map(|(at, column)| Variation::of(at, column));
        let varies: Vec<_> = varies.collect();
        let cells = self.cells();
        let tensors = cells.iter().enumerate().map(|(at, cell)| match at {
            0 => Arg::Out(cell),
            _ => Arg::In(cell),
        });
        let scalars = words[0].iter().take(words[0].len() - cells.len()).copied().map(Arg::Scalar);
        let args: Vec<_> = scalars.chain(tensors).collect();
        let node = &self.program.graph.nodes[self.index];
        let task = TensorTask::new(Program::func_id(node), node.kind, &args);
        let tasks = u32::try_from(count).unwrap_or(u32::MAX);
        let mut given = vec![TaskId::NONE; count];
        let range = TensorRange::new(task).times(tasks).varying(&varies);
        stream.submit_tensor_range(&range, &mut given)?;
        ids.extend(given);
        Ok(())
    }

    /// Records the next nodes, and replays them.
    fn replay_them<G: StreamBuilder>(
        &self,
        stream: &mut G,
        count: usize,
        ids: &mut Vec<TaskId>,
    ) -> Result<(), Fault> {
        let recording = stream.record(&[], |stream, _| {
            let mut first_producer = self.first_producer;
            for index in self.index..self.index + count {
                Nodes { program: self.program, index, first_producer }.add(stream)?;
                first_producer += u64::from(self.program.reads[index]);
            }
            Ok::<_, Fault>(())
        })?;
        stream.replay(&recording, &Bindings::default())?;
        // A task of a replay has no id.
        ids.resize(ids.len() + count, TaskId::NONE);
        Ok(())
    }

    /// Submits the next nodes, each with its table on the heap of a scope of their own; `reads` are the cells that they read.
    fn add_on_heap<G: StreamBuilder>(
        &self,
        stream: &mut G,
        reads: &[Vec<u32>],
        random: &mut RandomStream,
        ids: &mut Vec<TaskId>,
    ) -> Result<(), Fault> {
        let scope = stream.open_scope(DependencyMode::DERIVED)?;
        let whole = table(self.program);
        for (index, cells) in (self.index..).zip(reads) {
            let entries = u32::try_from(cells.len()).unwrap_or(u32::MAX);
            // The same memory is at another offset of another tensor later: only the heap keeps the two apart.
            let before = LINE * random.below(2);
            let own_table = stream.alloc(ElementType::U32, &[before + entries])?;
            let own_table = own_table.slice(0, before, entries);
            for (at, cell) in (0..).zip(cells) {
                stream.set(&own_table, &[at], u64::from(cell * STRIDE))?;
            }
            let mut words = self.program.args(index, self.first_producer);
            words[TABLE_WORD] = own_table.address().0;
            let cells_of = |node: usize| {
                let [first, end] = [node, node + 1].map(|at| self.program.first_cells[at] * STRIDE);
                whole.slice(0, first, end - first)
            };
            let node = &self.program.graph.nodes[index];
            let own = cells_of(index);
            let read: Vec<_> = node.producers.iter().map(|at| cells_of(*at as usize)).collect();
            let tensors = [Arg::Out(&own), Arg::In(&own_table)];
            let args = words.into_iter().map(Arg::Scalar).chain(tensors);
            let args: Vec<_> = args.chain(read.iter().map(Arg::In)).collect();
            let task = TensorTask::new(Program::func_id(node), node.kind, &args);
            ids.push(stream.submit_tensors(&task)?);
        }
        stream.close_scope(scope)
    }

    fn add<G: StreamBuilder>(&self, stream: &mut G) -> Result<TaskId, Fault> {
        add(self.program, stream, self.index, self.first_producer)
    }
}

/// Recordings of one node each, all of whose words and tensors are left open.
#[derive(Default)]
struct Templates(Vec<((CoreKind, usize), Recording)>);

impl Templates {
    /// Replays the recording for nodes like the next one; makes it, if there is none.
    fn replay<G: StreamBuilder>(
        &mut self,
        stream: &mut G,
        nodes: &Nodes<'_>,
    ) -> Result<TaskId, Fault> {
        let node = &nodes.program.graph.nodes[nodes.index];
        let (like, cells) = ((node.kind, node.producers.len()), nodes.cells());
        let args = nodes.program.args(nodes.index, nodes.first_producer);
        let known = self.0.iter().find(|(of, _)| *of == like).map(|(_, recording)| *recording);
        let recording = match known {
            Some(recording) => recording,
            None => {
                let made = stream.record(&cells, |stream, bound| {
                    let open: Vec<_> = (0..cells.len()).map(|at| bound.tensor(at)).collect();
                    let scalars = (0_u32..).zip(&args).map(|(at, _)| bound.scalar(at));
                    let tensors = open.iter().enumerate().map(|(at, cell)| match at {
                        0 => Arg::Out(cell),
                        _ => Arg::In(cell),
                    });
                    let args: Vec<_> = scalars.chain(tensors).collect();
                    let task = TensorTask::new(Program::func_id(node), node.kind, &args);
                    stream.add_tensor_task(&task).map(drop)
                })?;
                self.0.push((like, made));
                made
            }
        };
        stream.replay(&recording, &Bindings { tensors: &cells, scalars: &args })?;
        Ok(TaskId::NONE)
    }
}

/// All values.
fn table(program: &Program) -> TensorView<'static> {
    let cells = program.first_cells.last().copied().unwrap_or(0);
    TensorView::dense(program.tables.values, ElementType::U64, &[cells * STRIDE])
}

fn add<G: StreamBuilder>(
    program: &Program,
    stream: &mut G,
    index: usize,
    first_producer: u64,
) -> Result<TaskId, Fault> {
    let node = &program.graph.nodes[index];
    let table = table(program);
    let cells = |node: usize| {
        let [first, end] = [node, node + 1].map(|at| program.first_cells[at] * STRIDE);
        table.slice(0, first, end - first)
    };
    let own = cells(index);
    let read: Vec<_> = node.producers.iter().map(|producer| cells(*producer as usize)).collect();
    let tensors: Vec<_> = [Arg::Out(&own)].into_iter().chain(read.iter().map(Arg::In)).collect();
    let args = program.args(index, first_producer);
    let Some(shape) = &node.block_shape else {
        let args: Vec<_> = args.into_iter().map(Arg::Scalar).chain(tensors).collect();
        return stream.add_tensor_task(&TensorTask::new(Program::func_id(node), node.kind, &args));
    };
    let on = shape.when.map_or(0, |when| program.first_cells[when.producer as usize]);
    let submission = NodeCall {
        first_cell: program.first_cells[index],
        element: table.slice(0, on * STRIDE, 1),
        args,
        tensors: &tensors,
        after: &[],
    };
    shaped::add(stream, shape, &submission)
}
