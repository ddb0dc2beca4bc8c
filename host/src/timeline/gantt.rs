//! A compact chart for a terminal: a line for each core, or for a few together, darker where they are busier.

use pto_abi::CoreKind;

use crate::timeline::model::Trace;
use crate::timeline::text::{percent, time};

/// Lines for the cores of one kind, at most.
const LINES_A_KIND: usize = 12;
const SHADES: [char; 5] = ['·', '░', '▒', '▓', '█'];

/// Right of the times: two blanks, and a share such as `100.0 %`.
const SHARE: usize = 9;

/// How many characters of a line are no time: the names of its cores, two blanks, and the share.
#[must_use]
pub fn margin(trace: &Trace) -> usize {
    label_width(&lines(trace)) + 2 + SHARE
}

/// The chart, `columns` characters of time wide (at least 10).
#[must_use]
pub fn chart(trace: &Trace, columns: usize) -> String {
    let columns = columns.max(10);
    let span = trace.end_ns.max(1);
    let lines = lines(trace);
    let label_width = label_width(&lines);
    let mut text = String::new();
    if let Some(fault) = trace.fault_text() {
        text += &format!("ended by the fault {fault}\n");
    }
    text += &format!("{:label_width$}  0{:>width$}\n", "", time(span), width = columns - 1);
    for (label, group) in lines {
        let (shades, busy) = shades(trace, &group, columns, span);
        let share = percent(busy, span * group.len() as u64);
        text += &format!("{label:<label_width$}  {shades}  {share}\n");
    }
    text
}

/// The lines: what each is called, and its cores.
fn lines(trace: &Trace) -> Vec<(String, Vec<u32>)> {
    let mut lines = Vec::new();
    for kind in CoreKind::ALL {
        let workers: Vec<u32> = (0_u32..)
            .zip(&trace.cores)
            .filter(|(_, core)| *core == kind)
            .map(|(worker, _)| worker)
            .collect();
        let together = workers.len().div_ceil(LINES_A_KIND).max(1);
        for (index, group) in workers.chunks(together).enumerate() {
            let first = index * together;
            let kind = trace.kind_name(*kind);
            let label = match group {
                [row] => trace.core_name(*row),
                group => format!("{kind} {first}-{}", first + group.len() - 1),
            };
            lines.push((label, group.to_vec()));
        }
    }
    lines
}

fn label_width(lines: &[(String, Vec<u32>)]) -> usize {
    lines.iter().map(|(label, _)| label.chars().count()).max().unwrap_or(0)
}

/// The shading of one row for a set of cores, and the time that these cores spent in kernels.
fn shades(trace: &Trace, workers: &[u32], columns: usize, span: u64) -> (String, u64) {
    let mut busy = vec![0_u64; columns];
    // Borders between columns, so that nothing is lost to rounding.
    let border = |column: usize| u128_to_u64(u128::from(span) * column as u128 / columns as u128);
    let runs = trace.runs().map(|run| run.run);
    let spans = runs.filter(|task| task.core.is_some_and(|core| workers.contains(&core)));
    for (start, end) in spans.filter_map(crate::timeline::model::Task::span) {
        let first = u128_to_u64(u128::from(start) * columns as u128 / u128::from(span));
        let mut column = usize::try_from(first).unwrap_or(0).min(columns - 1).saturating_sub(1);
        while column < columns && border(column) < end {
            let overlap = end.min(border(column + 1)).saturating_sub(start.max(border(column)));
            busy[column] += overlap;
            column += 1;
        }
    }
    let shade = |(column, busy): (usize, &u64)| {
        let whole = (border(column + 1) - border(column)).max(1) * workers.len() as u64;
        let level = if *busy == 0 { 0 } else { 1 + busy * 3 / whole };
        SHADES[usize::try_from(level).unwrap_or(0).min(SHADES.len() - 1)]
    };
    (busy.iter().enumerate().map(shade).collect(), busy.iter().sum())
}

fn u128_to_u64(value: u128) -> u64 {
    u64::try_from(value).unwrap_or(u64::MAX)
}
