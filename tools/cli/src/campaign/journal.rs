//! The journal of a campaign: a folder with a file for each rank of each job, and a line for each turn that is over.
//!
//! The first line of a file says which campaign it is. A line that has no end, because its writer was killed, does not count: its turn is
//! tried again.

use std::fmt::Write as _;
use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::ops::Range;
use std::path::{Path, PathBuf};

use super::tally::{COUNTS, Tally};
use crate::errors::Failure;

/// A turn that is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CampaignSlice {
    pub(super) phase: String,
    /// The seeds that were tried; without any, the tally has failures alone.
    pub(super) seeds: Range<u64>,
    pub(super) tally: Tally,
}

impl CampaignSlice {
    fn line(&self) -> String {
        let Self { phase, seeds, tally } = self;
        let mut line = format!("{}\t{} {} {:x}", phase, seeds.start, seeds.end, tally.hash);
        for number in tally.counts.iter().chain(&tally.failed) {
            let _ = write!(line, " {number}");
        }
        line + "\n"
    }

    fn of(line: &str) -> Option<Self> {
        let (phase, rest) = line.split_once('\t')?;
        let mut words = rest.split(' ');
        let mut number = || words.next().map(str::parse::<u64>)?.ok();
        let seeds = number()?..number()?;
        let hash = u64::from_str_radix(words.next()?, 16).ok()?;
        let numbers = words.map(str::parse).collect::<Result<Vec<u64>, _>>().ok()?;
        let (counts, failed) = numbers.split_at_checked(COUNTS)?;
        let tally = Tally { counts: counts.try_into().ok()?, hash, failed: failed.to_vec() };
        Some(Self { phase: phase.to_owned(), seeds, tally })
    }
}

/// The journal of one campaign.
pub(super) struct Journal {
    folder: PathBuf,
    campaign: String,
    own: Option<File>,
}

impl Journal {
    /// The journal of a campaign that a line of text names, in a folder, which need not exist.
    pub(super) fn new(folder: &Path, campaign: &str) -> Self {
        Self { folder: folder.to_path_buf(), campaign: campaign.to_owned(), own: None }
    }

    /// All turns that are over.
    pub(super) fn read(&self) -> Result<Vec<CampaignSlice>, Failure> {
        let mut turns = Vec::new();
        if !self.folder.exists() {
            return Ok(turns);
        }
        for entry in fs::read_dir(&self.folder).map_err(|error| self.failure(&error))? {
            let path = entry.map_err(|error| self.failure(&error))?.path();
            if path.extension().is_some_and(|extension| extension == "turns") {
                self.read_file(&path, &mut turns)?;
            }
        }
        // The order of a folder's files is not defined.
        turns.sort_by(|a, b| (&a.phase, a.seeds.start).cmp(&(&b.phase, b.seeds.start)));
        Ok(turns)
    }

    fn read_file(&self, path: &Path, turns: &mut Vec<CampaignSlice>) -> Result<(), Failure> {
        let text = fs::read_to_string(path).map_err(|error| self.failure(&error))?;
        // What has no end of a line was being written when its rank died.
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        let mut lines = whole.lines();
        match lines.next() {
            None => return Ok(()),
            Some(first) if first == self.campaign => {}
            Some(first) => {
                return Err(Failure::usage(format!(
                    "'{}' is the journal of another campaign ({first}; this is {}); remove it, or name another folder with --journal",
                    self.folder.display(),
                    self.campaign
                )));
            }
        }
        for line in lines {
            turns.push(CampaignSlice::of(line).ok_or_else(|| {
                Failure::usage(format!("'{}' has a line that is no turn: {line}", path.display()))
            })?);
        }
        Ok(())
    }

    fn path(&self, rank: u32, job: u64) -> PathBuf {
        self.folder.join(format!("rank-{rank}-{job}.turns"))
    }

    /// Whether the file of a rank of this job is there.
    pub(super) fn has(&self, rank: u32, job: u64) -> bool {
        self.path(rank, job).exists()
    }

    /// Makes this rank's file. Its name has a number that no earlier job has taken.
    pub(super) fn open(&mut self, rank: u32) -> Result<u64, Failure> {
        fs::create_dir_all(&self.folder).map_err(|error| self.failure(&error))?;
        let mut job = 0;
        while self.has(rank, job) {
            job += 1;
        }
        let file = OpenOptions::new().create_new(true).append(true).open(self.path(rank, job));
        let mut file = file.map_err(|error| self.failure(&error))?;
        let written = file.write_all(format!("{}\n", self.campaign).as_bytes());
        written.map_err(|error| self.failure(&error))?;
        self.own = Some(file);
        Ok(job)
    }

    /// Writes a turn of this rank.
    pub(super) fn write(&mut self, turn: &CampaignSlice) -> Result<(), Failure> {
        let Some(file) = &mut self.own else { return Ok(()) };
        let written = file.write_all(turn.line().as_bytes());
        written.map_err(|error| self.failure(&error))
    }

    /// Removes the files of a campaign that is over, and the folder if nothing else is in it.
    pub(super) fn remove(&self) {
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        for path in entries.map(|entry| entry.path()) {
            if path.extension().is_some_and(|extension| extension == "turns")
                && let Err(error) = fs::remove_file(&path)
            {
                log::warn!("'{}' cannot be removed: {error}", path.display());
            }
        }
        // It stays where it has files of others.
        fs::remove_dir(&self.folder).unwrap_or_default();
    }

    fn failure(&self, error: &std::io::Error) -> Failure {
        Failure::internal(format!(
            "the journal in '{}' cannot be kept: {error}; name another folder with --journal",
            self.folder.display()
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::{CampaignSlice, Journal};
    use crate::campaign::Tally;
    use std::fs::OpenOptions;
    use std::io::Write;

    #[test]
    fn a_journal_is_read_back_without_the_line_that_was_cut_off() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().join("journal");
        let tally = Tally { counts: [3, 1, 4, 1, 5, 9], hash: 0xAB, failed: vec![17, 19] };
        let turn = CampaignSlice { phase: "with faults".into(), seeds: 16..32, tally };
        let mut journal = Journal::new(&folder, "seeds 0..100");
        assert_eq!(journal.read().unwrap(), []);
        journal.open(2).unwrap();
        journal.write(&turn).unwrap();
        let file = OpenOptions::new().append(true).open(folder.join("rank-2-0.turns"));
        file.unwrap().write_all(b"with faults\t32 48 0 16").unwrap();
        assert_eq!(journal.read().unwrap(), [turn]);
        assert!(Journal::new(&folder, "seeds 0..200").read().is_err(), "another campaign");
        journal.remove();
        assert!(!folder.exists());
    }
}
