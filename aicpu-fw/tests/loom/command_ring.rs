//! The ring of a stream's commands: what the consumer accepts is whole, and the producer overwrites nothing that the
//! consumer still reads.

use pto_abi::session::{CommandEntry, CommandKind, CommandRing, RingConsumer, RingProducer};
use pto_abi::sync::Ordering;

use crate::{explore, spawn};

/// Two entries: the third command goes where the first one stood.
type RingWords = (RingProducer, RingConsumer, [CommandEntry; 2]);

fn words() -> RingWords {
    (
        RingProducer::default(),
        RingConsumer::default(),
        std::array::from_fn(|_| CommandEntry::default()),
    )
}

fn ring((producer, consumer, entries): &'static RingWords) -> CommandRing<'static> {
    CommandRing::new(producer, consumer, entries).unwrap()
}

/// Puts commands 1 to 3, each of which says its number twice.
fn produce(ring: CommandRing<'static>) {
    for number in 1..=3 {
        while ring.put(CommandKind::WRITE_VALUE, &[number, number * 10]).is_err() {
            loom::thread::yield_now();
        }
    }
}

/// Takes three commands; `early`: gives each entry back before it is read.
fn consume(ring: CommandRing<'static>, early: bool) {
    for at in 0..3 {
        let head = loop {
            match ring.accept(at) {
                Some(head) => break head.unwrap(),
                None => loom::thread::yield_now(),
            }
        };
        if early {
            ring.take(at + 1);
        }
        assert_eq!(head.number, at + 1);
        assert_eq!([ring.word(at, 0), ring.word(at, 1)], [at + 1, (at + 1) * 10], "torn");
        ring.take(at + 1);
    }
}

#[test]
fn every_command_is_taken_whole_and_in_order() {
    explore(2, words, |words| {
        let producer = spawn(move || produce(ring(words)));
        consume(ring(words), false);
        producer.join().unwrap();
        assert!(ring(words).accept(3).is_none());
    });
}

#[test]
#[should_panic(expected = "torn")]
fn a_consumer_that_gives_back_what_it_still_reads_is_found() {
    explore(2, words, |words| {
        let producer = spawn(move || produce(ring(words)));
        consume(ring(words), true);
        producer.join().unwrap();
    });
}

#[test]
#[should_panic(expected = "none of its words")]
fn a_producer_that_announces_before_it_writes_is_found() {
    explore(2, words, |words| {
        let producer = spawn(move || {
            words.0.submitted.store(1, Ordering::Release);
            words.2[0].words[0].store(10 | 2 << 32, Ordering::Relaxed);
        });
        if let Some(head) = ring(words).accept(0) {
            assert!(head.is_ok(), "none of its words");
        }
        producer.join().unwrap();
    });
}
