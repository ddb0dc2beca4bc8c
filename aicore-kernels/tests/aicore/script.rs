//! What AICPU does with a core, and what is seen of the core.

use std::panic::{AssertUnwindSafe, catch_unwind};

use pto_abi::CoreKind;
use pto_abi::chain::{ChainKernel, Turns, by_column, by_steps, header, shape, shape_with_next};
use pto_abi::handshake::{
    Command, DOORBELL_EXIT, Dispatch, FINISHED, LAST_DISPATCH_ID, STATUS_EXITED, STATUS_IDLE,
    next_dispatch_id, previous_dispatch_id,
};
use pto_aicore_kernels::worker::{self, WorkerPort, WorkerStep};

use super::costs::Counts;
use super::library::Library;
use super::model::{CALLS, Model, relaxed, with_model};

/// A task for the core, with the place of its words in GM's data.
#[derive(Clone, Debug)]
pub(crate) enum Task {
    Kernel { code: u64, place: u64, args: Vec<u64> },
    Chain { place: u64, words: Vec<u64> },
}

/// What AICPU does next.
#[derive(Clone, Debug)]
pub(crate) enum Act {
    Greet(u32),
    /// The launch of the core sets its doorbell to 0, after AICPU has greeted it.
    Launched,
    /// AICPU, which waits for an answer, rings again.
    RingsAgain,
    /// Waits for the answer to this greeting.
    Answered(u32),
    /// Stages one or two tasks, and rings the last one.
    Dispatch(Vec<Task>),
    /// Waits until the last task is finished.
    Finished,
    /// Another core writes a word.
    Data(u64, u64),
    /// Does nothing while the core looks so many times.
    Idle(u32),
    Exit,
}

/// What is seen of a core.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    FlagsBase(u64),
    Status(u32),
    /// A kernel: its arguments, and what it read through the core's cache.
    Call {
        code: u64,
        words: Vec<u64>,
        read: u64,
    },
    /// The worker line, written back.
    Line([u64; 8]),
}

/// A run of a core.
#[derive(Clone, Debug)]
pub(crate) struct Script {
    pub(crate) name: &'static str,
    pub(crate) acts: Vec<Act>,
}

/// A kernel whose code stands for how many arguments it reads.
const fn code(args: u64) -> u64 {
    0x10_0000 + args
}

impl Script {
    /// How many arguments the kernel with this code reads: its own, and the block behind them.
    pub(crate) fn args_of(&self, of: u64) -> u64 {
        of - code(0)
    }
}

fn kernel(place: u64, args: &[u64]) -> Task {
    Task::Kernel { code: code(args.len() as u64), place, args: args.to_vec() }
}

/// A chain from its links.
fn chain(place: u64, links: &[Vec<u64>]) -> Task {
    let mut words = vec![0];
    links.iter().for_each(|link| words.extend(link));
    words[0] = header(links.len() as u32, words.len() as u32);
    Task::Chain { place, words }
}

/// A chain of one link.
pub(crate) fn single_chain(link: &[u64]) -> Task {
    chain(16, &[link.to_vec()])
}

/// Kernels read the block context behind their arguments as well.
pub(crate) fn link(args: &[u64], variations: &[u64], columns: &[u64], times: u32) -> Vec<u64> {
    let head = shape(7, args.len() as u8, variations.len() as u8, times);
    [&[code(args.len() as u64 + 1), head], args, variations, columns].concat()
}

fn with_next(mut link: Vec<u64>) -> Vec<u64> {
    link[1] = shape_with_next(link[1]);
    link
}

/// Greets, runs `acts`, and lets the core leave.
fn script(name: &'static str, acts: Vec<Act>) -> Script {
    let begin = [Act::Idle(3), Act::Greet(41), Act::Answered(41)];
    let end = [Act::Finished, Act::Exit];
    Script { name, acts: begin.into_iter().chain(acts).chain(end).collect() }
}

/// Every kind of work, each with words that change while the core could hold old ones in its cache.
pub(crate) fn scripts() -> Vec<Script> {
    let one = |task: Task| Act::Dispatch(vec![task]);
    let (source, other, target) = (100, 108, 200);
    let steps = link(&[source, target, 5], &[by_steps(2, Turns::EACH, -3)], &[], 4);
    let column = link(&[source, target, 0], &[by_column(2, Turns::EACH)], &[9, 8, 7], 3);
    let nested = link(
        &[source, target, 10],
        &[by_steps(2, Turns::every(2), 100), by_steps(2, Turns::within(2), 1)],
        &[],
        6,
    );
    let part = link(
        &[source, target, 0],
        &[by_column(2, Turns::within(2)), by_column(0, Turns::every(2))],
        &[1, 2, source, other, source],
        5,
    );
    let group = [
        with_next(link(&[source, target, 1], &[by_steps(2, Turns::EACH, 1)], &[], 3)),
        with_next(link(&[other, target, 2], &[], &[], 3)),
        link(&[source, target, 3], &[by_column(2, Turns::EACH)], &[30, 31, 32], 3),
        link(&[other, target], &[], &[], 1),
    ];
    let most: Vec<u64> =
        (0..31).map(|arg| if arg < 2 { [source, target][arg] } else { arg as u64 }).collect();
    let mut unknown = chain(16, std::slice::from_ref(&steps));
    if let Task::Chain { words, .. } = &mut unknown {
        words[0] ^= 1 << 56;
    }
    vec![
        script(
            "kernels one after another, of which each reads what was written since",
            (0..40)
                .flat_map(|turn| {
                    [
                        Act::Data(source, 1000 + turn),
                        one(kernel(8 * (turn % 3), &[source, target, turn])),
                        Act::Finished,
                        Act::Idle((turn % 3) as u32),
                    ]
                })
                .collect(),
        ),
        script(
            "two dispatches at once",
            (0..20)
                .flat_map(|turn| {
                    let tasks = [0, 8].map(|place| kernel(place, &[source, target, turn + place]));
                    [Act::Data(source, turn), Act::Dispatch(tasks.to_vec()), Act::Finished]
                })
                .collect(),
        ),
        script(
            "a kernel without arguments",
            vec![one(kernel(0, &[])), Act::Finished, one(kernel(0, &[]))],
        ),
        script(
            "chains",
            [steps, column, nested, part]
                .into_iter()
                .flat_map(|link| {
                    [
                        Act::Data(source, 77),
                        Act::Data(other, 5),
                        one(chain(16, &[link])),
                        Act::Finished,
                    ]
                })
                .chain([one(chain(16, &group)), Act::Finished, Act::Data(source, 3)])
                .chain([one(chain(
                    16,
                    &[link(&most, &[by_steps(30, Turns::EACH, 1 << 38)], &[], 2)],
                ))])
                .collect(),
        ),
        script(
            "a chain in a format that is not known, and one that is cut off",
            vec![
                one(unknown),
                Act::Finished,
                one(Task::Chain {
                    place: 16,
                    words: vec![header(2, 4), code(2), shape(1, 40, 9, 2), 5],
                }),
            ],
        ),
        script("an exit without work", vec![one(kernel(0, &[source, target]))]),
        Script {
            name: "a greeting that is older than the launch",
            acts: vec![
                Act::Greet(41),
                Act::Launched,
                Act::Idle(5),
                Act::RingsAgain,
                Act::Answered(41),
                one(kernel(0, &[source, target])),
                Act::Finished,
                Act::Exit,
            ],
        },
        Script {
            name: "a second greeting of the same epoch is answered already",
            acts: vec![
                Act::Greet(41),
                Act::Answered(41),
                Act::Greet(41),
                Act::Idle(5),
                one(kernel(0, &[source, target])),
                Act::Finished,
                Act::Exit,
            ],
        },
    ]
}

const CLUSTERS: u32 = 3;
const FLAGS_BASE: u64 = 0x1234_5000;

/// Block, blocks, core of the cluster, cores of its kind in the cluster; and the number of the worker.
const fn place(is_cube: bool) -> ([u32; 4], u32) {
    if is_cube { ([2, CLUSTERS, 0, 1], 2) } else { ([1, CLUSTERS, 1, 2], CLUSTERS + 3) }
}

/// What is seen of the loop in C++.
pub(crate) fn in_cpp(
    script: &Script,
    is_cube: bool,
    library: &Library,
) -> Result<Vec<Seen>, String> {
    let (place, number) = place(is_cube);
    let model = Model::new(script.clone(), number);
    let words = model.launch_words();
    let run = || library.run(&CALLS, FLAGS_BASE, words);
    let ran = catch_unwind(AssertUnwindSafe(|| with_model(model, place, run)));
    match ran {
        Ok(model) => Ok(model.seen),
        Err(told) => Err(told.downcast_ref::<String>().cloned().unwrap_or_default()),
    }
}

/// The operations of the loop in C++, counted.
pub(crate) fn in_cpp_counted(script: &Script, is_cube: bool, library: &Library) -> Counts {
    let (place, number) = place(is_cube);
    let model = Model::new(script.clone(), number);
    let words = model.launch_words();
    with_model(model, place, || library.run(&CALLS, FLAGS_BASE, words)).counts
}

/// What is seen of the loop in Rust.
pub(crate) fn in_rust(script: &Script, is_cube: bool) -> Vec<Seen> {
    let (_, number) = place(is_cube);
    let mut model = Model::new(script.clone(), number);
    model.seen.push(Seen::FlagsBase(FLAGS_BASE));
    let kind = if is_cube { CoreKind::AIC } else { CoreKind::AIV };
    let mut core = Core { model, number, kind, expected: None };
    while worker::step(&mut core) != WorkerStep::Left {}
    core.model.seen
}

/// A core in Rust, over the same registers and without a cache.
struct Core {
    model: Model,
    number: u32,
    kind: CoreKind,
    expected: Option<u32>,
}

impl Core {
    fn call(&mut self, code: u64, args: u64) {
        let start = self.model.tick();
        self.model.call(code, args, |model, address| model.gm.word(address));
        self.model.pipes_idle();
        let ticks = self.model.tick() - start;
        self.model.lines().worker.busy_ns.fetch_add(20 * ticks, pto_abi::sync::Ordering::Relaxed);
    }
}

impl WorkerPort for Core {
    fn command(&mut self) -> Command {
        let lines = self.model.lines();
        let Some(expected) = self.expected else {
            if self.model.doorbell() == 0 {
                return Command::Wait;
            }
            // As the one in C++, which looks before AICPU goes on.
            let (epoch, answered) =
                (relaxed(&lines.scheduler.aicpu_ready), relaxed(&lines.worker.aicore_done));
            self.model.aicpu();
            return if epoch == answered { Command::Wait } else { Command::Greet(epoch) };
        };
        let rung = self.model.doorbell();
        if rung == DOORBELL_EXIT {
            return Command::Quit;
        }
        if rung > LAST_DISPATCH_ID || rung == previous_dispatch_id(expected) {
            return Command::Wait;
        }
        self.expected = Some(next_dispatch_id(expected));
        self.model.set_status(expected);
        Command::Run(lines.scheduler.dispatch(expected))
    }

    fn introduce(&mut self, epoch: u32) {
        self.model.set_status(STATUS_IDLE);
        self.expected = Some(0);
        self.model.lines().introduce(epoch, self.number, self.kind);
        let line = self.model.worker_line();
        self.model.seen.push(line);
    }

    fn run(&mut self, dispatch: &Dispatch) {
        self.call(dispatch.kernel, dispatch.args);
    }

    fn run_link(&mut self, dispatch: &Dispatch, _: &ChainKernel, _: &[u64]) -> bool {
        self.call(dispatch.kernel, dispatch.args);
        true
    }

    fn finish(&mut self, id: u32) {
        self.model.lines().count_task();
        self.model.set_status(FINISHED | id);
    }

    fn leave(&mut self) {
        self.model.lines().leave();
        let line = self.model.worker_line();
        self.model.seen.push(line);
        self.model.set_status(STATUS_EXITED);
    }
}
