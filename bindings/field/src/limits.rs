//! The limits of the field's rings, for programs that are to fail where they fail there.
//!
//! A ring holds the tasks of the open scopes at its depth; depths from 3 on share one. Invariant: `open` has a count for each open
//! scope, that of the program first.

use crate::codes::ErrorCode;
use crate::options::TheirLimits;

/// Producers of a task that take nothing of the pool.
const INLINE: u32 = 64;
const RINGS: usize = 4;
/// Entries of a ring and of a pool, unless a program asks for others.
const RING: u32 = 16_384;

/// See the file.
pub(crate) struct RingLimits {
    of: TheirLimits,
    /// A program that does not fit fails; if false, the run only gets a note.
    are_enforced: bool,
    open: Vec<u32>,
}

impl RingLimits {
    pub(crate) fn new(of: TheirLimits) -> Self {
        Self { of, are_enforced: true, open: vec![0] }
    }

    /// Those that programs have that ask for none; nothing fails by them.
    pub(crate) fn usual() -> Self {
        let of = TheirLimits { window: RING, dep_pool: RING };
        Self { are_enforced: false, ..Self::new(of) }
    }

    pub(crate) fn are_enforced(&self) -> bool {
        self.are_enforced
    }

    pub(crate) fn open_scope(&mut self) {
        self.open.push(0);
    }

    pub(crate) fn close_scope(&mut self) {
        self.open.pop();
    }

    /// Takes a task with this many named producers; or says what does not fit.
    pub(crate) fn take(&mut self, producers: u32) -> Result<(), (ErrorCode, String)> {
        let TheirLimits { window, dep_pool } = self.of;
        let beyond = producers.saturating_sub(INLINE);
        if beyond > dep_pool {
            let why = format!(
                "{beyond} edges beyond the first {INLINE} of a task, and the pool holds {dep_pool}"
            );
            return Err((ErrorCode::DEP_POOL_OVERFLOW, why));
        }
        let held = window.saturating_sub(1);
        let in_scope = self.open.last().copied().unwrap_or(0);
        if in_scope >= held {
            let why = format!("the scope has {in_scope} tasks, and the ring holds {held}");
            return Err((ErrorCode::SCOPE_DEADLOCK, why));
        }
        let depth = (self.open.len() - 1).min(RINGS - 1);
        let sharing =
            if depth == RINGS - 1 { &self.open[depth..] } else { &self.open[depth..=depth] };
        let in_ring: u32 = sharing.iter().sum();
        if in_ring >= held {
            let why =
                format!("open scopes have {in_ring} tasks in ring {depth}, which holds {held}");
            return Err((ErrorCode::FLOW_CONTROL_DEADLOCK, why));
        }
        if let Some(count) = self.open.last_mut() {
            *count += 1;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::RingLimits;
    use crate::codes::ErrorCode;
    use crate::options::TheirLimits;

    #[test]
    fn rings_fill_as_those_of_the_field() {
        let limits = || RingLimits::new(TheirLimits { window: 4, dep_pool: 4 });
        let fail = |result: Result<(), (ErrorCode, String)>| result.unwrap_err().0;
        let mut flat = limits();
        for _ in 0..3 {
            flat.take(0).unwrap();
        }
        assert_eq!(fail(flat.take(0)), ErrorCode::SCOPE_DEADLOCK);
        flat.open_scope();
        flat.take(68).unwrap();
        assert_eq!(fail(flat.take(69)), ErrorCode::DEP_POOL_OVERFLOW);
        flat.close_scope();
        let mut deep = limits();
        for depth in 1..=4 {
            deep.open_scope();
            for at in 0..3 {
                let taken = deep.take(0);
                if depth == 4 {
                    assert_eq!(fail(taken), ErrorCode::FLOW_CONTROL_DEADLOCK, "{at}");
                } else {
                    taken.unwrap();
                }
            }
        }
    }
}
