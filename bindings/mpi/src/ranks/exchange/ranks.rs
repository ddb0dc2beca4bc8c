//! The state of all ranks, as this rank knows it: hosts, processes, when each was heard last.

use std::time::{Duration, Instant};

use crate::ranks::processes::{ProcessId, Processes};

/// How often a rank says that it is alive, while a run is on.
const BEAT_EVERY: Duration = Duration::from_millis(200);
/// How often the processes of this host are looked at.
const LOOK_EVERY: Duration = Duration::from_millis(1);

/// All ranks, seen from one.
pub(crate) struct Ranks {
    own: u32,
    hosts: Vec<Option<String>>,
    processes: Processes,
    /// When the rank before this one was heard last.
    heard: Instant,
    /// When this one has said so last.
    said: Instant,
    looked: Instant,
    silence: Duration,
}

/// Who is missed, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Missed {
    /// Its process has ended.
    Ended { rank: u32, process: u32 },
    /// It has said nothing for so long.
    Silent { rank: u32, waited: Duration },
}

impl Ranks {
    pub(crate) fn new(own: u32, count: u32, silence: Duration) -> Self {
        let now = Instant::now();
        Self {
            own,
            hosts: vec![None; count as usize],
            processes: Processes::default(),
            heard: now,
            said: now,
            looked: now,
            silence,
        }
    }

    pub(crate) fn own(&self) -> u32 {
        self.own
    }

    pub(crate) fn count(&self) -> u32 {
        u32::try_from(self.hosts.len()).unwrap_or(u32::MAX)
    }

    /// All ranks but this one.
    pub(crate) fn others(&self) -> impl Iterator<Item = u32> + use<> {
        let own = self.own;
        (0..self.count()).filter(move |rank| *rank != own)
    }

    /// Where a rank is.
    pub(crate) fn host(&self, rank: u32) -> &str {
        let host = self.hosts.get(rank as usize).and_then(Option::as_deref);
        host.unwrap_or("a host that is not known yet")
    }

    /// A rank has said where it is.
    pub(crate) fn introduce(&mut self, rank: u32, host: &str, identity: ProcessId) {
        if let Some(known) = self.hosts.get_mut(rank as usize) {
            *known = Some(host.to_owned());
        }
        if rank != self.own {
            self.processes.watch(rank, identity);
        }
    }

    /// The ranks that have not said where they are.
    pub(crate) fn strangers(&self) -> Vec<u32> {
        (0..self.count()).filter(|rank| self.hosts[*rank as usize].is_none()).collect()
    }

    /// The largest number of ranks on one host.
    pub(crate) fn most_on_one_host(&self) -> u32 {
        let on = |host| self.hosts.iter().filter(|other| *other == host).count();
        let most = self.hosts.iter().map(on).max().unwrap_or(1);
        u32::try_from(most).unwrap_or(1)
    }

    #[cfg(test)]
    pub(super) fn set_silence(&mut self, silence: Duration) {
        self.silence = silence;
    }

    /// A run begins: silence counts from now on.
    pub(crate) fn begin_run(&mut self) {
        self.heard = Instant::now();
    }

    /// A rank was heard.
    pub(crate) fn hear(&mut self, rank: u32) {
        if rank == self.before() {
            self.heard = Instant::now();
        }
    }

    /// The rank whose silence this one looks at.
    fn before(&self) -> u32 {
        (self.own + self.count() - 1) % self.count()
    }

    /// The rank that is to hear that this one is alive, if it is time.
    pub(crate) fn next_beat(&mut self, now: Instant) -> Option<u32> {
        if self.count() < 2 || now - self.said < BEAT_EVERY {
            return None;
        }
        self.said = now;
        Some((self.own + 1) % self.count())
    }

    /// Whose process has ended, as far as this host knows.
    pub(crate) fn ended(&mut self, now: Instant) -> Option<Missed> {
        if now - self.looked < LOOK_EVERY {
            return None;
        }
        self.looked = now;
        self.processes.ended().map(|(rank, process)| Missed::Ended { rank, process })
    }

    /// Whether the rank before this one is silent for too long.
    pub(crate) fn silent(&self, now: Instant) -> Option<Missed> {
        let waited = now.saturating_duration_since(self.heard);
        let is_silent = self.count() > 1 && waited > self.silence;
        is_silent.then(|| Missed::Silent { rank: self.before(), waited })
    }
}
