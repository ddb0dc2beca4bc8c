//! Reading an image once, from its start to its end, in private copies: what was checked is what is used, whoever writes
//! the memory meanwhile.

use bytemuck::{Pod, Zeroable};

use super::{ImageTask, Refusal, SealedImage, expect_at_most, expect_equal};
use crate::fault::Fault;
use crate::gm::GmWindow;
use crate::limits::{MAX_ARGS, MAX_FANIN};

/// Tasks, edges and argument words that are copied at once: 768, 256 and 512 bytes.
const TASKS: usize = 32;
const EDGES: usize = 64;
const ARGS: usize = 64;
/// [`MAX_ARGS`], as a task counts.
#[expect(clippy::cast_possible_truncation, reason = "128")]
const MOST_ARGS: u8 = MAX_ARGS as u8;

/// Reads a part of an image from its start on.
pub struct Reader<'a, T, const N: usize> {
    image: GmWindow<'a>,
    offset: u64,
    end: u64,
    next: usize,
    held: usize,
    copies: [T; N],
}

impl<'a, T: Pod, const N: usize> Reader<'a, T, N> {
    pub(super) fn new(image: GmWindow<'a>, (offset, bytes): (u64, u64)) -> Self {
        let end = offset.saturating_add(bytes);
        Self { image, offset, end, next: 0, held: 0, copies: [T::zeroed(); N] }
    }

    /// The next values: at least one and at most `most` of them, or none at the end of the part.
    #[inline]
    pub fn up_to(&mut self, most: usize) -> &[T] {
        if self.next == self.held {
            let to = bytemuck::cast_slice_mut(&mut self.copies);
            let bytes = copy_some(&self.image, self.offset, self.end, to);
            self.offset += bytes as u64;
            (self.next, self.held) = (0, bytes / size_of::<T>());
        }
        let count = most.min(self.held - self.next);
        let values = self.copies.get(self.next..self.next + count).unwrap_or(&[]);
        self.next += count;
        values
    }
}

/// Copies what stands between two offsets, as far as there is room; how many bytes. Between them are whole values.
#[inline(never)]
fn copy_some(image: &GmWindow<'_>, offset: u64, end: u64, to: &mut [u8]) -> usize {
    let left = end.saturating_sub(offset);
    let bytes = usize::try_from(left).unwrap_or(usize::MAX).min(to.len());
    let copied = to.get_mut(..bytes).and_then(|to| image.read_bytes(offset, to));
    if copied.is_some() { bytes } else { 0 }
}

/// The parts of an image.
pub struct ImageReaders<'a> {
    /// The tasks.
    pub tasks: Reader<'a, ImageTask, TASKS>,
    /// The producers of all tasks.
    pub producers: Reader<'a, u32, EDGES>,
    /// The arguments of all tasks.
    pub args: Reader<'a, u64, ARGS>,
}

impl<'a> ImageReaders<'a> {
    pub(super) fn new(image: &SealedImage<'a>) -> Self {
        let [tasks, producers, args] = image.header.parts();
        Self {
            tasks: Reader::new(image.window, tasks),
            producers: Reader::new(image.window, producers),
            args: Reader::new(image.window, args),
        }
    }
}

/// Checks tasks one after the other: each one's arguments and edges begin where those of the task before it end.
#[derive(Clone, Copy, Debug)]
pub struct ImageTaskCheck {
    task_count: u32,
    edge_count: u64,
    arg_words: u64,
    is_topological: bool,
    next_edge: u64,
    next_arg: u64,
}

impl ImageTaskCheck {
    pub(super) const fn new(image: &SealedImage<'_>) -> Self {
        Self {
            task_count: image.header.task_count,
            edge_count: image.header.edge_count,
            arg_words: image.header.arg_words,
            is_topological: image.is_topological(),
            next_edge: 0,
            next_arg: 0,
        }
    }

    /// Whether every producer stands before its consumers, as the header claims.
    #[must_use]
    #[inline]
    pub const fn is_topological(&self) -> bool {
        self.is_topological
    }

    /// The next tasks.
    ///
    /// # Errors
    /// The index of the first that is wrong. `GRAPH_TASK_ARGS`, `GRAPH_TASK_EDGES`: its arguments or edges begin elsewhere,
    /// or end outside the image; `BUILD_TOO_MANY_ARGS`, `BUILD_FANIN_LIMIT`.
    #[inline]
    pub fn tasks(&mut self, tasks: &[ImageTask]) -> Result<(), (u32, Refusal)> {
        let (mut args, mut edges) = (self.next_arg, self.next_edge);
        // All of them at once, without a branch; which one is wrong is found when one is.
        let mut is_wrong = false;
        for task in tasks {
            is_wrong |= u64::from(task.first_arg) != args;
            is_wrong |= u64::from(task.first_edge) != edges;
            is_wrong |= task.arg_count > MOST_ARGS;
            is_wrong |= task.edge_count > MAX_FANIN;
            args += u64::from(task.arg_count);
            edges += u64::from(task.edge_count);
        }
        if is_wrong || args > self.arg_words || edges > self.edge_count {
            return self.find(tasks);
        }
        (self.next_arg, self.next_edge) = (args, edges);
        Ok(())
    }

    #[cold]
    #[inline(never)]
    fn find(&mut self, tasks: &[ImageTask]) -> Result<(), (u32, Refusal)> {
        for (index, task) in (0..).zip(tasks) {
            let args = self.next_arg + u64::from(task.arg_count);
            let edges = self.next_edge + u64::from(task.edge_count);
            self.one(task, args, edges).map_err(|refusal| (index, refusal))?;
            (self.next_arg, self.next_edge) = (args, edges);
        }
        Ok(())
    }

    fn one(&self, task: &ImageTask, args: u64, edges: u64) -> Result<(), Refusal> {
        expect_equal(Fault::GRAPH_TASK_ARGS, task.first_arg.into(), self.next_arg)?;
        expect_at_most(Fault::GRAPH_TASK_ARGS, args, self.arg_words)?;
        expect_equal(Fault::GRAPH_TASK_EDGES, task.first_edge.into(), self.next_edge)?;
        expect_at_most(Fault::GRAPH_TASK_EDGES, edges, self.edge_count)?;
        expect_at_most(Fault::BUILD_TOO_MANY_ARGS, task.arg_count.into(), MOST_ARGS.into())?;
        expect_at_most(Fault::BUILD_FANIN_LIMIT, task.edge_count.into(), MAX_FANIN.into())
    }

    /// Argument words of the tasks so far.
    #[must_use]
    #[inline]
    pub const fn args(&self) -> u64 {
        self.next_arg
    }

    /// Producers of the task `index` are below this number.
    #[must_use]
    #[inline]
    pub const fn producers_below(&self, index: u32) -> u32 {
        if self.is_topological { index } else { self.task_count }
    }

    /// Why a producer of the task `index` is refused that is not below [`producers_below`](Self::producers_below).
    #[must_use]
    #[cold]
    pub fn refuse_producer(&self, index: u32, producer: u32) -> Refusal {
        let found = u64::from(producer);
        if producer < self.task_count {
            return Refusal { fault: Fault::GRAPH_FLAGS, found, expected: index.into() };
        }
        let expected = u64::from(self.task_count).saturating_sub(1);
        Refusal { fault: Fault::GRAPH_EDGE_PRODUCER, found, expected }
    }

    /// After the last task.
    ///
    /// # Errors
    /// `GRAPH_EDGE_COUNT`, `GRAPH_ARG_WORDS`: there are edges or argument words that no task has.
    pub fn end(&self) -> Result<(), Refusal> {
        expect_equal(Fault::GRAPH_EDGE_COUNT, self.edge_count, self.next_edge)?;
        expect_equal(Fault::GRAPH_ARG_WORDS, self.arg_words, self.next_arg)
    }
}

/// An image that has been checked to its end. Holding it proves what [`SealedImage`] proves, that nothing of it is damaged, that the tasks' arguments
/// and edges follow each other and fill the image; that every producer exists; and, where `TOPOLOGICAL` is claimed, that
/// every producer stands before its consumer. It does not prove that the graph has no cycle (the host finds cycles; on the
/// device they end as `STALL_DEADLOCK`), nor that the memory stays as it is: reads are by copy, and within the image.
#[derive(Clone, Copy)]
pub struct CheckedImage<'a> {
    image: SealedImage<'a>,
}

impl<'a> CheckedImage<'a> {
    /// Checks an image. The loader makes the same checks while it loads.
    ///
    /// # Errors
    /// The first field that is wrong, what stands there and what should.
    pub fn check(window: GmWindow<'a>) -> Result<Self, Refusal> {
        let image = SealedImage::open(window)?;
        image.check_sum()?;
        let mut check = image.record_check();
        let checked = Self { image };
        for index in 0..image.task_count() {
            let task = checked.task(index);
            check.tasks(&[task]).map_err(|(_, refusal)| refusal)?;
            for producer in checked.producers(&task) {
                if producer >= check.producers_below(index) {
                    return Err(check.refuse_producer(index, producer));
                }
            }
        }
        check.end()?;
        Ok(checked)
    }

    /// How many tasks.
    #[must_use]
    pub const fn task_count(&self) -> u32 {
        self.image.task_count()
    }

    /// How many edges.
    #[must_use]
    pub const fn edge_count(&self) -> u64 {
        self.image.header.edge_count
    }

    /// How many argument words.
    #[must_use]
    pub const fn arg_words(&self) -> u64 {
        self.image.header.arg_words
    }

    /// Whether every producer stands before its consumers.
    #[must_use]
    pub const fn is_topological(&self) -> bool {
        self.image.is_topological()
    }

    /// Task `index`; zeros past the end.
    #[must_use]
    pub fn task(&self, index: u32) -> ImageTask {
        self.read(0, index.into()).unwrap_or(ImageTask::zeroed())
    }

    /// The producers of a task.
    pub fn producers(&self, task: &ImageTask) -> impl Iterator<Item = u32> + use<'a> {
        let image = *self;
        let edges = task.first_edge..task.first_edge.saturating_add(task.edge_count);
        edges.map(move |edge| image.producer(edge))
    }

    /// The producer at edge `index`; none that exists, past the end.
    #[must_use]
    pub fn producer(&self, index: u32) -> u32 {
        self.read(1, index.into()).unwrap_or(u32::MAX)
    }

    /// Argument word `index`; zero past the end.
    #[must_use]
    pub fn arg(&self, index: u64) -> u64 {
        self.read(2, index).unwrap_or(0)
    }

    fn read<T: Pod>(&self, part: usize, index: u64) -> Option<T> {
        let (offset, bytes) = self.image.header.parts()[part];
        let at = index.checked_mul(size_of::<T>() as u64)?;
        self.image.window.part(offset, bytes)?.read(at)
    }
}
