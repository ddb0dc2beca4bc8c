//! The calls that the loader of a graph image makes, read from the image: the loader is part of the firmware,
//! so that its calls cannot be traced like those of a builder program (`traced_calls.rs`).

use pto_abi::RuntimeVariant;
use pto_abi::image::CheckedImage;
use pto_abi::sync::Ordering::Relaxed;
use pto_aicpu_fw::Launch;
use pto_graph::EdgeOutcome;

use super::device::VirtualDevice;
use super::ledger::Invariant;
use super::traced_calls::CallRecord;

/// The image.
pub(super) struct ImageNotes {
    image: Option<CheckedImage<'static>>,
}

impl ImageNotes {
    /// The notes of the launch's image; they are empty if the launch has none.
    pub(super) fn of(launch: &Launch<'static>) -> Self {
        let window = launch.image().ok();
        let window = window.filter(|_| launch.variant == RuntimeVariant::HOST_BUILD_GRAPH);
        Self { image: window.and_then(|window| CheckedImage::check(window).ok()) }
    }

    /// Charges for a task of the image, which was just loaded. Nothing runs before all of them are, so that every producer counts.
    pub(super) fn charge(&self, slot: u32, device: &mut VirtualDevice) {
        let Some(image) = self.image.as_ref().filter(|image| slot < image.task_count()) else {
            return;
        };
        let task = image.task(slot);
        let func_and_kind = u32::from(task.func_id) | u32::from(task.kind) << 16;
        let args = usize::from(task.arg_count);
        device.charge(CallRecord::Add { slot, replayed: false, args, tensors: 0, func_and_kind });
        for producer in image.producers(&task) {
            let (generation, outcome) = (device.launch.run_epoch, EdgeOutcome::Added);
            device.charge(CallRecord::Edge { producer, generation, consumer: slot, outcome });
        }
        let waits_for =
            device.launch.state.task(slot).map_or(0, |task| task.edges_in.load(Relaxed));
        if waits_for != task.edge_count {
            device.violate(
                Invariant::EdgeOrder,
                slot,
                0,
                "waits for other producers than the image names",
            );
        }
        device.charge(CallRecord::Publish(slot));
    }
}
