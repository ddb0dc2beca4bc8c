//! The values of options: from the text that a user writes to a number or a name that the runtime takes. What is
//! refused here is answered with what is allowed, and nothing runs.

use std::fmt::Display;
use std::num::NonZeroUsize;
use std::str::FromStr;
use std::time::Duration;

use clap::ValueEnum;
use log::LevelFilter;
use pto_abi::limits::{MAX_TASKS, MAX_WORKERS};
use pto_abi::stream::MAX_HEAP_RINGS;
use pto_abi::{BuildMode, FanoutStrategy, RuntimeVariant};
use pto_examples::host::names;
use pto_host::MAX_OS_THREADS;
use pto_host::group::{GroupTarget, UnknownTarget};

/// The most AICPU instances.
pub(super) const MAX_AICPU: u32 = {
    assert!(pto_abi::limits::MAX_AICPU_INSTANCES == 16, "--aicpu states the limit");
    16
};
/// The most cores of one kind.
pub(super) const MAX_CORES: u32 = {
    assert!(MAX_WORKERS == 128, "--aic and --aiv state the limit");
    128
};
/// The least entries of a tensor map.
const MIN_MAP_ENTRIES: u32 = 256;
/// A heap is as large as a multiple of this.
const HEAP_STEP_BYTES: u64 = 64;

/// A whole number within limits.
pub(super) fn whole<T>(
    least: T,
    most: T,
) -> impl Fn(&str) -> Result<T, String> + Clone + Send + Sync + 'static
where
    T: FromStr + PartialOrd + Display + Copy + Send + Sync + 'static,
{
    move |text| {
        let number = text.parse().ok().filter(|number| (least..=most).contains(number));
        number.ok_or_else(|| format!("it must be a whole number from {least} to {most}"))
    }
}

/// A level of log messages.
pub(super) fn log_level(text: &str) -> Result<LevelFilter, String> {
    text.parse().map_err(|_| "it must be off, error, warn, info, debug or trace".into())
}

/// `NAME=VALUE`.
pub(super) fn pair<T: From<String>>(text: &str) -> Result<(String, T), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() && !value.is_empty() => {
            Ok((name.to_owned(), value.to_owned().into()))
        }
        _ => Err("it must be a name and a value with '=' between them, such as n=64".into()),
    }
}

pub(super) fn group(text: &str) -> Result<GroupTarget, String> {
    text.parse().map_err(|unknown: UnknownTarget| unknown.to_string())
}

pub(super) fn runtime(text: &str) -> Result<RuntimeVariant, String> {
    let known = || names::known(text, RuntimeVariant::ALL.iter().map(|variant| variant.name()));
    RuntimeVariant::from_name(text).ok_or_else(known)
}

pub(super) fn fanout(text: &str) -> Result<FanoutStrategy, String> {
    let known = || names::known(text, FanoutStrategy::ALL.iter().map(|strategy| strategy.name()));
    FanoutStrategy::from_name(text).ok_or_else(known)
}

pub(super) fn build_mode(text: &str) -> Result<BuildMode, String> {
    let number = text.parse().ok().and_then(|number: u32| BuildMode::try_from(number).ok());
    let mode = number.or_else(|| BuildMode::from_name(text));
    mode.ok_or_else(|| "it must be 1 or concurrent, 0 or sequential".into())
}

pub(super) fn milliseconds(text: &str) -> Result<Duration, String> {
    match text.parse() {
        Ok(ms) if ms > 0 => Ok(Duration::from_millis(ms)),
        _ => Err("it must be a whole number of milliseconds above 0".into()),
    }
}

pub(super) fn byte_count(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(|unit: char| unit.is_ascii_alphabetic());
    let bits = match text[digits.len()..].to_ascii_lowercase().as_str() {
        "" | "b" => 0,
        "k" | "kib" => 10,
        "m" | "mib" => 20,
        "g" | "gib" => 30,
        _ => return Err("the unit must be K, M or G".into()),
    };
    let number: Option<u64> = digits.parse().ok().filter(|number| *number > 0);
    let bytes = number.and_then(|number| number.checked_mul(1 << bits));
    bytes.ok_or_else(|| "it must be a whole number of bytes above 0, such as 512M or 4G".into())
}

/// The heap of a depth of scopes.
pub(super) fn heap_bytes(text: &str) -> Result<u64, String> {
    let bytes = byte_count(text)?;
    if !bytes.is_multiple_of(HEAP_STEP_BYTES) {
        return Err(format!(
            "a heap is a multiple of {HEAP_STEP_BYTES} bytes; the next one is {}",
            bytes.next_multiple_of(HEAP_STEP_BYTES)
        ));
    }
    Ok(bytes)
}

/// Slots of the window.
pub(super) fn window(text: &str) -> Result<u32, String> {
    power_of_two(text, 1, MAX_TASKS)
}

/// Entries of the tensor map.
pub(super) fn map_entries(text: &str) -> Result<u32, String> {
    power_of_two(text, MIN_MAP_ENTRIES, 1 << 31)
}

fn power_of_two(text: &str, least: u32, most: u32) -> Result<u32, String> {
    let number = text.parse().ok();
    match number.filter(|number: &u32| (least..=most).contains(number)) {
        Some(number) if number.is_power_of_two() => Ok(number),
        Some(number) => Err(format!(
            "it must be a power of two from {least} to {most}, such as {} or {}",
            number.next_power_of_two() / 2,
            number.next_power_of_two()
        )),
        None => Err(format!("it must be a power of two from {least} to {most}")),
    }
}

/// Depths of scopes with a heap.
pub(super) fn heap_rings(text: &str) -> Result<u32, String> {
    let number = text.parse().ok();
    let allowed = number.filter(|rings| (1..=MAX_HEAP_RINGS).contains(&(*rings as usize)));
    allowed.ok_or_else(|| format!("it must be 1 to {MAX_HEAP_RINGS}"))
}

/// Words of arguments, or chunks of edges: at least one.
pub(super) fn ring_units(text: &str) -> Result<u64, String> {
    let most = 1_u64 << 32;
    let number = text.parse().ok().filter(|units| (1..=most).contains(units));
    number.ok_or_else(|| format!("it must be 1 to {most}"))
}

/// By how much a number may differ.
pub(super) fn tolerance(text: &str) -> Result<f64, String> {
    let number = text.parse::<f64>().ok().filter(|number| number.is_finite() && *number >= 0.0);
    number.ok_or_else(|| "it must be a number that is not negative, such as 1e-5".into())
}

/// A Pearson correlation that is asked for.
pub(super) fn correlation(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number| (0.0..=1.0).contains(number));
    number.ok_or_else(|| "it must be a number from 0 to 1, such as 0.999".into())
}

/// OS threads of a pool, or of a campaign.
pub(super) fn os_threads(text: &str) -> Result<NonZeroUsize, String> {
    let threads = text.parse::<NonZeroUsize>().ok().filter(|n| n.get() <= MAX_OS_THREADS);
    threads.ok_or_else(|| format!("it must be 1 to {MAX_OS_THREADS}"))
}

/// How the simulated device is hosted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum HostingMode {
    /// A few OS threads step all AICPU instances and cores
    Pool,
    /// One OS thread for each AICPU instance and each core
    Threads,
    /// One OS thread and a virtual clock: a run reports the time that a device would take, can be repeated exactly, and
    /// can have injected faults (docs/reference/injected-faults.md)
    Virtual,
}

#[cfg(test)]
mod tests {
    use super::{
        byte_count, correlation, heap_bytes, log_level, map_entries, milliseconds, os_threads,
        pair, runtime, whole, window,
    };

    #[test]
    fn byte_counts_have_units() {
        assert_eq!(byte_count("4096"), Ok(4096));
        assert_eq!(byte_count("64k"), Ok(65_536));
        assert_eq!(byte_count("4G"), Ok(4 << 30));
        assert_eq!(byte_count("512MiB"), Ok(512 << 20));
        for bad in ["", "0", "-1", "4T", "G", "1.5G", "18446744073709551615G"] {
            assert!(byte_count(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn ring_sizes_are_answered_with_the_nearest() {
        assert_eq!(
            (window("1"), window("4096"), window("33554432")),
            (Ok(1), Ok(4096), Ok(1 << 25))
        );
        assert!(window("3").unwrap_err().ends_with("such as 2 or 4"));
        assert!(window("0").unwrap_err().ends_with("from 1 to 33554432"));
        assert!(window("67108864").is_err() && window("x").is_err() && window("-1").is_err());
        assert!(map_entries("128").unwrap_err().contains("from 256") && map_entries("256").is_ok());
        assert_eq!(heap_bytes("64"), Ok(64));
        assert!(heap_bytes("1").unwrap_err().ends_with("the next one is 64"));
    }

    #[test]
    fn numbers_and_levels_are_answered_with_what_is_allowed() {
        let (seed, rounds) = (whole(0, u64::MAX), whole(1_u32, 100));
        assert!(
            seed("18446744073709551615").is_ok() && rounds("1").is_ok() && rounds("100").is_ok()
        );
        for bad in ["0", "101", "x", "-1", "", "1.5"] {
            assert!(rounds(bad).unwrap_err().ends_with("a whole number from 1 to 100"), "{bad}");
        }
        assert!(correlation("1").is_ok() && correlation("0.99").is_ok());
        for bad in ["1.5", "-0.1", "nan", "x"] {
            assert!(correlation(bad).unwrap_err().contains("from 0 to 1"), "{bad}");
        }
        assert!(seed("x").is_err() && log_level("warn").is_ok());
        assert!(log_level("loud").unwrap_err().contains("debug or trace"));
    }

    #[test]
    fn threads_are_bounded() {
        assert!(os_threads("1").is_ok() && os_threads("256").is_ok());
        for bad in ["0", "257", "100000", "-1", "two"] {
            assert!(os_threads(bad).unwrap_err().ends_with("1 to 256"), "{bad}");
        }
    }

    #[test]
    fn names_are_answered_with_the_nearest() {
        assert!(runtime("host_build").unwrap_err().contains("did you mean 'host_build_graph'?"));
        assert!(milliseconds("0").is_err() && milliseconds("1").is_ok());
        assert!(pair::<String>("a").is_err() && pair::<String>("=1").is_err());
        assert_eq!(pair::<String>("a=b=c"), Ok(("a".into(), "b=c".into())));
    }
}
