//! What a session costs on this machine, beside the targets for it; and what does not depend on the machine.

mod cost;
mod long;
mod stitched;

use std::time::{Duration, Instant};

use pto_host::session::{Recording, SessionError};
use pto_host::{Hosting, Session, Stream, func};

pub use cost::SessionCost;
use cost::open;

use crate::stats::Spread;

/// Launches that are submitted in one go.
const SUBMITTED: u32 = 500;
/// Launches whose throughput is measured.
const LAUNCHES: u32 = 20_000;
/// Streams that share them.
const STREAMS: u32 = 64;
/// How often a single launch is waited for, awake and asleep.
const AWAKE: u32 = 2_000;
const ASLEEP: u32 = 100;

/// Measures the costs on each of these hostings, and how long stitched programs take in virtual time. With `commands`, runs a session
/// of so many commands on each of the hostings instead.
///
/// # Errors
/// When a command or a program fails.
pub fn measure(hostings: &[Hosting], commands: Option<u64>) -> Result<Vec<SessionCost>, String> {
    let told = |error: SessionError| error.to_string();
    let mut costs = Vec::new();
    for hosting in hostings {
        costs.extend(match commands {
            Some(commands) => long::measure(*hosting, commands).map_err(told)?,
            None => on(*hosting).map_err(told)?,
        });
    }
    if commands.is_none() {
        costs.extend(stitched::measure()?);
    }
    Ok(costs)
}

fn on(hosting: Hosting) -> Result<Vec<SessionCost>, SessionError> {
    let session = open(hosting)?;
    let one = throughput(&session, 1)?;
    let many = throughput(&session, STREAMS)?;
    let found = [
        ("submitting a launch, ns", 100.0, submission(&session)?),
        ("empty launches of one stream, ns each", 200.0, one),
        ("64 streams over one, in total", 1.0, many / one),
        (
            "from launch to seen completion, awake, us",
            5.0,
            latency(&session, AWAKE, Duration::ZERO)?,
        ),
        ("the same after a sleep, us", 50.0, latency(&session, ASLEEP, Duration::from_millis(2))?),
        ("a recording of 100 launches, beside its tasks, us", 5.0, replay(&session)?),
    ];
    let cost = |(what, bound, found): (&str, f64, f64)| SessionCost {
        what: format!("{hosting}: {what}"),
        bound,
        found,
    };
    Ok(found.into_iter().map(cost).collect())
}

fn median(times: &[f64]) -> f64 {
    Spread::of(times).map_or(f64::NAN, |spread| spread.median)
}

/// Of a call of `launch` while the stream waits, so that the service does nothing meanwhile.
fn submission(session: &Session) -> Result<f64, SessionError> {
    let (stream, gate) = (session.stream()?, session.stream()?);
    let mut times = Vec::new();
    for _ in 0..50 {
        let event = session.event()?;
        stream.wait_next(&event)?;
        let start = Instant::now();
        for _ in 0..SUBMITTED {
            stream.launch(func::EMPTY_AIV, &[])?;
        }
        times.push(start.elapsed().as_secs_f64() * 1e9 / f64::from(SUBMITTED));
        gate.record(&event)?;
        session.synchronize()?;
    }
    Ok(median(&times))
}

/// Nanoseconds a launch, from the first submission to the end of the last one.
fn throughput(session: &Session, streams: u32) -> Result<f64, SessionError> {
    let streams = (0..streams).map(|_| session.stream()).collect::<Result<Vec<_>, _>>()?;
    let mut times = Vec::new();
    for _ in 0..5 {
        let start = Instant::now();
        for (_, stream) in (0..LAUNCHES).zip(streams.iter().cycle()) {
            stream.launch(func::EMPTY_AIV, &[])?;
        }
        session.synchronize()?;
        times.push(start.elapsed().as_secs_f64() * 1e9 / f64::from(LAUNCHES));
    }
    Ok(median(&times))
}

fn latency(session: &Session, times: u32, pause: Duration) -> Result<f64, SessionError> {
    let stream = session.stream()?;
    let mut found = Vec::new();
    for _ in 0..times {
        if !pause.is_zero() {
            std::thread::sleep(pause);
        }
        let start = Instant::now();
        stream.launch(func::EMPTY_AIV, &[])?;
        stream.synchronize()?;
        found.push(start.elapsed().as_secs_f64() * 1e6);
    }
    Ok(median(&found))
}

/// Of a recording with 100 launches, less what the second hundred of one with 200 takes.
fn replay(session: &Session) -> Result<f64, SessionError> {
    let stream = session.stream()?;
    let (hundred, two) = (recorded(&stream, 100)?, recorded(&stream, 200)?);
    let (hundred, two) = (replayed(&stream, &hundred)?, replayed(&stream, &two)?);
    Ok(hundred - (two - hundred))
}

fn recorded(stream: &Stream, launches: u32) -> Result<Recording, SessionError> {
    stream.begin_capture()?;
    for _ in 0..launches {
        stream.launch(func::EMPTY_AIV, &[])?;
    }
    stream.end_capture()
}

fn replayed(stream: &Stream, recording: &Recording) -> Result<f64, SessionError> {
    let mut times = Vec::new();
    for _ in 0..300 {
        let start = Instant::now();
        stream.launch_recording(recording, &[])?;
        stream.synchronize()?;
        times.push(start.elapsed().as_secs_f64() * 1e6);
    }
    Ok(median(&times))
}
