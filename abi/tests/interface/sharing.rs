//! Alone, the two ways of sharing do the same; together, only one of them is right.

use pto_abi::sync::{AtomicU32, AtomicU64, Concurrent, Exclusive, Ordering, Sharing, TaskLock};

/// What a sequence of operations returns and leaves.
fn trace<S: Sharing>() -> (Vec<u64>, Vec<Result<u64, u64>>) {
    let (wide, narrow) = (AtomicU64::new(u64::MAX - 1), AtomicU32::new(1));
    let order = Ordering::AcqRel;
    let values = vec![
        S::fetch_add(&wide, 5, order),
        S::fetch_sub(&wide, 4, order),
        wide.load(Ordering::Relaxed),
        S::fetch_sub_u32(&narrow, 3, order).into(),
        S::fetch_or_u32(&narrow, 1 << 31, order).into(),
        narrow.load(Ordering::Relaxed).into(),
    ];
    let narrowed = |result: Result<u32, u32>| result.map(u64::from).map_err(u64::from);
    let current = narrow.load(Ordering::Relaxed);
    let exchanges = vec![
        S::compare_exchange(&wide, 0, 7, order),
        S::compare_exchange(&wide, u64::MAX, 7, order),
        Ok(wide.load(Ordering::Relaxed)),
        narrowed(S::compare_exchange_u32(&narrow, 0, 9, order)),
        narrowed(S::compare_exchange_u32(&narrow, current, 9, order)),
        Ok(narrow.load(Ordering::Relaxed).into()),
    ];
    (values, exchanges)
}

#[test]
fn one_thread_sees_no_difference() {
    assert_eq!(trace::<Concurrent>(), trace::<Exclusive>());
    let (values, exchanges) = trace::<Concurrent>();
    assert_eq!(values[..3], [u64::MAX - 1, 3, u64::MAX]);
    assert_eq!(exchanges[..3], [Err(u64::MAX), Ok(u64::MAX), Ok(7)]);
}

#[test]
fn shared_words_lose_nothing() {
    let word = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..20_000 {
                    Concurrent::fetch_add(&word, 3, Ordering::Relaxed);
                    Concurrent::fetch_sub(&word, 1, Ordering::Relaxed);
                }
            });
        }
    });
    assert_eq!(word.load(Ordering::Relaxed), 4 * 20_000 * 2);
}

#[test]
fn a_task_lock_excludes() {
    let (lock, word) = (TaskLock::default(), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                for _ in 0..5_000 {
                    lock.hold(|| Exclusive::fetch_add(&word, 1, Ordering::Relaxed));
                }
            });
        }
    });
    assert_eq!(word.load(Ordering::Relaxed), 10_000);
}
