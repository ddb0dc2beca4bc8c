//! Real threads make, look at and end objects of one table at the same time.
#![cfg(not(loom))]

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread;

use pto_acl_interface::handles::{Key, Slots};

const MAKERS: usize = 2;
const OBJECTS: usize = 20_000;
const SHELVES: usize = 16;
/// The value of a slot without a key.
const NOTHING: u64 = u64::MAX;

/// An object that knows its key, and that counts its end.
struct Object<'a> {
    number: u64,
    copy: u64,
    ends: &'a AtomicUsize,
}

impl Drop for Object<'_> {
    fn drop(&mut self) {
        assert_eq!(self.number, self.copy, "an object ended twice");
        self.copy = NOTHING;
        self.ends.fetch_add(1, Ordering::Relaxed);
    }
}

fn make<'a>(slots: &Slots<Object<'a>>, ends: &'a AtomicUsize) -> u64 {
    let key = slots.reserve();
    let number = key.number();
    slots.insert(key, Object { number, copy: number, ends });
    number
}

fn end(slots: &Slots<Object<'_>>, number: u64) {
    let held = Key::of(number).and_then(|key| slots.take(key));
    assert_eq!(held.expect("only one thread has taken the key").number, number);
}

#[test]
fn objects_end_once_and_keys_find_their_own() {
    let ends = AtomicUsize::new(0);
    let slots = Slots::new();
    let shelves: Vec<AtomicU64> = (0..SHELVES).map(|_| AtomicU64::new(NOTHING)).collect();
    let is_over = AtomicUsize::new(0);
    thread::scope(|scope| {
        for maker in 0..MAKERS {
            let (slots, shelves, ends, is_over) = (&slots, &shelves, &ends, &is_over);
            scope.spawn(move || {
                for round in 0..OBJECTS {
                    let shelf = &shelves[(round * 7 + maker) % SHELVES];
                    // Relaxed, also below: the table has to order the objects without help.
                    let before = shelf.swap(make(slots, ends), Ordering::Relaxed);
                    if before != NOTHING {
                        end(slots, before);
                    }
                }
                is_over.fetch_add(1, Ordering::Relaxed);
            });
        }
        for _ in 0..2 {
            scope.spawn(|| {
                while is_over.load(Ordering::Relaxed) < MAKERS {
                    for shelf in &shelves {
                        let number = shelf.load(Ordering::Relaxed);
                        if let Some(held) = Key::of(number).and_then(|key| slots.find(key)) {
                            assert_eq!((held.number, held.copy), (number, number));
                        }
                    }
                }
            });
        }
    });
    let left = slots.all().count();
    assert_eq!(ends.load(Ordering::Relaxed) + left, MAKERS * OBJECTS);
}
