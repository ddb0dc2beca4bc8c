//! Finds streams that wait for each other in a circle, and describes the circle.

use super::ids::StreamId;

/// A stream that waits for others.
#[derive(Clone, Debug)]
pub(super) struct Waiting {
    pub(super) stream: StreamId,
    /// For whom, and in words for what.
    pub(super) needs: Vec<(StreamId, String)>,
}

/// A circle: its streams, and its waits in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Circle {
    pub(super) streams: Vec<StreamId>,
    pub(super) text: String,
}

/// Some circle, if there is one.
pub(super) fn find(waiting: &[Waiting]) -> Option<Circle> {
    let mut open: Vec<&Waiting> = waiting.iter().collect();
    // Who waits for nobody that waits is in no circle; what remains leads into one.
    loop {
        let before = open.len();
        let known: Vec<StreamId> = open.iter().map(|one| one.stream).collect();
        open.retain(|one| one.needs.iter().any(|(stream, _)| known.contains(stream)));
        if open.len() == before {
            break;
        }
    }
    let mut path: Vec<(&Waiting, &str)> = Vec::new();
    let mut at = *open.first()?;
    loop {
        if let Some(start) = path.iter().position(|(one, _)| one.stream == at.stream) {
            return Some(tell(&path[start..]));
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

fn tell(circle: &[(&Waiting, &str)]) -> Circle {
    let streams: Vec<_> = circle.iter().map(|(one, _)| one.stream).collect();
    let waits = circle.iter().map(|(one, why)| format!("{} waits for {why}", one.stream));
    Circle { streams, text: waits.collect::<Vec<_>>().join("; ") }
}

#[cfg(test)]
mod tests {
    use super::{Waiting, find};
    use crate::session::StreamId;

    fn waiting(stream: u32, needs: &[u32]) -> Waiting {
        let need = |of: &u32| (StreamId(*of), format!("something of stream {of}"));
        Waiting { stream: StreamId(stream), needs: needs.iter().map(need).collect() }
    }

    #[test]
    fn a_circle_is_told_without_what_leads_to_it() {
        let waits = [waiting(0, &[1]), waiting(1, &[5, 2]), waiting(2, &[3]), waiting(3, &[1])];
        let circle = find(&waits).unwrap();
        assert_eq!(circle.streams, [1, 2, 3].map(StreamId));
        assert!(circle.text.starts_with("stream 1 waits for something of stream 2; stream 2"));
    }

    #[test]
    fn a_stream_can_wait_for_itself() {
        assert_eq!(find(&[waiting(4, &[4])]).unwrap().streams, [StreamId(4)]);
    }

    #[test]
    fn chains_and_joins_are_no_circles() {
        let waits = [waiting(0, &[1, 2]), waiting(1, &[3]), waiting(2, &[3]), waiting(3, &[9])];
        assert_eq!(find(&waits), None);
        assert_eq!(find(&[]), None);
    }
}
