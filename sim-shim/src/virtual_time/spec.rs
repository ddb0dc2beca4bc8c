//! What a user writes for a fault or for the costs of kernels, and back.
//!
//! ```text
//! fault:  NAME[=VALUE][:core=N][,task=N]      hang:core=3,task=2   slow=1000   builder-stops:task=8
//! costs:  TIME | TIME..TIME | model[:TIME]    5us   5us..20us   model:1us
//! table:  lines of `kernel = TIME`, one of them `default = TIME`
//! ```
//! A time is a whole number with its unit after it: ns, us, ms or s. A number without a unit is refused, because it has been meant in each of them.

use std::fmt;
use std::str::FromStr;

use pto_abi::limits::MAX_FUNC_ID;
use pto_aicore_kernels::LIBRARY;

use super::cost::KernelCosts;
use super::inject::{Injection, Trouble};

/// What is wrong with what was written, and what to write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpecError(String);

impl fmt::Display for SpecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for SpecError {}

fn wrong<T>(message: impl Into<String>) -> Result<T, SpecError> {
    Err(SpecError(message.into()))
}

const UNITS: [(&str, u64); 4] = [("ns", 1), ("us", 1_000), ("ms", 1_000_000), ("s", 1_000_000_000)];

/// The longest time of a kernel or a delay: an hour. The clock, which has 64 bits, takes five million of them.
const LONGEST_NS: u64 = 3_600_000_000_000;

/// A time in nanoseconds.
///
/// # Errors
/// It is none, or has no unit, or is longer than an hour.
pub fn time(text: &str) -> Result<u64, SpecError> {
    let text = text.trim();
    let digits = text.trim_end_matches(|unit: char| unit.is_ascii_alphabetic());
    let unit = &text[digits.len()..];
    let factor = UNITS.iter().find(|(name, _)| *name == unit).map(|(_, factor)| *factor);
    let number: Option<u64> = digits.parse().ok();
    if let (Some(number), true) = (number, unit.is_empty()) {
        return wrong(format!(
            "'{number}' has no unit; write {number}ns, {number}us, {number}ms or {number}s"
        ));
    }
    let ns = number.zip(factor).and_then(|(number, factor)| number.checked_mul(factor));
    match ns {
        Some(ns) if ns <= LONGEST_NS => Ok(ns),
        _ if number.is_some() && factor.is_some() => {
            wrong(format!("'{text}' is too long; a time is at most {}", time_text(LONGEST_NS)))
        }
        _ => wrong(format!("'{text}' is not a time; write 500ns, 5us, 2ms or 1s")),
    }
}

/// A time as it is written: with the largest unit that it is a whole number of.
#[must_use]
pub fn time_text(ns: u64) -> String {
    let fits = |(_, factor): &&(&str, u64)| ns >= *factor && ns.is_multiple_of(*factor);
    let (unit, factor) = UNITS.iter().rev().find(fits).copied().unwrap_or(UNITS[0]);
    format!("{}{unit}", ns / factor)
}

/// The argument after a trouble's name.
#[derive(Clone, Copy)]
enum TroubleArg {
    None(Trouble),
    Factor(fn(u32) -> Trouble),
    Time(fn(u64) -> Trouble),
}

const TROUBLES: &[(&str, TroubleArg)] = &[
    ("no-answer", TroubleArg::None(Trouble::NoAnswer)),
    ("hang", TroubleArg::None(Trouble::Hang)),
    ("slow", TroubleArg::Factor(Trouble::Slow)),
    ("finish-twice", TroubleArg::None(Trouble::FinishTwice)),
    ("wrong-id", TroubleArg::None(Trouble::WrongId)),
    ("old-id", TroubleArg::None(Trouble::OldId)),
    ("doorbell-delayed", TroubleArg::Time(Trouble::DoorbellDelayed)),
    ("doorbell-lost", TroubleArg::None(Trouble::DoorbellLost)),
    ("status-delayed", TroubleArg::Time(Trouble::StatusDelayed)),
    ("no-flush", TroubleArg::None(Trouble::NoFlush)),
    ("no-invalidate", TroubleArg::None(Trouble::NoInvalidate)),
    ("corrupt-line", TroubleArg::None(Trouble::CorruptLine)),
    ("corrupt-count", TroubleArg::None(Trouble::CorruptCount)),
    ("host-dies", TroubleArg::None(Trouble::HostDies)),
    ("host-silent", TroubleArg::None(Trouble::HostSilent)),
    ("builder-stops", TroubleArg::None(Trouble::BuilderStops)),
    ("builder-fails", TroubleArg::None(Trouble::BuilderFails)),
];

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_mine = |value: &TroubleArg| match value {
            TroubleArg::None(trouble) => trouble == self,
            TroubleArg::Factor(make) => matches!(self, Self::Slow(n) if make(*n) == *self),
            TroubleArg::Time(make) => self.delay_ns().is_some_and(|ns| make(ns) == *self),
        };
        let name = TROUBLES.iter().find(|(_, value)| is_mine(value)).map_or("?", |(name, _)| name);
        match (self, self.delay_ns()) {
            (Self::Slow(factor), _) => write!(f, "{name}={factor}"),
            (_, Some(ns)) => write!(f, "{name}={}", time_text(ns)),
            _ => f.write_str(name),
        }
    }
}

impl fmt::Display for Injection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { trouble, worker, at } = self;
        match trouble.is_builders() {
            true => write!(f, "{trouble}:task={at}"),
            false => write!(f, "{trouble}:core={worker},task={at}"),
        }
    }
}

impl FromStr for Trouble {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        let (name, value) = match text.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (text, None),
        };
        let Some((_, kind)) = TROUBLES.iter().find(|(known, _)| *known == name) else {
            let known: Vec<_> = TROUBLES.iter().map(|(name, _)| *name).collect();
            return wrong(format!("there is no fault '{name}'; there are {}", known.join(", ")));
        };
        match (kind, value) {
            (TroubleArg::None(trouble), None) => Ok(*trouble),
            (TroubleArg::None(_), Some(_)) => {
                wrong(format!("'{name}' takes no value; write '{name}'"))
            }
            (TroubleArg::Factor(make), Some(value)) => match value.parse() {
                Ok(factor) if factor > 0 => Ok(make(factor)),
                _ => wrong(format!("'{value}' is not a factor; write {name}=1000")),
            },
            (TroubleArg::Time(make), Some(value)) => Ok(make(time(value)?)),
            (TroubleArg::Factor(_), None) => wrong(format!("'{name}' needs a factor: {name}=1000")),
            (TroubleArg::Time(_), None) => wrong(format!("'{name}' needs a time: {name}=1ms")),
        }
    }
}

impl FromStr for Injection {
    type Err = SpecError;

    /// Core 0 and task 0, unless they are given.
    fn from_str(text: &str) -> Result<Self, SpecError> {
        let (trouble, location) = text.split_once(':').unwrap_or((text, ""));
        let mut injection = Self { trouble: trouble.parse()?, worker: 0, at: 0 };
        let mut keys = Vec::new();
        for part in location.split(',').filter(|part| !part.is_empty()) {
            let (key, value) = part.split_once('=').unwrap_or((part, ""));
            if keys.contains(&key) {
                return wrong(format!("'{key}' is given twice; give it once"));
            }
            keys.push(key);
            let Ok(number) = value.parse() else {
                return wrong(format!("'{part}' is not core=N or task=N"));
            };
            match key {
                "core" if !injection.trouble.is_builders() => injection.worker = number,
                "core" => {
                    return wrong(format!("'{trouble}' concerns the builder; it has no core"));
                }
                "task" => injection.at = number,
                _ => return wrong(format!("'{part}' is not core=N or task=N")),
            }
        }
        Ok(injection)
    }
}

/// What a kernel costs that is not in the model, unless the specification says.
const FALLBACK_NS: u64 = 5_000;

impl KernelCosts {
    /// The costs that were written. `seed`: what draws start from.
    ///
    /// # Errors
    /// What is wrong with the text.
    pub fn parse(text: &str, seed: u64) -> Result<Self, SpecError> {
        if let Some(rest) = text.strip_prefix("model") {
            return match (rest, rest.strip_prefix(':')) {
                ("", _) => Ok(Self::Library { fallback: FALLBACK_NS }),
                (_, Some(fallback)) => Ok(Self::Library { fallback: time(fallback)? }),
                _ => wrong(format!("'{text}' is not a cost; write model or model:5us")),
            };
        }
        if let Some((low, high)) = text.split_once("..") {
            let (low, high) = (time(low)?, time(high)?);
            if low > high {
                return wrong(format!(
                    "the range '{text}' ends before it begins; exchange the two times"
                ));
            }
            return Ok(Self::Drawn { low, high, seed });
        }
        match time(text) {
            Ok(cost) => Ok(Self::Constant(cost)),
            Err(error) if text.trim().starts_with(|first: char| first.is_ascii_digit()) => {
                Err(error)
            }
            Err(_) => wrong(format!(
                "'{text}' is not a cost; write a time (5us), a range (5us..20us), model, or table:FILE"
            )),
        }
    }

    /// A measured table: lines of `kernel = TIME`, where a kernel is a name of the library or a func id, one of
    /// them `default = TIME`; `#` begins a comment. It stays for the rest of the process, so read each file once.
    ///
    /// # Errors
    /// The first line that is wrong, or that there is no default.
    pub fn table(text: &str) -> Result<Self, SpecError> {
        let mut by_func: Vec<Option<u64>> = Vec::new();
        let mut fallback = None;
        for (number, line) in (1..).zip(text.trim_start_matches('\u{FEFF}').lines()) {
            let line = line.split('#').next().unwrap_or_default().trim();
            if line.is_empty() {
                continue;
            }
            let at = |error: SpecError| SpecError(format!("line {number}: {error}"));
            let Some((kernel, cost)) = line.split_once('=') else {
                return wrong(format!("line {number}: expected 'kernel = time'"));
            };
            let (kernel, cost) = (kernel.trim(), time(cost).map_err(at)?);
            let entry = if kernel == "default" {
                &mut fallback
            } else {
                let func = func_id(kernel).map_err(at)?;
                by_func.resize(by_func.len().max(func + 1), None);
                &mut by_func[func]
            };
            if entry.replace(cost).is_some() {
                return wrong(format!("line {number}: '{kernel}' is given twice; keep one"));
            }
        }
        let Some(fallback) = fallback else {
            return wrong("there is no line 'default = TIME' for the other kernels; add one");
        };
        let costs = by_func.into_iter().map(|cost| cost.unwrap_or(fallback));
        Ok(Self::Table { by_func: costs.collect::<Vec<_>>().leak(), fallback })
    }
}

fn func_id(kernel: &str) -> Result<usize, SpecError> {
    let library = LIBRARY.iter().find(|known| known.name == kernel).map(|known| known.func_id);
    let number = library.or_else(|| kernel.parse().ok());
    match number.and_then(|number| usize::try_from(number).ok()) {
        Some(number) if number < MAX_FUNC_ID => Ok(number),
        _ => wrong(format!(
            "there is no kernel '{kernel}'; write a name of `pto info kernels`, or a func id"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::{LONGEST_NS, TROUBLES, TroubleArg, time, time_text};
    use crate::virtual_time::{Injection, KernelCosts};
    use pto_aicore_kernels::func;

    #[test]
    fn times_have_units() {
        let of = |text| time(text).ok();
        assert_eq!(
            ["7ns", "5us", "2ms", "1s"].map(of),
            [7, 5_000, 2_000_000, 1_000_000_000].map(Some)
        );
        for bad in ["", "us", "5 m", "-1us", "1.5us"] {
            assert!(time(bad).unwrap_err().to_string().contains("not a time"), "{bad}");
        }
        assert_eq!(of("3600s"), Some(LONGEST_NS));
        for long in ["3601s", "3600000000001ns", "99999999999999s"] {
            let error = time(long).unwrap_err().to_string();
            assert!(error.contains("too long; a time is at most 3600s"), "{error}");
        }
        for bare in ["0", "5", " 12 "] {
            let error = time(bare).unwrap_err().to_string();
            assert!(error.contains("has no unit; write") && error.contains("us"), "{error}");
        }
        for ns in [0, 999, 1_000, 1_500, 2_000_000, 3_000_000_000] {
            assert_eq!(time(&time_text(ns)), Ok(ns));
        }
    }

    #[test]
    fn every_fault_is_read_as_it_is_written() {
        for (_, value) in TROUBLES {
            let trouble = match value {
                TroubleArg::None(trouble) => *trouble,
                TroubleArg::Factor(make) => make(1_000),
                TroubleArg::Time(make) => make(20_500),
            };
            let worker = if trouble.is_builders() { 0 } else { 3 };
            let injection = Injection { trouble, worker, at: 2 };
            assert_eq!(injection.to_string().parse(), Ok(injection));
            assert!(!injection.to_string().contains('?'), "{injection}");
        }
        assert_eq!("hang".parse::<Injection>().unwrap().to_string(), "hang:core=0,task=0");
    }

    #[test]
    fn a_wrong_fault_is_answered_with_what_to_write() {
        for (bad, words) in [
            ("hung", "there is no fault 'hung'; there are no-answer, hang"),
            ("hang=3", "takes no value"),
            ("slow", "slow=1000"),
            ("slow=0", "not a factor"),
            ("status-delayed", "needs a time"),
            ("status-delayed=soon", "'soon' is not a time"),
            ("hang:core", "core=N or task=N"),
            ("hang:instance=3", "core=N or task=N"),
            ("builder-stops:core=1", "has no core"),
            ("hang:core=3,task=1,core=4", "'core' is given twice"),
        ] {
            let error = bad.parse::<Injection>().unwrap_err().to_string();
            assert!(error.contains(words), "{bad}: {error}");
        }
    }

    #[test]
    fn costs_are_a_time_a_range_a_model_or_a_table() {
        let of = |text| KernelCosts::parse(text, 9).unwrap();
        assert_eq!(of("5us"), KernelCosts::Constant(5_000));
        assert_eq!(of("5us..20us"), KernelCosts::Drawn { low: 5_000, high: 20_000, seed: 9 });
        assert_eq!(of("model:1us"), KernelCosts::Library { fallback: 1_000 });
        assert_eq!(of("model"), KernelCosts::Library { fallback: 5_000 });
        let error = |text| KernelCosts::parse(text, 0).unwrap_err().to_string();
        assert!(
            error("5").contains("has no unit") && error("5us..20").contains("'20' has no unit")
        );
        assert!(error("fast").contains("table:FILE") && error("9us..2us").contains("exchange"));
        assert!(error("models").contains("not a cost") && error("model:x").contains("not a time"));
    }

    #[test]
    fn a_table_names_kernels() {
        let KernelCosts::Table { by_func, fallback } =
            KernelCosts::table("# measured\nmatmul = 12us\n300=4us\n\ndefault = 1us # others")
                .unwrap()
        else {
            panic!("not a table");
        };
        assert_eq!(
            (by_func[usize::from(func::MATMUL.0)], by_func[300], fallback),
            (12_000, 4_000, 1_000)
        );
        assert_eq!((by_func.len(), by_func[299]), (301, 1_000));
        let error = |text| KernelCosts::table(text).unwrap_err().to_string();
        assert!(error("matmul = 1us").contains("default"));
        assert!(
            error("default = 1us\nmatmull = 1us").contains("line 2: there is no kernel 'matmull'")
        );
        assert!(error("4096 = 1us").contains("line 1: there is no kernel"));
        assert!(error("matmul\n").contains("line 1: expected"));
        assert!(error("default = 1us\ndefault = 2us").contains("line 2: 'default' is given twice"));
    }
}
