//! The picture of `pto bench collectives`: the time of a call and the bus bandwidth over the size, both logarithmic.

use std::fmt::Write as _;
use std::time::Duration;

use pto_bench::report::chart::{Axes, PANEL, decades, grid};
use pto_host::timeline::text::escaped;

use super::comm_table::{CommRow, Head, bus_factor};

/// Ours, and MPI's own.
const COLOURS: [&str; 2] = ["#d55e00", "#0072b2"];

/// Of what a curve is, and its points: the size, and the value.
type Curve = (&'static str, Vec<(f64, f64)>);

/// The picture. A size whose time is too short to be measured has no point.
pub(crate) fn picture((collective, group_name, ranks): Head<'_>, rows: &[CommRow]) -> String {
    let points = |of: &dyn Fn(&CommRow) -> Option<f64>| {
        let point = |row: &CommRow| Some((row.bytes as f64, of(row).filter(|value| *value > 0.0)?));
        rows.iter().filter_map(point).collect::<Vec<_>>()
    };
    let micros = |time: Duration| time.as_secs_f64() * 1e6;
    let factor = bus_factor(collective, ranks);
    let times = [
        (collective.name(), points(&|row| Some(micros(row.time)))),
        ("MPI_Allreduce", points(&|row| row.mpi.map(micros))),
    ];
    let bandwidth = [(collective.name(), points(&|row| row.bandwidth().map(|gb| gb * factor)))];
    let (width, height) = (2.0 * PANEL.0, PANEL.1 + 40.0);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" \
         height=\"{height}\" font-family=\"sans-serif\" font-size=\"10\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n"
    );
    panel(&mut svg, 0.0, "time of a call, us", &times);
    panel(&mut svg, PANEL.0, "bus bandwidth, GB/s", &bandwidth);
    for (at, ((name, _), colour)) in times.iter().zip(COLOURS).enumerate() {
        let (x, y) = (14.0 + 150.0 * at as f64, PANEL.1 + 12.0);
        if !times[at].1.is_empty() {
            let _ = writeln!(
                svg,
                "<path d=\"M{x} {y}h18\" stroke=\"{colour}\" stroke-width=\"2\"/><text x=\"{}\" y=\"{}\">{name}</text>",
                x + 24.0,
                y + 3.0
            );
        }
    }
    let _ = writeln!(
        svg,
        "<text x=\"14\" y=\"{}\" fill=\"#555\">over bytes; f32, {}</text>\n</svg>",
        height - 8.0,
        escaped(group_name)
    );
    svg
}

fn panel(svg: &mut String, left: f64, title: &str, curves: &[Curve]) {
    let all = || curves.iter().flat_map(|(_, points)| points.iter().copied());
    let (x, y) = (decades(all().map(|(x, _)| x)), decades(all().map(|(_, y)| y)));
    let axes = Axes { left, top: 0.0, x, y };
    grid(svg, &axes, title);
    for ((name, points), colour) in curves.iter().zip(COLOURS) {
        let places: Vec<_> = points.iter().map(|(x, y)| axes.point(*x, *y)).collect();
        let line: Vec<_> = places.iter().map(|(x, y)| format!("{x:.1} {y:.1}")).collect();
        if line.is_empty() {
            continue;
        }
        let _ = writeln!(
            svg,
            "<path d=\"M{}\" stroke=\"{colour}\" stroke-width=\"2\" fill=\"none\"><title>{name}</title></path>",
            line.join("L")
        );
        for (x, y) in places {
            let _ =
                writeln!(svg, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"2\" fill=\"{colour}\"/>");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::picture;
    use crate::group::comm_table::CommRow;
    use pto_graph::group::Collective;
    use std::time::Duration;

    #[test]
    fn a_picture_has_a_curve_for_each_and_a_point_for_each_size() {
        let row =
            |bytes: u64, mpi| CommRow { bytes, time: Duration::from_micros(bytes), wrong: 0, mpi };
        let head = (Collective::ALL_REDUCE, "2 ranks of <an MPI>", 2);
        let alone = picture(head, &[row(1 << 10, None), row(1 << 20, None), row(0, None)]);
        assert_eq!(alone.matches("<circle").count(), 2 * 2, "{alone}");
        assert!(!alone.contains("MPI_Allreduce") && alone.contains("&lt;an MPI&gt;"), "{alone}");
        let plotted = picture(head, &[row(1 << 10, Some(Duration::from_micros(7)))]);
        assert_eq!(plotted.matches("<circle").count(), 3, "{plotted}");
        assert!(plotted.contains("<title>MPI_Allreduce</title>") && !plotted.contains("NaN"));
    }
}
