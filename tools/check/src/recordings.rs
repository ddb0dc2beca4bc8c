//! A program without recordings: each replay as the tasks that it adds.
//!
//! ```text
//! record 4 [tensors 20, 21] { alloc 22; task 7 on 20, 22; task 8 on 22, 21 }     kept
//! replay 4 [0 from element 8 on, 1]            -->  alloc 23; task 9 on 0, 23; task 10 on 23, 1
//! ```
//! A view of a tensor that a replay binds begins so many bytes after the view that is bound; its extents and strides stay. Tensors that
//! the recording allocates, and its tasks, are new ones in each replay.

use std::collections::HashMap;

use pto_abi::numbers::Counted;

use crate::program::{
    Action, Argument, ChainLink, Condition, OwnedBlockShape, Program, Step, Task, Tensor,
    TensorByte, Vary, View, Way,
};

/// The same program with each replay as the tasks that it adds.
///
/// # Errors
/// In words: a replay names no recording that has ended, binds too few tensors or words, or binds a tensor at a byte where no element of a task
/// begins.
pub fn without_recordings(program: &Program) -> Result<Program, String> {
    let mut flat = Flat::of(program);
    let mut open: Option<(u32, Body<'_>)> = None;
    for step in &program.steps {
        match (&step.action, &mut open) {
            (Action::BeginRecording { record, tensors }, _) => {
                let bound = tensors.iter().map(|(index, _)| *index).collect();
                open = Some((*record, Body { bound, steps: Vec::new() }));
            }
            (Action::EndRecording, _) => flat.recordings.extend(open.take()),
            (_, Some((_, body))) => body.steps.push(&step.action),
            (Action::Replay { record, tensors, scalars }, None) => {
                let replayed = flat.replay(*record, tensors, scalars, step.line);
                replayed.map_err(|what| format!("line {}: the replay {what}", step.line))?;
            }
            (action, None) => {
                let outside = Names::default();
                flat.step(action, &outside, step.line)?;
            }
        }
    }
    Ok(flat.program)
}

/// What a recording says.
struct Body<'p> {
    /// The tensors that a replay binds.
    bound: Vec<usize>,
    steps: Vec<&'p Action>,
}

struct Flat<'p> {
    of: &'p Program,
    program: Program,
    /// The index in the new program of a tensor that is outside of recordings in the old one.
    indices: HashMap<usize, usize>,
    recordings: HashMap<u32, Body<'p>>,
    next_task: u32,
    next_tensor: u32,
    replays: u32,
}

/// What a replay gives other names.
#[derive(Default)]
struct Names<'r> {
    /// The tensor in the new program, and its byte where the one of the recording begins.
    tensors: HashMap<usize, (usize, u64)>,
    tasks: HashMap<u32, u32>,
    scalars: &'r [u64],
}

impl<'p> Flat<'p> {
    /// The tensors outside of recordings, and nothing that is done with them.
    fn of(program: &'p Program) -> Self {
        let inside = inside(program);
        let outside = (0..program.tensors.len()).filter(|index| !inside.contains(index));
        let outside: Vec<_> = outside.collect();
        let tensors: Vec<_> = outside.iter().map(|index| program.tensors[*index].clone()).collect();
        let indices: HashMap<_, _> = outside.iter().copied().zip(0..).collect();
        let heap = program.heap.iter();
        let heap = heap.filter_map(|(index, at)| Some((*indices.get(index)?, *at))).collect();
        let next_id = |ids: Option<u32>| ids.map_or(0, |last| last.wrapping_add(1));
        Self {
            of: program,
            program: Program {
                name: program.name.clone(),
                variant: program.variant,
                tensors,
                tasks: Vec::new(),
                steps: Vec::new(),
                heap,
            },
            indices,
            recordings: HashMap::new(),
            next_task: next_id(program.tasks.iter().map(|task| task.id).max()),
            next_tensor: next_id(program.tensors.iter().map(|tensor| tensor.id).max()),
            replays: 0,
        }
    }

    fn replay(
        &mut self,
        record: u32,
        views: &[View],
        scalars: &[u64],
        line: usize,
    ) -> Result<(), String> {
        let body = self.recordings.remove(&record);
        let body = body.ok_or_else(|| format!("names record {record}, which has not ended"))?;
        if body.bound.len() != views.len() {
            let (found, wanted) = (views.len(), body.bound.len());
            let found = Counted(found as u64, "tensor");
            return Err(format!("binds {found}, and record {record} leaves {wanted} open"));
        }
        self.replays += 1;
        let mut names = Names { scalars, ..Names::default() };
        for (bound, view) in body.bound.iter().zip(views) {
            let at = view.offset.saturating_mul(view.element.bytes());
            names.tensors.insert(*bound, (self.index_of(view.tensor)?, at));
        }
        for action in &body.steps {
            match action {
                Action::Allocate(index) => {
                    let tensor = self.fresh(&self.of.tensors[*index]);
                    names.tensors.insert(*index, (self.program.tensors.len(), 0));
                    self.program.tensors.push(tensor);
                }
                Action::Add(index) => {
                    names.tasks.insert(self.of.tasks[*index].id, self.next_task);
                    self.next_task = self.next_task.wrapping_add(1);
                }
                _ => {}
            }
            self.step(action, &names, line)?;
        }
        self.recordings.insert(record, body);
        Ok(())
    }

    /// A tensor that this replay allocates.
    fn fresh(&mut self, of: &Tensor) -> Tensor {
        let id = self.next_tensor;
        self.next_tensor = id.wrapping_add(1);
        let name = of.name.as_ref().map(|name| format!("{name}.{}", self.replays));
        Tensor { id, name, ..of.clone() }
    }

    fn index_of(&self, tensor: usize) -> Result<usize, String> {
        let index = self.indices.get(&tensor).copied();
        index
            .ok_or_else(|| format!("names {}, which is a recording's", self.of.tensor_name(tensor)))
    }

    fn step(&mut self, action: &Action, names: &Names<'_>, line: usize) -> Result<(), String> {
        let task = |id: &u32| names.tasks.get(id).copied().unwrap_or(*id);
        let action = match action {
            Action::Allocate(index) => Action::Allocate(match names.tensors.get(index) {
                Some((fresh, _)) => *fresh,
                None => self.index_of(*index)?,
            }),
            Action::Add(index) => {
                let added = self.task(&self.of.tasks[*index], names)?;
                self.program.tasks.push(added);
                Action::Add(self.program.tasks.len() - 1)
            }
            Action::Edge { producer, consumer } => {
                Action::Edge { producer: task(producer), consumer: task(consumer) }
            }
            Action::Publish(id) => Action::Publish(task(id)),
            Action::Get(view) => Action::Get(self.view(view, names)?),
            Action::Set(view, value) => Action::Set(self.view(view, names)?, *value),
            other => other.clone(),
        };
        self.program.steps.push(Step { action, line });
        Ok(())
    }

    fn task(&self, task: &Task, names: &Names<'_>) -> Result<Task, String> {
        let named = |id: &u32| names.tasks.get(id).copied().unwrap_or(*id);
        let links = task.links.iter().map(|link| self.link(link, names));
        let when = task.block_shape.when.as_ref().map(|when| {
            Ok::<_, String>(Condition { element: self.view(&when.element, names)?, ..*when })
        });
        let block_shape = OwnedBlockShape { when: when.transpose()?, ..task.block_shape.clone() };
        Ok(Task {
            id: named(&task.id),
            args: self.arguments(&task.args, names)?,
            after: task.after.iter().map(named).collect(),
            links: links.collect::<Result<_, _>>()?,
            block_shape,
            ..task.clone()
        })
    }

    fn link(&self, link: &ChainLink, names: &Names<'_>) -> Result<ChainLink, String> {
        let uses = link.uses.iter().map(|args| self.arguments(args, names));
        let moved = |byte: &TensorByte| {
            Ok::<_, String>(TensorByte { tensor: self.index_of(byte.tensor)?, ..*byte })
        };
        let vary = link.vary.iter().map(|vary| {
            let view = link.args.get(vary.arg).and_then(Argument::view);
            let bound = view.and_then(|(view, _)| names.tensors.get(&view.tensor));
            let offset = bound.map_or(0, |(_, offset)| *offset);
            let way = match &vary.way {
                // A record has no chains, so that these are tensors outside of recordings.
                Way::At(bytes) => Way::At(bytes.iter().map(moved).collect::<Result<_, _>>()?),
                // Of a view: bytes from the first one of its tensor.
                Way::Of(words) => Way::Of(words.iter().map(|word| word + offset).collect()),
                way @ Way::By(_) => way.clone(),
            };
            Ok::<_, String>(Vary { way, ..*vary })
        });
        Ok(ChainLink {
            args: self.arguments(&link.args, names)?,
            vary: vary.collect::<Result<_, _>>()?,
            uses: uses.collect::<Result<_, _>>()?,
            ..link.clone()
        })
    }

    fn arguments(&self, args: &[Argument], names: &Names<'_>) -> Result<Vec<Argument>, String> {
        let of = |arg: &Argument| {
            Ok(match arg {
                Argument::In(view) => Argument::In(self.view(view, names)?),
                Argument::Out(view) => Argument::Out(self.view(view, names)?),
                Argument::InOut(view) => Argument::InOut(self.view(view, names)?),
                Argument::NoDep(view, does) => Argument::NoDep(self.view(view, names)?, *does),
                Argument::Scalar(word) => Argument::Scalar(*word),
                Argument::BoundScalar(number) => {
                    let word = names.scalars.get(*number as usize);
                    let word = word.ok_or_else(|| {
                        let found = names.scalars.len();
                        format!("binds {found} words, and a task has word {number}")
                    })?;
                    Argument::Scalar(*word)
                }
            })
        };
        args.iter().map(of).collect()
    }

    fn view(&self, view: &View, names: &Names<'_>) -> Result<View, String> {
        let Some((tensor, offset)) = names.tensors.get(&view.tensor) else {
            return Ok(view.moved(self.index_of(view.tensor)?, 0));
        };
        let size = view.element.bytes();
        if !offset.is_multiple_of(size) {
            let name = self.program.tensor_name(*tensor);
            return Err(format!(
                "binds {name} from byte {offset} on, where no element of {size} bytes begins"
            ));
        }
        Ok(view.moved(*tensor, offset / size))
    }
}

/// The tensors that stand in recordings: those that replays bind, and those that the recordings allocate.
fn inside(program: &Program) -> Vec<usize> {
    let (mut inside, mut is_open) = (Vec::new(), false);
    for step in &program.steps {
        match &step.action {
            Action::BeginRecording { tensors, .. } => {
                is_open = true;
                inside.extend(tensors.iter().map(|(index, _)| *index));
            }
            Action::EndRecording => is_open = false,
            Action::Allocate(index) if is_open => inside.push(*index),
            _ => {}
        }
    }
    inside
}
