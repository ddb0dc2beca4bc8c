//! The time-outs of a run, each within the next: the firmware gives up first and says why; if it cannot, the driver ends
//! the launch; if the driver does not, this host stops to wait.

use std::time::Duration;

/// What the firmware may take where the run has no budget.
pub(crate) const USUAL_RUN: Duration = Duration::from_secs(40);
/// The difference between two successive time-outs.
const STEP: Duration = Duration::from_secs(5);

/// The time-outs of one run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Limits {
    /// The limit of the firmware, from `RunConfig`.
    pub(super) run_budget_ns: u64,
    /// The driver's for one launch, in whole seconds.
    pub(super) launch_s: u32,
    /// This host's for a stream.
    pub(super) stream: Duration,
}

impl Limits {
    /// Those of a run with this budget; zero: the run has none.
    pub(super) fn of(run_budget_ns: u64) -> Self {
        let run = match run_budget_ns {
            0 => USUAL_RUN,
            asked => Duration::from_nanos(asked),
        };
        let launch_s = u32::try_from((run + STEP).as_secs()).unwrap_or(u32::MAX);
        let launch_s =
            launch_s.max(u32::try_from((USUAL_RUN + STEP).as_secs()).unwrap_or(u32::MAX));
        Self {
            run_budget_ns: u64::try_from(run.as_nanos()).unwrap_or(u64::MAX),
            launch_s,
            stream: Duration::from_secs(launch_s.into()) + STEP,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Limits;
    use std::time::Duration;

    #[test]
    fn each_limit_is_within_the_next() {
        for budget in [0, 1, 1_000_000_000, 44_999_999_999, 3_600_000_000_000, u64::MAX] {
            let limits = Limits::of(budget);
            let run = Duration::from_nanos(limits.run_budget_ns);
            let launch = Duration::from_secs(limits.launch_s.into());
            assert!(limits.run_budget_ns == u64::MAX || run < launch, "{limits:?}");
            assert!(launch < limits.stream, "{limits:?}");
        }
        assert_eq!(Limits::of(0).launch_s, 45);
        assert_eq!(Limits::of(0).stream, Duration::from_secs(50));
    }
}
