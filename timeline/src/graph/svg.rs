//! A graph as a picture: a box for each AIC task, a rounded one for each AIV task, a colour for each kernel.

use std::fmt::Write;

use pto_abi::CoreKind;

use super::layout::Layout;
use super::{Graph, GraphError};
use crate::svg::COLOURS;
use crate::text::escaped;

const COLUMN: f64 = 26.0;
const ROW: f64 = 44.0;
const MARGIN: f64 = 30.0;
const BOX: (f64, f64) = (20.0, 14.0);

/// The picture.
///
/// # Errors
/// `TooLarge`, `Cycle`.
pub fn picture(graph: &Graph) -> Result<String, GraphError> {
    let layout = Layout::of(graph)?;
    #[expect(clippy::cast_precision_loss, reason = "columns and layers of a picture")]
    let (columns, layers) = (layout.columns.max(8) as f64, layout.layers.max(1) as f64);
    let (width, height) = (columns * COLUMN + 2.0 * MARGIN, layers * ROW + 2.0 * MARGIN + 20.0);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" width=\"{width:.0}\" \
         height=\"{height:.0}\" font-family=\"sans-serif\" font-size=\"7\">\n\
         <defs><marker id=\"to\" viewBox=\"0 0 6 6\" refX=\"6\" refY=\"3\" markerWidth=\"5\" markerHeight=\"5\" \
         orient=\"auto\"><path d=\"M0 0L6 3L0 6z\" fill=\"#667\"/></marker></defs>\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n"
    );
    let title = format!("{}: {} tasks, {} edges", graph.name, graph.tasks.len(), graph.edges.len());
    // Writing to a string does not fail.
    let _ =
        writeln!(svg, "<text x=\"{MARGIN}\" y=\"14\" font-size=\"11\">{}</text>", escaped(&title));
    for path in &layout.edges {
        let _ = writeln!(
            svg,
            "<path d=\"{}\" fill=\"none\" stroke=\"#667\" stroke-width=\".6\" marker-end=\"url(#to)\"/>",
            curve(path)
        );
    }
    for (slot, (place, (func, kind))) in layout.tasks.iter().zip(&graph.tasks).enumerate() {
        let (x, y) = point(*place);
        let round = if *kind == CoreKind::AIC { 0 } else { 6 };
        let _ = writeln!(
            svg,
            "<g><title>{} #{slot} ({kind})</title><rect x=\"{:.1}\" y=\"{:.1}\" width=\"{}\" height=\"{}\" rx=\"{round}\" \
             fill=\"{}\"/><text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\" fill=\"#fff\">{slot}</text></g>",
            escaped(&graph.kernel(*func)),
            x - BOX.0 / 2.0,
            y - BOX.1 / 2.0,
            BOX.0,
            BOX.1,
            colour(graph, *func),
            y + 2.5
        );
    }
    legend(graph, height - 10.0, &mut svg);
    Ok(svg + "</svg>\n")
}

#[expect(clippy::cast_precision_loss, reason = "layers of a picture")]
fn point((column, layer): (f64, usize)) -> (f64, f64) {
    (MARGIN + (column + 0.5) * COLUMN, MARGIN + (layer as f64 + 0.5) * ROW)
}

/// From below the producer to above the consumer, upright at every place on the way.
fn curve(path: &[(f64, usize)]) -> String {
    let last = path.len() - 1;
    let mut curve = String::new();
    let mut before = (0.0, 0.0);
    for (index, place) in path.iter().enumerate() {
        let (x, mut y) = point(*place);
        if index == 0 {
            y += BOX.1 / 2.0;
            let _ = write!(curve, "M{x:.1} {y:.1}");
        } else {
            y -= if index == last { BOX.1 / 2.0 } else { 0.0 };
            let half = (y - before.1) / 2.0;
            let (first, second) = (before.1 + half, y - half);
            let _ = write!(curve, "C{:.1} {first:.1} {x:.1} {second:.1} {x:.1} {y:.1}", before.0);
        }
        before = (x, y);
    }
    curve
}

fn colour(graph: &Graph, func_id: u16) -> &'static str {
    let place = graph.kernels.keys().position(|known| *known == func_id).unwrap_or(0);
    COLOURS[place % COLOURS.len()]
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
