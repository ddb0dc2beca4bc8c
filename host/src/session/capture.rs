//! Capture: what is submitted to a stream becomes a recording instead of being done.
//!
//! ```text
//! begin_capture on A:  command -> node           record(e) on A:  e is the joint of A's last nodes
//! wait(e) on B:        B joins the capture       record(f) on B, wait(f) on A: A follows B again
//! end_capture on A:    every stream that joined must have been followed by A -> Recording
//! ```
//! A recording is a graph of launches and other commands ([`CapturedCommand`]). It is launched again and again: as one command if it has launches only, and piece by piece
//! otherwise (`replay.rs`).

use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pto_abi::block::BlockContext;
use pto_abi::session::CommandKind;
use pto_abi::{CoreKind, FuncId, GmAddr, TaskId};
use pto_graph::{GraphBuilder, TaskSpec};

use super::captured::{Bindings, CapturedCommand, bound_word};
use super::ids::StreamId;
use super::recorded::RecordedWords;
use crate::device::Device;
use crate::error::Error;
use crate::host_graph::HostGraph;
use crate::image::GraphImage;

/// A launch of a kernel, or a transfer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct KernelCall {
    pub(super) func_id: FuncId,
    /// `None`: the transfer engine does it.
    pub(super) kind: Option<CoreKind>,
    pub(super) blocks: u32,
    pub(super) args: Vec<u64>,
}

/// A task of a recording: a launch, or a block of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RecordedTask {
    pub(crate) func_id: FuncId,
    /// `None`: the transfer engine does it.
    pub(crate) kind: Option<CoreKind>,
    /// Its arguments, followed by the context of its block, if there are several.
    pub(crate) args: Vec<u64>,
    /// Whether its last argument is that context.
    pub(crate) is_block: bool,
    /// The indices of the tasks that it waits for, each below its own.
    pub(crate) after: Vec<usize>,
}

impl KernelCall {
    /// With other addresses.
    fn bound(&self, bindings: Bindings<'_>) -> Self {
        let args = self.args.iter().map(|word| bound_word(*word, bindings)).collect();
        Self { args, ..self.clone() }
    }

    /// The kernel's tasks, one a block, which wait for `after`.
    fn tasks(&self, after: &[usize]) -> impl Iterator<Item = RecordedTask> {
        (0..self.blocks).map(|block| {
            // A kernel reads its block from the word after the arguments.
            let context = BlockContext { block, blocks: self.blocks, lane: 0 };
            let is_block = self.blocks > 1;
            let args = self.args.iter().copied().chain(is_block.then(|| context.word()));
            RecordedTask {
                func_id: self.func_id,
                kind: self.kind,
                args: args.collect(),
                is_block,
                after: after.to_vec(),
            }
        })
    }
}

/// What was captured.
#[derive(Clone, Debug)]
pub(super) enum Captured {
    Launch(KernelCall),
    Command(CapturedCommand),
}

impl Captured {
    fn has_argument(&self, address: GmAddr) -> bool {
        match self {
            Self::Launch(call) => call.args.contains(&address.0),
            Self::Command(command) => command.has_address(address),
        }
    }

    fn bound(&self, bindings: Bindings<'_>) -> Self {
        match self {
            Self::Launch(call) => Self::Launch(call.bound(bindings)),
            Self::Command(command) => Self::Command(command.bound(bindings)),
        }
    }
}

#[derive(Clone, Debug)]
struct CapturedNode {
    what: Captured,
    after: Vec<usize>,
}

impl CapturedNode {
    const fn is_launch(&self) -> bool {
        matches!(self.what, Captured::Launch(_))
    }
}

/// A part of a recording that is one command.
#[derive(Clone)]
pub(super) enum Piece {
    Launches(Recording),
    Command(CapturedCommand),
}

/// A capture that is going on.
#[derive(Debug, Default)]
pub(super) struct Draft {
    nodes: Vec<CapturedNode>,
    /// The last nodes of each stream that takes part.
    ends: BTreeMap<StreamId, Vec<usize>>,
    /// The origin has ended it: events that were recorded in it are as if they had not been.
    is_over: bool,
    /// What lives until the capture ends, because its commands name it.
    holds: Vec<Arc<dyn Any + Send + Sync>>,
}

/// The capture that a stream takes part in.
#[derive(Clone, Debug)]
pub(super) struct Capture {
    draft: Arc<Mutex<Draft>>,
    pub(super) is_origin: bool,
}

/// Where an event was recorded in a capture.
#[derive(Clone, Debug)]
pub(super) struct Joint {
    capture: Capture,
    nodes: Vec<usize>,
}

impl Capture {
    /// Begins one, with `stream` as its origin.
    pub(super) fn begin(stream: StreamId) -> Self {
        let capture = Self { draft: Arc::default(), is_origin: true };
        capture.draft().ends.insert(stream, Vec::new());
        capture
    }

    fn draft(&self) -> MutexGuard<'_, Draft> {
        self.draft.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A command of `stream`.
    pub(super) fn add(&self, stream: StreamId, what: Captured) {
        let mut draft = self.draft();
        let node = draft.nodes.len();
        let after = draft.ends.insert(stream, vec![node]).unwrap_or_default();
        draft.nodes.push(CapturedNode { what, after });
    }

    /// Keeps this until the capture ends.
    pub(super) fn hold(&self, held: Arc<dyn Any + Send + Sync>) {
        let address = |one: &Arc<dyn Any + Send + Sync>| Arc::as_ptr(one).cast::<()>();
        let mut draft = self.draft();
        if !draft.holds.iter().any(|known| address(known) == address(&held)) {
            draft.holds.push(held);
        }
    }

    /// What it keeps.
    pub(super) fn holds(&self) -> Vec<Arc<dyn Any + Send + Sync>> {
        self.draft().holds.clone()
    }

    /// A recording on `stream`: its commands become commands of this capture.
    pub(super) fn nest(&self, stream: StreamId, recording: &Recording, bindings: Bindings<'_>) {
        let nodes = &recording.0.nodes;
        if nodes.is_empty() {
            return;
        }
        let mut draft = self.draft();
        let first = draft.nodes.len();
        let before = draft.ends.get(&stream).cloned().unwrap_or_default();
        let mut is_last = vec![true; nodes.len()];
        for node in nodes {
            node.after.iter().for_each(|earlier| is_last[*earlier] = false);
            let after = match node.after.as_slice() {
                [] => before.clone(),
                own => own.iter().map(|earlier| first + earlier).collect(),
            };
            draft.nodes.push(CapturedNode { what: node.what.bound(bindings), after });
        }
        let last = (first..).zip(is_last).filter(|(_, is_last)| *is_last).map(|(node, _)| node);
        draft.ends.insert(stream, last.collect());
    }

    /// A record on `stream`.
    pub(super) fn joint(&self, stream: StreamId) -> Joint {
        let nodes = self.draft().ends.get(&stream).cloned().unwrap_or_default();
        Joint { capture: Self { is_origin: false, ..self.clone() }, nodes }
    }

    /// Whether `other` is the same capture.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.draft, &other.draft)
    }

    /// The origin ends it: the recording, or a stream that takes part and that the origin has not waited for.
    pub(super) fn end(&self, origin: StreamId) -> Result<Recording, StreamId> {
        // Dropped after the lock.
        let _holds;
        let mut draft = self.draft();
        draft.is_over = true;
        _holds = std::mem::take(&mut draft.holds);
        let followed = draft.followed_by(origin);
        let is_followed = |nodes: &[usize]| nodes.iter().all(|node| followed[*node]);
        match draft.ends.iter().find(|(_, nodes)| !is_followed(nodes)) {
            Some((stream, _)) => Err(*stream),
            None => Ok(Recording::of(draft.nodes.clone())),
        }
    }
}

impl Draft {
    /// For each node: does the end of `origin` follow from it?
    fn followed_by(&self, origin: StreamId) -> Vec<bool> {
        let mut followed = vec![false; self.nodes.len()];
        let mut open = self.ends.get(&origin).cloned().unwrap_or_default();
        while let Some(node) = open.pop() {
            if !std::mem::replace(&mut followed[node], true) {
                open.extend(&self.nodes[node].after);
            }
        }
        followed
    }
}

impl Joint {
    /// Whether the capture still goes on.
    pub(super) fn is_open(&self) -> bool {
        !self.capture.draft().is_over
    }

    /// `stream` waits for it: the capture that `stream` is in from now on. `None`: it is in another one.
    pub(super) fn join(&self, stream: StreamId, current: Option<&Capture>) -> Option<Capture> {
        if let Some(current) = current
            && !current.is_same(&self.capture)
        {
            return None;
        }
        let mut draft = self.capture.draft();
        let ends = draft.ends.entry(stream).or_default();
        ends.extend(&self.nodes);
        ends.sort_unstable();
        ends.dedup();
        Some(current.unwrap_or(&self.capture).clone())
    }
}

/// What was submitted to streams while they were captured: a graph of launches and other commands, to be launched again and again.
#[derive(Clone)]
pub struct Recording(Arc<Recorded>);

struct Recorded {
    nodes: Vec<CapturedNode>,
    /// Of a recording with other commands than launches.
    pieces: Vec<Piece>,
    /// The graph as it was captured, once it has been launched.
    image: Mutex<Option<Arc<GraphImage>>>,
}

impl Recording {
    fn of(nodes: Vec<CapturedNode>) -> Self {
        let has_launches_only = nodes.iter().all(CapturedNode::is_launch);
        let pieces = if has_launches_only { Vec::new() } else { pieces(&nodes) };
        Self(Arc::new(Recorded { nodes, pieces, image: Mutex::default() }))
    }

    /// How many launches it has.
    #[must_use]
    pub fn launches(&self) -> usize {
        self.0.nodes.iter().filter(|node| node.is_launch()).count()
    }

    /// The commands of which launching it consists, one after the other; empty: it is one command.
    pub(super) fn pieces(&self) -> &[Piece] {
        &self.0.pieces
    }

    /// The kind of its first command that is no launch, and its number among all.
    pub(crate) fn first_command(&self) -> Option<(usize, CommandKind)> {
        self.0.nodes.iter().enumerate().find_map(|(number, node)| match &node.what {
            Captured::Launch(_) => None,
            Captured::Command(command) => Some((number, command.kind)),
        })
    }

    /// Whether an argument of some launch, an address of another command or a word of a builder is `address`, so that it can be bound to another one.
    #[must_use]
    pub fn has_argument(&self, address: GmAddr) -> bool {
        self.0.nodes.iter().any(|node| node.what.has_argument(address))
    }

    /// Whether both are the same recording.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// The tasks of its launches, with each argument that is the first of a pair replaced by the second.
    pub(crate) fn tasks(&self, bindings: &[(GmAddr, GmAddr)]) -> Vec<RecordedTask> {
        let mut tasks: Vec<RecordedTask> = Vec::with_capacity(self.0.nodes.len());
        let mut of_node: Vec<std::ops::Range<usize>> = Vec::with_capacity(self.0.nodes.len());
        for node in &self.0.nodes {
            let after: Vec<_> =
                node.after.iter().flat_map(|before| of_node[*before].clone()).collect();
            let first = tasks.len();
            if let Captured::Launch(call) = &node.what {
                tasks.extend(call.bound(bindings).tasks(&after));
            }
            of_node.push(first..tasks.len());
        }
        tasks
    }

    /// Its launches, with each argument that is the first of a pair replaced by the second.
    pub(super) fn calls(&self, bindings: &[(GmAddr, GmAddr)]) -> impl Iterator<Item = KernelCall> {
        self.0.nodes.iter().filter_map(|node| match &node.what {
            Captured::Launch(call) => Some(call.bound(bindings)),
            Captured::Command(_) => None,
        })
    }

    /// The words from which the firmware begins it, with each argument that is the first of a pair replaced by the second. `None`: it does not.
    pub(super) fn words(&self, bindings: &[(GmAddr, GmAddr)]) -> Option<Vec<u64>> {
        let mut words = RecordedWords::default();
        for task in self.tasks(bindings) {
            words.add((task.func_id, task.kind), &task.args, &task.after);
        }
        words.finish()
    }

    /// The graph, with each argument that is the first of a pair replaced by the second.
    pub(super) fn image(
        &self,
        device: &Device,
        bindings: &[(GmAddr, GmAddr)],
    ) -> Result<Arc<GraphImage>, Error> {
        if !bindings.is_empty() {
            return self.build(device, bindings).map(Arc::new);
        }
        let mut kept = self.0.image.lock().unwrap_or_else(PoisonError::into_inner);
        match &*kept {
            Some(image) => Ok(Arc::clone(image)),
            None => {
                let image = Arc::new(self.build(device, &[])?);
                *kept = Some(Arc::clone(&image));
                Ok(image)
            }
        }
    }

    fn build(&self, device: &Device, bindings: &[(GmAddr, GmAddr)]) -> Result<GraphImage, Error> {
        HostGraph::build(device, &[], |graph| {
            let mut ids: Vec<TaskId> = Vec::with_capacity(self.0.nodes.len());
            for task in self.tasks(bindings) {
                let after: Vec<_> = task.after.iter().map(|before| ids[*before]).collect();
                ids.push(match task.kind {
                    Some(kind) => {
                        graph.submit(TaskSpec::new(task.func_id, kind, &task.args), &after)?
                    }
                    None => graph.submit_transfer_words(&task.args, &after)?,
                });
            }
            Ok(())
        })
    }
}

/// The commands of a recording in an order that keeps theirs. Launches that can be together are one piece. What waits for a value comes when
/// nothing else can, because another command may write the value.
fn pieces(nodes: &[CapturedNode]) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut is_done = vec![false; nodes.len()];
    let is_ready =
        |node: &CapturedNode, is_done: &[bool]| node.after.iter().all(|earlier| is_done[*earlier]);
    while is_done.contains(&false) {
        let (before, had) = (is_done.clone(), pieces.len());
        let mut launches: Vec<CapturedNode> = Vec::new();
        let mut indices = BTreeMap::new();
        for (number, node) in nodes.iter().enumerate() {
            if !is_done[number] && node.is_launch() && is_ready(node, &is_done) {
                let after = node.after.iter().filter_map(|earlier| indices.get(earlier).copied());
                let after = after.collect();
                indices.insert(number, launches.len());
                launches.push(CapturedNode { what: node.what.clone(), after });
                is_done[number] = true;
            }
        }
        debug_assert!(
            launches
                .iter()
                .enumerate()
                .all(|(at, node)| { node.after.iter().all(|earlier| *earlier < at) })
        );
        if !launches.is_empty() {
            pieces.push(Piece::Launches(Recording::of(launches)));
        }
        let mut add = |waits: bool, most: usize, is_done: &mut Vec<bool>| {
            let mut added = 0;
            for (number, node) in nodes.iter().enumerate() {
                if let Captured::Command(command) = &node.what
                    && !is_done[number]
                    && command.waits() == waits
                    && added < most
                    && is_ready(node, is_done)
                {
                    pieces.push(Piece::Command(command.clone()));
                    is_done[number] = true;
                    added += 1;
                }
            }
        };
        add(false, usize::MAX, &mut is_done);
        if is_done == before {
            add(true, 1, &mut is_done);
        }
        debug_assert!(pieces.len() > had, "each node comes after those that it waits for");
    }
    pieces
}

impl fmt::Debug for Recording {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let others = self.0.nodes.len() - self.launches();
        write!(f, "Recording of {} launches and {others} other commands", self.launches())
    }
}

#[cfg(test)]
mod tests {
    use super::{Capture, Captured, KernelCall, Piece, Recording};
    use crate::session::StreamId;
    use crate::session::captured::{CapturedCommand, CapturedObject};
    use pto_abi::session::CommandKind;
    use pto_abi::{CoreKind, FuncId, GmAddr};

    const A: StreamId = StreamId(0);
    const B: StreamId = StreamId(1);

    fn call(word: u64) -> Captured {
        let args = vec![word];
        Captured::Launch(KernelCall {
            func_id: FuncId(0),
            kind: Some(CoreKind::AIV),
            blocks: 1,
            args,
        })
    }

    fn command(kind: CommandKind) -> Captured {
        let (words, object) = (vec![0x1000, 8, 0], CapturedObject::Nothing);
        Captured::Command(CapturedCommand { kind, words, object })
    }

    /// The pieces: the edges of launches, or the kind of another command.
    fn describe(recording: &Recording) -> Vec<String> {
        let piece = |piece: &Piece| match piece {
            Piece::Command(command) => format!("{:?}", command.kind),
            Piece::Launches(launches) => {
                let after: Vec<_> = launches.0.nodes.iter().map(|node| &node.after).collect();
                format!("{after:?}")
            }
        };
        recording.pieces().iter().map(piece).collect()
    }

    #[test]
    fn launches_that_can_be_together_are_one_piece_and_waits_come_last() {
        let capture = Capture::begin(A);
        capture.add(A, command(CommandKind::FILL));
        let other = capture.joint(A).join(B, None).unwrap();
        other.add(B, command(CommandKind::WAIT_VALUE));
        other.add(B, call(1));
        capture.add(A, call(2));
        capture.add(A, call(3));
        capture.add(A, command(CommandKind::WRITE_VALUE));
        other.joint(B).join(A, Some(&capture)).unwrap();
        capture.add(A, call(4));
        let recording = capture.end(A).unwrap();
        let kind = |kind: CommandKind| format!("{kind:?}");
        let [fill, write, wait] =
            [CommandKind::FILL, CommandKind::WRITE_VALUE, CommandKind::WAIT_VALUE].map(kind);
        let expected = [&fill, "[[], [0]]", &write, &wait, "[[], [0]]"];
        assert_eq!(describe(&recording), expected);
        assert_eq!((recording.launches(), recording.first_command().unwrap().0), (4, 0));
        // It may be part of another one.
        let outer = Capture::begin(A);
        outer.add(A, call(5));
        outer.nest(A, &recording, &[(GmAddr(4), GmAddr(9))]);
        outer.add(A, call(6));
        let outer = outer.end(A).unwrap();
        let expected = ["[[]]", &fill, "[[], [0]]", &write, &wait, "[[], [0], [1]]"];
        assert_eq!(describe(&outer), expected);
        assert!(outer.has_argument(GmAddr(9)) && !outer.has_argument(GmAddr(4)));
    }

    #[test]
    fn a_fork_that_is_joined_is_a_diamond() {
        let capture = Capture::begin(A);
        capture.add(A, call(0));
        let other = capture.joint(A).join(B, None).unwrap();
        other.add(B, call(1));
        capture.add(A, call(2));
        assert_eq!(capture.end(A).unwrap_err(), B, "A does not follow B");
        other.joint(B).join(A, Some(&capture)).unwrap();
        capture.add(A, call(3));
        let recording = capture.end(A).unwrap();
        let after: Vec<_> = recording.0.nodes.iter().map(|node| node.after.clone()).collect();
        assert_eq!(after, [vec![], vec![0], vec![0], vec![1, 2]]);
    }

    #[test]
    fn captures_do_not_mix() {
        let (one, other) = (Capture::begin(A), Capture::begin(B));
        assert!(one.joint(A).join(B, Some(&other)).is_none());
    }
}
