//! A run of four tasks on an open device, again and again: what a run costs in addition to its tasks.

use std::sync::Arc;

use serde::Serialize;

use crate::family::Family;
use crate::runner::{Error, LoadedGraph, Runner};
use crate::stats::Spread;

/// One runner.
#[derive(Clone, Debug, Serialize)]
pub struct SmallRun {
    /// Its name.
    pub runner: String,
    /// From call to return, in us.
    pub us: Spread,
}

const TASKS: u32 = 4;

/// Runs a chain of four tasks `runs` times.
///
/// # Errors
/// When a run fails.
///
/// # Panics
/// When `runs` is zero.
pub fn small_run(runner: &mut dyn Runner, runs: u32) -> Result<SmallRun, Error> {
    let graph = Arc::new(Family::by_name("chain").expect("a family").graph(TASKS));
    runner.load(LoadedGraph { graph: &graph, file: None })?;
    let mut times = Vec::new();
    for _ in 0..runs + 10 {
        times.push(runner.sample(0)?.total.as_secs_f64() * 1e6);
    }
    let us = Spread::of(&times[10..]).expect("it ran at least once");
    Ok(SmallRun { runner: runner.name().to_owned(), us })
}
