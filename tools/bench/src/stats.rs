//! Medians, spreads, geometric means.

use serde::Serialize;

/// How measurements of one thing lie.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Spread {
    /// The least.
    pub min: f64,
    /// A quarter lies below.
    pub p25: f64,
    /// Half lies below.
    pub median: f64,
    /// A quarter lies above.
    pub p75: f64,
    /// The greatest.
    pub max: f64,
}

/// The statistic that tables and ratios use for several measurements.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Statistic {
    /// Half of them lie below.
    #[default]
    Median,
    /// The least: noise only adds, so that it is what to look at where others use the machine as well.
    Least,
}

impl Statistic {
    /// Its name, with an article where it needs one.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Median => "median",
            Self::Least => "least",
        }
    }
}

impl Spread {
    /// The statistic of the measurements.
    #[must_use]
    pub const fn by(&self, statistic: Statistic) -> f64 {
        match statistic {
            Statistic::Median => self.median,
            Statistic::Least => self.min,
        }
    }

    /// Of these; `None`: there are none.
    #[must_use]
    pub fn of(values: &[f64]) -> Option<Self> {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let (min, max) = (*sorted.first()?, *sorted.last()?);
        let at = |part| quantile(&sorted, part);
        Some(Self { min, p25: at(0.25), median: at(0.5), p75: at(0.75), max })
    }
}

/// Interpolates between the two values around the rank.
fn quantile(sorted: &[f64], part: f64) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "a few samples")]
    let rank = part * (sorted.len() - 1) as f64;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "between 0 and the length"
    )]
    let below = rank.floor() as usize;
    let above = sorted[(below + 1).min(sorted.len() - 1)];
    sorted[below] + (above - sorted[below]) * rank.fract()
}

/// The geometric mean; `None`: of nothing.
#[must_use]
pub fn geometric_mean(values: &[f64]) -> Option<f64> {
    #[expect(clippy::cast_precision_loss, reason = "a few values")]
    let count = values.len() as f64;
    let sum: f64 = values.iter().map(|value| value.ln()).sum();
    (!values.is_empty()).then(|| (sum / count).exp())
}

#[cfg(test)]
mod tests {
    use super::{Spread, geometric_mean};

    #[test]
    fn a_spread_has_quarters() {
        let spread = Spread::of(&[5.0, 1.0, 2.0, 4.0, 3.0]).unwrap();
        assert_eq!(
            [spread.min, spread.p25, spread.median, spread.p75, spread.max],
            [1.0, 2.0, 3.0, 4.0, 5.0]
        );
        assert_eq!(Spread::of(&[1.0, 2.0]).unwrap().median, 1.5);
        assert_eq!(Spread::of(&[]), None);
    }

    #[test]
    fn a_geometric_mean_is_of_ratios() {
        assert!((geometric_mean(&[1.0, 4.0]).unwrap() - 2.0).abs() < 1e-12);
        assert_eq!(geometric_mean(&[]), None);
    }
}
