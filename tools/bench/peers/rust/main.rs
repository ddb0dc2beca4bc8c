//! The peers in Rust: `pto-peers rayon|rayon-bypass|crossbeam THREADS`. The protocol is that of `../cpp/peer.h`.

mod crossbeam;
mod dataflow;
mod protocol;
mod rayon;

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let threads = arguments.get(1).and_then(|threads| threads.parse().ok()).filter(|n| *n > 0);
    match (arguments.first().map(String::as_str), threads) {
        (Some("rayon"), Some(threads)) => {
            protocol::serve(rayon::Rayon::new(threads, rayon::FirstReady::Spawned))
        }
        (Some("rayon-bypass"), Some(threads)) => {
            protocol::serve(rayon::Rayon::new(threads, rayon::FirstReady::Called));
        }
        (Some("crossbeam"), Some(threads)) => protocol::serve(crossbeam::Crossbeam::new(threads)),
        _ => {
            eprintln!("usage: pto-peers rayon|rayon-bypass|crossbeam THREADS");
            return ExitCode::from(2);
        }
    }
    ExitCode::SUCCESS
}
