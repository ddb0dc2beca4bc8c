//! A reader of a log ring takes an entry whole or not at all, however the writer laps it.

use pto_abi::log_ring::{LogCursor, LogEntry, LogRing};

use crate::{explore, spawn};

const MESSAGES: [&str; 2] = ["first, of more than one word", "2"];

#[test]
fn an_entry_is_read_whole_or_not_at_all() {
    let setup = || (LogCursor::default(), [LogEntry::default()]);
    explore(4, setup, |(cursor, entries)| {
        let ring = LogRing { cursor, entries };
        let writer = spawn(move || {
            ring.write(1, 101, MESSAGES[0]);
            ring.write(2, 102, MESSAGES[1]);
        });
        for (number, message) in (0..).zip(MESSAGES) {
            if let Some(entry) = ring.read(number) {
                assert_eq!(entry.bytes(), message.as_bytes(), "torn");
                assert_eq!((u64::from(entry.level), entry.time_ns), (number + 1, number + 101));
            }
        }
        writer.join().unwrap();
        assert_eq!(ring.written(), 2);
        assert!(ring.read(0).is_none() && ring.read(1).is_some());
    });
}
