//! `GmWindow`: nothing outside, nothing misaligned, nothing that wraps.

use pto_abi::GmAddr;
use pto_abi::kinds::TaskState;
use pto_abi::sync::{AtomicU64, Ordering};
use pto_abi::task::{NO_CHUNK, Task, TaskHead, UNPUBLISHED};

use crate::memory::{GM, with_gm};

#[test]
fn addresses_become_offsets_in_range_only() {
    with_gm(256, |gm| {
        assert_eq!(gm.offset_of(GM, 256), Some(0));
        assert_eq!(gm.offset_of(GM.offset(255), 1), Some(255));
        assert_eq!(gm.offset_of(GM.offset(256), 0), Some(256));
        assert_eq!(gm.offset_of(GM.offset(256), 1), None);
        assert_eq!(gm.offset_of(GM, 257), None);
        assert_eq!(gm.offset_of(GmAddr(GM.0 - 1), 1), None);
        assert_eq!(gm.offset_of(GM.offset(8), u64::MAX), None, "wraps");
        assert_eq!(gm.offset_of(GmAddr(u64::MAX), 1), None);
    });
}

#[test]
fn parts_know_their_offset() {
    with_gm(256, |gm| {
        let part = gm.part(64, 128).unwrap();
        assert_eq!((part.address(), part.bytes()), (GM.offset(64), 128));
        assert_eq!(part.write(0, &7_u64), Some(()));
        assert_eq!(gm.read::<u64>(64), Some(7));
        assert_eq!(part.read::<u64>(128), None, "in the window, not in the part");
        assert!(gm.part(64, 193).is_none());
        assert!(gm.part(257, 0).is_none());
        assert!(gm.part(u64::MAX, 2).is_none(), "wraps");
        assert!(part.part(120, 8).is_some() && part.part(121, 8).is_none());
    });
}

#[test]
fn values_go_in_and_out_aligned_and_in_range() {
    with_gm(64, |gm| {
        assert_eq!(gm.write(56, &u64::MAX), Some(()));
        assert_eq!(gm.read::<u64>(56), Some(u64::MAX));
        for offset in [57, 60, 64, u64::MAX, u64::MAX - 7] {
            assert_eq!(gm.write(offset, &1_u64), None, "{offset}");
            assert_eq!(gm.read::<u64>(offset), None, "{offset}");
        }
        assert_eq!(gm.read::<[u32; 3]>(52), Some([0, u32::MAX, u32::MAX]));
        assert_eq!(gm.read::<u64>(48), Some(0), "nothing was written besides");
    });
}

#[test]
fn bytes_go_in_and_out_whole_or_not_at_all() {
    with_gm(64, |gm| {
        assert_eq!(gm.write_bytes(61, &[1, 2, 3]), Some(()));
        assert_eq!(gm.write_bytes(62, &[9, 9, 9]), None);
        let mut read = [0; 3];
        assert_eq!(gm.read_bytes(61, &mut read), Some(()));
        assert_eq!(read, [1, 2, 3]);
        assert_eq!(gm.read_bytes(62, &mut read), None);
        assert_eq!(read, [1, 2, 3], "nothing was copied");
        assert_eq!(gm.read_bytes(64, &mut []), Some(()));
    });
}

/// Each range of some words, also in windows that begin and end within a word.
#[test]
fn bytes_at_any_offset_are_copied_and_none_around_them() {
    with_gm(64, |gm| {
        let part = gm.part(3, 26).unwrap();
        for (window, bytes) in [(gm, 40), (part, 26)] {
            for offset in 0..=bytes {
                for length in 0..=bytes - offset {
                    gm.write_bytes(0, &[0xEE; 64]).unwrap();
                    let from: Vec<u8> = (1..).take(length).collect();
                    window.write_bytes(offset as u64, &from).unwrap();
                    let mut all = [0; 64];
                    gm.read_bytes(0, &mut all).unwrap();
                    let start = offset + if bytes == 26 { 3 } else { 0 };
                    let (here, end) = (&all[start..start + length], start + length);
                    assert_eq!(here, from, "{length} at {offset}");
                    assert!(all[..start].iter().chain(&all[end..]).all(|byte| *byte == 0xEE));
                    let mut read = vec![0; length];
                    window.read_bytes(offset as u64, &mut read).unwrap();
                    assert_eq!(read, from, "{length} at {offset}");
                }
            }
        }
    });
}

/// Two threads change their own bytes of one word.
#[test]
fn adjacent_bytes_may_have_different_writers() {
    with_gm(64, |gm| {
        std::thread::scope(|scope| {
            for (offset, length) in [(0, 3), (3, 10)] {
                scope.spawn(move || {
                    for round in (0..=u8::MAX).chain(0..=u8::MAX) {
                        let from = vec![round; length];
                        gm.write_bytes(offset, &from).unwrap();
                        let mut read = vec![0; length];
                        gm.read_bytes(offset, &mut read).unwrap();
                        assert_eq!(read, from);
                    }
                });
            }
        });
    });
}

#[test]
fn live_words_are_the_memory() {
    with_gm(256, |gm| {
        let word: &AtomicU64 = gm.live(8).unwrap();
        word.store(5, Ordering::Relaxed);
        assert_eq!(gm.read::<u64>(8), Some(5));
        assert!(gm.live::<AtomicU64>(4).is_none(), "misaligned");
        assert!(gm.live::<AtomicU64>(256).is_none());
        assert_eq!(gm.live_slice::<Task>(64, 3).map(<[Task]>::len), Some(3));
        assert!(gm.live_slice::<Task>(64, 4).is_none());
        assert!(gm.live_slice::<Task>(32, 1).is_none(), "a line is aligned");
        assert!(gm.live_slice::<Task>(0, usize::MAX).is_none(), "the size overflows");
        assert_eq!(gm.live_slice::<Task>(256, 0).map(<[Task]>::len), Some(0));
    });
}

/// A line that is written in words has in its fields what it was made of, whatever stood there.
#[test]
fn the_line_of_a_task_is_written_at_once() {
    let task = Task::default();
    task.lock.hold(|| ());
    let code = (0x1234, 0x03, 0xfedc_ba98_7654_3210);
    let mut head = TaskHead::new(TaskState::PUBLISHED, code, (0xffff_fff0, 31), 0x8000_0001);
    for further in [0, 9] {
        task.edges_in.store(77, Ordering::Relaxed);
        task.core.store(7, Ordering::Relaxed);
        task.consumers[0].store(5, Ordering::Relaxed);
        task.consumers[1].store(6, Ordering::Relaxed);
        head.write(&task);
        let words = [&task.fanin, &task.fanout, &task.edges_in, &task.payload, &task.generation];
        let [fanin, fanout, edges_in, payload, generation] =
            words.map(|word| word.load(Ordering::Relaxed));
        assert_eq!((fanin, fanout, edges_in), (UNPUBLISHED, 0, 0));
        assert_eq!((payload, generation), (0xffff_fff0 + further, 0x8000_0001));
        assert_eq!(task.kernel.load(Ordering::Relaxed), code.2);
        assert_eq!(task.func_id.load(Ordering::Relaxed), code.0);
        assert_eq!(task.core.load(Ordering::Relaxed), 0);
        let bytes = [&task.state, &task.arg_count, &task.kind];
        let expected = [TaskState::PUBLISHED.get(), 31, code.1];
        assert_eq!(bytes.map(|byte| byte.load(Ordering::Relaxed)), expected);
        assert_eq!(task.last_chunk.load(Ordering::Relaxed), NO_CHUNK);
        let consumers = [0, 1].map(|at| task.consumers[at].load(Ordering::Relaxed));
        assert_eq!(consumers, [0, 6], "the first one belongs to the words, the others do not");
        // No agent holds it.
        task.lock.hold(|| ());
        head.advance(9);
    }
}
