//! A graph image as bytes of the host: what `HostGraph::finish` emits and `Work::HostGraph` sends.
//!
//! The layout, the checksum and the check are `pto_abi::image`; the firmware is the judge of an image.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::timeline::graph::GraphTask;
use crate::timeline::{Edge, Graph};
use bytemuck::Zeroable;
use pto_abi::arena::Capacities;
use pto_abi::image::{GraphHeader, ImageParts, ImageTask, offsets};
use pto_abi::kinds::GraphFlags;
use pto_abi::stream::StreamCapacities;
use pto_abi::trace::TraceCapacities;
use pto_abi::{CoreKind, GmWindow};
use pto_graph::GraphParts;

use crate::lists::Spare;

/// Images of this process: two with the same number have the same bytes.
static IMAGES: AtomicU64 = AtomicU64::new(1);

/// A graph, ready to travel. May be run any number of times; run again at once, on the same device and without a trace, it
/// is neither sent nor checked nor loaded again ([`Device::run`](crate::Device::run)).
#[derive(Clone)]
pub struct GraphImage {
    id: u64,
    content: Content,
    /// When the calls of its tasks were checked.
    checked: Arc<Mutex<Option<Checked>>>,
}

#[derive(Clone)]
enum Content {
    Bytes(Vec<u8>),
    Built(BuiltImage),
}

/// When the calls of an image were checked: what they are compared with has not changed since, unless one of these numbers has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Checked {
    /// Which memory.
    pub(crate) memory: u64,
    /// How often a user has freed a block of it.
    pub(crate) freed: u64,
    /// The version of the table of kernels.
    pub(crate) kernels: u64,
}

/// Tasks and argument words of an image.
type TasksAndArgs<'i> = (Cow<'i, [ImageTask]>, Cow<'i, [u64]>);

/// An image that a `HostGraph` has made, in the lists that it was built in.
#[derive(Clone)]
struct BuiltImage {
    header: GraphHeader,
    lists: GraphParts,
    spare: Spare,
}

impl BuiltImage {
    fn parts(&self) -> ImageParts<'_> {
        self.lists.image(GraphFlags::from_bits_retain(self.header.flags))
    }
}

impl Drop for BuiltImage {
    fn drop(&mut self) {
        self.spare.give(std::mem::take(&mut self.lists));
    }
}

const HEADER_BYTES: usize = size_of::<GraphHeader>();

impl GraphImage {
    /// Any bytes, such as those of a file. Nothing is checked here: the firmware checks an image when it is
    /// launched.
    #[must_use]
    pub fn from_bytes(bytes: Vec<u8>) -> Self {
        Self::of(Content::Bytes(bytes))
    }

    /// Encodes a graph. The tasks' edges and arguments follow each other without gaps. `spare` gets the memory in the end.
    pub(crate) fn encode(flags: GraphFlags, lists: GraphParts, spare: Spare) -> Self {
        let header = lists.image(flags).header();
        Self::of(Content::Built(BuiltImage { header, lists, spare }))
    }

    fn of(content: Content) -> Self {
        let id = IMAGES.fetch_add(1, Ordering::Relaxed);
        Self { id, content, checked: Arc::default() }
    }

    /// A number that no image of this process with other bytes has.
    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    /// A copy of the bytes.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.byte_count());
        match &self.content {
            Content::Bytes(image) => bytes.extend_from_slice(image),
            Content::Built(image) => {
                image.parts().put(&image.header, |part| bytes.extend_from_slice(part));
            }
        }
        bytes
    }

    /// How many bytes it has.
    #[must_use]
    pub fn byte_count(&self) -> usize {
        match &self.content {
            Content::Bytes(image) => image.len(),
            // It was built in this process' memory.
            Content::Built(image) => {
                usize::try_from(image.header.total_bytes).unwrap_or(usize::MAX)
            }
        }
    }

    /// Copies the bytes to `offset`. `None`: they do not fit the window.
    #[must_use]
    pub(crate) fn write_to(&self, window: &GmWindow<'_>, offset: u64) -> Option<()> {
        match &self.content {
            Content::Bytes(image) => window.write_bytes(offset, image),
            Content::Built(image) => image.parts().write_to(&image.header, window, offset),
        }
    }

    /// The header as it is, unchecked; zeros where the image is shorter.
    #[must_use]
    pub fn header(&self) -> GraphHeader {
        match &self.content {
            Content::Built(image) => image.header,
            Content::Bytes(image) => {
                let mut header = GraphHeader::zeroed();
                let held = image.len().min(HEADER_BYTES);
                bytemuck::bytes_of_mut(&mut header)[..held].copy_from_slice(&image[..held]);
                header
            }
        }
    }

    /// How many tasks the header claims.
    #[must_use]
    pub fn task_count(&self) -> u32 {
        self.header().task_count
    }

    /// How many edges the header claims.
    #[must_use]
    pub fn edge_count(&self) -> u64 {
        self.header().edge_count
    }

    /// The graph that it holds, for pictures and for programs; `None`: it contradicts itself. `kernels` are names
    /// by func id.
    #[must_use]
    pub fn graph(&self, name: &str, kernels: &BTreeMap<u16, String>) -> Option<Graph> {
        let task_count = self.task_count();
        let [tasks_at, edges_at, args_at, _] = self.offsets()?;
        let bytes = self.to_bytes();
        let part =
            |from: u64, to: u64| bytes.get(usize::try_from(from).ok()?..usize::try_from(to).ok()?);
        let words = part(edges_at, args_at)?.as_chunks::<4>().0;
        let producers: Vec<u32> = words.iter().map(|word| u32::from_le_bytes(*word)).collect();
        let mut graph = Graph { name: name.to_owned(), ..Graph::default() };
        let tasks = part(tasks_at, edges_at)?.chunks_exact(size_of::<ImageTask>());
        for (consumer, bytes) in (0_u32..task_count).zip(tasks) {
            let task: ImageTask = bytemuck::pod_read_unaligned(bytes);
            graph.tasks.push(GraphTask::plain(task.func_id, CoreKind::try_from(task.kind).ok()?));
            if let Some(name) = kernels.get(&task.func_id) {
                graph.kernels.entry(task.func_id).or_insert_with(|| name.clone());
            }
            let first = task.first_edge as usize;
            let own = producers.get(first..first.checked_add(task.edge_count as usize)?)?;
            if own.iter().any(|producer| *producer >= task_count) {
                return None;
            }
            graph.edges.extend(own.iter().map(|&producer| Edge { producer, consumer }));
        }
        Some(graph)
    }

    /// When the calls of its tasks were checked; `None`: never.
    pub(crate) fn checked(&self) -> Option<Checked> {
        *self.checked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn set_checked(&self, checked: Checked) {
        *self.checked.lock().unwrap_or_else(PoisonError::into_inner) = Some(checked);
    }

    /// The image's tasks and their arguments; `None`: the image contradicts itself.
    pub(crate) fn tasks(&self) -> Option<TasksAndArgs<'_>> {
        let image = match &self.content {
            Content::Built(BuiltImage { lists, .. }) => {
                return Some((Cow::Borrowed(&lists.tasks), Cow::Borrowed(&lists.args)));
            }
            Content::Bytes(image) => image,
        };
        let [tasks_at, edges_at, args_at, end] = self.offsets()?;
        let part =
            |from: u64, to: u64| image.get(usize::try_from(from).ok()?..usize::try_from(to).ok()?);
        let tasks = part(tasks_at, edges_at)?.as_chunks::<{ size_of::<ImageTask>() }>().0;
        // A gap fills the last words of the edges up.
        let tasks = tasks.get(..self.task_count() as usize)?;
        let words = part(args_at, end)?.as_chunks::<8>().0;
        Some((
            tasks.iter().map(|task| bytemuck::pod_read_unaligned(task)).collect(),
            words.iter().map(|word| u64::from_le_bytes(*word)).collect(),
        ))
    }

    /// Whether some of its tasks are transfers.
    pub(crate) fn has_transfers(&self) -> bool {
        GraphFlags::from_bits_retain(self.header().flags).contains(GraphFlags::TRANSFERS)
    }

    /// The capacities that the image needs. Where the header contradicts the size of the image, only the
    /// size counts: the firmware will refuse the image and name the field.
    pub(crate) fn needs(&self) -> Capacities {
        let GraphHeader { task_count, edge_count, arg_words, .. } = self.header();
        let none = Capacities {
            tasks: 0,
            arg_words: 0,
            edges: 0,
            image_bytes: 0,
            log_entries: 0,
            trace: TraceCapacities::OFF,
            stream: StreamCapacities::OFF,
        };
        let image_bytes = self.byte_count() as u64;
        if self.offsets().is_some() {
            let slots = if self.has_transfers() { task_count } else { 0 };
            let stream = StreamCapacities::for_transfers(slots);
            let none = Capacities { stream, ..none };
            Capacities { tasks: task_count, arg_words, edges: edge_count, image_bytes, ..none }
        } else {
            Capacities { image_bytes, ..none }
        }
    }

    /// Where tasks, edges and arguments begin, and where the image ends; `None`: the header contradicts its size.
    fn offsets(&self) -> Option<[u64; 4]> {
        let GraphHeader { task_count, edge_count, arg_words, .. } = self.header();
        let image_bytes = self.byte_count() as u64;
        // Within these bounds, the sums cannot overflow.
        let is_bounded = edge_count <= image_bytes && arg_words <= image_bytes;
        let offsets = is_bounded.then(|| offsets(task_count, edge_count, arg_words))?;
        (offsets[3] == image_bytes).then_some(offsets)
    }
}

impl PartialEq for GraphImage {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id || self.to_bytes() == other.to_bytes()
    }
}

impl Eq for GraphImage {}

impl fmt::Debug for GraphImage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (tasks, edges) = (self.task_count(), self.edge_count());
        write!(f, "GraphImage of {tasks} tasks and {edges} edges, {} bytes", self.byte_count())
    }
}

#[cfg(test)]
mod tests {
    use super::{GraphImage, HEADER_BYTES};
    use crate::gm::Gm;
    use crate::lists::Spare;
    use bytemuck::Zeroable;
    use pto_abi::Fault;
    use pto_abi::image::{CheckedImage, Checksum, FieldMismatch, GraphHeader, ImageTask};
    use pto_abi::kinds::GraphFlags;
    use pto_graph::GraphParts;

    fn image(flags: GraphFlags, producers: [u32; 3]) -> GraphImage {
        let task = |first_arg, first_edge, edge_count| ImageTask {
            first_arg,
            first_edge,
            edge_count,
            arg_count: 2,
            ..ImageTask::zeroed()
        };
        let lists = GraphParts {
            tasks: vec![task(0, 0, 0), task(2, 0, 1), task(4, 1, 2)],
            producers: producers.to_vec(),
            args: vec![1, 2, 3, 4, 5, 6],
        };
        GraphImage::encode(flags, lists, Spare::default())
    }

    fn valid() -> GraphImage {
        image(GraphFlags::TOPOLOGICAL, [0, 0, 1])
    }

    fn check(image: &GraphImage) -> Result<(), FieldMismatch> {
        let gm = Gm::map(4096).unwrap();
        gm.window().write_bytes(0, &[0xFF; 4096]).unwrap();
        let window = gm.window().part(0, image.byte_count() as u64).unwrap();
        image.write_to(&window, 0).unwrap();
        let mut sent = vec![0; image.byte_count()];
        window.read_bytes(0, &mut sent).unwrap();
        assert_eq!(sent, image.to_bytes());
        CheckedImage::check(window).map(|checked| {
            assert_eq!(checked.task_count(), image.task_count());
            assert_eq!(checked.edge_count(), image.edge_count());
        })
    }

    fn fault_of(image: &GraphImage) -> Option<&'static str> {
        check(image).err().map(|refusal| refusal.fault.name())
    }

    fn altered(change: impl FnOnce(&mut GraphHeader)) -> GraphImage {
        let mut bytes = valid().to_bytes();
        let mut header = valid().header();
        change(&mut header);
        bytes[..HEADER_BYTES].copy_from_slice(bytemuck::bytes_of(&header));
        GraphImage::from_bytes(bytes)
    }

    /// A change after the header, with the checksum that belongs to it.
    fn damaged(change: impl FnOnce(&mut [u8])) -> GraphImage {
        let mut bytes = valid().to_bytes();
        change(&mut bytes[HEADER_BYTES..]);
        let mut header = valid().header();
        header.checksum = Checksum::of(&bytes[HEADER_BYTES..]);
        bytes[..HEADER_BYTES].copy_from_slice(bytemuck::bytes_of(&header));
        GraphImage::from_bytes(bytes)
    }

    #[test]
    fn the_graph_of_an_image_is_the_one_that_was_encoded() {
        let kernels = [(0, "add".to_owned()), (9, "unused".to_owned())].into();
        let graph = valid().graph("g", &kernels).unwrap();
        let edges: Vec<_> = graph.edges.iter().map(|edge| (edge.producer, edge.consumer)).collect();
        assert_eq!((graph.tasks.len(), edges), (3, vec![(0, 1), (0, 2), (1, 2)]));
        assert_eq!((graph.kernels.len(), graph.kernels[&0].as_str()), (1, "add"));
        assert!(GraphImage::from_bytes(vec![1; 300]).graph("g", &kernels).is_none());
        assert!(altered(|h| h.edge_count += 2).graph("g", &kernels).is_none());
        assert!(altered(|h| h.edge_count = u64::MAX).graph("g", &kernels).is_none());
        assert!(altered(|h| h.arg_words = 1 << 61).graph("g", &kernels).is_none());
        assert!(image(GraphFlags::empty(), [0, 7, 1]).graph("g", &kernels).is_none());
    }

    #[test]
    fn what_is_emitted_is_accepted() {
        check(&valid()).unwrap();
        let (empty, spare) = (GraphParts::default(), Spare::default());
        check(&GraphImage::encode(GraphFlags::TOPOLOGICAL, empty, spare)).unwrap();
        check(&image(GraphFlags::empty(), [2, 0, 1])).unwrap();
    }

    #[test]
    fn every_wrong_header_field_is_named() {
        type Change = fn(&mut GraphHeader);
        let cases: [(Fault, Change); 15] = [
            (Fault::GRAPH_MAGIC, |h| h.magic ^= 1),
            (Fault::GRAPH_ABI_MAJOR, |h| h.abi_major += 1),
            (Fault::GRAPH_ABI_MINOR, |h| h.abi_minor += 1),
            (Fault::GRAPH_HEADER_BYTES, |h| h.header_bytes += 8),
            (Fault::GRAPH_LAYOUT_HASH, |h| h.layout_hash ^= 1 << 40),
            (Fault::GRAPH_TOTAL_BYTES, |h| h.total_bytes += 8),
            (Fault::GRAPH_CHECKSUM, |h| h.checksum ^= 1),
            (Fault::GRAPH_FLAGS, |h| h.flags |= 1 << 31),
            (Fault::GRAPH_TASK_COUNT, |h| h.task_count += 1),
            (Fault::GRAPH_EDGE_COUNT, |h| h.edge_count += 2),
            (Fault::GRAPH_ARG_WORDS, |h| h.arg_words += 1),
            (Fault::GRAPH_TASKS_OFFSET, |h| h.tasks_offset += 8),
            (Fault::GRAPH_EDGES_OFFSET, |h| h.edges_offset += 8),
            (Fault::GRAPH_ARGS_OFFSET, |h| h.args_offset += 8),
            (Fault::GRAPH_RESERVED, |h| h.reserved[4] = 1),
        ];
        for (expected, change) in cases {
            assert_eq!(fault_of(&altered(change)), Some(expected.name()));
        }
    }

    #[test]
    fn counts_beyond_the_limits_are_named() {
        assert_eq!(fault_of(&altered(|h| h.task_count = u32::MAX)), Some("GRAPH_TASK_COUNT"));
        assert_eq!(fault_of(&altered(|h| h.edge_count = u64::MAX)), Some("GRAPH_EDGE_COUNT"));
        assert_eq!(fault_of(&altered(|h| h.arg_words = u64::MAX)), Some("GRAPH_ARG_WORDS"));
    }

    #[test]
    fn damage_and_wrong_tasks_are_named() {
        let mut flipped = valid().to_bytes();
        *flipped.last_mut().unwrap() ^= 1;
        assert_eq!(fault_of(&GraphImage::from_bytes(flipped)), Some("GRAPH_CHECKSUM"));
        let first_arg = damaged(|body| body[8] = 5);
        assert_eq!(fault_of(&first_arg), Some("GRAPH_TASK_ARGS"));
        let edge_count = damaged(|body| body[24 + 16] = 9);
        assert_eq!(fault_of(&edge_count), Some("GRAPH_TASK_EDGES"));
        let producer = damaged(|body| body[3 * 24] = 3);
        assert_eq!(fault_of(&producer), Some("GRAPH_EDGE_PRODUCER"));
        let order = damaged(|body| body[3 * 24] = 1);
        assert_eq!(fault_of(&order), Some("GRAPH_FLAGS"));
    }

    #[test]
    fn a_cut_image_is_refused_and_asks_for_nothing() {
        for held in [0, 1, HEADER_BYTES - 1, HEADER_BYTES, valid().byte_count() - 1] {
            let cut = GraphImage::from_bytes(valid().to_bytes()[..held].to_vec());
            assert_eq!(fault_of(&cut), Some("GRAPH_TOTAL_BYTES"), "{held} bytes");
            assert_eq!((cut.needs().tasks, cut.needs().image_bytes), (0, held as u64));
        }
        let needs = valid().needs();
        assert_eq!((needs.tasks, needs.edges, needs.arg_words), (3, 3, 6));
    }
}
