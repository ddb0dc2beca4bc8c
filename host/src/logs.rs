//! Reading the log rings that the firmware writes in device memory.

use std::fmt;
use std::time::Duration;

use log::Level;
use pto_abi::arena::Arena;
use pto_abi::limits::MAX_AICPU_INSTANCES;
use pto_abi::log_ring::{LogRing, LogText};
use pto_abi::runtime::region;

/// One message of the firmware.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogMessage {
    /// The AICPU instance that wrote it.
    pub instance: u32,
    /// The instance's clock.
    pub time_ns: u64,
    /// How grave it is.
    pub level: Level,
    /// What it says.
    pub text: String,
}

impl fmt::Display for LogMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let time = Duration::from_nanos(self.time_ns);
        write!(f, "{:>5} aicpu {} {time:?}: {}", self.level, self.instance, self.text)
    }
}

/// How far the rings of an arena have been read.
#[derive(Debug, Default)]
pub(crate) struct LogReader {
    next: [u64; MAX_AICPU_INSTANCES],
}

/// What the rings held.
#[derive(Debug, Default)]
pub(crate) struct Logs {
    pub(crate) messages: Vec<LogMessage>,
    /// Entries that were overwritten before they were read.
    pub(crate) dropped: u64,
}

impl LogReader {
    /// Everything written since the last call, in the order of the clocks.
    pub(crate) fn drain(&mut self, arena: &Arena<'_>) -> Logs {
        let mut logs = Logs::default();
        let rings = arena.regions()[region::LOGS];
        for (instance, next) in (0..).zip(&mut self.next) {
            if let Some(ring) = arena.log_ring(rings, instance) {
                drain_ring(&ring, u32::try_from(instance).unwrap_or(0), next, &mut logs);
            }
        }
        logs.messages.sort_by_key(|message| message.time_ns);
        logs
    }
}

/// A message that is being put together from its entries.
struct PartialMessage {
    first: LogText,
    bytes: Vec<u8>,
    /// Entries lost before it: the first of its own may be among them.
    lost: u64,
}

impl PartialMessage {
    fn finish(self, instance: u32, end: &str) -> LogMessage {
        let text = String::from_utf8_lossy(&self.bytes);
        let start = match self.lost {
            0 => String::new(),
            lost => format!("[after {lost} lost entries] "),
        };
        let (level, unknown) = level_of(self.first.level);
        let text = format!("{start}{unknown}{text}{end}");
        LogMessage { instance, time_ns: self.first.time_ns, level, text }
    }
}

fn drain_ring(ring: &LogRing<'_>, instance: u32, next: &mut u64, logs: &mut Logs) {
    let written = ring.written();
    let held = (ring.entries.len() as u64).min(written);
    let oldest = (written - held).max(*next);
    let lost = oldest - *next;
    logs.dropped += lost;
    let mut open = Open { instance, lost, message: None };
    for number in oldest..written {
        match ring.read(number) {
            Some(entry) => logs.messages.extend(open.add(&entry)),
            None => {
                // Overwritten just now: only an instance that did not come back still writes.
                logs.messages.extend(open.cut());
                logs.dropped += 1;
                open.lost += 1;
            }
        }
    }
    logs.messages.extend(open.cut());
    *next = written;
}

/// The message that is being read, if any.
struct Open {
    instance: u32,
    /// Entries lost since the last message.
    lost: u64,
    message: Option<PartialMessage>,
}

impl Open {
    /// Adds an entry; returns the message that it completes.
    fn add(&mut self, entry: &LogText) -> Option<LogMessage> {
        let lost = &mut self.lost;
        let message = self.message.get_or_insert_with(|| PartialMessage {
            first: entry.clone(),
            bytes: Vec::new(),
            lost: std::mem::take(lost),
        });
        message.bytes.extend_from_slice(entry.bytes());
        if entry.continues {
            return None;
        }
        self.message.take().map(|message| message.finish(self.instance, ""))
    }

    /// A message whose end is lost.
    fn cut(&mut self) -> Option<LogMessage> {
        self.message.take().map(|message| message.finish(self.instance, CUT))
    }
}

const CUT: &str = " [the rest is lost]";

/// The level of the `log` crate, and what to say when it is none.
fn level_of(level: u8) -> (Level, String) {
    let known = Level::iter().find(|known| *known as usize == usize::from(level));
    match known {
        Some(known) => (known, String::new()),
        None => (Level::Error, format!("[level {level}] ")),
    }
}

#[cfg(test)]
mod tests {
    use super::{Logs, drain_ring};
    use log::Level;
    use pto_abi::log_ring::{LogCursor, LogEntry, LogRing};

    fn drained(entries: usize, writes: impl FnOnce(&LogRing<'_>, &mut dyn FnMut())) -> Logs {
        let (cursor, lines) = (LogCursor::default(), (0..entries).map(|_| LogEntry::default()));
        let lines: Vec<_> = lines.collect();
        let ring = LogRing { cursor: &cursor, entries: &lines };
        let (mut logs, mut next) = (Logs::default(), 0);
        writes(&ring, &mut || drain_ring(&ring, 5, &mut next, &mut logs));
        drain_ring(&ring, 5, &mut next, &mut logs);
        logs
    }

    #[test]
    fn a_message_in_many_entries_is_one_text() {
        let long = "äöü€".repeat(100);
        let logs = drained(16, |ring, drain| {
            ring.write(3, 10, &long);
            drain();
            ring.write(1, 20, "short");
        });
        assert_eq!(logs.dropped, 0);
        let texts: Vec<_> = logs.messages.iter().map(|message| message.text.as_str()).collect();
        assert_eq!(texts, [long.as_str(), "short"]);
        assert_eq!(logs.messages[1].level, Level::Error);
        assert_eq!((logs.messages[0].instance, logs.messages[0].time_ns), (5, 10));
        assert!(logs.messages[1].to_string().starts_with("ERROR aicpu 5 20ns: short"));
    }

    #[test]
    fn overwritten_entries_are_counted_and_said() {
        let logs = drained(4, |ring, _| (0..10).for_each(|n| ring.write(2, n, "x")));
        assert_eq!(logs.dropped, 6);
        assert_eq!(logs.messages.len(), 4);
        assert_eq!(logs.messages[0].text, "[after 6 lost entries] x");
        assert_eq!(logs.messages[1].text, "x");
    }

    #[test]
    fn an_unknown_level_and_an_open_end_are_said() {
        let logs = drained(4, |ring, _| {
            ring.write(9, 1, "odd");
            ring.write(4, 2, &"y".repeat(200));
            // The second half of the message is being written.
            let ordering = std::sync::atomic::Ordering::Relaxed;
            ring.entries[2].stamp.store(0, ordering);
        });
        assert_eq!(logs.messages[0].text, "[level 9] odd");
        assert!(logs.messages[1].text.ends_with("y [the rest is lost]"));
        assert_eq!(logs.dropped, 1);
    }
}
