//! A static picture of a run, for documents: lanes, a colour for each kernel, the chain that the last task
//! waited for.

use std::fmt::Write;

use crate::timeline::analysis::Analysis;
use crate::timeline::model::{CoreRun, Trace};
use crate::timeline::text::{counted, escaped, time};

const WIDTH: f64 = 1200.0;
const LEFT: f64 = 70.0;
const TOP: f64 = 34.0;
const LANE: f64 = 12.0;
const GAP: f64 = 2.0;
/// From one line of the header to the next, and how many letters fit one.
const HEADER_LINE: f64 = 13.0;
const HEADER_LETTERS: usize = 190;
/// Narrower than this, neighbours of one kernel are drawn as one.
const NARROW: f64 = 0.4;

/// Colours for kernels, by the order of their func ids (Okabe and Ito's eight, without black, and lighter ones).
pub(crate) const COLOURS: [&str; 12] = [
    "#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#b8a400", "#7a5195",
    "#8fbcbb", "#a3be8c", "#b48ead", "#d08770",
];

pub(crate) fn colour(trace: &Trace, func_id: u16) -> &'static str {
    let index = trace.kernels.keys().position(|known| *known == func_id).unwrap_or(0);
    COLOURS[index % COLOURS.len()]
}

/// The picture.
#[must_use]
pub fn picture(trace: &Trace, analysis: &Analysis) -> String {
    let lanes = trace.cores.len();
    #[expect(clippy::cast_precision_loss, reason = "a few thousand lanes")]
    let bottom = TOP + lanes as f64 * (LANE + GAP);
    let header = header(trace);
    #[expect(clippy::cast_precision_loss, reason = "a few lines")]
    let lower = HEADER_LINE * (header.len() - 1) as f64;
    let height = bottom + 40.0 + lower;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" height=\"{height}\" \
         font-family=\"sans-serif\" font-size=\"10\">\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n"
    );
    let mut y = 12.0;
    for line in &header {
        // Writing to a string does not fail.
        let _ = writeln!(svg, "<text x=\"{LEFT}\" y=\"{y}\">{}</text>", escaped(line));
        y += HEADER_LINE;
    }
    let _ = writeln!(svg, "<g transform=\"translate(0 {lower})\">");
    axis(trace, bottom, &mut svg);
    for (worker, _) in (0_u32..).zip(&trace.cores) {
        let y = lane_top(worker);
        let _ = writeln!(
            svg,
            "<text x=\"4\" y=\"{:.1}\">{}</text><rect x=\"{LEFT}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{LANE}\" fill=\"#f2f2f2\"/>",
            y + LANE - 2.0,
            trace.core_name(worker),
            WIDTH - LEFT - 10.0
        );
    }
    tasks(trace, &mut svg);
    chain(trace, analysis, &mut svg);
    fault(trace, &mut svg);
    legend(trace, bottom + 28.0, &mut svg);
    svg += "</g>\n</svg>\n";
    svg
}

/// Size and facts, in as many lines as they need; at least one. A fact that is longer than a line has one of its own.
fn header(trace: &Trace) -> Vec<String> {
    let ended = trace.fault_text().map(|fault| format!(", ended by the fault {fault}"));
    let size =
        format!("{} in {}", counted(trace.tasks.len() as u64, "task"), time(trace.graph_ns()));
    let mut lines = vec![size + &ended.unwrap_or_default()];
    let mut gap = "; ";
    for (name, fact) in &trace.run {
        let fact = format!("{name}: {fact}");
        match lines.last_mut() {
            Some(line) if line.len() + gap.len() + fact.len() <= HEADER_LETTERS => {
                *line += gap;
                *line += &fact;
            }
            _ => lines.push(fact),
        }
        gap = ", ";
    }
    lines
}

/// The core and the task that a fault concerns, in red.
fn fault(trace: &Trace, svg: &mut String) {
    let Some(fault) = &trace.fault else { return };
    let stroke = "fill=\"none\" stroke=\"#d1242f\" stroke-width=\"2\"";
    let mut outline = |x: f64, y: f64, width: f64| {
        let _ = writeln!(
            svg,
            "<rect class=\"fault\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{LANE}\" {stroke}/>"
        );
    };
    if let Some(core) = fault.core {
        outline(LEFT, lane_top(core), WIDTH - LEFT - 10.0);
    }
    let runs = trace.runs().filter(|run| Some(run.task) == fault.task).map(|run| run.run);
    for (core, start, end) in runs.filter_map(|run| {
        let start = run.at.started.or(run.at.dispatched)?;
        Some((run.core?, start, run.at.finished.unwrap_or(trace.end_ns)))
    }) {
        let (left, right) = (x_of(trace, start), x_of(trace, end));
        outline(left, lane_top(core), (right - left).max(3.0));
    }
}

fn lane_top(worker: u32) -> f64 {
    TOP + f64::from(worker) * (LANE + GAP)
}

#[expect(clippy::cast_precision_loss, reason = "a pixel has room for it")]
fn x_of(trace: &Trace, at: u64) -> f64 {
    LEFT + (WIDTH - LEFT - 10.0) * at as f64 / trace.end_ns.max(1) as f64
}

fn axis(trace: &Trace, bottom: f64, svg: &mut String) {
    for tenth in 0..=10 {
        let at = trace.end_ns / 10 * tenth;
        let x = x_of(trace, at);
        let anchor = if tenth == 10 { "end" } else { "middle" };
        let _ = writeln!(
            svg,
            "<path d=\"M{x:.1} {TOP}V{bottom:.1}\" stroke=\"#ddd\"/><text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"{anchor}\">{}</text>",
            TOP - 5.0,
            time(at)
        );
    }
}

/// One rectangle a task, or a part of one; where tasks are narrower than can be seen, one for all of a kernel in a row.
fn tasks(trace: &Trace, svg: &mut String) {
    let runs = trace.runs();
    let mut order: Vec<CoreRun<'_>> =
        runs.filter(|CoreRun { run, .. }| run.span().is_some() && run.core.is_some()).collect();
    order.sort_by_key(|CoreRun { run, .. }| (run.core, run.at.started));
    let mut open: Option<Block> = None;
    for CoreRun { task, run, .. } in order {
        let (Some((start, end)), Some(core)) = (run.span(), run.core) else { continue };
        let (from, to) = (x_of(trace, start), x_of(trace, end));
        match &mut open {
            Some(block)
                if block.core == core
                    && block.func_id == run.func_id
                    && to - from < NARROW
                    && from - block.to < NARROW =>
            {
                (block.to, block.alone) = (to, None);
            }
            _ => {
                flush(trace, open.take(), svg);
                open = Some(Block { core, func_id: run.func_id, alone: Some(task), from, to });
            }
        }
    }
    flush(trace, open, svg);
}

/// What is drawn as one: a task, or narrow neighbours of one kernel.
struct Block {
    core: u32,
    func_id: u16,
    /// The task; `None`: there are several.
    alone: Option<u32>,
    from: f64,
    to: f64,
}

fn flush(trace: &Trace, block: Option<Block>, svg: &mut String) {
    let Some(Block { core, func_id: func, alone, from, to }) = block else { return };
    let called = alone.map_or_else(|| trace.kernel(func), |task| trace.called(task, func));
    let (y, width) = (lane_top(core), (to - from).max(0.7));
    let fill = colour(trace, func);
    let _ = writeln!(
        svg,
        "<rect x=\"{from:.2}\" y=\"{y:.1}\" width=\"{width:.2}\" height=\"{LANE}\" fill=\"{fill}\"><title>{}</title></rect>",
        escaped(&called)
    );
}

fn chain(trace: &Trace, analysis: &Analysis, svg: &mut String) {
    let mut path = String::new();
    for link in &analysis.chain.links {
        let Some(task) = trace.task(link.task) else { continue };
        let (Some((start, end)), Some(core)) = (task.span(), task.core) else { continue };
        let middle = lane_top(core) + LANE / 2.0;
        let step = if path.is_empty() { 'M' } else { 'L' };
        let _ = write!(path, "{step}{:.1} {middle:.1}H{:.1}", x_of(trace, start), x_of(trace, end));
    }
    if !path.is_empty() {
        let _ = writeln!(
            svg,
            "<path d=\"{path}\" fill=\"none\" stroke=\"#d00\" stroke-width=\"1.5\"/>"
        );
    }
}

fn legend(trace: &Trace, y: f64, svg: &mut String) {
    let mut x = LEFT;
    let chain = ("#d00".to_owned(), "what the last task waited for".to_owned());
    let kernels =
        trace.kernels.iter().map(|(func, name)| (colour(trace, *func).to_owned(), name.clone()));
    for (fill, name) in kernels.chain([chain]) {
        let _ = writeln!(
            svg,
            "<rect x=\"{x:.1}\" y=\"{:.1}\" width=\"9\" height=\"9\" fill=\"{fill}\"/><text x=\"{:.1}\" y=\"{y:.1}\">{}</text>",
            y - 8.0,
            x + 12.0,
            escaped(&name)
        );
        #[expect(clippy::cast_precision_loss, reason = "the length of a name")]
        let width = name.len() as f64 * 6.0 + 28.0;
        x += width;
    }
}
