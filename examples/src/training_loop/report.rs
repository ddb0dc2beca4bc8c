//! What a training was like, and whether it was as it must be.

use std::format;
use std::string::String;
use std::vec::Vec;

use pto_host::stitch::Counters;

/// The correlation that results must have with the reference.
const WANTED_PCC: f64 = 0.999;

/// What a training was like.
#[derive(Clone, Debug)]
pub struct Report {
    /// Rounds.
    pub rounds: u64,
    /// Bytes of the weights.
    pub weight_bytes: u64,
    /// The loss of each round.
    pub losses: Vec<f32>,
    /// Pearson correlation of the weights with the reference in f64.
    pub pcc_weights: f64,
    /// The same of what the training changed of the weights.
    pub pcc_change: f64,
    /// The same of the losses of all rounds.
    pub pcc_losses: f64,
    /// The counters up to the end of the first round.
    pub first: Counters,
    /// What the other rounds added to them.
    pub rest: Counters,
    /// Bytes that a round has to convert, as the planner says.
    pub planned_bytes: u64,
    /// Why, a sentence for each conversion.
    pub planned: Vec<String>,
}

impl Report {
    /// What is not as it must be, a sentence for each.
    #[must_use]
    pub fn failures(&self) -> Vec<String> {
        let expected = self.planned_bytes * self.rounds.saturating_sub(1);
        let counters = [
            (
                "bytes copied to the device, to the host or on the device",
                self.rest.copied_bytes(),
                0,
            ),
            ("bytes converted", self.rest.converted_bytes, expected),
            ("bytes bounced", self.rest.bounced_bytes, 0),
            ("bytes filled", self.rest.traffic.filled_bytes, 0),
            ("allocations", self.rest.allocations, 0),
        ];
        let wrong = counters.into_iter().filter(|(_, found, wanted)| found != wanted);
        let mut failures: Vec<String> = wrong
            .map(|(what, found, wanted)| {
                format!(
                    "after the first round there were {found} {what}, and {wanted} are expected"
                )
            })
            .collect();
        let (first, last) = (self.losses.first(), self.losses.last());
        if self.rounds > 1 && first.zip(last).is_none_or(|(first, last)| !falls(*first, *last)) {
            failures.push(format!(
                "the loss does not fall: {first:?} in the first round, {last:?} in the last"
            ));
        }
        let correlations = [
            ("weights", self.pcc_weights),
            ("change of the weights", self.pcc_change),
            ("losses", self.pcc_losses),
        ];
        let low = correlations.into_iter().filter(|(what, pcc)| {
            // One loss has no correlation.
            !is_high(*pcc) && (*what != "losses" || self.rounds > 1)
        });
        failures.extend(low.map(|(what, pcc)| {
            format!("the {what} have a correlation of {pcc} with the reference, and {WANTED_PCC} is wanted")
        }));
        failures
    }
}

/// Not of a number that is none.
fn falls(first: f32, last: f32) -> bool {
    last < first
}

/// Not of a number that is none.
fn is_high(pcc: f64) -> bool {
    pcc >= WANTED_PCC
}

/// The Pearson correlation of two lists of the same length; of values that are all the same there is none, and it is not a number.
pub(super) fn correlation(a: &[f64], b: &[f64]) -> f64 {
    let count = a.len().max(1) as f64;
    let mean = |values: &[f64]| values.iter().sum::<f64>() / count;
    let (mean_a, mean_b) = (mean(a), mean(b));
    let (mut ab, mut aa, mut bb) = (0.0, 0.0, 0.0);
    for (a, b) in a.iter().zip(b) {
        let (a, b) = (a - mean_a, b - mean_b);
        ab += a * b;
        aa += a * a;
        bb += b * b;
    }
    if a.len() == b.len() { ab / (aa * bb).sqrt() } else { f64::NAN }
}
