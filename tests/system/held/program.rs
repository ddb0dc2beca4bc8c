//! Random programs that keep tasks back: what they do, and the streaming program that does it.

use pto_host::abi::{CoreKind, GmAddr, TaskId};
use pto_host::func;
use pto_host::graph::{
    Arg, Bindings, BuildError, Comparison, ElementType, Predicate, StreamBuilder, TensorTask,
    TensorView, builder_set,
};

builder_set! {
    /// The program.
    pub(crate) struct Programs {}
    stream { "held" => held }
}

/// Tensors of one element.
pub(crate) const TENSORS: usize = 6;
/// Tasks of the record.
pub(crate) const REPLAYED: usize = 3;
/// Bytes from one tensor to the next. After the last one stands a word that is zero.
const PITCH: u64 = 64;
/// Bytes of all of it.
pub(crate) const WORDS: usize = 8 * (TENSORS + 1);

/// What else than one kernel on one core a task is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TaskForm {
    Plain,
    Mix,
    Blocks,
    Together,
    /// Its predicate is false: it never runs.
    Skipped,
}

/// A task.
#[derive(Clone, Copy, Debug)]
pub(crate) struct New {
    pub(crate) reads: Option<usize>,
    pub(crate) writes: Option<usize>,
    pub(crate) scalars: usize,
    pub(crate) shape: TaskForm,
    /// Published by a step of its own.
    pub(crate) is_kept: bool,
}

/// One step of a program. Tasks are named by their numbers.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    Add(New),
    Edge { producer: usize, consumer: usize },
    Publish(usize),
    Replay(usize),
    Get(usize),
    Set(usize),
}

/// What programs of a kind do besides adding and publishing tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Nothing: tasks wait for earlier ones.
    Forward,
    /// They let tasks wait for later ones.
    Backward,
    /// That, and they wait for values.
    Waiting,
}

impl Kind {
    pub(crate) const ALL: [Self; 3] = [Self::Forward, Self::Backward, Self::Waiting];
}

/// SplitMix64.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        usize::try_from((z ^ (z >> 31)) % bound as u64).unwrap()
    }
}

/// A program.
pub(crate) fn steps(seed: u64, kind: Kind) -> Vec<Step> {
    let mut random = Random(seed ^ (kind as u64) << 32);
    let (mut steps, mut kept, mut added) = (Vec::new(), Vec::<usize>::new(), 0);
    // Some programs keep much back, some little.
    let share = 2 + random.below(10);
    for _ in 0..20 + random.below(60) {
        match random.below(12) {
            0 => {
                steps.push(Step::Replay(random.below(TENSORS)));
                added += REPLAYED;
            }
            1 if kind == Kind::Waiting => steps.push(Step::Get(random.below(TENSORS))),
            2 if kind == Kind::Waiting => steps.push(Step::Set(random.below(TENSORS))),
            3 | 4 if !kept.is_empty() => {
                let consumer = kept[random.below(kept.len())];
                let producer = match kind {
                    Kind::Forward => consumer.saturating_sub(1 + random.below(8)),
                    _ => added - 1 - random.below(added.min(12)),
                };
                if producer != consumer {
                    steps.push(Step::Edge { producer, consumer });
                }
            }
            5..=7 if !kept.is_empty() => {
                steps.push(Step::Publish(kept.remove(random.below(kept.len()))));
            }
            _ => {
                let new = task(&mut random, share);
                if new.is_kept {
                    kept.push(added);
                }
                steps.push(Step::Add(new));
                added += 1;
            }
        }
    }
    while !kept.is_empty() {
        steps.push(Step::Publish(kept.remove(random.below(kept.len()))));
    }
    steps
}

fn task(random: &mut Random, share: usize) -> New {
    let mut tensor = || (random.below(3) > 0).then(|| random.below(TENSORS));
    let (reads, writes) = (tensor(), tensor());
    let shapes = [TaskForm::Mix, TaskForm::Blocks, TaskForm::Together, TaskForm::Skipped];
    New {
        reads: reads.filter(|reads| Some(*reads) != writes),
        writes,
        scalars: random.below(6),
        shape: shapes.get(random.below(12)).copied().unwrap_or(TaskForm::Plain),
        is_kept: random.below(share) == 0,
    }
}

/// What the program is told: the seed, the kind, and where the tensors are.
pub(crate) fn orch_args(seed: u64, kind: Kind, base: GmAddr) -> [u64; 3] {
    [seed, kind as u64, base.0]
}

fn held<G: StreamBuilder>(stream: &mut G) -> Result<(), BuildError> {
    let [seed, kind, base] = stream.orch_args() else { return Err(BuildError::Failed(1)) };
    let kind = Kind::ALL[usize::try_from(*kind).unwrap()];
    let (steps, base) = (steps(*seed, kind), GmAddr(*base));
    let at = |number: usize| base.offset(PITCH * number as u64);
    let tensor = |number: usize| TensorView::dense(at(number), ElementType::U32, &[1]);
    let recording = stream.record(&[tensor(0)], |stream, bound| {
        let args = [Arg::InOut(&bound.tensor(0))];
        for _ in 0..REPLAYED {
            stream.submit_tensors(&TensorTask::new(func::EMPTY_AIV, CoreKind::AIV, &args))?;
        }
        Ok::<_, BuildError>(())
    })?;
    let mut ids = Vec::new();
    for step in steps {
        match step {
            Step::Add(new) => ids.push(add(stream, &new, tensor)?),
            Step::Edge { producer, consumer } => {
                // A replay gives no ids to its tasks.
                if ids[producer] != TaskId::NONE {
                    stream.add_edge(ids[producer], ids[consumer])?;
                }
            }
            Step::Publish(number) => stream.publish(ids[number])?,
            Step::Replay(number) => {
                let tensors = [tensor(number)];
                stream.replay(&recording, &Bindings { tensors: &tensors, scalars: &[] })?;
                ids.extend([TaskId::NONE; REPLAYED]);
            }
            Step::Get(number) => {
                stream.get(&tensor(number), &[0])?;
            }
            Step::Set(number) => stream.set(&tensor(number), &[0], 7)?,
        }
    }
    Ok(())
}

fn add<G: StreamBuilder>(
    stream: &mut G,
    new: &New,
    tensor: impl Fn(usize) -> TensorView<'static>,
) -> Result<TaskId, BuildError> {
    let (reads, writes) = (new.reads.map(&tensor), new.writes.map(&tensor));
    let mut args: Vec<Arg<'_>> = reads.iter().map(Arg::In).collect();
    args.extend(writes.iter().map(Arg::InOut));
    args.extend((0..new.scalars).map(|word| Arg::Scalar(word as u64)));
    let zero = tensor(TENSORS);
    let never = Predicate::new(&zero, &[0], Comparison::GREATER, 0);
    let task = TensorTask::new(func::EMPTY_AIV, CoreKind::AIV, &args);
    let task = match new.shape {
        TaskForm::Plain => task,
        TaskForm::Mix => {
            TensorTask::new(func::EMPTY_AIC, CoreKind::AIC, &args).mix(&[func::EMPTY_AIV])
        }
        TaskForm::Blocks => task.blocks(5),
        TaskForm::Together => task.blocks(2).sync_start(),
        TaskForm::Skipped => task.when(&never),
    };
    let id = match new.is_kept {
        true => stream.add_tensor_task(&task)?,
        false => stream.submit_tensors(&task)?,
    };
    Ok(id)
}
