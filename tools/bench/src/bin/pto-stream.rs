//! What a task of the streaming runtime costs end to end, on one OS thread, compared with the same graph with explicit edges:
//! `cargo run --profile dist -p pto-bench --bin pto-stream [TASKS [RUNS]]`. Times are those of the machine; the ratios, in one
//! run, carry over.

use std::process::ExitCode;

use pto_bench::stream::{SubmitMethod, measure};

fn main() -> ExitCode {
    let numbers: Option<Vec<u32>> = std::env::args().skip(1).map(|arg| arg.parse().ok()).collect();
    let (tasks, runs) = match numbers.as_deref() {
        Some([]) => (1_000_000, 5),
        Some([tasks]) => (*tasks, 5),
        Some([tasks, runs]) => (*tasks, *runs),
        _ => {
            eprintln!("usage: pto-stream [TASKS [RUNS]]");
            return ExitCode::FAILURE;
        }
    };
    match measure(tasks, runs) {
        Ok(figures) => {
            print(tasks, &figures);
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("pto-stream: {error}");
            ExitCode::FAILURE
        }
    }
}

fn print(tasks: u32, figures: &[(SubmitMethod, f64)]) {
    let of = |way| figures.iter().find(|(other, _)| *other == way).map_or(0.0, |(_, ns)| *ns);
    println!("{tasks} tasks, build and run");
    for (way, ns) in figures {
        let (baseline, other) = match way {
            SubmitMethod::Submitted | SubmitMethod::Replayed => {
                (SubmitMethod::Submitted, of(SubmitMethod::Submitted))
            }
            _ => (SubmitMethod::Graph, of(SubmitMethod::Graph)),
        };
        println!("{:<10} {ns:>8.1} ns/task {:>6.2} x {}", way.name(), ns / other, baseline.name());
    }
}
