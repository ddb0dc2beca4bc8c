//! Capture: what is submitted to a stream becomes a recording instead of being done.
//!
//! ```text
//! begin_capture on A:  launch -> node            record(e) on A:  e is the joint of A's last nodes
//! wait(e) on B:        B joins the capture       record(f) on B, wait(f) on A: A follows B again
//! end_capture on A:    every stream that joined must have been followed by A -> Recording
//! ```
//! A recording is a graph of launches. It is launched as one command, again and again.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pto_abi::block::BlockContext;
use pto_abi::{CoreKind, FuncId, GmAddr, TaskId};
use pto_graph::{GraphBuilder, TaskSpec};

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
    /// Its arguments, with the context of its block behind them, where there are several.
    pub(crate) args: Vec<u64>,
    /// Whether its last argument is that context.
    pub(crate) is_block: bool,
    /// The tasks that it waits for; each stands in front of it.
    pub(crate) after: Vec<usize>,
}

impl KernelCall {
    /// Its tasks, one a block, behind `after`.
    fn tasks(&self, after: &[usize]) -> impl Iterator<Item = RecordedTask> {
        (0..self.blocks).map(|block| {
            // The word behind the arguments is where a kernel looks for its block.
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

#[derive(Clone, Debug)]
struct Node {
    call: KernelCall,
    after: Vec<usize>,
}

/// A capture that is going on.
#[derive(Debug, Default)]
pub(super) struct Draft {
    nodes: Vec<Node>,
    /// The last nodes of each stream that takes part.
    ends: BTreeMap<StreamId, Vec<usize>>,
    /// The origin has ended it: events that were recorded in it are as if they had not been.
    is_over: bool,
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

    /// A launch on `stream`.
    pub(super) fn launch(&self, stream: StreamId, call: KernelCall) {
        let mut draft = self.draft();
        let node = draft.nodes.len();
        let after = draft.ends.insert(stream, vec![node]).unwrap_or_default();
        draft.nodes.push(Node { call, after });
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
        let mut draft = self.draft();
        draft.is_over = true;
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

/// What was submitted to streams while they were captured: a graph of launches, to be launched as one command.
#[derive(Clone)]
pub struct Recording(Arc<Recorded>);

struct Recorded {
    nodes: Vec<Node>,
    /// The graph as it was captured, once it has been launched.
    image: Mutex<Option<Arc<GraphImage>>>,
}

impl Recording {
    fn of(nodes: Vec<Node>) -> Self {
        Self(Arc::new(Recorded { nodes, image: Mutex::default() }))
    }

    /// How many launches it consists of.
    #[must_use]
    pub fn launches(&self) -> usize {
        self.0.nodes.len()
    }

    /// Whether an argument of some launch is `address`, so that it can be bound to another one.
    #[must_use]
    pub fn has_argument(&self, address: GmAddr) -> bool {
        self.0.nodes.iter().any(|node| node.call.args.contains(&address.0))
    }

    /// Whether both are the same recording.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Its tasks, with each argument that is the first of a pair replaced by the second.
    pub(crate) fn tasks(&self, bindings: &[(GmAddr, GmAddr)]) -> Vec<RecordedTask> {
        let mut tasks: Vec<RecordedTask> = Vec::with_capacity(self.0.nodes.len());
        let mut of_node: Vec<std::ops::Range<usize>> = Vec::with_capacity(self.0.nodes.len());
        for node in &self.0.nodes {
            let after: Vec<_> =
                node.after.iter().flat_map(|before| of_node[*before].clone()).collect();
            let first = tasks.len();
            tasks.extend(bound(&node.call, bindings).tasks(&after));
            of_node.push(first..tasks.len());
        }
        tasks
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

fn bound(call: &KernelCall, bindings: &[(GmAddr, GmAddr)]) -> KernelCall {
    let mut call = call.clone();
    for word in &mut call.args {
        if let Some((_, to)) = bindings.iter().find(|(from, _)| from.0 == *word) {
            *word = to.0;
        }
    }
    call
}

impl fmt::Debug for Recording {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Recording of {} launches", self.launches())
    }
}

#[cfg(test)]
mod tests {
    use super::{Capture, KernelCall};
    use crate::session::StreamId;
    use pto_abi::{CoreKind, FuncId};

    const A: StreamId = StreamId(0);
    const B: StreamId = StreamId(1);

    fn call(word: u64) -> KernelCall {
        KernelCall { func_id: FuncId(0), kind: Some(CoreKind::AIV), blocks: 1, args: vec![word] }
    }

    #[test]
    fn a_fork_that_is_joined_is_a_diamond() {
        let capture = Capture::begin(A);
        capture.launch(A, call(0));
        let other = capture.joint(A).join(B, None).unwrap();
        other.launch(B, call(1));
        capture.launch(A, call(2));
        assert_eq!(capture.end(A).unwrap_err(), B, "A does not follow B");
        other.joint(B).join(A, Some(&capture)).unwrap();
        capture.launch(A, call(3));
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
