//! Writing an image: the one function that puts the parts of a graph one after another.
//!
//! Nothing is checked here: the reader of an image checks it.

use super::checksum::Checksum;
use crate::gm::GmWindow;
use crate::graph_header::{GraphHeader, ImageTask};
use crate::kinds::GraphFlags;

/// The parts of a graph, of which an image is made. Arguments and producers of the tasks follow each other without gaps.
#[derive(Clone, Copy, Debug)]
pub struct ImageParts<'a> {
    /// What is claimed of the graph.
    pub flags: GraphFlags,
    /// The tasks.
    pub tasks: &'a [ImageTask],
    /// The producers of all tasks.
    pub producers: &'a [u32],
    /// The arguments of all tasks.
    pub args: &'a [u64],
}

impl ImageParts<'_> {
    /// The header that belongs to the parts, with the checksum.
    #[must_use]
    pub fn header(&self) -> GraphHeader {
        // A count that is too large is one that every reader refuses.
        let task_count = u32::try_from(self.tasks.len()).unwrap_or(u32::MAX);
        let (edge_count, arg_words) = (self.producers.len() as u64, self.args.len() as u64);
        let mut header = GraphHeader::new(self.flags, task_count, edge_count, arg_words);
        let mut sum = Checksum::new();
        self.bytes().into_iter().for_each(|part| sum.add_bytes(part));
        header.checksum = sum.finish();
        header
    }

    /// Gives the bytes of the image to `put`, from its start to its end. `header` is that of the parts, unless a wrong one is
    /// wanted.
    pub fn put(&self, header: &GraphHeader, mut put: impl FnMut(&[u8])) {
        put(bytemuck::bytes_of(header));
        for part in self.bytes() {
            put(part);
            let padding = part.len().next_multiple_of(8) - part.len();
            put([0; 8].get(..padding).unwrap_or(&[]));
        }
    }

    /// Copies the image to `offset`; `header` is that of the parts. `None`: it does not fit the window.
    #[must_use]
    pub fn write_to(&self, header: &GraphHeader, window: &GmWindow<'_>, offset: u64) -> Option<()> {
        // The bytes between edges and arguments, where there are any.
        if header.args_offset > header.tasks_offset {
            window.write(offset + header.args_offset - 8, &0_u64)?;
        }
        window.write(offset, header)?;
        for ((at, _), part) in header.parts().into_iter().zip(self.bytes()) {
            window.write_bytes(offset + at, part)?;
        }
        Some(())
    }

    /// The bytes of tasks, producers and arguments.
    fn bytes(&self) -> [&[u8]; 3] {
        let Self { tasks, producers, args, .. } = *self;
        [bytemuck::cast_slice(tasks), bytemuck::cast_slice(producers), bytemuck::cast_slice(args)]
    }
}
