//! Ctrl-C: it ends a command, which says so. A campaign watches for it: the first one asks it to come to an end and say what it has, the second one ends
//! the process.

use std::process;

use pto_abi::sync::{AtomicU32, Ordering};

use crate::errors::{Exit, Failure};
use crate::form::Form;

static HAS_COME: AtomicU32 = AtomicU32::new(0);
/// Whether the command looks at [`HAS_COME`].
static IS_WATCHED: AtomicU32 = AtomicU32::new(0);

/// Whether the user has asked for an end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Interrupt(());

/// From now on Ctrl-C ends a command that does not watch for it, after it has said so in the form that was asked for.
pub(crate) fn end_on_interrupt(form: Form) -> Result<(), Failure> {
    let come = move || {
        let is_first = HAS_COME.swap(1, Ordering::Relaxed) == 0;
        if is_first && IS_WATCHED.load(Ordering::Relaxed) != 0 {
            return;
        }
        if is_first {
            Failure::interrupted().report(form);
        }
        process::exit(Exit::Interrupted as i32);
    };
    ctrlc::set_handler(come)
        .map_err(|error| Failure::internal(format!("Ctrl-C cannot be watched for: {error}")))
}

/// Watches for Ctrl-C from now on.
pub(crate) fn watch() -> Interrupt {
    IS_WATCHED.store(1, Ordering::Relaxed);
    Interrupt(())
}

impl Interrupt {
    /// Whether it has come.
    pub(crate) fn has_come(self) -> bool {
        HAS_COME.load(Ordering::Relaxed) != 0
    }
}

/// How a campaign ends: a seed that failed counts more than the interruption.
pub(crate) const fn campaign_exit(has_failed: bool, is_interrupted: bool) -> Exit {
    match (has_failed, is_interrupted) {
        (true, _) => Exit::Wrong,
        (false, true) => Exit::Interrupted,
        (false, false) => Exit::Pass,
    }
}

/// The sentence about an interrupted campaign: the command that tries the rest.
pub(crate) fn resume_hint(go_on: Option<&str>) -> String {
    match go_on {
        None => String::new(),
        Some(command) => {
            format!("\nInterrupted. What is shown above has passed. To go on: {command}\n")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Exit, campaign_exit, resume_hint};

    #[test]
    fn a_failure_counts_more_than_an_interruption() {
        let exits = [(true, true), (true, false), (false, true), (false, false)];
        let exits =
            exits.map(|(has_failed, is_interrupted)| campaign_exit(has_failed, is_interrupted));
        assert_eq!(exits, [Exit::Wrong, Exit::Wrong, Exit::Interrupted, Exit::Pass]);
        assert_eq!(resume_hint(None), "");
        assert!(resume_hint(Some("pto soak")).ends_with("To go on: pto soak\n"));
    }
}
