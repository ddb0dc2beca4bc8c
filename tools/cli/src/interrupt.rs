//! Ctrl-C: the first one asks a command to come to an end and say what it has, the second one ends the process.

use std::process;

use pto_abi::sync::{AtomicU32, Ordering};

use crate::errors::{Exit, Failure};

static HAS_COME: AtomicU32 = AtomicU32::new(0);

/// Whether the user has asked for an end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Interrupt(());

/// Watches for Ctrl-C from now on.
pub(crate) fn watch() -> Result<Interrupt, Failure> {
    ctrlc::set_handler(|| {
        if HAS_COME.swap(1, Ordering::Relaxed) != 0 {
            process::exit(Exit::Interrupted as i32);
        }
    })
    .map_err(|error| Failure::internal(format!("Ctrl-C cannot be watched for: {error}")))?;
    Ok(Interrupt(()))
}

impl Interrupt {
    /// Whether it has come.
    pub(crate) fn has_come(self) -> bool {
        HAS_COME.load(Ordering::Relaxed) != 0
    }
}
