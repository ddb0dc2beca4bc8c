//! An image that has been checked to its end, for all readers but the loader.

use bytemuck::{Pod, Zeroable};

use super::mismatch::FieldMismatch;
use super::sealed::SealedImage;
use crate::gm::GmWindow;
use crate::graph_header::ImageTask;

/// An image that has been checked to its end. Holding it proves what [`SealedImage`] proves, that nothing of it is damaged, that the tasks' arguments
/// and edges follow each other and fill the image; that every producer exists; and, where `TOPOLOGICAL` is claimed, that
/// every producer comes before its consumer. It does not prove that the graph has no cycle (the host finds cycles; on the
/// device they end as `STALL_DEADLOCK`), nor that the memory stays as it is: reads are by copy, and within the image.
#[derive(Clone, Copy)]
pub struct CheckedImage<'a> {
    image: SealedImage<'a>,
}

impl<'a> CheckedImage<'a> {
    /// Checks an image. The loader makes the same checks while it loads.
    ///
    /// # Errors
    /// The first field that is wrong, with the value found and the one expected.
    pub fn check(window: GmWindow<'a>) -> Result<Self, FieldMismatch> {
        let image = SealedImage::open(window)?;
        image.check_sum()?;
        let mut check = image.task_check();
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
        self.image.header().edge_count
    }

    /// How many argument words.
    #[must_use]
    pub const fn arg_words(&self) -> u64 {
        self.image.header().arg_words
    }

    /// Whether every producer comes before its consumers.
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
        let (offset, bytes) = self.image.header().parts()[part];
        let at = index.checked_mul(size_of::<T>() as u64)?;
        self.image.window.part(offset, bytes)?.read(at)
    }
}
