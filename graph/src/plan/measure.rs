//! How many calls belong into one dispatch: by the work of their kernels, and by the cores that there are ([`super::grain`]).

use pto_abi::chain::MAX_CHAIN_KERNELS;

/// The work of a dispatch from which its own cost is small in comparison. On the profile a2a3 a dispatch costs 2 to 3 us of a builder, a
/// scheduler and a core (docs/decisions/plan-expansion.md).
pub(super) const ENOUGH_NS: u64 = 20_000;

/// What a core needs from one kernel of a chain to the next, there.
const LINK_NS: u64 = 250;

/// Two dispatches. Where cores would be idle, kernels that wait for each other share a dispatch up to here: others that wait for the first one of
/// them wait for no more than they would have waited for a dispatch.
pub(super) const TWO_DISPATCHES_NS: u64 = 5_000;

/// Kernels of a chain.
pub(super) const MOST: u64 = MAX_CHAIN_KERNELS as u64;

/// What decides how many calls belong together.
#[derive(Clone, Copy, Debug)]
pub(super) struct Measure {
    /// As the bindings say it: 0 leaves the choice to this.
    pub(super) asked: u64,
    /// The kernel's time in nanoseconds; 0 if unknown.
    pub(super) cost_ns: u64,
    /// Iterations of the loops around the call that may run side by side.
    pub(super) width: u64,
    pub(super) cores: u64,
}

impl Measure {
    /// The largest number of calls of one call site in one dispatch. Calls that are one after the other in any case take no core from each
    /// other; of others each core is to have one dispatch at least.
    #[must_use]
    pub(super) fn most(self, is_sequence: bool) -> u64 {
        if self.asked > 0 || self.cost_ns == 0 {
            return self.asked.clamp(1, MOST);
        }
        let enough = ENOUGH_NS.checked_div(self.chained_ns()).unwrap_or(1);
        if is_sequence { enough.max(1) } else { enough.min(self.share(self.width)).max(1) }
    }

    /// Whether a dispatch has room for other calls in addition to this one.
    #[must_use]
    pub(super) fn is_short(self) -> bool {
        match self.asked {
            0 => self.cost_ns > 0 && self.chained_ns().saturating_mul(2) <= ENOUGH_NS,
            asked => asked > 1,
        }
    }

    /// Nanoseconds of the kernel in a chain.
    pub(super) const fn chained_ns(self) -> u64 {
        self.cost_ns.saturating_add(LINK_NS)
    }

    /// How many of this many iterations each core has.
    pub(super) fn share(self, width: u64) -> u64 {
        width.checked_div(self.cores).unwrap_or(width)
    }
}

#[cfg(test)]
mod tests {
    use super::{ENOUGH_NS, LINK_NS, MOST, Measure};

    const fn measure(asked: u64, cost_ns: u64, width: u64) -> Measure {
        Measure { asked, cost_ns, width, cores: 72 }
    }

    #[test]
    fn each_core_has_a_dispatch_and_no_dispatch_is_longer_than_it_must() {
        let enough = ENOUGH_NS / (LINK_NS + 50);
        for (measured, alone, in_sequence) in [
            (measure(0, 50, 72 * 1000), enough, enough),
            (measure(0, 50, 72 * 3 + 71), 3, enough),
            (measure(0, 50, 71), 1, enough),
            (measure(0, ENOUGH_NS * 2 / 3, 72 * 1000), 1, 1),
            (measure(0, 0, 72 * 1000), 1, 1),
            (measure(1, 50, 72 * 1000), 1, 1),
            (measure(9, 0, 1), 9, 9),
            (measure(u64::MAX, 50, 1), MOST, MOST),
            (measure(0, u64::MAX, u64::MAX), 1, 1),
        ] {
            assert_eq!(
                (measured.most(false), measured.most(true)),
                (alone, in_sequence),
                "{measured:?}"
            );
        }
    }
}
