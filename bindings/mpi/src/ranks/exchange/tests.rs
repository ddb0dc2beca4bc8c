//! Three ranks in one process, stepped by hand: every kind of transfer, what is refused, and which ranks get an error when a rank fails.

use std::time::{Duration, Instant};

use pto_host::abi::GmAddr;

use super::{Numbers, RankExchange};
use crate::ranks::group::{ByteRange, Completion, Transfer, TransferError, TransferKind};
use crate::ranks::processes::ProcessId;
use crate::ranks::testing::{LocalWire, wires};

/// Longer than what fits in a frame.
const LONG: usize = 10_000;

struct Ranks(Vec<RankExchange<LocalWire>>);

impl Ranks {
    fn open(count: u32) -> Self {
        let silence = Duration::from_secs(60);
        let numbers = |rank| Numbers { rank, ranks: count, max_tag: 1000, silence };
        let open = |(rank, wire)| {
            let mut exchange = RankExchange::new(wire, numbers(rank));
            exchange.introduce(&format!("host{rank}"), ProcessId::own());
            exchange
        };
        let mut ranks = Self((0..).zip(wires(count)).map(open).collect());
        ranks.step();
        assert!(ranks.0.iter().all(|rank| rank.strangers().is_empty()));
        ranks
    }

    /// Steps all ranks until nothing more happens; what is over at each.
    fn step(&mut self) -> Vec<Vec<Completion>> {
        let mut over: Vec<Vec<Completion>> = self.0.iter().map(|_| Vec::new()).collect();
        for _ in 0..8 {
            self.0.iter_mut().zip(&mut over).for_each(|(rank, over)| rank.step(over));
        }
        over
    }
}

fn span(memory: &mut [u8]) -> ByteRange {
    ByteRange {
        address: memory.as_mut_ptr().expose_provenance() as u64,
        bytes: memory.len() as u64,
    }
}

fn transfer(kind: TransferKind, peer: u32, memory: &mut [u8]) -> Transfer {
    let ByteRange { address, bytes } = span(memory);
    Transfer { local: GmAddr(address), bytes, tag: 5, stamp: 9, ..Transfer::new(kind, peer) }
}

fn good(over: &[Completion]) -> Vec<u64> {
    over.iter()
        .map(|one| {
            one.result.as_ref().unwrap();
            one.number.expect("it names a transfer")
        })
        .collect()
}

#[test]
fn messages_arrive_short_and_long_in_either_order() {
    for bytes in [0, 1, LONG] {
        for is_receiver_first in [false, true] {
            let mut ranks = Ranks::open(3);
            let (mut from, mut to) = (vec![7; bytes], vec![0; bytes]);
            let send = transfer(TransferKind::SEND, 2, &mut from);
            let receive = transfer(TransferKind::RECEIVE, 1, &mut to);
            if is_receiver_first {
                ranks.0[2].start(4, &receive).unwrap();
                assert!(ranks.step()[2].is_empty());
            }
            ranks.0[1].start(3, &send).unwrap();
            let mut over = ranks.step();
            if !is_receiver_first {
                ranks.0[2].start(4, &receive).unwrap();
                let more = ranks.step();
                over.iter_mut().zip(more).for_each(|(over, more)| over.extend(more));
            }
            assert_eq!((good(&over[1]), good(&over[2])), (vec![3], vec![4]), "{bytes}");
            assert_eq!(from, to);
        }
    }
}

#[test]
fn puts_and_gets_reach_a_window_and_a_put_adds_to_its_slot() {
    for bytes in [8, LONG] {
        let mut ranks = Ranks::open(3);
        let mut window = vec![1; bytes + 16];
        let mapped = span(&mut window);
        ranks.0[2].map(6, mapped);
        let (mut from, mut back) = (vec![7; bytes], vec![0; bytes]);
        let at_window =
            |transfer| Transfer { window: 6, offset: 16, slot: 3, value: 2, ..transfer };
        let wait = Transfer { slot: 3, value: 2, ..transfer(TransferKind::WAIT, 0, &mut []) };
        ranks.0[2].start(1, &wait).unwrap();
        assert!(ranks.step()[2].is_empty());
        ranks.0[0].start(2, &at_window(transfer(TransferKind::PUT, 2, &mut from))).unwrap();
        let over = ranks.step();
        assert_eq!((good(&over[0]), good(&over[2])), (vec![2], vec![1]));
        ranks.0[1].start(3, &at_window(transfer(TransferKind::GET, 2, &mut back))).unwrap();
        assert_eq!(good(&ranks.step()[1]), [3]);
        assert_eq!(back, from);
        assert_eq!(window[..16], [1; 16]);
    }
}

#[test]
fn an_access_outside_of_a_window_is_refused_by_name() {
    let mut ranks = Ranks::open(2);
    let mut window = vec![0; 64];
    let mapped = span(&mut window);
    ranks.0[1].map(6, mapped);
    let mut bytes = vec![1; 32];
    let put = Transfer { window: 6, offset: 40, ..transfer(TransferKind::PUT, 1, &mut bytes) };
    ranks.0[0].start(1, &put).unwrap();
    ranks.0[0].start(2, &Transfer { window: 7, ..put }).unwrap();
    let over = ranks.step().remove(0);
    assert!(matches!(over[0].result, Err(TransferError::Refused { .. })), "{over:?}");
    assert!(matches!(over[1].result, Err(TransferError::Refused { .. })), "{over:?}");
    assert_eq!(window, [0; 64]);
}

#[test]
fn ranks_that_disagree_get_an_error() {
    let mut ranks = Ranks::open(2);
    let (mut from, mut to) = (vec![0; 8], vec![0; 12]);
    ranks.0[0].start(1, &transfer(TransferKind::SEND, 1, &mut from)).unwrap();
    ranks.0[1].start(2, &transfer(TransferKind::RECEIVE, 0, &mut to)).unwrap();
    let over = ranks.step().remove(1);
    let error = over[0].result.clone().unwrap_err();
    assert!(matches!(error, TransferError::Mismatch { .. }), "{error}");
}

/// Rank 2 waits in another call than the others, and no rank has sent anything.
#[test]
fn ranks_that_wait_in_different_calls_get_an_error() {
    const CALL: u128 = 1 << 63 | 7 << 32;
    for (differs, is_found) in [(3, true), (9, false)] {
        let mut ranks = Ranks::open(3);
        let mut bytes = [vec![0; 8], vec![0; 8], vec![0; 8]];
        for ((rank, peer), bytes) in [1, 2, 0].into_iter().enumerate().zip(&mut bytes) {
            let stamp = if rank == 2 { differs } else { 9 };
            let receive =
                Transfer { tag: CALL, stamp, ..transfer(TransferKind::RECEIVE, peer, bytes) };
            ranks.0[rank].start(1, &receive).unwrap();
        }
        ranks.0[1].ask();
        assert!(ranks.0[1].unanswered().is_some());
        ranks.step();
        assert_eq!(ranks.0[1].unanswered(), None);
        let found = ranks.0[1].disagreement();
        let (Some(TransferError::Mismatch { first, second, .. }), true) = (&found, is_found) else {
            assert!(found.is_none() && !is_found, "{found:?}");
            continue;
        };
        assert_eq!((first.rank, first.stamp, second.rank, second.stamp), (0, 9, 2, 3));
    }
}

/// A message of a call, or an answer, is enough: no two transfers need to meet.
#[test]
fn a_rank_hears_at_once_of_another_call() {
    const CALL: u128 = 1 << 63 | 7 << 32;
    const OF_COLLECTIVE: u128 = 1 << 15 | 1 << 80 | 2 << 96;
    for is_sent in [true, false] {
        let mut ranks = Ranks::open(2);
        let (mut first, mut second) = (vec![0; 8], vec![0; 8]);
        ranks.0.iter_mut().for_each(RankExchange::listen);
        let kind = if is_sent { TransferKind::SEND } else { TransferKind::RECEIVE };
        let of_call = |stamp: u128, step: u128, transfer| Transfer {
            tag: CALL | step << 16,
            stamp: OF_COLLECTIVE | stamp,
            ..transfer
        };
        ranks.0[0].start(1, &of_call(0, 1, transfer(kind, 1, &mut first))).unwrap();
        let receive = of_call(2, 0, transfer(TransferKind::RECEIVE, 0, &mut second));
        ranks.0[1].start(1, &receive).unwrap();
        ranks.step();
        assert_eq!(ranks.0[1].failed().is_some(), is_sent);
        if !is_sent {
            ranks.0[1].ask_when_quiet(Instant::now() + Duration::from_secs(1));
            ranks.step();
        }
        let error = ranks.0[1].failed().expect("it was not noticed").to_string();
        let (broadcast, all_reduce) = (
            "rank 0 has 8 bytes of collective call 7: broadcast",
            "rank 1 has 8 bytes of collective call 7: all_reduce",
        );
        assert!(error.contains(broadcast) && error.contains(all_reduce), "{error}");
    }
}

#[test]
fn a_failure_ends_everything_that_is_under_way_at_every_rank() {
    let mut ranks = Ranks::open(3);
    let (mut first, mut second) = (vec![0; 8], vec![0; LONG]);
    ranks.0[0].start(1, &transfer(TransferKind::RECEIVE, 1, &mut first)).unwrap();
    ranks.0[2].start(2, &transfer(TransferKind::RECEIVE, 1, &mut second)).unwrap();
    ranks.0.iter_mut().for_each(RankExchange::listen);
    ranks.0[1].end(Some("it has no window"));
    let over = ranks.step();
    for at in [0, 2] {
        let error = over[at][0].result.clone().unwrap_err();
        assert!(
            matches!(&error, TransferError::PeerFailed { rank: 1, host, .. } if host == "host1"),
            "{error}"
        );
        assert!(ranks.0[at].start(9, &transfer(TransferKind::SEND, 1, &mut first)).is_err());
    }
}

#[test]
fn a_message_that_cannot_come_any_more_is_an_error() {
    for is_waiting_first in [true, false] {
        let mut ranks = Ranks::open(2);
        let mut bytes = vec![0; 8];
        let receive = transfer(TransferKind::RECEIVE, 1, &mut bytes);
        if is_waiting_first {
            ranks.0[0].start(4, &receive).unwrap();
        }
        ranks.0[1].end(None);
        let mut over = ranks.step().remove(0);
        if !is_waiting_first {
            ranks.0[0].start(4, &receive).unwrap();
            ranks.0[0].step(&mut over);
        }
        let error = over[0].result.clone().unwrap_err();
        assert!(matches!(error, TransferError::Ended { waits: 0, ended: 1, .. }), "{error}");
    }
}

#[test]
fn what_is_left_of_a_run_is_nothing_to_the_next_one() {
    let mut ranks = Ranks::open(2);
    let (mut old, mut new, mut to) = (vec![1; 8], vec![2; 8], vec![0; 8]);
    ranks.0[1].begin(2);
    ranks.0[0].start(1, &transfer(TransferKind::SEND, 1, &mut old)).unwrap();
    ranks.step();
    ranks.0[0].begin(2);
    ranks.0[0].start(1, &transfer(TransferKind::SEND, 1, &mut new)).unwrap();
    ranks.0[1].start(2, &transfer(TransferKind::RECEIVE, 0, &mut to)).unwrap();
    assert_eq!(good(&ranks.step()[1]), [2]);
    assert_eq!(to, new);
}

#[test]
fn a_silent_rank_is_named_by_the_one_after_it() {
    let mut ranks = Ranks::open(3);
    let mut bytes = vec![0; 8];
    ranks.0[2].start(1, &transfer(TransferKind::RECEIVE, 0, &mut bytes)).unwrap();
    for rank in [0, 2] {
        ranks.0[rank].ranks.set_silence(Duration::from_millis(300));
        ranks.0[rank].listen();
    }
    let mut over = Vec::new();
    while over.is_empty() {
        // Rank 1 hangs.
        ranks.0[0].step(&mut Vec::new());
        ranks.0[2].step(&mut over);
        std::thread::sleep(Duration::from_millis(5));
    }
    let error = over[0].result.clone().unwrap_err();
    assert!(matches!(&error, TransferError::Absent { rank: 1, .. }), "{error}");
    assert!(ranks.0[0].failed().is_none(), "rank 2 is heard by rank 0");
}

#[test]
fn a_rank_that_does_not_answer_is_named_with_what_waits_for_it() {
    let mut ranks = Ranks::open(3);
    let mut bytes = vec![0; 8];
    ranks.0[0].start(1, &transfer(TransferKind::RECEIVE, 2, &mut bytes)).unwrap();
    ranks.0[0].ask();
    for _ in 0..4 {
        // Rank 2 hangs.
        ranks.0[1].step(&mut Vec::new());
        ranks.0[0].step(&mut Vec::new());
    }
    assert_eq!((ranks.0[0].disagreement(), ranks.0[0].unanswered()), (None, Some(2)));
    ranks.0[0].miss_answer(2, Duration::from_secs(2));
    let error = ranks.0[0].failed().unwrap().to_string();
    assert!(
        error.starts_with("rank 2 on host2 has failed (it has not answered within 2s"),
        "{error}"
    );
    assert!(error.contains("rank 0 has a receive of 8 bytes with rank 2 under way"), "{error}");
    ranks.0[0].end(Some("its run has ended with a fault"));
    ranks.0[1].step(&mut Vec::new());
    let error = ranks.0[1].failed().unwrap().to_string();
    assert!(error.starts_with("rank 2 on host2 has failed (rank 0 says: "), "{error}");
}
