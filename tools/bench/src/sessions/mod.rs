//! What a session costs on this machine, with the targets for it, and what does not depend on the machine.

mod cost;
mod long;
mod stitched;

use std::time::{Duration, Instant};

use pto_host::session::{Recording, SessionError};
use pto_host::{Hosting, Session, Stream, func};

pub use cost::SessionCost;
use cost::open;

use crate::probe::wake_us;
use crate::stats::Spread;

/// Launches that are submitted in one go.
const SUBMITTED: u32 = 500;
/// Launches whose throughput is measured.
const LAUNCHES: u32 = 20_000;
/// Streams that share them.
const STREAMS: u32 = 64;
/// How often that is measured.
const THROUGHPUTS: u32 = 15;
/// How often a single launch is waited for, awake and asleep.
const AWAKE: u32 = 20_000;
const ASLEEP: u32 = 100;
/// After it, everybody sleeps.
const PAUSE: Duration = Duration::from_millis(2);
/// How often each recording is launched: for longer than the system needs to give two threads a CPU each that have slept.
const REPLAYS: u32 = 3_000;

/// Measures the costs on each of these hostings, and how long stitched programs take in virtual time. With `commands`, runs a session
/// of so many commands on each of the hostings instead.
///
/// # Errors
/// When a command or a program fails.
pub fn measure(hostings: &[Hosting], commands: Option<u64>) -> Result<Vec<SessionCost>, String> {
    let message = |error: SessionError| error.to_string();
    let mut costs = Vec::new();
    for hosting in hostings {
        costs.extend(match commands {
            Some(commands) => long::measure(*hosting, commands).map_err(message)?,
            None => on(*hosting).map_err(message)?,
        });
    }
    if commands.is_none() {
        costs.extend(stitched::measure()?);
    }
    Ok(costs)
}

fn on(hosting: Hosting) -> Result<Vec<SessionCost>, SessionError> {
    let session = open(hosting)?;
    let (one, over_one) = throughput(&session)?;
    let slept = format!(
        "the same after a sleep, us (a thread that is woken answers in {:.0})",
        wake_us(PAUSE, ASLEEP)
    );
    let found = [
        ("submitting a launch, ns", 100.0, submission(&session)?),
        ("empty launches of one stream, ns each", 200.0, one),
        ("64 streams over one, in total", 1.0, over_one),
        (
            "from launch to seen completion, awake, us",
            5.0,
            latency(&session, AWAKE, Duration::ZERO)?,
        ),
        (&slept, 50.0, latency(&session, ASLEEP, PAUSE)?),
        ("a recording of 100 launches, without its tasks, us", 5.0, replay(&session)?),
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

/// Nanoseconds a launch in one stream, from the first submission to the end of the last one; and how much more in [`STREAMS`] of them. They take
/// turns, because a machine has slow moments.
fn throughput(session: &Session) -> Result<(f64, f64), SessionError> {
    let open = |count: u32| (0..count).map(|_| session.stream()).collect::<Result<Vec<_>, _>>();
    let (one, many) = (open(1)?, open(STREAMS)?);
    let (mut times, mut ratios) = (Vec::new(), Vec::new());
    for _ in 0..THROUGHPUTS {
        let (one, many) = (launched(session, &one)?, launched(session, &many)?);
        times.push(one);
        ratios.push(many / one);
    }
    Ok((median(&times), median(&ratios)))
}

fn launched(session: &Session, streams: &[Stream]) -> Result<f64, SessionError> {
    let start = Instant::now();
    for (_, stream) in (0..LAUNCHES).zip(streams.iter().cycle()) {
        stream.launch(func::EMPTY_AIV, &[])?;
    }
    session.synchronize()?;
    Ok(start.elapsed().as_secs_f64() * 1e9 / f64::from(LAUNCHES))
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

/// Of a recording with 100 launches, less what the second hundred of one with 200 takes. The two take turns.
fn replay(session: &Session) -> Result<f64, SessionError> {
    let stream = session.stream()?;
    let (hundred, two) = (recorded(&stream, 100)?, recorded(&stream, 200)?);
    let (mut of_hundred, mut of_two) = (Vec::new(), Vec::new());
    for _ in 0..REPLAYS {
        of_hundred.push(replayed(&stream, &hundred)?);
        of_two.push(replayed(&stream, &two)?);
    }
    let (hundred, two) = (median(&of_hundred), median(&of_two));
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
    let start = Instant::now();
    stream.launch_recording(recording, &[])?;
    stream.synchronize()?;
    Ok(start.elapsed().as_secs_f64() * 1e6)
}
