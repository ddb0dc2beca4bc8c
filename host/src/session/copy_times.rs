//! When copies are over in virtual time. A copy takes the worker that is free first, and the bytes that go the same way (to the device, to
//! the host, on the device) go one copy after the other. Kernels meanwhile do not slow it down.

use crate::copy_costs::CopyCosts;
use crate::traffic::TrafficKind;

/// Workers and ways, and until when they are taken.
pub(super) struct CopyTimes {
    costs: CopyCosts,
    workers: Vec<u64>,
    ways: [u64; 3],
}

impl CopyTimes {
    /// Makes the times of `workers` workers, all free.
    pub(super) fn new(costs: CopyCosts, workers: usize) -> Self {
        Self { costs, workers: vec![0; workers], ways: [0; 3] }
    }

    /// Books a copy that can begin at `from_ns`: when it is over.
    pub(super) fn book(&mut self, kind: TrafficKind, bytes: u64, from_ns: u64) -> u64 {
        let link = &mut self.ways[match kind {
            TrafficKind::ToDevice => 0,
            TrafficKind::ToHost => 1,
            TrafficKind::OnDevice | TrafficKind::Filled => 2,
        }];
        let worker = self.workers.iter_mut().min();
        let free_ns = worker.as_ref().map_or(0, |worker| **worker);
        let over_ns = from_ns.max(free_ns).max(*link) + self.costs.of(kind, bytes);
        *link = over_ns;
        if let Some(worker) = worker {
            *worker = over_ns;
        }
        over_ns
    }
}

#[cfg(test)]
mod tests {
    use super::CopyTimes;
    use crate::copy_costs::CopyCosts;
    use crate::traffic::TrafficKind;

    #[test]
    fn ways_and_workers_are_shared() {
        let costs = CopyCosts { start_ns: 10, host_mib_ns: 100, device_mib_ns: 50 };
        let mut times = CopyTimes::new(costs, 2);
        let mib = 1 << 20;
        assert_eq!(times.book(TrafficKind::ToDevice, mib, 5), 115);
        assert_eq!(
            times.book(TrafficKind::ToHost, mib, 5),
            115,
            "the other way, with the other worker"
        );
        assert_eq!(times.book(TrafficKind::OnDevice, mib, 5), 175, "there is no third worker");
        assert_eq!(times.book(TrafficKind::ToDevice, mib, 5), 225, "after the first one");
        assert_eq!(times.book(TrafficKind::ToHost, mib, 1000), 1110);
    }
}
