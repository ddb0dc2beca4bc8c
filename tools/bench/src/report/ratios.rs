//! Ours against the best library on each graph, and against the floor.

use std::fmt::Write as _;

use serde::Serialize;

use super::tables::{aligned, number};
use crate::measure::Series;
use crate::runner::Class;
use crate::stats::{Statistic, geometric_mean};

/// Ours against the others with the same number of OS threads, on the same graphs, tasks and kernels.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    /// OS threads.
    pub threads: usize,
    /// About how many tasks.
    pub tasks: u32,
    /// How long kernels take, in us.
    pub kernel_us: u32,
    /// Which of ours: the one with the least geometric mean.
    pub ours: String,
    /// Graph by graph.
    pub graphs: Vec<Compared>,
    /// Geometric mean of the ratios of the best library to ours; `None`: no library was measured.
    pub library_over_ours: Option<f64>,
    /// The same with schedulers written by hand among the libraries.
    pub anybody_over_ours: Option<f64>,
    /// Geometric mean of the ratios of ours to the sweep with atomic counters.
    pub ours_over_sweep: Option<f64>,
    /// Every other one of ours to this one, by geometric mean.
    pub others: Vec<(String, f64)>,
}

/// One graph.
#[derive(Clone, Debug, Serialize)]
pub struct Compared {
    /// Its name.
    pub graph: &'static str,
    /// Ours, ns a task.
    pub ours: f64,
    /// The best library and its ns a task.
    pub library: Option<(String, f64)>,
    /// The best of all others that are not ours.
    pub anybody: Option<(String, f64)>,
    /// The sweep with atomic counters, ns a task.
    pub sweep: Option<f64>,
}

/// Where and how ours is compared.
#[derive(Clone, Copy, Debug)]
pub struct At {
    /// OS threads.
    pub threads: usize,
    /// About how many tasks.
    pub tasks: u32,
    /// How long kernels take, in us.
    pub kernel_us: u32,
    /// The statistic of the rounds.
    pub by: Statistic,
}

/// The comparison of one point; `None`: nothing of ours was measured on all of its graphs.
#[must_use]
pub fn compare(series: &[Series], at: At) -> Option<Comparison> {
    let here = |one: &&Series| one.asked == at.tasks && one.kernel_us == at.kernel_us;
    let here = Here { series: series.iter().filter(here).collect(), at };
    let graphs = here.graphs();
    let mut ours = here.means_of_ours(&graphs);
    ours.sort_by(|one, other| one.1.total_cmp(&other.1));
    let (name, best) = ours.first()?.clone();
    let graphs: Option<Vec<Compared>> =
        graphs.iter().map(|graph| here.compared(graph, &name)).collect();
    let graphs = graphs?;
    let mean = |ratio: fn(&Compared) -> Option<f64>| {
        let ratios: Option<Vec<f64>> = graphs.iter().map(ratio).collect();
        ratios.and_then(|ratios| geometric_mean(&ratios))
    };
    Some(Comparison {
        threads: at.threads,
        tasks: at.tasks,
        kernel_us: at.kernel_us,
        library_over_ours: mean(|one| Some(one.library.as_ref()?.1 / one.ours)),
        anybody_over_ours: mean(|one| Some(one.anybody.as_ref()?.1 / one.ours)),
        ours_over_sweep: mean(|one| Some(one.ours / one.sweep?)),
        others: ours[1..].iter().map(|(name, mean)| (name.clone(), mean / best)).collect(),
        ours: name,
        graphs,
    })
}

/// What was measured at one point.
struct Here<'a> {
    series: Vec<&'a Series>,
    at: At,
}

impl Here<'_> {
    fn graphs(&self) -> Vec<&'static str> {
        let mut graphs = Vec::new();
        for one in &self.series {
            if !graphs.contains(&one.graph) {
                graphs.push(one.graph);
            }
        }
        graphs
    }

    /// ns a task of a runner on a graph.
    fn ns(&self, graph: &str, runner: &str) -> Option<f64> {
        let found = self.series.iter().find(|one| one.graph == graph && one.runner == runner);
        found.map(|one| one.total.by(self.at.by))
    }

    /// Geometric means of ours that were measured on all graphs.
    fn means_of_ours(&self, graphs: &[&str]) -> Vec<(String, f64)> {
        let is_ours = |one: &&&Series| one.class == Class::Ours && one.threads == self.at.threads;
        let mut means: Vec<(String, f64)> = Vec::new();
        for one in self.series.iter().filter(is_ours) {
            let times: Option<Vec<f64>> =
                graphs.iter().map(|graph| self.ns(graph, &one.runner)).collect();
            let is_new = means.iter().all(|(known, _)| *known != one.runner);
            if let Some(mean) = times.filter(|_| is_new).and_then(|times| geometric_mean(&times)) {
                means.push((one.runner.clone(), mean));
            }
        }
        means
    }

    fn compared(&self, graph: &'static str, ours: &str) -> Option<Compared> {
        let best = |classes: &[Class]| {
            let is_other = |one: &&&Series| {
                one.graph == graph && one.threads == self.at.threads && classes.contains(&one.class)
            };
            let others = self.series.iter().filter(is_other);
            let others = others.map(|one| (one.runner.clone(), one.total.by(self.at.by)));
            others.min_by(|one, other| one.1.total_cmp(&other.1))
        };
        Some(Compared {
            graph,
            ours: self.ns(graph, ours)?,
            library: best(&[Class::Library]),
            anybody: best(&[Class::Library, Class::ByHand]),
            sweep: self.ns(graph, crate::runner::floor::SWEEP),
        })
    }
}

/// The comparison for people.
pub(super) fn text(comparison: &Comparison) -> String {
    let threads = match comparison.threads {
        1 => "one OS thread".to_owned(),
        threads => format!("{threads} OS threads"),
    };
    let mut text = format!("\n{threads}: {}, build + run, ns a task\n", comparison.ours);
    let heading = [
        "graph",
        "ours",
        "sweep",
        "ratio",
        "best library",
        "",
        "ratio",
        "best of all",
        "",
        "ratio",
    ];
    let mut rows = vec![heading.map(str::to_owned).to_vec()];
    for one in &comparison.graphs {
        let mut row = vec![one.graph.to_owned(), number(one.ours)];
        row.push(one.sweep.map_or("-".to_owned(), number));
        row.push(one.sweep.map_or("-".to_owned(), |sweep| ratio(one.ours / sweep)));
        for other in [&one.library, &one.anybody] {
            match other {
                None => row.extend(["-", "-", "-"].map(str::to_owned)),
                Some((name, ns)) => row.extend([name.clone(), number(*ns), ratio(ns / one.ours)]),
            }
        }
        rows.push(row);
    }
    text += &aligned(&rows);
    let mut say = |what: &str, value: Option<f64>| {
        if let Some(value) = value {
            let _ = writeln!(text, "  {what}: {value:.2}");
        }
    };
    say("ours over the sweep, geometric mean", comparison.ours_over_sweep);
    say("the best library over ours, geometric mean", comparison.library_over_ours);
    say("the best of all over ours, geometric mean", comparison.anybody_over_ours);
    for (name, times) in &comparison.others {
        say(&format!("{name} over this one"), Some(*times));
    }
    text
}

fn ratio(value: f64) -> String {
    format!("{value:.2}")
}
