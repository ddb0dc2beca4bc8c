//! Every example once in each way that has more than one thread: modes `threads` and `pool`, every runtime variant,
//! build mode and fanout strategy, at small sizes.
//!
//! `cargo xtask race` builds this program with ThreadSanitizer, which stops it at the first data race. It is small on
//! purpose: the sanitizer's build must not cost the suite more than the run.

use std::num::NonZeroUsize;
use std::process::ExitCode;

use pto_examples::host::{self, Example, Prepared, RunMode};
use pto_host::{Device, DeviceOptions, Hosting, RunOptions};

type Failure = Box<dyn std::error::Error>;

/// How often each way is run. Threads meet where the machine happens to put them: in one round the sanitizer found a race
/// that had been put there on purpose in 3 of 15 tries.
const ROUNDS: usize = 4;

fn main() -> ExitCode {
    let asked: Vec<String> = std::env::args().skip(1).collect();
    let chosen = |name: &str| asked.is_empty() || asked.iter().any(|word| word == name);
    let mut runs = 0;
    for example in host::EXAMPLES.iter().filter(|example| chosen(example.name())) {
        match every_way(*example) {
            Ok(ways) => runs += ways,
            Err(why) => {
                eprintln!("{}: {why}", example.name());
                return ExitCode::FAILURE;
            }
        }
    }
    println!("{runs} whole runs passed");
    if runs == 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// Runs `example` in every way, and says how many there were.
fn every_way(example: &dyn Example) -> Result<usize, Failure> {
    let two = NonZeroUsize::new(2).ok_or("two is not zero")?;
    let mut runs = 0;
    for hosting in [Hosting::Pool { os_threads: two }, Hosting::Threads] {
        let mut device = host::open_sim(DeviceOptions { hosting, ..DeviceOptions::default() })?;
        device.register_library()?;
        let mut prepared = host::prepare(example, example.sizes().little, &device)?;
        for way in RunMode::of(example.program()) {
            for _ in 0..ROUNDS {
                let with_context = |why| format!("{hosting}, {way}: {why}");
                run(&mut device, &mut prepared, way).map_err(with_context)?;
                runs += 1;
            }
        }
    }
    println!("{}: {runs} runs", example.name());
    Ok(runs)
}

fn run(device: &mut Device, prepared: &mut Prepared, way: RunMode) -> Result<(), Failure> {
    way.run(device, prepared, &RunOptions::default())?;
    let verdict = prepared.verify()?;
    if verdict.passed() { Ok(()) } else { Err(format!("{verdict:?}").into()) }
}
