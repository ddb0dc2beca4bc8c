//! The calls that the loader of a graph image makes, read from the image: the loader is part of the firmware,
//! so that nobody can listen to it as to a builder program (`tap.rs`).

use pto_abi::image::CheckedImage;
use pto_abi::sync::Ordering::Relaxed;
use pto_abi::{EdgeOutcome, RuntimeVariant};
use pto_aicpu_fw::Launch;

use super::ledger::Rule;
use super::tap::Note;
use super::world::World;

/// The image, and how far the loader is: it publishes the records in their order.
pub(super) struct ImageNotes {
    image: Option<CheckedImage<'static>>,
    next: u32,
}

impl ImageNotes {
    /// Of the launch's image; nothing is noted if it has none.
    pub(super) fn of(launch: &Launch<'static>) -> Self {
        let window = launch.image().ok();
        let window = window.filter(|_| launch.variant == RuntimeVariant::HOST_BUILD_GRAPH);
        let image = window.and_then(|window| CheckedImage::check(window).ok());
        Self { image, next: 0 }
    }

    /// Charges for the next record, which was just published.
    pub(super) fn charge_next(&mut self, world: &mut World) {
        let Some(image) = &self.image else { return };
        if self.next >= image.task_count() {
            return;
        }
        let (slot, record) = (self.next, image.record(self.next));
        self.next += 1;
        let func_and_kind = u32::from(record.func_id) | u32::from(record.kind) << 16;
        let args = usize::from(record.arg_count);
        world.charge(Note::Add { slot, args, tensors: 0, func_and_kind });
        let mut open = 0;
        for edge in record.first_edge..record.first_edge.saturating_add(record.edge_count) {
            let producer = image.producer(edge);
            let is_done = world.ledger.is_completed(producer);
            open += u32::from(!is_done);
            let outcome = if is_done { EdgeOutcome::AlreadySatisfied } else { EdgeOutcome::Added };
            let generation = world.launch.run_epoch;
            world.charge(Note::Edge { producer, generation, consumer: slot, outcome });
        }
        let waits_for = world.launch.state.task(slot).map_or(0, |task| task.edges_in.load(Relaxed));
        if waits_for != open {
            world.violate(
                Rule::EdgeOrder,
                slot,
                0,
                "waits for other producers than those not done",
            );
        }
        world.charge(Note::Publish(slot));
    }
}
