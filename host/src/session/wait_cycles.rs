//! Finds streams that wait for each other in a cycle, and describes the cycle.

use super::ids::StreamId;

/// A stream that waits for others.
#[derive(Clone, Debug)]
pub(super) struct WaitingStream {
    pub(super) stream: StreamId,
    /// For whom, and in words for what.
    pub(super) needs: Vec<(StreamId, String)>,
}

/// A cycle: its streams, and its waits in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct WaitCycle {
    pub(super) streams: Vec<StreamId>,
    pub(super) text: String,
}

/// Some cycle, if there is one.
pub(super) fn find(waiting: &[WaitingStream]) -> Option<WaitCycle> {
    let mut open: Vec<&WaitingStream> = waiting.iter().collect();
    // A stream that waits for no waiting stream is in no cycle, so the loop removes it. Every stream that remains leads into a cycle.
    loop {
        let before = open.len();
        let known: Vec<StreamId> = open.iter().map(|one| one.stream).collect();
        open.retain(|one| one.needs.iter().any(|(stream, _)| known.contains(stream)));
        if open.len() == before {
            break;
        }
    }
    let mut path: Vec<(&WaitingStream, &str)> = Vec::new();
    let mut at = *open.first()?;
    loop {
        if let Some(start) = path.iter().position(|(one, _)| one.stream == at.stream) {
            return Some(describe(&path[start..]));
        }
        let next = at.needs.iter().find_map(|(stream, why)| {
            let next = open.iter().find(|one| one.stream == *stream)?;
            Some((*next, why.as_str()))
        });
        let (next, why) = next?;
        path.push((at, why));
        at = next;
    }
}

fn describe(cycle: &[(&WaitingStream, &str)]) -> WaitCycle {
    let streams: Vec<_> = cycle.iter().map(|(one, _)| one.stream).collect();
    let waits = cycle.iter().map(|(one, why)| format!("{} waits for {why}", one.stream));
    WaitCycle { streams, text: waits.collect::<Vec<_>>().join("; ") }
}

#[cfg(test)]
mod tests {
    use super::{WaitingStream, find};
    use crate::session::StreamId;

    fn waiting(stream: u32, needs: &[u32]) -> WaitingStream {
        let need = |of: &u32| (StreamId(*of), format!("something of stream {of}"));
        WaitingStream { stream: StreamId(stream), needs: needs.iter().map(need).collect() }
    }

    #[test]
    fn a_cycle_is_described_without_the_streams_that_lead_to_it() {
        let waits = [waiting(0, &[1]), waiting(1, &[5, 2]), waiting(2, &[3]), waiting(3, &[1])];
        let cycle = find(&waits).unwrap();
        assert_eq!(cycle.streams, [1, 2, 3].map(StreamId));
        assert!(cycle.text.starts_with("stream 1 waits for something of stream 2; stream 2"));
    }

    #[test]
    fn a_stream_can_wait_for_itself() {
        assert_eq!(find(&[waiting(4, &[4])]).unwrap().streams, [StreamId(4)]);
    }

    #[test]
    fn chains_and_joins_are_no_cycles() {
        let waits = [waiting(0, &[1, 2]), waiting(1, &[3]), waiting(2, &[3]), waiting(3, &[9])];
        assert_eq!(find(&waits), None);
        assert_eq!(find(&[]), None);
    }
}
