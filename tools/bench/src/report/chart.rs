//! A panel with two logarithmic axes, for pictures of curves.

use std::fmt::Write as _;

/// Width and height of a panel.
pub const PANEL: (f64, f64) = (300.0, 210.0);
const MARGIN: (f64, f64) = (46.0, 30.0);

/// One panel's axes: from the logarithms of two numbers to places.
#[derive(Clone, Copy, Debug)]
pub struct Axes {
    /// Where the panel begins.
    pub left: f64,
    /// As above.
    pub top: f64,
    /// The least and the largest logarithm of what goes to the right.
    pub x: (f64, f64),
    /// Of what goes up.
    pub y: (f64, f64),
}

impl Axes {
    /// Where a point is.
    #[must_use]
    pub fn point(&self, x: f64, y: f64) -> (f64, f64) {
        let part =
            |value: f64, (from, to): (f64, f64)| (value.log10() - from) / (to - from).max(0.1);
        let (width, height) = (PANEL.0 - MARGIN.0 - 14.0, PANEL.1 - MARGIN.1 - 26.0);
        let right = self.left + MARGIN.0 + part(x, self.x) * width;
        (right, self.top + 22.0 + (1.0 - part(y, self.y)) * height)
    }
}

/// The whole decades around values, as logarithms.
#[must_use]
pub fn decades(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let (least, most) = values
        .fold((f64::INFINITY, 0.0_f64), |(least, most), value| (least.min(value), most.max(value)));
    (least.max(0.1).log10().floor(), most.max(1.0).log10().ceil())
}

/// Draws the lines of a panel, with their numbers and a title.
pub fn grid(svg: &mut String, axes: &Axes, title: &str) {
    let _ = writeln!(
        svg,
        "<text x=\"{:.0}\" y=\"{:.0}\" font-weight=\"bold\">{title}</text>",
        axes.left + MARGIN.0,
        axes.top + 14.0
    );
    let (from, to) = (10_f64.powf(axes.x.0), 10_f64.powf(axes.x.1));
    let (least, most) = (10_f64.powf(axes.y.0), 10_f64.powf(axes.y.1));
    for value in powers(axes.y) {
        let ((x, y), (end, _)) = (axes.point(from, value), axes.point(to, value));
        let _ = writeln!(
            svg,
            "<path d=\"M{x:.1} {y:.1}H{end:.1}\" stroke=\"#ddd\"/><text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\" fill=\"#555\">{}</text>",
            x - 4.0,
            y + 3.0,
            short(value)
        );
    }
    for value in powers(axes.x) {
        let ((x, y), (_, end)) = (axes.point(value, least), axes.point(value, most));
        let _ = writeln!(
            svg,
            "<path d=\"M{x:.1} {y:.1}V{end:.1}\" stroke=\"#eee\"/><text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\" fill=\"#555\">{}</text>",
            y + 12.0,
            short(value)
        );
    }
}

fn powers((from, to): (f64, f64)) -> impl Iterator<Item = f64> {
    let mut exponent = from - 1.0;
    std::iter::from_fn(move || {
        exponent += 1.0;
        (exponent <= to).then(|| 10_f64.powf(exponent))
    })
}

/// `1000000` as `1M`.
fn short(value: f64) -> String {
    match value {
        value if value >= 1e6 => format!("{}M", value / 1e6),
        value if value >= 1e3 => format!("{}k", value / 1e3),
        value => format!("{value}"),
    }
}

#[cfg(test)]
mod tests {
    use super::{decades, short};

    #[test]
    fn axes_have_whole_decades() {
        assert_eq!(decades([12.0, 340.0].into_iter()), (1.0, 3.0));
        assert_eq!([100.0, 1e3, 1e7].map(short), ["100", "1k", "10M"]);
    }
}
