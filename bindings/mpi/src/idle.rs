//! How a thread waits for the network: it gives its core to others first, and sleeps when nothing has come for a while. Ranks that spin on
//! few cores keep each other from working.

use std::thread;
use std::time::Duration;

/// Turns that only give the core away.
const YIELDS: u32 = 200;
/// The longest sleep.
const LONGEST: Duration = Duration::from_micros(500);

/// How long nothing has come.
#[derive(Debug, Default)]
pub(crate) struct Idle {
    turns: u32,
}

impl Idle {
    /// Waits a little, longer from time to time.
    pub(crate) fn pause(&mut self) {
        self.turns = self.turns.saturating_add(1);
        match self.turns.checked_sub(YIELDS) {
            None => thread::yield_now(),
            Some(more) => thread::sleep(Duration::from_micros(10 + u64::from(more)).min(LONGEST)),
        }
    }
}
