//! The flags between the cores of a cluster, as a model of the hardware's: a core raises a flag for others, and each of those waits for it once.
//!
//! ```text
//! mode 1   the two vector cores: when both have raised the flag, both have it
//! mode 2   the cube core raises it for both vector cores; these, when both have raised it, for the cube core
//! ```
//! A flag is a count, so that it may be raised again before it was waited for. A kernel has to leave all counts at 0 for the next one.

use std::sync::{Mutex, PoisonError};

/// Flags of a core.
const FLAGS: usize = 16;
/// The most that the count of a flag can be.
const MOST: u32 = 15;

/// How often each flag was raised.
type Counts = [u32; FLAGS];

#[derive(Default)]
struct Raised {
    /// For each core of the cluster: the flags that it can wait for.
    given: [Counts; 3],
    /// By each vector core, for the other one or for the cube core, while the other vector core has not: by mode.
    by_one: [[Counts; 2]; 2],
}

/// See the file.
#[derive(Default)]
pub(crate) struct ClusterFlags {
    raised: Mutex<Raised>,
}

impl ClusterFlags {
    fn with<R>(&self, act: impl FnOnce(&mut Raised) -> R) -> R {
        act(&mut self.raised.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Core `slot` of the cluster raises a flag: 0 is the cube core. The error says what no cluster does.
    pub(crate) fn raise(&self, slot: usize, word: u64) -> Result<(), &'static str> {
        let (mode, flag) = (word >> 4 & 3, (word >> 8 & 15) as usize);
        let targets: &[usize] = match (mode, slot) {
            (2, 0) | (1, 1 | 2) => &[1, 2],
            (2, 1 | 2) => &[0],
            (0, _) => {
                return Err("a flag of mode 0, which every core of the device would have to raise");
            }
            _ => return Err("a flag with a mode that this core has not"),
        };
        self.with(|raised| {
            if slot > 0 {
                let by_one = &mut raised.by_one[mode as usize - 1];
                by_one[slot - 1][flag] += 1;
                if by_one.iter().any(|counts| counts[flag] == 0) {
                    return Ok(());
                }
                by_one.iter_mut().for_each(|counts| counts[flag] -= 1);
            }
            targets.iter().for_each(|target| raised.given[*target][flag] += 1);
            let most = targets.iter().map(|target| raised.given[*target][flag]).max();
            if most > Some(MOST) {
                return Err("a flag that was raised 16 times, and not waited for");
            }
            Ok(())
        })
    }

    /// Takes one of a flag that was raised for core `slot`; whether there was one.
    pub(crate) fn take(&self, slot: usize, flag: u32) -> bool {
        self.with(|raised| {
            let count = raised.given[slot].get_mut(flag as usize).filter(|count| **count > 0);
            count.map(|count| *count -= 1).is_some()
        })
    }

    /// A flag that was raised, and that nothing waited for.
    pub(crate) fn left_over(&self) -> Option<usize> {
        self.with(|raised| {
            let all = raised.given.iter().chain(raised.by_one.iter().flatten());
            all.filter_map(|counts| counts.iter().position(|count| *count > 0)).next()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::ClusterFlags;

    const fn word(mode: u64, flag: u64) -> u64 {
        1 | mode << 4 | flag << 8
    }

    #[test]
    fn both_vector_cores_raise_a_flag_for_the_cube_core() {
        let flags = ClusterFlags::default();
        flags.raise(1, word(2, 3)).unwrap();
        assert!(!flags.take(0, 3), "the other one has not");
        flags.raise(2, word(2, 3)).unwrap();
        assert!(!flags.take(1, 3) && !flags.take(0, 4), "it is for another core");
        assert!(flags.take(0, 3) && !flags.take(0, 3), "once");
        assert_eq!(flags.left_over(), None);
    }

    #[test]
    fn the_cube_core_raises_a_flag_for_both_vector_cores() {
        let flags = ClusterFlags::default();
        flags.raise(0, word(2, 15)).unwrap();
        assert!(flags.take(1, 15));
        assert_eq!(flags.left_over(), Some(15));
        assert!(flags.take(2, 15));
        assert_eq!(flags.left_over(), None);
    }

    #[test]
    fn vector_cores_meet() {
        let flags = ClusterFlags::default();
        flags.raise(2, word(1, 0)).unwrap();
        assert!(!flags.take(2, 0));
        assert_eq!(flags.left_over(), Some(0));
        flags.raise(1, word(1, 0)).unwrap();
        assert!(flags.take(2, 0) && flags.take(1, 0));
    }

    #[test]
    fn what_no_cluster_does_is_refused() {
        let flags = ClusterFlags::default();
        flags.raise(0, word(1, 0)).expect_err("mode 1 is for vector cores");
        flags.raise(1, word(0, 0)).expect_err("not all cores of the device run the task");
        flags.raise(1, word(3, 0)).expect_err("there is no mode 3");
        for _ in 0..15 {
            flags.raise(0, word(2, 1)).unwrap();
        }
        flags.raise(0, word(2, 1)).expect_err("a count has four bits");
    }
}
