//! This process as a rank of a campaign.

use std::ops::{ControlFlow, Range};
use std::time::Duration;

use pto_host::group::TransferError;
use pto_mpi::{Mpi, MpiOptions};

use super::journal::{CampaignSlice, Journal};
use super::span::{left, turns};
use super::tally::Tally;
use crate::args::SoakArgs;
use crate::errors::Failure;
use crate::text::counted;

/// Seeds of a turn, at most. A rank that dies loses one turn.
const SEEDS_A_TURN: u64 = 256;
/// Failures after which a rank tries no more turns.
const ENOUGH: usize = 8;
/// How long a rank waits for the others, which may have much left to do: ten years.
const TIMEOUT: Duration = Duration::from_secs(10 * 365 * 24 * 3600);

/// Whether to go on.
pub(crate) type GoOn<'a> = dyn Fn() -> ControlFlow<()> + Sync + 'a;

/// A phase of a campaign: its name, and what tries seeds and asks now and then whether to go on. What it has tried is the first
/// `counts[0]` of them, unless some failed.
pub(crate) struct SharedPhase<'a> {
    pub(crate) name: &'static str,
    pub(crate) run: &'a dyn Fn(Range<u64>, &GoOn<'_>) -> Tally,
}

/// How the campaign of all ranks has ended.
pub(crate) struct CampaignResult {
    /// Of each phase.
    pub(crate) tallies: Vec<(&'static str, Tally)>,
    /// Seeds of all phases that no rank has tried.
    pub(crate) left: u64,
    /// Why, if a rank has failed.
    pub(crate) lost: Option<TransferError>,
    /// Whether this rank reports it.
    pub(crate) is_teller: bool,
}

/// A rank of a campaign.
pub(crate) struct RankJob {
    mpi: Mpi,
    journal: Journal,
    seeds: Range<u64>,
}

impl RankJob {
    /// Joins the job that MPI has started, for a campaign of this kind; `None`: it has started none.
    pub(crate) fn join(
        args: &SoakArgs,
        seeds: Range<u64>,
        kind: &str,
    ) -> Result<Option<Self>, Failure> {
        if pto_mpi::find::Kind::of_launcher().is_err() {
            return match &args.journal {
                None => Ok(None),
                Some(_) => Err(Failure::usage(
                    "--journal belongs to a campaign of several ranks; start it with mpirun, or leave --journal out",
                )),
            };
        }
        let mpi = Mpi::join(&MpiOptions::default()).map_err(Failure::usage)?;
        let profile = args.profile.as_deref().unwrap_or("drawn");
        let campaign = format!(
            "{kind}, seeds {} to {}, {} tasks, profile {profile}",
            seeds.start, seeds.end, args.tasks
        );
        Ok(Some(Self { mpi, journal: Journal::new(args.journal(), &campaign), seeds }))
    }

    /// How many ranks it has, and of which library.
    pub(crate) fn description(&self) -> String {
        format!("{} of {}", counted(self.mpi.ranks().into(), "rank"), self.mpi.library())
    }

    /// Tries what is left of all phases together with the other ranks. `is_interrupted` is asked now and then.
    pub(crate) fn run(
        &mut self,
        phases: &[SharedPhase<'_>],
        is_interrupted: &(dyn Fn() -> bool + Sync),
    ) -> Result<CampaignResult, Failure> {
        let before = self.journal.read()?;
        if let Some(lost) = self.agree(&before)? {
            return self.lost(phases, lost);
        }
        if let Some(lost) = self.open()? {
            return self.lost(phases, lost);
        }
        for phase in phases {
            self.try_phase(phase, &before, is_interrupted)?;
        }
        match self.wait() {
            Ok(()) => self.ended(phases, None),
            Err(lost) => self.lost(phases, lost),
        }
    }

    /// All ranks have read the same journal, and none has written to it yet. Journals of as many turns and seeds pass for the same one; [`open`](Self::open) then finds that the
    /// ranks do not see each other's files.
    fn agree(&self, before: &[CampaignSlice]) -> Result<Option<TransferError>, Failure> {
        let tried = before.iter().map(|turn| turn.seeds.end - turn.seeds.start);
        let word = (before.len() as u64).rotate_left(40) ^ tried.sum::<u64>();
        match self.mpi.transport().meet(word, TIMEOUT) {
            Err(lost) => Ok(Some(lost)),
            Ok(words) if words.iter().all(|other| *other == word) => Ok(None),
            Ok(_) => Err(Failure::usage(
                "the ranks see different journals; name a folder that all hosts share with --journal",
            )),
        }
    }

    /// Makes the files of all ranks, and looks whether this rank sees them all.
    fn open(&mut self) -> Result<Option<TransferError>, Failure> {
        let number = self.journal.open(self.mpi.rank())?;
        let numbers = match self.mpi.transport().meet(number, TIMEOUT) {
            Ok(numbers) => numbers,
            Err(lost) => return Ok(Some(lost)),
        };
        match (0..).zip(&numbers).find(|(rank, number)| !self.journal.has(*rank, **number)) {
            None => Ok(None),
            Some((rank, _)) => Err(Failure::usage(format!(
                "this rank does not see the journal of rank {rank}; name a folder that all hosts share with --journal"
            ))),
        }
    }

    fn try_phase(
        &mut self,
        phase: &SharedPhase<'_>,
        before: &[CampaignSlice],
        is_interrupted: &(dyn Fn() -> bool + Sync),
    ) -> Result<(), Failure> {
        let tried: Vec<_> = before.iter().filter(|turn| turn.phase == phase.name).collect();
        let left =
            left(&self.seeds, &tried.iter().map(|turn| turn.seeds.clone()).collect::<Vec<_>>());
        let (rank, ranks) = (self.mpi.rank() as usize, self.mpi.ranks() as usize);
        let mut failed = 0;
        for seeds in turns(&left, SEEDS_A_TURN).skip(rank).step_by(ranks.max(1)) {
            let stop = || is_interrupted() || self.mpi.is_asked_to_end();
            if stop() || failed >= ENOUGH {
                break;
            }
            let go_on = || if stop() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) };
            let tally = (phase.run)(seeds.clone(), &go_on);
            failed += tally.failed.len();
            let end = seeds.start + tally.counts[0].min(seeds.end - seeds.start);
            let turn =
                CampaignSlice { phase: phase.name.to_owned(), seeds: seeds.start..end, tally };
            self.journal.write(&turn)?;
        }
        Ok(())
    }

    /// Waits until all ranks have made their turns.
    fn wait(&self) -> Result<(), TransferError> {
        self.mpi.transport().meet(0, TIMEOUT).map(drop)
    }

    /// What all ranks have written, of this job and of earlier ones.
    fn ended(
        &self,
        phases: &[SharedPhase<'_>],
        lost: Option<TransferError>,
    ) -> Result<CampaignResult, Failure> {
        let written = self.journal.read()?;
        let tallies: Vec<_> =
            phases.iter().map(|phase| (phase.name, of_phase(phase.name, &written))).collect();
        let all = (self.seeds.end - self.seeds.start).saturating_mul(phases.len() as u64);
        let left = all - tallies.iter().map(|(_, tally)| tally.counts[0]).sum::<u64>().min(all);
        let is_first_lost = matches!(
            lost,
            Some(TransferError::PeerFailed { rank: 0, .. } | TransferError::Absent { rank: 0, .. })
        );
        let first = u32::from(is_first_lost);
        let is_teller = self.mpi.rank() == first;
        Ok(CampaignResult { tallies, left, lost, is_teller })
    }

    fn lost(
        &self,
        phases: &[SharedPhase<'_>],
        lost: TransferError,
    ) -> Result<CampaignResult, Failure> {
        self.ended(phases, Some(lost))
    }

    /// Removes the journal when all ranks have read it.
    pub(crate) fn forget(&self) {
        if self.wait().is_ok() && self.mpi.rank() == 0 {
            self.journal.remove();
        }
    }
}

fn of_phase(name: &str, written: &[CampaignSlice]) -> Tally {
    let mut sum = Tally::default();
    written.iter().filter(|turn| turn.phase == name).for_each(|turn| sum.add(&turn.tally));
    sum.failed.sort_unstable();
    sum
}
