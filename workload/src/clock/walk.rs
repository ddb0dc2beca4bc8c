//! Goes through a tree in program order, one event at a time, so that several processes can be gone through side by side.

use crate::tree::{Axis, Loop, Task, TreeNode};
use pto_graph::plan::layout::limits;

use super::bindings::Bindings;
use super::eval::Inputs;
use super::loop_scope::LoopScope;
use super::report::RunError;

/// How the nodes inside of a node are ordered in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ChildOrder {
    Parallel,
    Chained,
}

/// What comes next.
#[derive(Debug)]
pub(super) enum Event<'w> {
    /// A node with nodes inside begins.
    Enter(ChildOrder),
    /// It ends.
    Exit,
    Task(&'w Task),
    /// A slot is set or loaded.
    Slot(&'w TreeNode),
    Send {
        channel: usize,
        task: &'w Task,
    },
    /// A token is needed: [`Walker::token`] or [`Walker::closed`] answers.
    Consume(usize),
    Done,
}

/// The elements of an axis that are left.
#[derive(Debug)]
enum AxisCursor<'a> {
    Dense { next: u64, end: u64 },
    Ragged { lengths: &'a [i32], row: usize, inner: i64, flat: i64 },
    Sparse { indptr: &'a [i32], indices: &'a [i32], row: usize, at: usize },
}

/// An element of an axis: its value, and its row and its index in the row.
type Element = (i64, [i64; 2]);

impl<'a> AxisCursor<'a> {
    /// The axis, when it is reached.
    fn new(axis: &Axis, bindings: &Bindings<'a>) -> Result<Self, RunError> {
        Ok(match axis {
            Axis::Dense(end) => Self::Dense { next: 0, end: *end },
            Axis::DenseDyn { name, default } => {
                Self::Dense { next: 0, end: bindings.find_size(name, *default)? }
            }
            Axis::Ragged { outer, lengths: name } => {
                let rows = bindings.find_symbol(outer)?;
                let lengths = bindings.find_array(name, rows)?;
                check_elements(name, lengths, |_, length| length >= 0, "zero or more")?;
                Self::Ragged { lengths, row: 0, inner: 0, flat: 0 }
            }
            Axis::Sparse { outer, indptr, indices } => {
                let rows = bindings.find_symbol(outer)?;
                Self::sparse(rows, indptr, indices, bindings)?
            }
        })
    }

    fn sparse(
        rows: u64,
        indptr_name: &str,
        indices_name: &str,
        bindings: &Bindings<'a>,
    ) -> Result<Self, RunError> {
        let indptr = bindings.find_array(indptr_name, rows.saturating_add(1))?;
        let rises = |number: usize, begin: i32| {
            let before = number.checked_sub(1).and_then(|before| indptr.get(before)).copied();
            begin >= before.unwrap_or(0)
        };
        check_elements(indptr_name, indptr, rises, "at least the one before it")?;
        let last = indptr.last().copied().unwrap_or(0);
        let indices = bindings.find_array(indices_name, u64::try_from(last).unwrap_or(0))?;
        let at = indptr.first().and_then(|first| usize::try_from(*first).ok()).unwrap_or(0);
        Ok(Self::Sparse { indptr, indices, row: 0, at })
    }

    fn next(&mut self) -> Option<Element> {
        match self {
            Self::Dense { next, end } => {
                let value = (next < end).then_some(*next)?;
                *next += 1;
                Some((value.cast_signed(), [0, 0]))
            }
            Self::Ragged { lengths, row, inner, flat } => {
                while i64::from(*lengths.get(*row)?) <= *inner {
                    (*row, *inner) = (*row + 1, 0);
                }
                let element = (*flat, [to_i64(*row), *inner]);
                (*inner, *flat) = (*inner + 1, *flat + 1);
                Some(element)
            }
            Self::Sparse { indptr, indices, row, at } => {
                let value = *indices.get(*at)?;
                while indptr.get(*row + 1).is_some_and(|end| i64::from(*end) <= to_i64(*at)) {
                    *row += 1;
                }
                let element = (i64::from(value), [to_i64(*row), to_i64(*at)]);
                *at += 1;
                Some(element)
            }
        }
    }
}

fn to_i64(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn check_elements(
    name: &str,
    elements: &[i32],
    is_right: impl Fn(usize, i32) -> bool,
    needed: &'static str,
) -> Result<(), RunError> {
    let wrong = elements.iter().enumerate().find(|(index, value)| !is_right(*index, **value));
    wrong.map_or(Ok(()), |(index, value)| {
        Err(RunError::ArrayElement { name: name.to_owned(), index, value: *value, needed })
    })
}

/// A node that is under way.
#[derive(Debug)]
enum WalkFrame<'w> {
    /// One that has not begun.
    Node(&'w TreeNode),
    Nodes(&'w [TreeNode]),
    Loop {
        around: &'w Loop,
        body: &'w TreeNode,
        elements: AxisCursor<'w>,
        depth: usize,
    },
    Consume {
        channel: usize,
        var: &'w str,
        body: &'w TreeNode,
        depth: usize,
    },
}

/// A position in a tree.
#[derive(Debug)]
pub(super) struct Walker<'w> {
    frames: Vec<WalkFrame<'w>>,
    scope: LoopScope,
    /// Turns of loops since the last task.
    idle_turns: u64,
}

impl<'w> Walker<'w> {
    /// Before the first node.
    pub(super) fn new(root: &'w TreeNode) -> Self {
        Self { frames: vec![WalkFrame::Node(root)], scope: LoopScope::default(), idle_turns: 0 }
    }

    /// The loop variables in scope.
    pub(super) const fn scope(&self) -> &LoopScope {
        &self.scope
    }

    /// Goes on to the next event.
    pub(super) fn next(&mut self, inputs: &Inputs<'w>) -> Result<Event<'w>, RunError> {
        while let Some(frame) = self.frames.pop() {
            let event = match frame {
                WalkFrame::Node(node) => self.begin(node, inputs)?,
                WalkFrame::Nodes([]) => Some(Event::Exit),
                WalkFrame::Nodes([first, rest @ ..]) => {
                    self.frames.extend([WalkFrame::Nodes(rest), WalkFrame::Node(first)]);
                    None
                }
                WalkFrame::Loop { around, body, elements, depth } => {
                    self.turn()?;
                    self.iterate(around, body, elements, depth)
                }
                WalkFrame::Consume { channel, depth, .. } => {
                    self.scope.truncate(depth);
                    self.frames.push(frame);
                    Some(Event::Consume(channel))
                }
            };
            if let Some(event) = event {
                return Ok(event);
            }
        }
        Ok(Event::Done)
    }

    fn begin(
        &mut self,
        node: &'w TreeNode,
        inputs: &Inputs<'w>,
    ) -> Result<Option<Event<'w>>, RunError> {
        let depth = self.scope.len();
        Ok(match node {
            TreeNode::Empty | TreeNode::Pipeline(_) => None,
            TreeNode::ParallelFor(around, body) | TreeNode::Select(around, body) => {
                let elements = AxisCursor::new(&around.axis, inputs.bindings)?;
                self.frames.push(WalkFrame::Loop { around, body, elements, depth });
                Some(Event::Enter(ChildOrder::Parallel))
            }
            TreeNode::ForEach(around, body) => {
                let elements = AxisCursor::new(&around.axis, inputs.bindings)?;
                self.frames.push(WalkFrame::Loop { around, body, elements, depth });
                Some(Event::Enter(ChildOrder::Chained))
            }
            TreeNode::Cond { predicate, then, otherwise } => {
                let is_true = inputs.is_true(predicate, &self.scope)?;
                self.frames.push(WalkFrame::Node(if is_true { then } else { otherwise }));
                None
            }
            TreeNode::Task(task) => {
                self.idle_turns = 0;
                Some(Event::Task(task))
            }
            TreeNode::Combine(nodes) => {
                self.frames.push(WalkFrame::Nodes(nodes));
                Some(Event::Enter(ChildOrder::Parallel))
            }
            TreeNode::Sequential(nodes) => {
                self.frames.push(WalkFrame::Nodes(nodes));
                Some(Event::Enter(ChildOrder::Chained))
            }
            TreeNode::SlotSet { .. } | TreeNode::SlotLoad { .. } => Some(Event::Slot(node)),
            // Without other ranks everybody has what all have together.
            TreeNode::Exchange(exchange) if !exchange.kind.has_tag() => None,
            TreeNode::Exchange(exchange) => {
                let (scope, kind) = (self.scope.clone(), exchange.kind.name());
                return Err(RunError::Exchange { scope, kind });
            }
            TreeNode::Send { channel, task } => Some(Event::Send { channel: *channel, task }),
            TreeNode::Consume { channel, var, body } => {
                self.frames.push(WalkFrame::Consume { channel: *channel, var, body, depth });
                None
            }
        })
    }

    /// Counts a turn of a loop.
    fn turn(&mut self) -> Result<(), RunError> {
        self.idle_turns += 1;
        if self.idle_turns <= limits::IDLE_TURNS {
            return Ok(());
        }
        Err(RunError::Turns { scope: self.scope.clone(), turns: self.idle_turns })
    }

    /// The next turn of a loop, or its end.
    fn iterate(
        &mut self,
        around: &'w Loop,
        body: &'w TreeNode,
        mut elements: AxisCursor<'w>,
        depth: usize,
    ) -> Option<Event<'w>> {
        self.scope.truncate(depth);
        let Some((value, places)) = elements.next() else { return Some(Event::Exit) };
        self.scope.bind(&around.var, value);
        for (var, value) in around.places.iter().flatten().zip(places) {
            self.scope.bind(var, value);
        }
        self.frames
            .extend([WalkFrame::Loop { around, body, elements, depth }, WalkFrame::Node(body)]);
        None
    }

    /// Answers [`Event::Consume`] with a token.
    pub(super) fn token(&mut self, token: i64) {
        if let Some(WalkFrame::Consume { var, body, .. }) = self.frames.last() {
            let body = *body;
            self.scope.bind(var, token);
            self.frames.push(WalkFrame::Node(body));
        }
    }

    /// Answers [`Event::Consume`] where the channel is closed and empty.
    pub(super) fn closed(&mut self) {
        self.frames.pop();
    }
}

#[cfg(test)]
mod tests {
    use super::Walker;
    use crate::clock::eval::Inputs;
    use crate::clock::{Bindings, RunError};
    use crate::tree::{SLOTS, Workload};
    use pto_graph::plan::layout::limits;

    #[test]
    fn loops_without_tasks_end() {
        let text = "workload idle { do each i in dense 1000000000000 { empty } }";
        let workload = Workload::parse(text).unwrap();
        let bindings = Bindings::new();
        let inputs = Inputs { bindings: &bindings, slots: [0; SLOTS] };
        let mut walker = Walker::new(&workload.root);
        walker.next(&inputs).unwrap();
        walker.idle_turns = limits::IDLE_TURNS - 7;
        let error = walker.next(&inputs).unwrap_err();
        assert!(matches!(error, RunError::Turns { .. }), "{error}");
        assert!(error.to_string().starts_with("At i = 6: 67108865 turns"), "{error}");
    }
}
