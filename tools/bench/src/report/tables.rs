//! Tables: a row for each runner, a column for each graph, ns a task.

use pto_abi::numbers::Grouped;
use std::fmt::Write as _;

use crate::device_metg::DeviceMetg;
use crate::field_timings::{FieldTiming, UNPREDICTED, Unpredicted};
use crate::instructions::Counted;
use crate::measure::Series;
use crate::metg::Metg;
use crate::stats::{Spread, Statistic, geometric_mean};
use crate::tracing::TraceCost;

/// Every table that the measurements fill: by kernel, tasks and OS threads.
pub(super) fn all(series: &[Series], by: Statistic) -> String {
    let mut text = String::new();
    let mut points: Vec<(u32, u32)> = Vec::new();
    for one in series {
        let point = (one.kernel_us, one.asked);
        if !points.contains(&point) {
            points.push(point);
        }
    }
    for (kernel_us, tasks) in points {
        let here: Vec<&Series> =
            series.iter().filter(|one| (one.kernel_us, one.asked) == (kernel_us, tasks)).collect();
        let kernels = match kernel_us {
            0 => "empty kernels".to_owned(),
            us => format!("kernels of {us} us"),
        };
        for (is_single, threads) in [(true, "one OS thread"), (false, "more OS threads")] {
            let group: Vec<&Series> =
                here.iter().filter(|one| (one.threads == 1) == is_single).copied().collect();
            if group.is_empty() {
                continue;
            }
            let _ = writeln!(
                text,
                "\nabout {} tasks, {kernels}, {threads}: ns a task, {} of the rounds",
                grouped(tasks),
                by.name()
            );
            text += &table(&group, by);
        }
    }
    text
}

/// Rows: runners, as whole and where it is known in parts.
fn table(series: &[&Series], by: Statistic) -> String {
    let mut graphs: Vec<&str> = Vec::new();
    let mut runners: Vec<&str> = Vec::new();
    for one in series {
        if !graphs.contains(&one.graph) {
            graphs.push(one.graph);
        }
        if !runners.contains(&one.runner.as_str()) {
            runners.push(&one.runner);
        }
    }
    let mut heading = vec!["build + run".to_owned()];
    heading.extend(graphs.iter().map(|graph| (*graph).to_owned()));
    heading.push("geo mean".to_owned());
    let mut rows = vec![heading];
    for runner in &runners {
        let of = |part: fn(&Series) -> Option<Spread>| -> Vec<Option<f64>> {
            let find = |graph: &&str| {
                series.iter().find(|one| one.graph == *graph && one.runner == *runner)
            };
            graphs.iter().map(|graph| Some(part(find(graph)?)?.by(by))).collect()
        };
        rows.push(row(runner, &of(|one| Some(one.total))));
        for (name, part) in [
            ("  build", (|one: &Series| one.build) as fn(&Series) -> Option<Spread>),
            ("  run", |one| one.run),
        ] {
            let cells = of(part);
            if cells.iter().any(Option::is_some) {
                rows.push(row(name, &cells));
            }
        }
        let spread = of(|one| {
            let half = (one.total.p75 - one.total.p25) / one.total.median * 100.0;
            Some(Spread { median: half, min: half, ..one.total })
        });
        rows.push(row("  spread of the middle half, %", &spread));
    }
    aligned(&rows)
}

/// METG(50 %): a row for each runner, a column for each graph, us.
pub(super) fn metg(all: &[Metg], by: Statistic) -> String {
    let mut text = String::new();
    for (is_single, threads) in [(true, "one OS thread"), (false, "two OS threads")] {
        let group: Vec<&Metg> = all.iter().filter(|one| (one.threads == 1) == is_single).collect();
        let (mut graphs, mut runners) = (Vec::new(), Vec::new());
        for one in &group {
            if !graphs.contains(&one.graph) {
                graphs.push(one.graph);
            }
            if !runners.contains(&one.runner.as_str()) {
                runners.push(&one.runner);
            }
        }
        if group.is_empty() {
            continue;
        }
        let _ = writeln!(text, "\nMETG(50 %), {threads}: us, {} of the rounds", by.name());
        let mut heading = vec![String::new()];
        heading.extend(graphs.iter().map(|graph| (*graph).to_owned()));
        let mut rows = vec![heading];
        for runner in &runners {
            let cell = |graph: &&str| {
                let found = group.iter().find(|one| one.graph == *graph && one.runner == *runner);
                let us = found.and_then(|one| one.us);
                us.map_or("not reached".to_owned(), |us| format!("{:.3}", us.by(by)))
            };
            let cells = graphs.iter().map(cell);
            rows.push(std::iter::once((*runner).to_owned()).chain(cells).collect());
        }
        text += &aligned(&rows);
    }
    text
}

/// METG(50 %) on the device: a row for each graph.
pub(super) fn device_metg(all: &[DeviceMetg]) -> String {
    if all.is_empty() {
        return String::new();
    }
    let mut rows = vec![
        [
            "graph",
            "AICPU instances",
            "kernels",
            "longest path",
            "device METG(50 %), us",
            "AICPU, us a kernel",
        ]
        .map(str::to_owned)
        .to_vec(),
    ];
    for one in all {
        let time = |us: Option<f64>| us.map_or("not reached".to_owned(), |us| format!("{us:.2}"));
        let aicpu_us = format!("{:.2}", one.aicpu_us);
        rows.push(vec![
            one.graph.clone(),
            one.instances.to_string(),
            one.kernels.to_string(),
            one.path.to_string(),
            time(one.us),
            aicpu_us,
        ]);
    }
    format!(
        "\nVirtual time, profile a2a3; the slowest of three seeds; AICPU time with kernels as the cost model has them, the builder's included\n{}",
        aligned(&rows)
    )
}

/// Published times and those in virtual time: a row for each program.
pub(super) fn field_timings(all: &[FieldTiming]) -> String {
    if all.is_empty() {
        return String::new();
    }
    let heading = [
        "program of the field",
        "tasks",
        "published, us",
        "field's scheduler, us",
        "over published",
        "ours, us",
        "bound, us",
    ];
    let mut rows = vec![heading.map(str::to_owned).to_vec()];
    for one in all {
        let published: Vec<String> = one.published_us.iter().map(|us| format!("{us:.0}")).collect();
        rows.push(vec![
            one.program.clone(),
            one.tasks.to_string(),
            published.join(" / "),
            format!("{:.0}", one.theirs_us),
            format!("{:.2}", one.ratio()),
            format!("{:.0}", one.ours_us),
            format!("{:.0}", one.bound_us),
        ]);
    }
    let Unpredicted { name, tasks, us, why } = UNPREDICTED;
    let unknown = || "unknown".to_owned();
    let published = format!("{us:.0}");
    rows.push(vec![
        name.to_owned(),
        tasks.to_string(),
        published,
        unknown(),
        unknown(),
        unknown(),
        unknown(),
    ]);
    format!(
        "\nVirtual time, profile a2a3; the median of three seeds; the bound is that of the kernels on these cores\n{}  {name}: {why}\n",
        aligned(&rows)
    )
}

/// Instructions a task: a row for each runner, a column for each graph.
pub(super) fn instructions(all: &[Counted]) -> String {
    let (mut graphs, mut runners) = (Vec::new(), Vec::new());
    for one in all {
        if !graphs.contains(&one.graph) {
            graphs.push(one.graph);
        }
        if !runners.contains(&one.runner.as_str()) {
            runners.push(&one.runner);
        }
    }
    if all.is_empty() {
        return String::new();
    }
    let mut heading = vec![String::new()];
    heading.extend(graphs.iter().map(|graph| (*graph).to_owned()));
    heading.push("geo mean".to_owned());
    let mut rows = vec![heading];
    for runner in &runners {
        let found = |graph: &&str| {
            let one = all.iter().find(|one| one.graph == *graph && one.runner == *runner);
            one.map(|one| one.per_task)
        };
        rows.push(row(runner, &graphs.iter().map(found).collect::<Vec<_>>()));
        if runner.starts_with("pto") {
            rows.extend(parts(all, &graphs, runner));
        }
    }
    format!("\ninstructions a task, build + run, on this processor (callgrind)\n{}", aligned(&rows))
}

/// What tracing adds to a run: a row for each graph.
pub(super) fn trace_costs(all: &[TraceCost], by: Statistic) -> String {
    if all.is_empty() {
        return String::new();
    }
    let heading =
        ["graph", "tasks", "events a task", "not traced", "traced", "tracing", "timeline"];
    let mut rows = vec![heading.map(str::to_owned).to_vec()];
    for one in all {
        let (off, on) = (number(one.off.by(by)), number(one.on.by(by)));
        let cost = number(one.cost(by));
        rows.push(vec![
            one.graph.to_owned(),
            grouped(one.tasks),
            format!("{:.1}", one.events),
            off,
            on,
            cost,
            number(one.timeline(by)),
        ]);
    }
    format!(
        "\nA run with the times of its kernels, one OS thread, and the timeline that the host makes of it: ns a task, {} of the rounds\n{}",
        by.name(),
        aligned(&rows)
    )
}

/// The parts of what a runner executes.
fn parts(all: &[Counted], graphs: &[&str], runner: &str) -> Vec<Vec<String>> {
    let of = |graph: &&str| all.iter().find(|one| one.graph == *graph && one.runner == runner);
    let mut names: Vec<&str> = Vec::new();
    for (name, _) in graphs.iter().filter_map(of).flat_map(|one| &one.parts) {
        if !names.contains(name) {
            names.push(name);
        }
    }
    let rows = names.into_iter().map(|name| {
        let cell = |graph: &&str| {
            let part = of(graph)?.parts.iter().find(|(known, _)| *known == name);
            Some(part.map_or(0.0, |(_, instructions)| *instructions))
        };
        let cells: Vec<_> = graphs.iter().map(cell).collect();
        let mut row = row(&format!("  {name}"), &cells);
        // Of parts that some graphs do not have, there is no geometric mean.
        row.pop();
        row
    });
    rows.collect()
}

fn row(name: &str, cells: &[Option<f64>]) -> Vec<String> {
    let mut row = vec![name.to_owned()];
    row.extend(cells.iter().map(|cell| cell.map_or("-".to_owned(), number)));
    let known: Option<Vec<f64>> = cells.iter().copied().collect();
    let mean = known.filter(|_| !name.contains('%')).and_then(|known| geometric_mean(&known));
    row.push(mean.map_or(String::new(), number));
    row
}

/// Three digits where they mean something.
pub(super) fn number(value: f64) -> String {
    if value < 99.95 { format!("{value:.1}") } else { grouped_rounded(value) }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "ns a task")]
fn grouped_rounded(value: f64) -> String {
    grouped(value.round() as u32)
}

/// `1234567` as `1,234,567`.
pub(super) fn grouped(number: u32) -> String {
    Grouped(number.into()).to_string()
}

/// Columns as wide as their widest cell; the first flush left, the others flush right.
pub(super) fn aligned(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max()
    };
    let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or(0)).collect();
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
            let _ = match column {
                0 => write!(line, "  {cell:<width$}"),
                _ => write!(line, "  {cell:>width$}"),
            };
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{aligned, grouped, number};

    #[test]
    fn tables_are_aligned() {
        let rows = [vec!["a".into(), "1".into()], vec!["bcd".into(), "20".into()]];
        assert_eq!(aligned(&rows), "  a     1\n  bcd  20\n");
    }

    #[test]
    fn numbers_have_three_digits() {
        assert_eq!([3.12, 99.9, 100.4, 12_345.6].map(number), ["3.1", "99.9", "100", "12,346"]);
        assert_eq!([1, 1_000, 1_234_567].map(grouped), ["1", "1,000", "1,234,567"]);
    }
}
