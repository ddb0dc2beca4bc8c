//! A picture of the scaling curves: ns a task over tasks, both logarithmic, a panel for each graph.

use std::fmt::Write as _;

use super::chart::{Axes, PANEL, decades, grid};
use crate::measure::Series;
use crate::runner::Class;
use crate::stats::Statistic;

const COLUMNS: usize = 3;
/// Okabe and Ito's colours, then lighter ones.
const COLOURS: [&str; 14] = [
    "#d55e00", "#0072b2", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7a5195", "#b8a400",
    "#8fbcbb", "#a3be8c", "#b48ead", "#d08770", "#666666", "#aaaaaa",
];

/// The picture, of empty kernels.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "panels and lines are few")]
pub fn plot(series: &[Series], by: Statistic) -> String {
    let series: Vec<&Series> = series.iter().filter(|one| one.kernel_us == 0).collect();
    let graphs = distinct(series.iter().map(|one| one.graph));
    let runners = distinct(series.iter().map(|one| one.runner.as_str()));
    let rows = graphs.len().div_ceil(COLUMNS);
    let width = PANEL.0 * COLUMNS.min(graphs.len().max(1)) as f64;
    let legend_rows = runners.len().div_ceil(3);
    let height = PANEL.1 * rows as f64 + 16.0 * legend_rows as f64 + 30.0;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" \
         height=\"{height}\" font-family=\"sans-serif\" font-size=\"10\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n"
    );
    for (index, graph) in graphs.iter().enumerate() {
        let here: Vec<&Series> = series.iter().filter(|one| one.graph == *graph).copied().collect();
        let axes = Axes {
            left: PANEL.0 * (index % COLUMNS) as f64,
            top: PANEL.1 * (index / COLUMNS) as f64,
            x: decades(here.iter().map(|one| f64::from(one.asked))),
            y: decades(here.iter().map(|one| one.total.by(by))),
        };
        grid(&mut svg, &axes, graph);
        for (colour, runner) in COLOURS.iter().cycle().zip(&runners) {
            curve(&mut svg, &axes, &here, (runner, colour), by);
        }
    }
    let classes =
        |runner: &&str| series.iter().find(|one| one.runner == *runner).map(|one| one.class);
    for (index, (colour, runner)) in COLOURS.iter().cycle().zip(&runners).enumerate() {
        let x = 14.0 + (index % 3) as f64 * width.max(600.0) / 3.0;
        let y = PANEL.1 * rows as f64 + 16.0 * (index / 3) as f64 + 14.0;
        let weight = stroke(classes(runner));
        let _ = writeln!(
            svg,
            "<path d=\"M{x:.0} {:.0}h18\" stroke=\"{colour}\" {weight}/><text x=\"{:.0}\" y=\"{y:.0}\">{runner}</text>",
            y - 3.0,
            x + 24.0
        );
    }
    let y = height - 8.0;
    let _ = writeln!(
        svg,
        "<text x=\"14\" y=\"{y}\" fill=\"#555\">build + run, ns a task, over tasks; empty kernels; {} of the rounds</text>",
        by.name()
    );
    svg += "</svg>\n";
    svg
}

fn distinct<'a>(names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut distinct = Vec::new();
    for name in names {
        if !distinct.contains(&name) {
            distinct.push(name);
        }
    }
    distinct
}

/// Ours is what one looks for.
fn stroke(class: Option<Class>) -> &'static str {
    match class {
        Some(Class::Ours | Class::Prepared) => "stroke-width=\"2.2\" fill=\"none\"",
        Some(Class::Floor) => "stroke-width=\"1.2\" stroke-dasharray=\"4 3\" fill=\"none\"",
        _ => "stroke-width=\"1\" fill=\"none\"",
    }
}

fn curve(
    svg: &mut String,
    axes: &Axes,
    here: &[&Series],
    (runner, colour): (&str, &str),
    by: Statistic,
) {
    let mut own: Vec<&&Series> = here.iter().filter(|one| one.runner == runner).collect();
    own.sort_by_key(|one| one.asked);
    let Some(first) = own.first() else { return };
    let points = own.iter().map(|one| axes.point(one.asked.into(), one.total.by(by)));
    let points: Vec<String> = points.map(|(x, y)| format!("{x:.1} {y:.1}")).collect();
    let _ = writeln!(
        svg,
        "<path d=\"M{}\" stroke=\"{colour}\" {}><title>{runner}</title></path>",
        points.join("L"),
        stroke(Some(first.class))
    );
    for point in points {
        let (x, y) = point.split_once(' ').unwrap_or_default();
        let _ = writeln!(svg, "<circle cx=\"{x}\" cy=\"{y}\" r=\"1.8\" fill=\"{colour}\"/>");
    }
}

#[cfg(test)]
mod tests {
    use super::plot;
    use crate::family::Family;
    use crate::measure::{Plan, measure};
    use crate::runner::Runner;
    use crate::runner::floor::{AtomicSweep, PlainSweep};
    use crate::stats::Statistic;

    #[test]
    fn every_runner_has_a_curve_in_every_panel() {
        let mut runners: Vec<Box<dyn Runner>> =
            vec![Box::<AtomicSweep>::default(), Box::<PlainSweep>::default()];
        let families = Family::programs().take(4).collect();
        let plan =
            Plan { families, tasks: vec![10, 100], kernel_us: vec![0], rounds: 1, folder: None };
        let series = measure(&plan, &mut runners, &mut |_| {}).unwrap();
        let svg = plot(&series, Statistic::Least);
        assert_eq!(svg.matches("<title>sweep</title>").count(), 4);
        assert_eq!(svg.matches("<circle").count(), 4 * 2 * 2);
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
    }
}
