//! How an agent waits for what another one does: it spins, then yields its CPU, then parks. The agents of the device, of the simulator and of the host
//! have this one way; what they yield to and where they park is theirs.

/// How often a waiter looks in vain before its next means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpinPolicy {
    /// Looks with nothing but a pause of the processor between them.
    pub spins: u32,
    /// Looks after those, each after a yield of the CPU. From then on it is time to park.
    pub yields: u32,
}

/// One waiter between two things that it found.
#[derive(Debug)]
pub struct Backoff {
    policy: SpinPolicy,
    looks: u32,
}

impl Backoff {
    /// A backoff before the first poll.
    #[must_use]
    pub const fn new(policy: SpinPolicy) -> Self {
        Self { policy, looks: 0 }
    }

    /// Something was found.
    #[inline]
    pub const fn reset(&mut self) {
        self.looks = 0;
    }

    /// Nothing was found: spins, or yields as the policy says. `true`: it is time to park.
    #[inline]
    pub fn wait(&mut self, yield_now: impl FnOnce()) -> bool {
        self.looks = self.looks.saturating_add(1);
        if self.looks <= self.policy.spins {
            core::hint::spin_loop();
            return false;
        }
        if self.parks() == 0 {
            yield_now();
            return false;
        }
        true
    }

    /// How often it was time to park since something was found.
    #[inline]
    #[must_use]
    pub const fn parks(&self) -> u32 {
        self.looks.saturating_sub(self.policy.spins.saturating_add(self.policy.yields))
    }
}

/// Looks of [`spin_while`] between two questions whether it goes on: usually a look at the clock, which takes as long as some of them.
const LOOKS_A_QUESTION: u32 = 16;

/// Spins until `look` finds something or `goes_on` says no, which may yield the CPU.
pub fn spin_while<T>(
    mut goes_on: impl FnMut() -> bool,
    mut look: impl FnMut() -> Option<T>,
) -> Option<T> {
    loop {
        for _ in 0..LOOKS_A_QUESTION {
            let found = look();
            if found.is_some() {
                return found;
            }
            core::hint::spin_loop();
        }
        if !goes_on() {
            return None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Backoff, SpinPolicy, spin_while};

    #[test]
    fn a_waiter_spins_then_yields_then_parks() {
        let mut yields = 0;
        let mut backoff = Backoff::new(SpinPolicy { spins: 3, yields: 2 });
        let waits = |backoff: &mut Backoff, yields: &mut u32| backoff.wait(|| *yields += 1);
        assert_eq!((0..).take_while(|_| !waits(&mut backoff, &mut yields)).count(), 5);
        assert_eq!((yields, backoff.parks()), (2, 1));
        assert!(waits(&mut backoff, &mut yields));
        assert_eq!((yields, backoff.parks()), (2, 2));
        backoff.reset();
        assert!(!waits(&mut backoff, &mut yields) && backoff.parks() == 0);
        let mut awake = Backoff::new(SpinPolicy { spins: 1, yields: u32::MAX });
        assert!((0..100).all(|_| !waits(&mut awake, &mut yields)), "it never parks");
        assert_eq!(yields, 2 + 99);
    }

    #[test]
    fn a_spin_ends_when_it_finds_something_or_is_stopped() {
        let mut looks = 0;
        let mut third = || {
            looks += 1;
            (looks == 3).then_some(looks)
        };
        assert_eq!(spin_while(|| false, &mut third), Some(3));
        let mut left = 2;
        let goes_on = || {
            left -= 1;
            left > 0
        };
        assert_eq!(spin_while(goes_on, || None::<()>), None);
    }
}
