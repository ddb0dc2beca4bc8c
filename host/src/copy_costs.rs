//! What a copy of a session costs in virtual time, where bytes move concurrently with the cores.

use crate::traffic::TrafficKind;

const MIB: u128 = 1 << 20;

/// What copies cost on a device, as its profile says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CopyCosts {
    /// Before the first byte.
    pub(crate) start_ns: u64,
    /// 1 MiB between host and device.
    pub(crate) host_mib_ns: u64,
    /// 1 MiB on the device.
    pub(crate) device_mib_ns: u64,
}

impl CopyCosts {
    /// How long a copy takes.
    pub(crate) fn of(&self, kind: TrafficKind, bytes: u64) -> u64 {
        let mib_ns = match kind {
            TrafficKind::ToDevice | TrafficKind::ToHost => self.host_mib_ns,
            TrafficKind::OnDevice | TrafficKind::Filled => self.device_mib_ns,
        };
        let moved = (u128::from(bytes) * u128::from(mib_ns)).div_ceil(MIB);
        self.start_ns.saturating_add(u64::try_from(moved).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::CopyCosts;
    use crate::traffic::TrafficKind;

    #[test]
    fn bytes_take_their_time() {
        let costs = CopyCosts { start_ns: 2000, host_mib_ns: 42_000, device_mib_ns: 10_500 };
        assert_eq!(costs.of(TrafficKind::ToDevice, 16 << 20), 2000 + 16 * 42_000);
        assert_eq!(costs.of(TrafficKind::OnDevice, 1 << 19), 2000 + 5_250);
        assert_eq!(
            (costs.of(TrafficKind::Filled, 0), costs.of(TrafficKind::ToHost, 1)),
            (2000, 2001)
        );
        assert!(costs.of(TrafficKind::ToHost, u64::MAX) > 1 << 50);
    }
}
