//! Random programs over streams, events, copies and functions of the host, against a reference that does everything in the order of
//! the submissions.
//!
//! Each stream has a buffer of its own. What a stream reads of another one's buffer it reads behind a wait for that one's last
//! command, and makes it wait in turn; so every order that the events allow gives the result of the reference.

use pto_host::session::{Drive, Event, HostBuffer, Stream};
use pto_host::{DeviceBuffer, Session, func};

use super::support::{LONG, device, options, pool, stepped, virtual_time};

const STREAMS: usize = 4;
const LEN: usize = 16;
const BYTES: u64 = 4 * LEN as u64;

/// splitmix64 (Steele, Lea and Flood 2014).
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn below(&mut self, of: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)) % of
    }

    fn stream(&mut self) -> usize {
        usize::try_from(self.below(STREAMS as u64)).unwrap()
    }
}

struct Program<'s> {
    session: &'s Session,
    streams: Vec<Stream>,
    buffers: Vec<DeviceBuffer<f32>>,
    /// What the buffers hold after the commands so far.
    expected: Vec<[f32; LEN]>,
    /// Copies to the host, and what they must hold in the end.
    copies: Vec<(HostBuffer, [f32; LEN])>,
}

impl<'s> Program<'s> {
    fn new(session: &'s Session) -> Self {
        Self {
            session,
            streams: (0..STREAMS).map(|_| session.stream().unwrap()).collect(),
            buffers: (0..STREAMS).map(|_| session.upload(&[1.0; LEN]).unwrap()).collect(),
            expected: vec![[1.0; LEN]; STREAMS],
            copies: Vec::new(),
        }
    }

    fn at(&self, stream: usize) -> u64 {
        self.buffers[stream].address().0
    }

    /// `waits` goes on behind what `records` has done so far.
    fn follow(&self, waits: usize, records: usize) {
        let event: Event = self.session.event().unwrap();
        self.streams[records].record(&event).unwrap();
        self.streams[waits].wait(&event).unwrap();
    }

    /// Does `of` between two streams: the other one waits before it goes on.
    fn between(&mut self, one: usize, other: usize, of: impl FnOnce(&mut Self)) {
        if one != other {
            self.follow(one, other);
        }
        of(self);
        if one != other {
            self.follow(other, one);
        }
    }

    fn add_command(&mut self, random: &mut Random) {
        let (one, other) = (random.stream(), random.stream());
        match random.below(8) {
            0 | 1 => self.between(one, other, |program| program.add(one, other)),
            2 => self.between(one, other, |program| program.copy(one, other)),
            3 => self.fill(one),
            4 => self.set(one, random.below(100)),
            5 => self.fetch(one),
            6 => self.replay(one, other),
            _ => self.nap(one),
        }
    }

    fn add(&mut self, one: usize, other: usize) {
        let [to, from] = [self.at(one), self.at(other)];
        self.streams[one].launch(func::ADD_SCALAR, &[from, f32_word(0.5), to, LEN as u64]).unwrap();
        self.expected[one] = self.expected[other].map(|value| value + 0.5);
    }

    fn copy(&mut self, one: usize, other: usize) {
        if one != other {
            let [to, from] = [&self.buffers[one], &self.buffers[other]].map(DeviceBuffer::address);
            self.streams[one].copy_on_device(from, to, BYTES).unwrap();
            self.expected[one] = self.expected[other];
        }
    }

    fn fill(&mut self, one: usize) {
        self.streams[one].fill(self.buffers[one].address(), 0, BYTES / 2).unwrap();
        self.expected[one][..LEN / 2].fill(0.0);
    }

    fn set(&mut self, one: usize, value: u64) {
        let values = [value as f32; LEN];
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        self.streams[one].copy_to_device(self.buffers[one].address(), bytes).unwrap();
        self.expected[one] = values;
    }

    fn fetch(&mut self, one: usize) {
        let buffer = HostBuffer::new(4 * LEN);
        self.streams[one].copy_from_device(self.buffers[one].address(), &buffer).unwrap();
        self.copies.push((buffer, self.expected[one]));
    }

    /// A recording of a fork over two streams, which writes to the buffer of the first one, launched twice.
    fn replay(&mut self, one: usize, other: usize) {
        let [at, len] = [self.at(one), LEN as u64];
        let half = [f32_word(0.5), f32_word(-0.25)];
        let (fork, join) = (self.session.event().unwrap(), self.session.event().unwrap());
        let stream = &self.streams[one];
        stream.begin_capture().unwrap();
        stream.launch(func::ADD_SCALAR, &[at, half[0], at, len]).unwrap();
        if one != other {
            let other = &self.streams[other];
            stream.record(&fork).unwrap();
            other.wait(&fork).unwrap();
            other.launch(func::ADD_SCALAR, &[at, half[1], at, len / 2]).unwrap();
            other.record(&join).unwrap();
            stream.wait(&join).unwrap();
        }
        stream.launch_blocks(func::EMPTY_AIC, 2, &[]).unwrap();
        stream.launch(func::ADD_SCALAR, &[at, half[0], at, len]).unwrap();
        let recording = stream.end_capture().unwrap();
        for _ in 0..2 {
            stream.launch_recording(&recording, &[]).unwrap();
        }
        let added = self.expected[one].map(|value| value + 2.0);
        self.expected[one] = added;
        if one != other {
            self.expected[one][..LEN / 2].iter_mut().for_each(|value| *value -= 0.5);
        }
    }

    fn nap(&mut self, one: usize) {
        self.streams[one].call(std::thread::yield_now).unwrap();
    }

    fn check(&self, what: &str) {
        self.session.synchronize_within(LONG).unwrap_or_else(|error| panic!("{what}: {error}"));
        for (stream, buffer) in self.buffers.iter().enumerate() {
            assert_eq!(buffer.read().unwrap(), self.expected[stream], "{what}, stream {stream}");
        }
        for (copy, expected) in &self.copies {
            let bytes: Vec<u8> = expected.iter().flat_map(|value| value.to_le_bytes()).collect();
            assert_eq!(copy.to_vec(), bytes, "{what}, a copy");
        }
    }
}

fn f32_word(value: f32) -> u64 {
    value.to_bits().into()
}

fn run(session: &Session, seed: u64, commands: u32, what: &str) {
    let mut random = Random(seed);
    let mut program = Program::new(session);
    for _ in 0..commands {
        program.add_command(&mut random);
    }
    program.check(&format!("{what}, seed {seed}"));
}

/// Each seed decides the program and every choice of the service.
#[test]
fn random_programs_in_every_order() {
    for seed in 0..600 {
        run(&stepped(pool(), seed), seed, 24, "stepped");
    }
}

#[test]
fn random_programs_in_virtual_time() {
    for seed in 0..400 {
        run(&stepped(virtual_time(seed), seed), seed, 12, "virtual");
    }
}

#[test]
fn random_programs_on_threads() {
    let session = device(pool()).session(options()).unwrap();
    for seed in 0..40 {
        run(&session, seed, 60, "pool");
    }
}

/// The same seed gives the same times, which are virtual.
#[test]
fn a_seed_gives_the_same_order_again() {
    let times = |seed| {
        let session = stepped(virtual_time(seed), seed);
        assert_eq!(options().drive, None::<Drive>);
        let event = session.event().unwrap();
        run(&session, seed, 12, "virtual");
        session.stream().unwrap().record(&event).unwrap();
        event.synchronize().unwrap();
        event.time().unwrap()
    };
    assert!((0..5).all(|seed| times(seed) == times(seed)));
    assert!((0..5).any(|seed| times(seed) != times(seed + 1)));
}
