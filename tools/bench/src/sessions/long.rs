//! A session of many commands needs no more memory than one of few.

use std::time::{Duration, Instant};

use pto_host::session::SessionError;
use pto_host::{Device, Hosting, Session, func};

use super::cost::{SessionCost, open};

/// Commands before the memory is looked at for the first time: rings and arenas are as large then as they will be.
const SETTLED: u64 = 40_000;
/// Commands of a round: a launch and a record of one stream, a wait and a launch of another one.
const A_ROUND: u64 = 4;
const LONGEST: Duration = Duration::from_secs(3600);
/// How often the free bytes are looked at, at most: for a second.
const LOOKS: u32 = 50;
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Runs a session of so many commands.
pub(super) fn measure(hosting: Hosting, commands: u64) -> Result<Vec<SessionCost>, SessionError> {
    let session = open(hosting)?;
    run(&session, SETTLED)?;
    // What the first commands needed is let go meanwhile: a session that is left alone for a second has nothing more to let go.
    let (device_before, before) = (free_bytes(&session, u64::MAX), resident_bytes());
    let start = Instant::now();
    let done = run(&session, commands)?;
    let ns = start.elapsed().as_secs_f64() * 1e9 / done as f64;
    let device = device_before.saturating_sub(free_bytes(&session, device_before));
    let process = resident_bytes().saturating_sub(before);
    let cost = |what: &str, bound, found| SessionCost {
        what: format!("{hosting}: {done} commands, {ns:.0} ns each: {what}"),
        bound,
        found,
    };
    let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    Ok(vec![
        cost("added memory of the process, MiB", 16.0, mib(process)),
        cost("added memory of the device, MiB", 0.0, mib(device)),
    ])
}

/// How many commands it were: whole rounds.
fn run(session: &Session, commands: u64) -> Result<u64, SessionError> {
    let (stream, other) = (session.stream()?, session.stream()?);
    let event = session.event()?;
    let rounds = commands.div_ceil(A_ROUND);
    for _ in 0..rounds {
        stream.launch(func::EMPTY_AIV, &[])?;
        stream.record(&event)?;
        other.wait(&event)?;
        other.launch(func::EMPTY_AIC, &[])?;
    }
    session.synchronize_within(LONGEST)?;
    Ok(rounds * A_ROUND)
}

/// Free bytes of the device, once they are `enough`, or after a second. The session lets go of what was dropped when the firmware returns, a moment after the last
/// command: two looks that find the same say nothing. What is leaked stays missing.
fn free_bytes(session: &Session, enough: u64) -> u64 {
    let describe = |device: &Device| device.describe().gm_free_bytes;
    let free = || session.with_device(describe).expect("the session stays open");
    let mut found = free();
    for _ in 0..LOOKS {
        if found >= enough {
            break;
        }
        std::thread::sleep(LOOK_EVERY);
        found = free();
    }
    found
}

/// Bytes of this process in memory; 0 where the system does not say.
fn resident_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or_default();
    line.split_whitespace().next().and_then(|number| number.parse::<u64>().ok()).unwrap_or(0) << 10
}
