//! Small graphs of known shape: chain, independent, fork-join, wavefront, rows. The firmware is tested and its
//! instructions are counted with them, with `dag_node` or `empty` as kernels.
//!
//! Orchestration words:
//! ```text
//! 0 func id   1 core kind   2 seed   3 values   4 counters   5 producers   6, 7 the shape
//! ```
//! `values`, `counters` and `producers` are the tables of `dag_node`: the builder gives each task the next
//! part of `producers`, in the order in which it adds edges. With `values` zero, tasks have no arguments.

use heapless::Vec;
use pto_abi::{CoreKind, Fault, FuncId, GmAddr, TaskId};
use pto_graph::{
    Arg, BuildError, Chain, ChainTemplate, ElementType, GraphBuilder, Link, StreamBuilder,
    TaskRange, TaskSpec, TensorRange, TensorTask, TensorView, Variation, Wait,
};

/// Widest fork and wavefront.
pub const MAX_WIDTH: usize = 256;
/// How many orchestration words the builders take.
pub const WORDS: usize = 8;

struct Dag<'g, G> {
    graph: &'g mut G,
    words: [u64; WORDS],
    func_id: FuncId,
    kind: CoreKind,
    nodes: u64,
    edges: u64,
}

impl<'g, G: GraphBuilder> Dag<'g, G> {
    fn new(graph: &'g mut G) -> Result<Self, BuildError> {
        let words = graph.orch_args().first_chunk::<WORDS>().copied();
        let words = words.ok_or(Fault::BUILD_ORCH_ARGS)?;
        let [func_id, kind, ..] = words;
        let func_id = u16::try_from(func_id).map_err(|_| Fault::BUILD_UNKNOWN_FUNC)?;
        let kind = u8::try_from(kind).ok().and_then(|kind| CoreKind::try_from(kind).ok());
        let kind = kind.ok_or(Fault::BUILD_UNKNOWN_KIND)?;
        Ok(Self { graph, words, func_id: FuncId(func_id), kind, nodes: 0, edges: 0 })
    }

    fn shape(&self) -> [u64; 2] {
        let [.., first, second] = self.words;
        [first, second]
    }

    /// A width that fits; the other one is not used.
    fn width(&self) -> Result<usize, BuildError> {
        let width = usize::try_from(self.shape()[0]).ok();
        Ok(width.filter(|width| *width <= MAX_WIDTH).ok_or(Fault::BUILD_ORCH_ARGS)?)
    }

    /// A row of tasks, submitted as a range. What it waits for, and where the ids go.
    fn row(&mut self, wait: &Wait<'_>, ids: &mut [TaskId]) -> Result<(), Fault> {
        let [_, _, seed, values, counters, table, ..] = self.words;
        let mut tables: Vec<u64, MAX_WIDTH> = Vec::new();
        let mut counts: Vec<u64, MAX_WIDTH> = Vec::new();
        let args = [self.nodes, seed, values, counters, table, 0];
        let args: &[u64] = if values == 0 { &[] } else { &args };
        for index in (0..).zip(&*ids).map(|(index, _)| index) {
            if values == 0 {
                break;
            }
            let count = wait.of(index).len() as u64;
            let is_kept = tables.push(table + 4 * self.edges).and_then(|()| counts.push(count));
            is_kept.map_err(|_| Fault::BUILD_ORCH_ARGS)?;
            self.edges += count;
        }
        let varies = [Variation::by(0, 1), Variation::of(4, &tables), Variation::of(5, &counts)];
        let varies: &[Variation<'_>] = if values == 0 { &[] } else { &varies };
        let tasks = u32::try_from(ids.len()).map_err(|_| Fault::BUILD_ORCH_ARGS)?;
        self.nodes += u64::from(tasks);
        let range = TaskRange::new(TaskSpec::new(self.func_id, self.kind, args)).times(tasks);
        let waits = core::slice::from_ref(wait);
        self.graph.submit_range(&range.varying(varies).after(waits), ids)
    }

    fn node(&mut self, producers: &[TaskId]) -> Result<TaskId, Fault> {
        let [_, _, seed, values, counters, table, ..] = self.words;
        let count = producers.len() as u64;
        let args = [self.nodes, seed, values, counters, table + 4 * self.edges, count];
        let args: &[u64] = if values == 0 { &[] } else { &args };
        self.nodes += 1;
        self.edges += count;
        self.graph.submit(TaskSpec::new(self.func_id, self.kind, args), producers)
    }
}

/// Each task waits for the one before. Shape: how many.
///
/// # Errors
/// `BUILD_ORCH_ARGS`, and those of [`GraphBuilder`].
pub fn chain<G: GraphBuilder>(graph: &mut G) -> Result<(), BuildError> {
    let mut dag = Dag::new(graph)?;
    let mut last: Option<TaskId> = None;
    for _ in 0..dag.shape()[0] {
        last = Some(dag.node(last.as_slice())?);
    }
    Ok(())
}

/// No task waits. Shape: how many.
///
/// # Errors
/// `BUILD_ORCH_ARGS`, and those of [`GraphBuilder`].
pub fn independent<G: GraphBuilder>(graph: &mut G) -> Result<(), BuildError> {
    let mut dag = Dag::new(graph)?;
    for _ in 0..dag.shape()[0] {
        dag.node(&[])?;
    }
    Ok(())
}

/// One task releases `width` others, which one more joins; the next stage follows it. Shape: width
/// (at most [`MAX_WIDTH`]), stages.
///
/// # Errors
/// `BUILD_ORCH_ARGS`, and those of [`GraphBuilder`].
pub fn fork_join<G: GraphBuilder>(graph: &mut G) -> Result<(), BuildError> {
    let mut dag = Dag::new(graph)?;
    let width = dag.width()?;
    let mut joined: Option<TaskId> = None;
    for _ in 0..dag.shape()[1] {
        let fork = dag.node(joined.as_slice())?;
        let mut branches: Vec<TaskId, MAX_WIDTH> = Vec::new();
        for _ in 0..width {
            branches.push(dag.node(&[fork])?).map_err(|_| Fault::BUILD_ORCH_ARGS)?;
        }
        joined = Some(dag.node(&branches)?);
    }
    Ok(())
}

/// A grid in which each task waits for its left and its upper neighbour. Shape: columns (at most
/// [`MAX_WIDTH`]), rows.
///
/// # Errors
/// `BUILD_ORCH_ARGS`, and those of [`GraphBuilder`].
pub fn wavefront<G: GraphBuilder>(graph: &mut G) -> Result<(), BuildError> {
    let mut dag = Dag::new(graph)?;
    let width = dag.width()?;
    let mut above: Vec<TaskId, MAX_WIDTH> = Vec::new();
    for _ in 0..dag.shape()[1] {
        let mut row: Vec<TaskId, MAX_WIDTH> = Vec::new();
        for column in 0..width {
            let mut producers: Vec<TaskId, 2> = Vec::new();
            for producer in [row.last(), above.get(column)].into_iter().flatten() {
                producers.push(*producer).map_err(|_| Fault::BUILD_ORCH_ARGS)?;
            }
            row.push(dag.node(&producers)?).map_err(|_| Fault::BUILD_ORCH_ARGS)?;
        }
        above = row;
    }
    Ok(())
}

/// No task waits, and the kernels take words. Shape: how many tasks; in the lowest two bytes how many words each has, in the next two bytes how many kernels
/// a link of a chain has, whose first word is another one for each (none: the tasks are no chains), in the next two bytes how many links: one or three, and
/// in the highest ones 1 for chains of one template, in each of which a word of each link is set, and 2 for a template that is made and not submitted before each chain of one.
///
/// # Errors
/// `BUILD_ORCH_ARGS`, and those of [`GraphBuilder`].
pub fn words<G: GraphBuilder>(graph: &mut G) -> Result<(), BuildError> {
    let dag = Dag::new(graph)?;
    let [tasks, shape] = dag.shape();
    let part = |word: u64| usize::try_from(word).ok().filter(|part| *part <= MAX_WIDTH);
    let [args, times, links, how] = [0, 16, 32, 48].map(|shift| shape >> shift & 0xFFFF);
    let (args, times) = (part(args), part(times));
    let column = [0; MAX_WIDTH];
    let cut = |part: Option<usize>| part.and_then(|part| column.get(..part));
    let (args, column) = cut(args).zip(cut(times)).ok_or(Fault::BUILD_ORCH_ARGS)?;
    let task = TaskSpec::new(dag.func_id, dag.kind, args);
    let varies = [Variation::of(0, column)];
    let times = u32::try_from(column.len()).map_err(|_| Fault::BUILD_ORCH_ARGS)?;
    if how > 0 {
        let link = [Link::new(task).times(times).varying(&varies); 3];
        let links = usize::try_from(links).ok().and_then(|links| link.get(..links));
        let chain = Chain::new(links.ok_or(Fault::BUILD_ORCH_ARGS)?);
        return of_template(dag.graph, &chain, (tasks, how == 2));
    }
    if times == 0 {
        for _ in 0..tasks {
            dag.graph.submit(task, &[])?;
        }
        return Ok(());
    }
    for _ in 0..tasks {
        // A program makes the links that it needs.
        let link = Link::new(task).times(times).varying(&varies);
        match links {
            1 => dag.graph.submit_chain(&Chain::new(&[link]), &[])?,
            3 => dag.graph.submit_chain(&Chain::new(&[link; 3]), &[])?,
            _ => return Err(Fault::BUILD_ORCH_ARGS.into()),
        };
    }
    Ok(())
}

/// Chains of one template, in which the second word of each link is another one each time. With `anew`, another template is made before each.
#[inline(never)]
fn of_template<G: GraphBuilder>(
    graph: &mut G,
    chain: &Chain<'_>,
    (tasks, anew): (u64, bool),
) -> Result<(), BuildError> {
    let mut template = ChainTemplate::new();
    graph.fill_template(&mut template, chain)?;
    for number in 0..tasks {
        if anew {
            graph.fill_template(&mut template, chain)?;
        }
        for link in 0..chain.links().len() {
            template.set(link, 1, number)?;
        }
        graph.submit_template(&template, &[])?;
    }
    Ok(())
}

/// Rows of tasks, each row submitted as a range. A task waits for its neighbours in the row before. Shape: columns (at most [`MAX_WIDTH`]) in the low half
/// of the word, and for how many neighbours in the high half, whose highest bit says that a list names the one that each waits for; rows.
///
/// # Errors
/// `BUILD_ORCH_ARGS`, and those of [`GraphBuilder`].
pub fn rows<G: GraphBuilder>(graph: &mut G) -> Result<(), BuildError> {
    let mut dag = Dag::new(graph)?;
    let [shape, rows] = dag.shape();
    let (is_listed, near) = (shape >> 63 == 1, shape << 1 >> 33);
    let near = u32::try_from(near).map_err(|_| Fault::BUILD_ORCH_ARGS)?;
    let left = i32::try_from(near / 2).map_err(|_| Fault::BUILD_ORCH_ARGS)?;
    let width = usize::try_from(shape & u64::from(u32::MAX)).ok();
    let mut ends = [0; MAX_WIDTH];
    ends.iter_mut().zip(1..).for_each(|(end, number)| *end = number);
    let ends = width.and_then(|width| ends.get(..width)).ok_or(Fault::BUILD_ORCH_ARGS)?;
    let none = [TaskId { slot: 0, generation: 0 }; MAX_WIDTH];
    let (mut first, mut second) = (none, none);
    // The rows change their names, and no id is moved.
    let (mut above, mut row) = (&mut first, &mut second);
    for number in 0..rows {
        let ids = width.and_then(|width| Some((above.get(..width)?, row.get_mut(..width)?)));
        let (before, ids) = ids.ok_or(Fault::BUILD_ORCH_ARGS)?;
        let before = if number == 0 { &[] } else { before };
        let mut wait = Wait::window(before, -left, near);
        if is_listed && number > 0 {
            wait = Wait::listed(before, ends);
        }
        dag.row(&wait, ids)?;
        core::mem::swap(&mut above, &mut row);
    }
    Ok(())
}

/// Each task reads one tensor and updates another one; their addresses are all that the kernel gets. Shape: how many,
/// and how many tensors there are in turn: with 64, each task waits for the two that have written and read them last;
/// with more than twice as many as tasks, for none. In the high half of the second: 1 for tiles of two tensors, row by row, 2 for the
/// same with each row of tiles a range, 3 for chains on tiles of one tensor, 4 for chains on tiles that are dense, 5 for chains
/// of plain words, 6 for such chains that wait for each other, 7 and 8 for tasks of four words, 9 and 10 for chains of a template, and 12 for
/// none: memory is copied and filled, and the builder fails with [`WRONG_COPY`] if it is not as it should be.
///
/// # Errors
/// `BUILD_ORCH_ARGS`, and those of [`StreamBuilder`].
pub fn tensors<G: StreamBuilder>(stream: &mut G) -> Result<(), BuildError> {
    let dag = Dag::new(stream)?;
    let ([tasks, live], func_id, kind) = (dag.shape(), dag.func_id, dag.kind);
    match live >> 32 {
        0 => {}
        3 => return tile_chains(stream, tasks, (func_id, kind)),
        4 => return dense_chains(stream, tasks, (func_id, kind)),
        how @ 5..=10 => {
            let unit = match how {
                5 | 6 => Unit::Chain,
                7 | 8 => Unit::Task,
                _ => Unit::Template,
            };
            return of_words(stream, tasks, (unit, how.is_multiple_of(2)), (func_id, kind));
        }
        12 => return memory(),
        how => return tiles(stream, (tasks, how == 2), (func_id, kind)),
    }
    let tensor = |number: u64| {
        let at = number.checked_rem(live).unwrap_or(0);
        TensorView::dense(GmAddr(4096 * (at + 1)), ElementType::F32, &[32, 32])
    };
    for number in 0..tasks {
        let (source, target) = if live > 2 * tasks {
            (tensor(2 * number), tensor(2 * number + 1))
        } else {
            (tensor(number + 17), tensor(number))
        };
        let args = [Arg::In(&source), Arg::InOut(&target)];
        stream.submit_tensors(&TensorTask::new(func_id, kind, &args))?;
    }
    Ok(())
}

/// The error of the builder that copies and fills memory.
pub const WRONG_COPY: i32 = 1;

/// Copies and fills up to 72 bytes at all offsets within eight bytes, with the image's own calls.
fn memory() -> Result<(), BuildError> {
    let from: [u8; 80] = core::array::from_fn(|at| at.to_le_bytes()[0] ^ 0x5A);
    for count in 0..=72 {
        for (to_at, from_at) in (0..64).map(|offsets| (offsets / 8, offsets % 8)) {
            let part = from.get(from_at..from_at + count).unwrap_or(&[]);
            // A loop that the compiler makes a call of; a call here could panic.
            let copied = changed(to_at, count, |to| {
                to.iter_mut().zip(part).for_each(|(to, from)| *to = *from);
            });
            let filled = changed(to_at, count, |to| to.fill(0x81));
            let expected = |at: usize| from.get(from_at + at).copied();
            if !matches_expected(&copied, to_at, count, expected)
                || !matches_expected(&filled, to_at, count, |_| Some(0x81))
            {
                return Err(BuildError::Failed(WRONG_COPY));
            }
        }
    }
    Ok(())
}

/// Some bytes, of which these were changed.
#[inline(never)]
fn changed(at: usize, count: usize, change: impl FnOnce(&mut [u8])) -> [u8; 96] {
    let mut bytes = [0xEE; 96];
    if let Some(part) = bytes.get_mut(at..at + count) {
        change(part);
    }
    bytes
}

/// Whether these bytes are as expected, and the others as they were.
#[inline(never)]
fn matches_expected(
    bytes: &[u8; 96],
    at: usize,
    count: usize,
    expected: impl Fn(usize) -> Option<u8>,
) -> bool {
    bytes.iter().enumerate().all(|(index, byte)| match index.checked_sub(at) {
        Some(index) if index < count => expected(index) == Some(*byte),
        _ => *byte == 0xEE,
    })
}

/// Pairs of tensors that are used in turn.
const PAIRS: u64 = 4;
/// Tiles of a tensor, and of a row.
const TILES: u64 = 64;
const ROW: u32 = 8;

/// Each task reads a tile of one tensor and updates one of another. A tile is used again after 256 tasks.
fn tiles<G: StreamBuilder>(
    stream: &mut G,
    (tasks, at_once): (u64, bool),
    (func_id, kind): (FuncId, CoreKind),
) -> Result<(), BuildError> {
    let mut ids = [TaskId::NONE; ROW as usize];
    for number in 0..tasks / TILES {
        let tensor = |number: u64| {
            TensorView::dense(GmAddr((1 + number) << 20), ElementType::F32, &[ROW * 32, ROW * 32])
        };
        let pair = 2 * (number % PAIRS);
        let (source, target) = (tensor(pair), tensor(pair + 1));
        let tile = |view: TensorView<'static>, row: u32, column: u32| {
            view.slice(0, 32 * row, 32).slice(1, 32 * column, 32)
        };
        for row in 0..ROW {
            let (from, to) = (tile(source, row, 0), tile(target, row, 0));
            let args = [Arg::In(&from), Arg::InOut(&to)];
            if at_once {
                let moves = [Variation::by(0, 128), Variation::by(1, 128)];
                let range = TensorRange::new(TensorTask::new(func_id, kind, &args));
                stream.submit_tensor_range(&range.times(ROW).varying(&moves), &mut ids)?;
                continue;
            }
            for column in 0..ROW {
                let (from, to) = (tile(source, row, column), tile(target, row, column));
                let args = [Arg::In(&from), Arg::InOut(&to)];
                stream.submit_tensors(&TensorTask::new(func_id, kind, &args))?;
            }
        }
    }
    Ok(())
}

/// Chains as a factorisation has them: each updates seven tiles of a row of a tensor, and reads the first tile of its row and of the seven
/// rows that are tiles' columns. Each first tile is changed by a task before. After eight rows, another tensor follows.
fn tile_chains<G: StreamBuilder>(
    stream: &mut G,
    tasks: u64,
    (func_id, kind): (FuncId, CoreKind),
) -> Result<(), BuildError> {
    for number in 0..tasks {
        let row = u32::try_from(number % u64::from(ROW)).map_err(|_| Fault::BUILD_ORCH_ARGS)?;
        let at = GmAddr((1 + number / u64::from(ROW) % PAIRS) << 20);
        let matrix = TensorView::dense(at, ElementType::F32, &[ROW * 32, ROW * 32]);
        let tile = |row: u32, column: u32| matrix.slice(0, 32 * row, 32).slice(1, 32 * column, 32);
        let (left, other, changed) = (tile(row, 0), tile(1, 0), tile(row, 1));
        let varies = [Variation::by(1, i64::from(32 * 4 * ROW * 32)), Variation::by(2, 128)];
        solve_and_update(stream, [&left, &other, &changed], &varies, (func_id, kind))?;
    }
    Ok(())
}

/// The same on tiles that follow each other in memory, where each part of a tensor is one run of bytes: each chain reads the tiles of the row
/// before that are in the columns that it updates.
fn dense_chains<G: StreamBuilder>(
    stream: &mut G,
    tasks: u64,
    (func_id, kind): (FuncId, CoreKind),
) -> Result<(), BuildError> {
    for number in 0..tasks {
        let row = u32::try_from(number % u64::from(ROW)).map_err(|_| Fault::BUILD_ORCH_ARGS)?;
        let at = GmAddr((1 + number / u64::from(ROW) % PAIRS) << 20);
        let tiles = TensorView::dense(at, ElementType::F32, &[ROW * ROW, 32 * 32]);
        let tile = |row: u32, column: u32| tiles.slice(0, ROW * row + column, 1);
        let (left, other, changed) = (tile(row, 0), tile((row + ROW - 1) % ROW, 1), tile(row, 1));
        let varies = [Variation::by(1, 4 * 32 * 32), Variation::by(2, 4 * 32 * 32)];
        solve_and_update(stream, [&left, &other, &changed], &varies, (func_id, kind))?;
    }
    Ok(())
}

/// What is submitted in a call.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Unit {
    Task,
    Chain,
    Template,
}

/// Tasks of four words, or chains of a link of 16 kernels with nine, the first of which is another one for each kernel: none waits, or each for the one
/// before. Of a template, the second word is another one for each chain.
fn of_words<G: StreamBuilder>(
    stream: &mut G,
    tasks: u64,
    (unit, in_turn): (Unit, bool),
    (func_id, kind): (FuncId, CoreKind),
) -> Result<(), BuildError> {
    let (words, few, column) = ([0; 9], [0; 4], [0; 16]);
    let varies = [Variation::of(0, &column)];
    let task = TaskSpec::new(func_id, kind, &words);
    let links = [Link::new(task).times(16).varying(&varies)];
    let mut template = ChainTemplate::new();
    if unit == Unit::Template {
        stream.fill_template(&mut template, &Chain::new(&links))?;
    }
    let mut last: Option<TaskId> = None;
    for number in 0..tasks {
        let id = match unit {
            Unit::Template => {
                template.set(0, 1, number)?;
                stream.submit_template(&template, last.as_slice())?
            }
            Unit::Chain => {
                let links = [Link::new(task).times(16).varying(&varies)];
                stream.submit_chain(&Chain::new(&links), last.as_slice())?
            }
            Unit::Task => stream.submit(TaskSpec::new(func_id, kind, &few), last.as_slice())?,
        };
        last = in_turn.then_some(id);
    }
    Ok(())
}

/// A task that changes the first tile, and a chain of a link that reads two and changes the third.
fn solve_and_update<G: StreamBuilder>(
    stream: &mut G,
    [left, other, changed]: [&TensorView<'_>; 3],
    varies: &[Variation<'_>],
    (func_id, kind): (FuncId, CoreKind),
) -> Result<(), BuildError> {
    let solve = [Arg::InOut(left)];
    stream.submit_tensors(&TensorTask::new(func_id, kind, &solve))?;
    let args = [Arg::In(left), Arg::In(other), Arg::InOut(changed)];
    let links = [Link::on_tensors(func_id, kind, &args).times(ROW - 1).varying(varies)];
    stream.submit_chain(&Chain::new(&links), &[])?;
    Ok(())
}
