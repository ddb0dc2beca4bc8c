//! Serves requests on a session, one by one and all at once (`server.rs`), and prints how long both took.
//!
//! `cargo run --release -p pto-host --example serve -- [REQUESTS]`

mod server;

use std::error::Error;
use std::time::Instant;

fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let requests = std::env::args().nth(1).map_or(Ok(500), |text| text.parse())?;
    let session = server::session()?;
    let begun = Instant::now();
    let waited = server::one_by_one(&session, requests)?;
    let apart = begun.elapsed();
    let begun = Instant::now();
    let awaited = server::at_once(&session, requests)?;
    let together = begun.elapsed();
    assert_eq!(waited, awaited, "both serve alike");
    println!("{requests} requests: one by one {apart:.1?}, at once {together:.1?}");
    Ok(())
}
