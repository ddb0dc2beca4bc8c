//! A graph as a picture: a box for each AIC task, a rounded one for each AIV task, a colour for each kernel. A task with a shape has
//! marks: strips of its further kernels, a shadow for its blocks, a dashed rim for a predicate, a sign for its priority.

use std::fmt::Write;

use pto_abi::CoreKind;
use pto_graph::Priority;

use super::layout::GraphLayout;
use super::{Graph, GraphError};
use crate::timeline::graph::task::GraphTask;
use crate::timeline::svg::COLOURS;
use crate::timeline::text::{counted, escaped};

const ROW: f64 = 44.0;
const MARGIN: f64 = 30.0;
/// The height of a task.
const HEIGHT: f64 = 14.0;
/// The width of a task that shows its number, and of one that shows the longest name that is not cut.
const WIDTHS: (f64, f64) = (20.0, 84.0);
/// Between two tasks of a layer.
const GAP: f64 = 6.0;
/// The width of a picture without its margins, at least: the title fits.
const LEAST_WIDTH: f64 = 208.0;
/// The width of a letter.
const LETTER: f64 = 4.0;
/// Width of the strip of a task's further kernel.
const STRIP: f64 = 4.0;

/// The picture.
///
/// # Errors
/// `TooLarge`, `Cycle`.
pub fn picture(graph: &Graph) -> Result<String, GraphError> {
    let layout = GraphLayout::of(graph)?;
    let scale = Scale::of(graph);
    #[expect(clippy::cast_precision_loss, reason = "layers of a picture")]
    let (columns, layers) = (layout.columns, layout.layers.max(1) as f64);
    let marks = legend_of_marks(graph);
    let room = if marks.is_empty() { 20.0 } else { 32.0 };
    let width = (columns * scale.column()).max(LEAST_WIDTH) + 2.0 * MARGIN;
    let height = layers * ROW + 2.0 * MARGIN + room;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" width=\"{width:.0}\" \
         height=\"{height:.0}\" font-family=\"sans-serif\" font-size=\"7\">\n\
         <defs><marker id=\"to\" viewBox=\"0 0 6 6\" refX=\"6\" refY=\"3\" markerWidth=\"5\" markerHeight=\"5\" \
         orient=\"auto\"><path d=\"M0 0L6 3L0 6z\" fill=\"#667\"/></marker></defs>\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n"
    );
    let [tasks, edges] = [(graph.tasks.len(), "task"), (graph.edges.len(), "edge")]
        .map(|(count, what)| counted(count as u64, what));
    let title = format!("{}: {tasks}, {edges}", graph.name);
    // Writing to a string does not fail.
    let _ =
        writeln!(svg, "<text x=\"{MARGIN}\" y=\"14\" font-size=\"11\">{}</text>", escaped(&title));
    for path in &layout.edges {
        let _ = writeln!(
            svg,
            "<path d=\"{}\" fill=\"none\" stroke=\"#667\" stroke-width=\".6\" marker-end=\"url(#to)\"/>",
            scale.curve(path)
        );
    }
    for (slot, (position, task)) in layout.tasks.iter().zip(&graph.tasks).enumerate() {
        draw(graph, (slot, task), (scale, scale.point(*position)), &mut svg);
    }
    if !marks.is_empty() {
        let _ = writeln!(svg, "<text x=\"{MARGIN}\" y=\"{:.1}\">{marks}</text>", height - 22.0);
    }
    legend(graph, height - 10.0, &mut svg);
    Ok(svg + "</svg>\n")
}

/// One task, with its marks.
fn draw(
    graph: &Graph,
    (slot, task): (usize, &GraphTask),
    (scale, (x, y)): (Scale, (f64, f64)),
    svg: &mut String,
) {
    let (first, more) = graph.describe(slot, task);
    let title = [&[format!("{first} ({})", task.kind)], &more[..]].concat().join(", ");
    let round = if task.kind == CoreKind::AIC { 0 } else { 6 };
    let (left, top) = (x - scale.width / 2.0, y - HEIGHT / 2.0);
    let fill = colour(graph, task.func_id);
    let _ = write!(svg, "<g><title>{}</title>", escaped(&title));
    let mut rect = |left: f64, top: f64, width: f64, more: &str| {
        let _ = write!(
            svg,
            "<rect x=\"{left:.1}\" y=\"{top:.1}\" width=\"{width}\" height=\"{}\" {more}/>",
            HEIGHT
        );
    };
    if task.blocks > 1 {
        let shadow = format!("rx=\"{round}\" fill=\"{fill}\" opacity=\".45\"");
        rect(left + 2.5, top - 2.5, scale.width, &shadow);
    }
    let rim = if task.when.is_some() { " stroke=\"#222\" stroke-dasharray=\"2 1.5\"" } else { "" };
    rect(left, top, scale.width, &format!("rx=\"{round}\" fill=\"{fill}\"{rim}"));
    let mut strip = left + scale.width;
    for kernel in &task.mix {
        strip -= STRIP;
        rect(
            strip,
            top,
            STRIP,
            &format!("fill=\"{}\" stroke=\"#fff\" stroke-width=\".5\"", colour(graph, *kernel)),
        );
    }
    let sign = sign(task.priority);
    if !sign.is_empty() {
        let _ = write!(
            svg,
            "<text x=\"{:.1}\" y=\"{:.1}\" font-size=\"6\">{sign}</text>",
            left - 5.5,
            top + 5.0
        );
    }
    let middle = (left + strip) / 2.0;
    let label = label(slot, task, strip - left);
    let _ = writeln!(
        svg,
        "<text x=\"{middle:.1}\" y=\"{:.1}\" text-anchor=\"middle\" fill=\"#fff\">{}</text></g>",
        y + 2.5,
        escaped(&label)
    );
}

const fn sign(priority: Priority) -> &'static str {
    match priority {
        Priority::LOW => "\u{25BD}",
        Priority::HIGH => "\u{25B3}",
        Priority::URGENT => "\u{25B2}",
        _ => "",
    }
}

/// What the marks in a picture mean: of those that it has.
fn legend_of_marks(graph: &Graph) -> String {
    let has = |what: &dyn Fn(&GraphTask) -> bool| graph.tasks.iter().any(what);
    let marks = [
        (has(&|task| !task.mix.is_empty()), "strips: kernels on vector cores of its cluster"),
        (has(&|task| task.blocks > 1), "shadow: several blocks"),
        (has(&|task| task.when.is_some()), "dashed: runs if its predicate is true"),
        (
            has(&|task| task.priority != Priority::NORMAL),
            "\u{25B2} \u{25B3} \u{25BD}: urgent, high, low priority",
        ),
    ];
    let marks: Vec<_> = marks.into_iter().filter_map(|(has, mark)| has.then_some(mark)).collect();
    marks.join("; ")
}

/// The label of a task: its name as far as there is room, or its number.
fn label(slot: usize, task: &GraphTask, width: f64) -> String {
    let Some(name) = &task.name else { return slot.to_string() };
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a few letters")]
    let letters = (width / LETTER - 1.0).max(1.0) as usize;
    if name.chars().count() <= letters {
        return name.clone();
    }
    name.chars().take(letters - 1).chain(['\u{2026}']).collect()
}

/// How large everything is: tasks with names are wider than those with numbers alone.
#[derive(Clone, Copy)]
struct Scale {
    width: f64,
}

impl Scale {
    fn of(graph: &Graph) -> Self {
        let names = graph.tasks.iter().filter_map(|task| task.name.as_ref());
        let longest = names.map(|name| name.chars().count()).max().unwrap_or(0);
        #[expect(clippy::cast_precision_loss, reason = "the length of a name")]
        let width = (longest + 1) as f64 * LETTER;
        Self { width: width.clamp(WIDTHS.0, WIDTHS.1) }
    }

    fn column(self) -> f64 {
        self.width + GAP
    }

    #[expect(clippy::cast_precision_loss, reason = "layers of a picture")]
    fn point(self, (column, layer): (f64, usize)) -> (f64, f64) {
        (MARGIN + (column + 0.5) * self.column(), MARGIN + (layer as f64 + 0.5) * ROW)
    }

    /// From below the producer to above the consumer, vertical at every node on the way.
    fn curve(self, path: &[(f64, usize)]) -> String {
        let last = path.len() - 1;
        let mut curve = String::new();
        let mut before = (0.0, 0.0);
        for (index, node) in path.iter().enumerate() {
            let (x, mut y) = self.point(*node);
            if index == 0 {
                y += HEIGHT / 2.0;
                let _ = write!(curve, "M{x:.1} {y:.1}");
            } else {
                y -= if index == last { HEIGHT / 2.0 } else { 0.0 };
                let half = (y - before.1) / 2.0;
                let (first, second) = (before.1 + half, y - half);
                let _ =
                    write!(curve, "C{:.1} {first:.1} {x:.1} {second:.1} {x:.1} {y:.1}", before.0);
            }
            before = (x, y);
        }
        curve
    }
}

fn colour(graph: &Graph, func_id: u16) -> &'static str {
    let index = graph.kernels.keys().position(|known| *known == func_id).unwrap_or(0);
    COLOURS[index % COLOURS.len()]
}

fn legend(graph: &Graph, y: f64, svg: &mut String) {
    let mut x = MARGIN;
    for (func, name) in &graph.kernels {
        let _ = writeln!(
            svg,
            "<rect x=\"{x:.1}\" y=\"{:.1}\" width=\"7\" height=\"7\" fill=\"{}\"/><text x=\"{:.1}\" y=\"{y:.1}\">{}</text>",
            y - 6.5,
            colour(graph, *func),
            x + 10.0,
            escaped(name)
        );
        #[expect(clippy::cast_precision_loss, reason = "the length of a name")]
        let width = name.len() as f64 * 4.0 + 20.0;
        x += width;
    }
}
