//! Random programs over streams, events, words, copies, recordings and functions of the host, against a reference that does everything
//! in the order of the submissions. `pto_host::session::soak` makes them.

use pto_host::session::{Drive, soak};

use super::support::{device, options, pool, stepped, virtual_time};

/// Each seed decides the program and every choice of the service.
#[test]
fn random_programs_in_every_order() {
    for seed in 0..1000 {
        soak::checked(&stepped(pool(), seed), seed).unwrap_or_else(|failed| panic!("{failed}"));
    }
}

#[test]
fn random_programs_on_threads() {
    let session = device(pool()).session(options()).unwrap();
    for seed in 0..200 {
        soak::checked(&session, seed).unwrap_or_else(|failed| panic!("{failed}"));
    }
}

/// The same seed gives the same times, which are virtual.
#[test]
fn a_seed_gives_the_same_order_again() {
    let times = |seed| {
        let session = stepped(virtual_time(seed), seed);
        assert_eq!(options().drive, None::<Drive>);
        let event = session.event().unwrap();
        soak::checked(&session, seed).unwrap();
        session.stream().unwrap().record(&event).unwrap();
        event.synchronize().unwrap();
        event.time().unwrap()
    };
    assert!((0..5).all(|seed| times(seed) == times(seed)));
    assert!((0..5).any(|seed| times(seed) != times(seed + 1)));
}
