//! Every order of steps of the threads that share a slot, and every value that the memory model lets a load see.
//! `RUSTFLAGS="--cfg loom" cargo test -p pto-acl-interface --test loom --release`.
#![cfg(loom)]

use loom::sync::Arc;
use loom::sync::Mutex;
use loom::sync::atomic::{AtomicUsize, Ordering};
use loom::{cell::Cell, thread};
use pto_acl_interface::handles::{Generation, Slot};

/// An object that counts its ends. Its content is a plain cell, so that loom reports a look that nothing orders.
struct Object {
    content: Cell<u32>,
    ends: Arc<AtomicUsize>,
}

// SAFETY: the slot orders writes before looks; loom reports where it does not.
unsafe impl Sync for Object {}
// SAFETY: as above.
unsafe impl Send for Object {}

impl Drop for Object {
    fn drop(&mut self) {
        // The last one writes: every look has to be over.
        self.content.set(0);
        self.ends.fetch_add(1, Ordering::Relaxed);
    }
}

fn object(content: u32, ends: &Arc<AtomicUsize>) -> Object {
    Object { content: Cell::new(content), ends: Arc::clone(ends) }
}

/// A slot whose first object holds 7, and the number of objects that have ended.
fn opened() -> (Arc<Slot<Object>>, Arc<AtomicUsize>) {
    let ends = Arc::new(AtomicUsize::new(0));
    let slot = Arc::new(Slot::default());
    assert!(slot.open(0, object(7, &ends)).is_ok());
    (slot, ends)
}

/// Looks at the object of a round, and says what is in it.
fn look(slot: &Slot<Object>, round: u32) -> Option<u32> {
    slot.pin(round).map(|object| object.content.get())
}

#[test]
fn a_look_sees_the_object_or_nothing() {
    loom::model(|| {
        let ends = Arc::new(AtomicUsize::new(0));
        let slot = Arc::new(Slot::default());
        let looking = {
            let slot = Arc::clone(&slot);
            thread::spawn(move || look(&slot, 0))
        };
        assert!(slot.open(0, object(7, &ends)).is_ok());
        let seen = looking.join().expect("the thread does not panic");
        assert!(seen.is_none_or(|content| content == 7), "{seen:?}");
    });
}

#[test]
fn the_last_look_ends_the_object_once() {
    loom::model(|| {
        let (slot, ends) = opened();
        let looking: Vec<_> = (0..2)
            .map(|_| {
                let slot = Arc::clone(&slot);
                thread::spawn(move || look(&slot, 0))
            })
            .collect();
        let closed = slot.close(0).map(|object| object.content.get());
        assert_eq!(closed, Some(7));
        for thread in looking {
            let seen = thread.join().expect("the thread does not panic");
            assert!(seen.is_none_or(|content| content == 7), "{seen:?}");
        }
        assert_eq!(ends.load(Ordering::Relaxed), 1);
        assert_eq!((slot.round(), look(&slot, 0)), (1, None));
    });
}

#[test]
fn one_of_two_closes() {
    loom::model(|| {
        let (slot, ends) = opened();
        let other = {
            let slot = Arc::clone(&slot);
            thread::spawn(move || slot.close(0).is_some())
        };
        let own = slot.close(0).is_some();
        assert_ne!(own, other.join().expect("the thread does not panic"));
        assert_eq!(ends.load(Ordering::Relaxed), 1);
    });
}

#[test]
fn a_key_of_an_earlier_round_finds_nothing() {
    loom::model(|| {
        let (slot, ends) = opened();
        let looking = {
            let slot = Arc::clone(&slot);
            thread::spawn(move || look(&slot, 0))
        };
        let is_empty = slot.close(0).expect("no other thread closes it").end();
        if is_empty {
            assert!(slot.open(1, object(8, &ends)).is_ok());
        }
        let seen = looking.join().expect("the thread does not panic");
        assert!(seen.is_none_or(|content| content == 7), "the look of round 0 saw {seen:?}");
        if is_empty {
            assert_eq!(look(&slot, 1), Some(8));
        }
    });
}

#[test]
fn an_object_that_is_kept_is_seen_whole_or_not() {
    loom::model(|| {
        let ends = Arc::new(AtomicUsize::new(0));
        let slot = Arc::new(Slot::<Object>::default());
        let looking = {
            let slot = Arc::clone(&slot);
            thread::spawn(move || {
                // SAFETY: no thread closes the slot.
                let seen = unsafe { slot.kept(0) };
                seen.map(|object| object.content.get())
            })
        };
        assert!(slot.open(0, object(7, &ends)).is_ok());
        let seen = looking.join().expect("the thread does not panic");
        assert!(seen.is_none_or(|content| content == 7), "{seen:?}");
        // SAFETY: as above.
        assert!(unsafe { slot.kept(1) }.is_none());
    });
}

/// A table of one number under a lock, and a thread that has looked it up: it does not use that any more once it knows of the change.
#[test]
fn what_was_looked_up_counts_until_the_change() {
    loom::model(|| {
        let table = Arc::new((Generation::default(), Mutex::new(7)));
        let is_announced = Arc::new(AtomicUsize::new(0));
        let changing = {
            let (table, is_announced) = (Arc::clone(&table), Arc::clone(&is_announced));
            thread::spawn(move || {
                let mut held = table.1.lock().expect("no thread panics");
                table.0.next();
                *held = 8;
                drop(held);
                is_announced.store(1, Ordering::Release);
            })
        };
        let (generation, found) = {
            let held = table.1.lock().expect("no thread panics");
            (table.0.now(), *held)
        };
        let knows = is_announced.load(Ordering::Acquire) == 1;
        let counts = table.0.now() == generation;
        assert!(!(knows && counts) || found == 8, "{found} counts after the change");
        changing.join().expect("the thread does not panic");
        assert_eq!(table.0.now() == generation, found == 8);
    });
}
