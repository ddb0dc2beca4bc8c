//! Records what a graph program adds, and encodes it as a graph image (`pto_abi::image`).

use bytemuck::Zeroable;
use pto_abi::image::{Checksum, GraphHeader, ImageTask};
use pto_abi::kinds::GraphFlags;
use pto_abi::{Fault, GmAddr, GmWindow, TaskId};
use pto_graph::{EdgeOutcome, GraphBuilder, TaskSpec};

/// A graph on the host.
pub(crate) struct Recorder<'a> {
    gm: GmWindow<'static>,
    words: &'a [u64],
    tasks: Vec<ImageTask>,
    producers: Vec<Vec<u32>>,
    args: Vec<u64>,
}

impl<'a> Recorder<'a> {
    pub(crate) fn new(gm: GmWindow<'static>, words: &'a [u64]) -> Self {
        Self { gm, words, tasks: Vec::new(), producers: Vec::new(), args: Vec::new() }
    }

    /// The image; every producer stands before its consumers.
    pub(crate) fn encode(mut self) -> Vec<u8> {
        let mut edges: Vec<u32> = Vec::new();
        for (task, producers) in self.tasks.iter_mut().zip(&self.producers) {
            task.first_edge = edges.len() as u32;
            task.edge_count = producers.len() as u32;
            edges.extend(producers);
        }
        let (edge_count, arg_words) = (edges.len() as u64, self.args.len() as u64);
        let task_count = self.tasks.len() as u32;
        let flags = GraphFlags::TOPOLOGICAL;
        let mut header = GraphHeader::new(flags, task_count, edge_count, arg_words);
        let mut body: Vec<u8> = bytemuck::cast_slice(&self.tasks).to_vec();
        body.extend_from_slice(bytemuck::cast_slice(&edges));
        body.resize((header.args_offset - header.tasks_offset) as usize, 0);
        body.extend_from_slice(bytemuck::cast_slice(&self.args));
        header.checksum = Checksum::of(&body);
        [bytemuck::bytes_of(&header), &body].concat()
    }
}

impl GraphBuilder for Recorder<'_> {
    fn orch_args(&self) -> &[u64] {
        self.words
    }

    fn add_task(&mut self, task: TaskSpec<'_>) -> Result<TaskId, Fault> {
        self.tasks.push(ImageTask {
            kernel: task.kernel.0,
            first_arg: self.args.len() as u32,
            func_id: task.func_id.0,
            arg_count: task.args.len() as u8,
            kind: task.kind.get(),
            ..ImageTask::zeroed()
        });
        self.producers.push(Vec::new());
        self.args.extend_from_slice(task.args);
        Ok(TaskId { slot: self.tasks.len() as u32 - 1, generation: 1 })
    }

    fn add_edge(&mut self, producer: TaskId, consumer: TaskId) -> Result<EdgeOutcome, Fault> {
        self.producers[consumer.slot as usize].push(producer.slot);
        Ok(EdgeOutcome::Added)
    }

    fn publish(&mut self, _: TaskId) -> Result<(), Fault> {
        Ok(())
    }

    fn read_u32(&self, address: GmAddr) -> Result<u32, Fault> {
        let offset = self.gm.offset_of(address, 4).ok_or(Fault::BUILD_GM_RANGE)?;
        self.gm.read(offset).ok_or(Fault::BUILD_GM_RANGE)
    }
}
