//! Open scopes of a program, and the ids of its tasks.
//!
//! An id says to which scope its task belongs (bits 40 to 63), the ring that the field counts it in (32 to 39), and its number
//! (0 to 30). Bit 31 marks tensors without a task: what made them has completed.
//!
//! Invariants: the scope of the whole program is always open; the id of task `n` is at index `n` modulo the window.

use pto_host::abi::TaskId;
use pto_host::graph::{HeapTag, ScopeId};

use crate::wire::NO_TASK;

/// Scopes that may be open at once, that of the program not counted.
pub(crate) const MAX_DEPTH: usize = 64;
const NUMBER: u64 = (1 << 31) - 1;
const MADE: u64 = 1 << 31;

/// The number of the task that an id of ours names; `None`: it names tensors without a task.
pub(crate) fn number_of(own: u64) -> Option<u64> {
    (own & MADE == 0).then_some(own & NUMBER)
}

/// A scope that is open.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OpenScope {
    /// The engine's scope; `None`: it shares that of the scope around it.
    pub(crate) engine: Option<ScopeId>,
    /// Which heap its tensors are on.
    pub(crate) tag: HeapTag,
    pub(crate) is_manual: bool,
    /// Where its descriptors begin.
    pub(crate) mark: usize,
    serial: u64,
}

/// See the file.
pub(crate) struct Scopes {
    open: Vec<OpenScope>,
    serials: u64,
}

impl Scopes {
    /// The program's scope is open; its descriptors begin at `mark`.
    pub(crate) fn new(mark: usize) -> Self {
        let tag = HeapTag { depth: 1, serial: 0 };
        let program = OpenScope { engine: None, tag, is_manual: false, mark, serial: 0 };
        Self { open: vec![program], serials: 0 }
    }

    pub(crate) fn innermost(&self) -> OpenScope {
        self.open[self.open.len() - 1]
    }

    /// How many are open within that of the program.
    pub(crate) fn depth(&self) -> usize {
        self.open.len() - 1
    }

    pub(crate) fn open(&mut self, engine: Option<ScopeId>, is_manual: bool, mark: usize) {
        self.serials = (self.serials + 1) & 0xFF_FFFF;
        let inherited = self.innermost().tag;
        let tag = engine.map_or(inherited, |id| HeapTag { depth: id.depth + 1, serial: id.serial });
        self.open.push(OpenScope { engine, tag, is_manual, mark, serial: self.serials });
    }

    /// Closes the innermost one; `None`: only that of the program is open.
    pub(crate) fn close(&mut self) -> Option<OpenScope> {
        if self.open.len() > 1 { self.open.pop() } else { None }
    }

    /// The heap that a tensor with this owner is on; `None`: its scope has ended.
    pub(crate) fn tag_of(&self, owner: u64) -> Option<HeapTag> {
        if owner == NO_TASK {
            return Some(HeapTag::default());
        }
        let serial = owner >> 40;
        self.open.iter().rev().find(|scope| scope.serial == serial).map(|scope| scope.tag)
    }

    fn id(&self, local: u64) -> u64 {
        let ring = self.depth().min(3) as u64;
        self.innermost().serial << 40 | ring << 32 | local
    }
}

/// The status of the task with a given id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TaskStatus {
    /// No task has this id.
    Unknown,
    /// The task has retired, or the engine keeps no state of the task to wait for.
    Retired,
    /// The task may still run. `is_noted`: the engine knows which tensors it writes.
    Alive { id: TaskId, number: u64, is_noted: bool },
}

/// The ids of the tasks in the window.
pub(crate) struct Ids {
    window: Vec<(TaskId, bool)>,
    added: u64,
    made: u64,
}

impl Ids {
    pub(crate) fn new(window: usize) -> Self {
        Self { window: vec![(TaskId::NONE, false); window.max(1)], added: 0, made: 0 }
    }

    /// The number of the next task.
    pub(crate) fn next(&self) -> u64 {
        self.added
    }

    /// The id of the next task.
    pub(crate) fn next_id(&self, scopes: &Scopes) -> u64 {
        scopes.id(self.added & NUMBER)
    }

    /// An id for tensors without a task.
    pub(crate) fn made_id(&mut self, scopes: &Scopes) -> u64 {
        self.made += 1;
        scopes.id(MADE | self.made & NUMBER)
    }

    /// The next task has been added.
    pub(crate) fn add(&mut self, id: TaskId, is_noted: bool) {
        let at = self.window_index(self.added);
        self.window[at] = (id, is_noted);
        self.added += 1;
    }

    /// The oldest task that may not have retired.
    pub(crate) fn oldest(&self) -> u64 {
        self.added.saturating_sub(self.window.len() as u64)
    }

    /// The task of this number; `None`: it has retired.
    pub(crate) fn numbered(&self, number: u64) -> Option<TaskId> {
        let is_alive = number < self.added && number >= self.oldest();
        is_alive.then(|| self.window[self.window_index(number)].0)
    }

    /// The tasks that may still run and that the engine's map does not know.
    pub(crate) fn not_noted(&self) -> impl Iterator<Item = TaskId> {
        let alive =
            (self.oldest()..self.added).map(|number| self.window[self.window_index(number)]);
        alive.filter(|(_, is_noted)| !is_noted).map(|(id, _)| id)
    }

    fn window_index(&self, number: u64) -> usize {
        usize::try_from(number % self.window.len() as u64).unwrap_or(0)
    }

    /// What an id says.
    pub(crate) fn find(&self, raw: u64) -> TaskStatus {
        if raw == NO_TASK {
            return TaskStatus::Unknown;
        }
        if raw & MADE != 0 {
            return if raw & NUMBER <= self.made {
                TaskStatus::Retired
            } else {
                TaskStatus::Unknown
            };
        }
        let back = self.added.wrapping_sub(raw) & NUMBER;
        match back {
            0 => TaskStatus::Unknown,
            back if back > self.added => TaskStatus::Unknown,
            back if back > self.window.len() as u64 => TaskStatus::Retired,
            back => {
                let number = self.added - back;
                let (id, is_noted) = self.window[self.window_index(number)];
                TaskStatus::Alive { id, number, is_noted }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Ids, Scopes, TaskStatus};
    use crate::wire::NO_TASK;
    use pto_host::abi::TaskId;

    #[test]
    fn ids_find_their_tasks() {
        let (mut scopes, mut ids) = (Scopes::new(0), Ids::new(4));
        scopes.open(None, false, 0);
        let mut raws = Vec::new();
        for slot in 0..6 {
            raws.push(ids.next_id(&scopes));
            ids.add(TaskId { slot, generation: 1 }, true);
        }
        assert_eq!(ids.find(raws[1]), TaskStatus::Retired);
        let id = TaskId { slot: 2, generation: 1 };
        assert_eq!(ids.find(raws[2]), TaskStatus::Alive { id, number: 2, is_noted: true });
        assert_eq!(ids.find(ids.next_id(&scopes)), TaskStatus::Unknown, "not submitted yet");
        assert_eq!(ids.find(NO_TASK), TaskStatus::Unknown);
        let made = ids.made_id(&scopes);
        assert_eq!(ids.find(made), TaskStatus::Retired);
        assert_eq!(ids.find(made + 1), TaskStatus::Unknown);
    }

    #[test]
    fn tensors_end_with_their_scope() {
        let (mut scopes, ids) = (Scopes::new(0), Ids::new(4));
        let outer = ids.next_id(&scopes);
        scopes.open(None, true, 0);
        let inner = ids.next_id(&scopes);
        assert!(scopes.tag_of(inner).is_some() && scopes.innermost().is_manual);
        scopes.close();
        assert!(scopes.tag_of(inner).is_none() && scopes.tag_of(outer).is_some());
        assert!(scopes.close().is_none());
        scopes.open(None, false, 0);
        assert!(scopes.tag_of(inner).is_none(), "another scope of the same depth");
    }
}
