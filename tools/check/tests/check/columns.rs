//! Words of kernels that are addresses, in several tensors: a recording keeps them right wherever its tensors are then.

use pto_abi::symbol::symbol;
use pto_abi::{CoreKind, Fault, FuncId, GmAddr, RuntimeVariant, TaskId};
use pto_check::program::{Argument, Program, TensorByte, Way};
use pto_check::{
    Buffer, Cores, FileProgram, Memory, Operand, Options, Recorder, check, declare, file, record,
    with_kept_heap,
};
use pto_graph::signature::{Access, Extents};
use pto_graph::{
    Arg, BuildError, BuilderSet, Chain, DependencyMode, EdgeOutcome, ElementType, GraphBuilder,
    HostedBuilder, LaunchArgs, Link, StreamBuilder, Submission, TaskDesc, TaskSpec, TensorTask,
    TensorView, Variation,
};
use std::sync::Arc;

/// Where the program's own tensor is, of eight numbers.
const OUT: u64 = 0x10_0000;
const NUMBERS: u32 = 8;
const BYTES: u64 = 32;
/// Takes an address that is read, one that is written, and how many numbers.
const COPY: FuncId = FuncId(5);

/// A chain of words whose kernels read the ends and the inside of two tensors of the heap, and one on tensors that has the same words besides them.
struct Columns;

impl BuilderSet for Columns {
    const STREAMS: bool = true;

    fn names(&self) -> &[&str] {
        &[]
    }

    fn build<G: HostedBuilder>(&self, _: u64, _: &mut G) -> Option<Result<(), BuildError>> {
        None
    }

    fn stream_names(&self) -> &[&str] {
        &["columns"]
    }

    fn build_stream<G: StreamBuilder + HostedBuilder>(
        &self,
        wanted: u64,
        stream: &mut G,
    ) -> Option<Result<(), BuildError>> {
        (wanted == symbol("columns")).then(|| submit(stream))
    }
}

fn submit<G: StreamBuilder>(stream: &mut G) -> Result<(), BuildError> {
    let [first, second] = [0, 0].map(|_| stream.alloc(ElementType::F32, &[NUMBERS]));
    let [first, second] = [first?.address().0, second?.address().0];
    let scope = stream.open_scope(DependencyMode::MANUAL)?;
    let column = [first + 4, second + 8, first];
    let varies = [Variation::of(0, &column), Variation::by(1, 4)];
    let word_lists = [column[0], second, first].map(|word| [word, OUT, 1]);
    let [copies, steps, ends_only] =
        word_lists.each_ref().map(|words| Link::new(TaskSpec::new(COPY, CoreKind::AIV, words)));
    // From the second tensor to the first one, in one step.
    let back = [Variation::by(0, second.cast_signed().wrapping_neg().wrapping_add_unsigned(first))];
    // After the last number there is nothing to read, and nothing is.
    let (last, both) = ([first, second + BYTES], [first, second]);
    let ends = [Variation::of(0, &last), Variation::of(2, &[1, 0])];
    let links = [
        copies.times(3).varying(&varies),
        steps.times(2).varying(&back),
        ends_only.times(2).varying(&ends),
    ];
    stream.submit_chain(&Chain::new(&links), &[])?;
    let out = TensorView::dense(GmAddr(OUT), ElementType::F32, &[NUMBERS]);
    let args = [Arg::Scalar(first), Arg::Out(&out), Arg::Scalar(1)];
    let varies = [Variation::of(0, &both)];
    let mixed = [Link::on_tensors(COPY, CoreKind::AIV, &args).times(2).varying(&varies)];
    stream.submit_chain(&Chain::new(&mixed), &[])?;
    let args = [Arg::Scalar(second + 12), Arg::Out(&out), Arg::Scalar(1)];
    stream.submit_tensors(&TensorTask::new(COPY, CoreKind::AIV, &args))?;
    stream.close_scope(scope)?;
    Ok(())
}

/// A device that has no reader.
struct Nothing;

impl Memory for Nothing {
    fn read(&self, _: GmAddr, _: u64) -> Option<u64> {
        None
    }

    fn write(&self, _: GmAddr, _: u64, _: u64) -> Option<()> {
        None
    }
}

fn recorded(set: (&impl BuilderSet, &str)) -> Program {
    record(set, &[], 16, (Cores::default(), &Nothing)).expect("it is recorded")
}

fn operands(func: u16, words: &[u64]) -> Option<Vec<Operand>> {
    let &[_, _, n] = words else { return None };
    let of = |arg, access| Operand { arg, access, extents: Some(Extents::Vector(n)) };
    (func == COPY.0).then(|| vec![of(0, Access::In), of(1, Access::Out)])
}

fn declared() -> Program {
    let mut program = recorded((&Columns, "columns"));
    let out = Buffer { name: "out".into(), address: GmAddr(OUT), bytes: BYTES, shape: None };
    declare(&mut program, &[out], operands);
    program
}

/// What each kernel of the program gets as its first argument, where its tensors are at these addresses.
fn first_words(program: &Program, addresses: &[u64]) -> Vec<u64> {
    let submission = FileProgram::new(Arc::new(program.clone()));
    submission.set_addresses(&addresses.iter().map(|address| GmAddr(*address)).collect::<Vec<_>>());
    let again = recorded((&submission, FileProgram::NAME));
    let bases: Vec<_> = again.tensors.iter().map(|tensor| tensor.location).collect();
    let address = |arg: &Argument| match (arg, arg.view()) {
        (_, Some((view, _))) => match bases[view.tensor] {
            pto_check::program::Location::Host(Some(base)) => {
                base.0 + view.offset * view.element.bytes()
            }
            location => panic!("{location:?}"),
        },
        (Argument::Scalar(word), _) => *word,
        other => panic!("{other:?}"),
    };
    let kernels = again.tasks.iter().flat_map(|task| task.calls().collect::<Vec<_>>());
    kernels.map(|kernel| address(&kernel.args[0])).collect()
}

#[test]
fn addresses_in_several_tensors_follow_their_tensors() {
    let (kept, left) = with_kept_heap(&declared());
    assert_eq!((kept.tensors.len(), left.len()), (3, 0));
    let addresses: Vec<u64> = (0..3).map(|tensor| 0x700_0000 + 0x1_0000 * tensor).collect();
    // The tensors of the heap stand in the order in which they were allocated.
    let of_heap = |tensor: &&pto_check::program::Tensor| tensor.id;
    let mut heap: Vec<_> =
        kept.tensors.iter().filter(|t| t.name.as_deref() != Some("out")).collect();
    heap.sort_by_key(of_heap);
    let base = |at: usize| {
        let id = heap[at].id;
        addresses[kept.tensors.iter().position(|tensor| tensor.id == id).expect("it is there")]
    };
    let (first, second) = (base(0), base(1));
    let words = first_words(&kept, &addresses);
    assert_eq!(words[..3], [first + 4, second + 8, first], "a column");
    assert_eq!(words[3..5], [second, first], "a step from one tensor to another");
    assert_eq!(words[5], first);
    assert!([first, second].contains(&words[6]), "nothing is read there: {:x}", words[6]);
    assert_eq!(words[7..], [first, second, second + 12], "beside tensors");
}

/// A graph's builder takes a view of one tensor whose column has addresses of others.
fn build(graph: &mut impl GraphBuilder) -> Result<(), BuildError> {
    let [first, second] = [SEVERAL[0], SEVERAL[1]]
        .map(|at| TensorView::dense(GmAddr(at), ElementType::F32, &[NUMBERS]));
    let out = TensorView::dense(GmAddr(OUT), ElementType::F32, &[NUMBERS]);
    let args = [Arg::In(&first), Arg::Out(&out), Arg::Scalar(u64::from(NUMBERS))];
    let column = [first.address().0, second.address().0];
    let varies = [Variation::of(0, &column)];
    let links = [Link::on_tensors(COPY, CoreKind::AIV, &args).times(2).varying(&varies)];
    graph.submit_chain(&Chain::new(&links), &[])?;
    Ok(())
}

/// Two tensors of the host's.
const SEVERAL: [u64; 2] = [0x20_0000, 0x30_0000];

#[test]
fn a_view_that_leaves_its_tensor_in_a_graph_follows_the_others() {
    let mut program = Program::new("graph", RuntimeVariant::AICPU_BUILD_GRAPH);
    let mut tasks = TaskIds(0);
    build(&mut Recorder::new(&mut tasks, &mut program)).expect("it is recorded");
    let buffers = [("first", SEVERAL[0]), ("second", SEVERAL[1]), ("out", OUT)];
    let buffers = buffers.map(|(name, address)| Buffer {
        name: name.into(),
        address: GmAddr(address),
        bytes: BYTES,
        shape: None,
    });
    declare(&mut program, &buffers, operands);
    let report = check(
        &program,
        &Options { rings: crate::standard(), cores: Cores::default(), kernels: None },
    );
    assert!(report.is_clean(), "{report:?}");
    let kernels: Vec<_> = program.tasks[0].calls().collect();
    let names = kernels.iter().map(|kernel| {
        let (view, _) = kernel.args[0].view().expect("an address of a tensor");
        program.tensors[view.tensor].name.as_deref()
    });
    assert_eq!(names.collect::<Vec<_>>(), [Some("first"), Some("second")]);
}

/// A builder that gives out ids.
struct TaskIds(u32);

impl GraphBuilder for TaskIds {
    fn launch_args(&self) -> LaunchArgs<'_> {
        LaunchArgs::default()
    }

    fn submit_desc(&mut self, submission: Submission<'_>) -> Result<Option<TaskId>, Fault> {
        if matches!(submission.desc, TaskDesc::Chain(_)) {
            return Ok(None);
        }
        self.0 += 1;
        Ok(Some(TaskId { slot: self.0, generation: 1 }))
    }

    fn add_edge(&mut self, _: TaskId, _: TaskId) -> Result<EdgeOutcome, Fault> {
        Ok(EdgeOutcome::Added)
    }

    fn publish(&mut self, _: TaskId) -> Result<(), Fault> {
        Ok(())
    }

    fn read_u32(&self, _: GmAddr) -> Result<u32, Fault> {
        Err(Fault::BUILD_GM_RANGE)
    }
}

#[test]
fn a_file_holds_places_in_several_tensors() {
    let program = declared();
    let is_column = |way: &&Way| matches!(way, Way::At(bytes) if bytes.len() == 3);
    let ways = program.tasks.iter().flat_map(|task| &task.links).flat_map(|link| &link.vary);
    let Some(Way::At(bytes)) = ways.map(|vary| &vary.way).find(is_column) else {
        panic!("{program:?}")
    };
    let [one, other, again] = bytes[..] else { panic!("{bytes:?}") };
    assert_eq!((one.byte, other.byte, again), (4, 8, TensorByte { byte: 0, ..one }));
    assert_ne!(one.tensor, other.tensor);
    let mut text = Vec::new();
    file::write(&program, &mut text).expect("it is written");
    let read = file::read(text.as_slice()).expect("it is read");
    assert_eq!(read.variant, RuntimeVariant::TENSORMAP_AND_RINGBUFFER);
    assert_eq!(read.tasks.len(), program.tasks.len());
    let (kept, _) = with_kept_heap(&read);
    let addresses: Vec<u64> = (0..3).map(|tensor| 0x700_0000 + 0x1_0000 * tensor).collect();
    let words = first_words(&kept, &addresses);
    assert!(
        words.iter().all(|word| *word >= addresses[0] && *word < addresses[2] + BYTES),
        "{words:x?}"
    );
}
