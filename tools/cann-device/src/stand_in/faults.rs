//! Errors that are injected: `PTO_STAND_IN_FAULTS`, or the function `pto_stand_in_inject`.
//!
//! `NAME:CODE[:TIMES[:AFTER]]`, separated by commas. NAME is a function, or an engine (`aicpu`, `aicore`) whose next
//! operation fails with the code; code 0 makes it stick until the driver's time limit, and code -N for N ms. TIMES is 1 where it is left out, AFTER 0: so many calls pass before.

use std::env;

use crate::Code;

/// One of them.
struct Fault {
    name: String,
    code: Code,
    times: u32,
    after: u32,
}

/// Those that are still to come.
#[derive(Default)]
pub(crate) struct Faults(Vec<Fault>);

impl Faults {
    pub(crate) fn of_environment() -> Self {
        Self::parse(&env::var("PTO_STAND_IN_FAULTS").unwrap_or_default())
    }

    /// Reads a list. What cannot be read is said, and left out.
    pub(crate) fn parse(text: &str) -> Self {
        let words = text.split(',').filter(|word| !word.is_empty());
        let read = |word: &str| {
            let fault = Self::read(word);
            if fault.is_none() {
                eprintln!("stand-in: {word} is no fault; write NAME:CODE[:TIMES[:AFTER]]");
            }
            fault
        };
        Self(words.filter_map(read).collect())
    }

    fn read(word: &str) -> Option<Fault> {
        let mut parts = word.split(':');
        let (name, code) = (parts.next()?.to_owned(), parts.next()?.parse().ok()?);
        let times = parts.next().map_or(Some(1), |part| part.parse().ok())?;
        let after = parts.next().map_or(Some(0), |part| part.parse().ok())?;
        Some(Fault { name, code, times, after })
    }

    /// The code that the next call of `name` answers, if it is to fail.
    pub(crate) fn take(&mut self, name: &str) -> Option<Code> {
        let fault = self.0.iter_mut().find(|fault| fault.name == name && fault.times > 0)?;
        if fault.after > 0 {
            fault.after -= 1;
            return None;
        }
        fault.times -= 1;
        Some(fault.code)
    }
}

#[cfg(test)]
mod tests {
    use super::Faults;

    #[test]
    fn a_fault_comes_after_so_many_calls_so_many_times() {
        let mut faults = Faults::parse("halMemCtl:13:2:1,aicpu:0");
        let answers: Vec<_> = (0..4).map(|_| faults.take("halMemCtl")).collect();
        assert_eq!(answers, [None, Some(13), Some(13), None]);
        assert_eq!((faults.take("aicpu"), faults.take("aicpu")), (Some(0), None));
    }
}
