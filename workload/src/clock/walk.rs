//! Goes through a tree in program order, one event at a time, so that several processes can be gone through side by side.

use crate::tree::{Axis, Loop, Node, Task};
use pto_graph::plan::layout::limits;

use super::bindings::Bindings;
use super::eval::Inputs;
use super::place::Place;
use super::report::RunError;

/// How the nodes inside of a node are ordered in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    Parallel,
    Chained,
}

/// What comes next.
#[derive(Debug)]
pub(super) enum Event<'w> {
    /// A node with nodes inside begins.
    Enter(Order),
    /// It ends.
    Exit,
    Task(&'w Task),
    /// A slot is set or loaded.
    Slot(&'w Node),
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
enum Elements<'a> {
    Dense { next: u64, end: u64 },
    Ragged { lengths: &'a [i32], row: usize, inner: i64, flat: i64 },
    Sparse { indptr: &'a [i32], indices: &'a [i32], row: usize, at: usize },
}

/// An element of an axis: its value, and its row and place.
type Element = (i64, [i64; 2]);

impl<'a> Elements<'a> {
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
                let element = (*flat, [place(*row), *inner]);
                (*inner, *flat) = (*inner + 1, *flat + 1);
                Some(element)
            }
            Self::Sparse { indptr, indices, row, at } => {
                let value = *indices.get(*at)?;
                while indptr.get(*row + 1).is_some_and(|end| i64::from(*end) <= place(*at)) {
                    *row += 1;
                }
                let element = (i64::from(value), [place(*row), place(*at)]);
                *at += 1;
                Some(element)
            }
        }
    }
}

fn place(number: usize) -> i64 {
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
enum Frame<'w> {
    /// One that has not begun.
    Node(&'w Node),
    Nodes(&'w [Node]),
    Loop {
        around: &'w Loop,
        body: &'w Node,
        elements: Elements<'w>,
        depth: usize,
    },
    Consume {
        channel: usize,
        var: &'w str,
        body: &'w Node,
        depth: usize,
    },
}

/// A place in a tree.
#[derive(Debug)]
pub(super) struct Walker<'w> {
    frames: Vec<Frame<'w>>,
    place: Place,
    /// Turns of loops since the last task.
    idle_turns: u64,
}

impl<'w> Walker<'w> {
    /// Before the first node.
    pub(super) fn new(root: &'w Node) -> Self {
        Self { frames: vec![Frame::Node(root)], place: Place::default(), idle_turns: 0 }
    }

    /// The loop variables in scope.
    pub(super) const fn place(&self) -> &Place {
        &self.place
    }

    /// Goes on to the next event.
    pub(super) fn next(&mut self, inputs: &Inputs<'w>) -> Result<Event<'w>, RunError> {
        while let Some(frame) = self.frames.pop() {
            let event = match frame {
                Frame::Node(node) => self.begin(node, inputs)?,
                Frame::Nodes([]) => Some(Event::Exit),
                Frame::Nodes([first, rest @ ..]) => {
                    self.frames.extend([Frame::Nodes(rest), Frame::Node(first)]);
                    None
                }
                Frame::Loop { around, body, elements, depth } => {
                    self.turn()?;
                    self.iterate(around, body, elements, depth)
                }
                Frame::Consume { channel, depth, .. } => {
                    self.place.truncate(depth);
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
        node: &'w Node,
        inputs: &Inputs<'w>,
    ) -> Result<Option<Event<'w>>, RunError> {
        let depth = self.place.len();
        Ok(match node {
            Node::Empty | Node::Pipeline(_) => None,
            Node::ParallelFor(around, body) | Node::Select(around, body) => {
                let elements = Elements::new(&around.axis, inputs.bindings)?;
                self.frames.push(Frame::Loop { around, body, elements, depth });
                Some(Event::Enter(Order::Parallel))
            }
            Node::ForEach(around, body) => {
                let elements = Elements::new(&around.axis, inputs.bindings)?;
                self.frames.push(Frame::Loop { around, body, elements, depth });
                Some(Event::Enter(Order::Chained))
            }
            Node::Cond { predicate, then, otherwise } => {
                let is_true = inputs.is_true(predicate, &self.place)?;
                self.frames.push(Frame::Node(if is_true { then } else { otherwise }));
                None
            }
            Node::Task(task) => {
                self.idle_turns = 0;
                Some(Event::Task(task))
            }
            Node::Combine(nodes) => {
                self.frames.push(Frame::Nodes(nodes));
                Some(Event::Enter(Order::Parallel))
            }
            Node::Sequential(nodes) => {
                self.frames.push(Frame::Nodes(nodes));
                Some(Event::Enter(Order::Chained))
            }
            Node::SlotSet { .. } | Node::SlotLoad { .. } => Some(Event::Slot(node)),
            // Without other ranks everybody has what all have together.
            Node::Exchange(exchange) if !exchange.kind.has_tag() => None,
            Node::Exchange(exchange) => {
                let (place, kind) = (self.place.clone(), exchange.kind.name());
                return Err(RunError::Exchange { place, kind });
            }
            Node::Send { channel, task } => Some(Event::Send { channel: *channel, task }),
            Node::Consume { channel, var, body } => {
                self.frames.push(Frame::Consume { channel: *channel, var, body, depth });
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
        Err(RunError::Turns { place: self.place.clone(), turns: self.idle_turns })
    }

    /// The next turn of a loop, or its end.
    fn iterate(
        &mut self,
        around: &'w Loop,
        body: &'w Node,
        mut elements: Elements<'w>,
        depth: usize,
    ) -> Option<Event<'w>> {
        self.place.truncate(depth);
        let Some((value, places)) = elements.next() else { return Some(Event::Exit) };
        self.place.bind(&around.var, value);
        for (var, value) in around.places.iter().flatten().zip(places) {
            self.place.bind(var, value);
        }
        self.frames.extend([Frame::Loop { around, body, elements, depth }, Frame::Node(body)]);
        None
    }

    /// Answers [`Event::Consume`] with a token.
    pub(super) fn token(&mut self, token: i64) {
        if let Some(Frame::Consume { var, body, .. }) = self.frames.last() {
            let body = *body;
            self.place.bind(var, token);
            self.frames.push(Frame::Node(body));
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
