//! Pictures read between their pixels, regions of pictures, and which regions to keep.

use pto_operators::{Binary, DType, Nary, Operator, Reduction, Tensor, Unary, ValueId, elements};

use super::builder::{Builder, one};
use super::call::{Call, NodeValue, Step, stop};

/// Points of a picture that an interpolation reads in each direction.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    Nearest,
    Linear,
    Cubic,
}

/// What stands outside of a picture.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Outside {
    Zeros,
    Border,
    Reflection,
}

/// Points that are read in a direction: for each its index, and its share.
type Points = Vec<(ValueId, ValueId)>;

/// A direction of a picture.
struct Direction {
    extent: usize,
    /// Where the picture ends.
    low: f64,
    high: f64,
}

impl Direction {
    fn new(extent: usize, align_corners: bool) -> Self {
        let last = extent as f64 - 1.0;
        let (low, high) = if align_corners { (0.0, last) } else { (-0.5, last + 0.5) };
        Self { extent, low, high }
    }

    fn with(b: &mut Builder<'_>, binary: Binary, x: ValueId, number: f64) -> Step<ValueId> {
        let number = b.scalar(DType::F64, number);
        b.binary(binary, x, number)
    }

    fn clamped(&self, b: &mut Builder<'_>, x: ValueId) -> Step<ValueId> {
        let x = Self::with(b, Binary::Max, x, 0.0)?;
        Self::with(b, Binary::Min, x, self.extent as f64 - 1.0)
    }

    /// As in a mirror at both ends.
    fn reflected(&self, b: &mut Builder<'_>, x: ValueId) -> Step<ValueId> {
        let range = self.high - self.low;
        if range == 0.0 {
            return self.clamped(b, x);
        }
        let x = Self::with(b, Binary::Sub, x, self.low)?;
        let x = b.unary(Unary::Abs, x)?;
        let x = Self::with(b, Binary::Mod, x, 2.0 * range)?;
        let x = Self::with(b, Binary::Sub, x, range)?;
        let x = b.unary(Unary::Abs, x)?;
        let high = b.scalar(DType::F64, self.high);
        b.difference(high, x)
    }

    fn inside(&self, b: &mut Builder<'_>, x: ValueId, outside: Outside) -> Step<ValueId> {
        match outside {
            Outside::Zeros => Ok(x),
            Outside::Border => self.clamped(b, x),
            Outside::Reflection => self.reflected(b, x),
        }
    }

    /// The points that are read at `x`.
    fn points(
        &self,
        b: &mut Builder<'_>,
        x: ValueId,
        (mode, outside): (Mode, Outside),
    ) -> Step<Points> {
        let x = if mode == Mode::Nearest { b.unary(Unary::Round, x)? } else { x };
        let x = self.inside(b, x, outside)?;
        let from = b.unary(Unary::Floor, x)?;
        let rest = b.difference(x, from)?;
        let steps = match mode {
            Mode::Nearest => 0..=0,
            Mode::Linear => 0..=1,
            Mode::Cubic => -1..=2,
        };
        let mut found = Vec::new();
        for step in steps {
            let distance = Self::with(b, Binary::Sub, rest, f64::from(step))?;
            let distance = b.unary(Unary::Abs, distance)?;
            let mut share = match mode {
                Mode::Nearest => b.filled(DType::F64, &b.shape(x), 1.0)?,
                Mode::Linear => {
                    let whole = b.scalar(DType::F64, 1.0);
                    b.difference(whole, distance)?
                }
                Mode::Cubic => cubic(b, distance, step == -1 || step == 2)?,
            };
            let at = Self::with(b, Binary::Add, from, f64::from(step))?;
            let held = self.inside(b, at, outside)?;
            let held = self.clamped(b, held)?;
            if outside == Outside::Zeros {
                let is_inside = b.binary(Binary::Equal, at, held)?;
                let zero = b.scalar(DType::F64, 0.0);
                share = b.add(Operator::Where, &[is_inside, share, zero])?;
            }
            // An index that is no number reads the first element; its share is no number either.
            found.push((b.cast(held, DType::I64)?, share));
        }
        Ok(found)
    }
}

/// The share of a point at a distance, by the cubic convolution with -0.75: within 1, or beyond.
fn cubic(b: &mut Builder<'_>, distance: ValueId, is_beyond: bool) -> Step<ValueId> {
    const A: f64 = -0.75;
    let terms =
        if is_beyond { [A, -5.0 * A, 8.0 * A, -4.0 * A] } else { [A + 2.0, -(A + 3.0), 0.0, 1.0] };
    let mut sum = b.filled(DType::F64, &b.shape(distance), 0.0)?;
    for term in terms {
        let scaled = b.product(sum, distance)?;
        sum = Direction::with(b, Binary::Add, scaled, term)?;
    }
    Ok(sum)
}

pub(super) fn grid_sample(b: &mut Builder<'_>, c: &Call<'_>) -> Step<Vec<NodeValue>> {
    let (x, grid) = (c.input(0)?, c.input(1)?);
    let mode = match c.text("mode", if c.version < 20 { "bilinear" } else { "linear" })?.as_str() {
        "nearest" => Mode::Nearest,
        "linear" | "bilinear" => Mode::Linear,
        "cubic" | "bicubic" => Mode::Cubic,
        other => {
            return stop(format!("attribute mode is '{other}'; use nearest, linear or cubic"));
        }
    };
    let outside = match c.text("padding_mode", "zeros")?.as_str() {
        "zeros" => Outside::Zeros,
        "border" => Outside::Border,
        "reflection" => Outside::Reflection,
        other => {
            return stop(format!(
                "attribute padding_mode is '{other}'; use zeros, border or reflection"
            ));
        }
    };
    let align_corners = c.flag("align_corners", false)?;
    let (shape, points) = (b.shape(x), b.shape(grid));
    let rank = shape.len();
    let dims = rank.saturating_sub(2);
    if !(1..=3).contains(&dims)
        || points.len() != rank
        || points[0] != shape[0]
        || points[rank - 1] != dims
    {
        return stop(format!(
            "the picture has the extents {shape:?}, and the grid {points:?}; give a picture of 1 to 3 dimensions behind batch and channel, and a grid of the same batch with a number for each dimension"
        ));
    }
    let (batch, channels) = (shape[0], shape[1]);
    let count = elements(&points[1..rank - 1]);
    let result = [&[batch, channels], &points[1..rank - 1]].concat();
    if elements(&shape[2..]) == 0 {
        return stop(format!("the picture has the extents {shape:?}, and no pixel to read"));
    }
    let grid = b.cast(grid, DType::F64)?;
    let grid = b.reshape(grid, &[batch, 1, count, dims])?;
    let mut reads = Vec::new();
    for (at, extent) in shape[2..].iter().enumerate() {
        // The last number of a point is that of the first dimension.
        let component = dims - 1 - at;
        let place = b.part(grid, 3, component, component + 1)?;
        let place = b.reshape(place, &[batch, 1, count])?;
        let place = Direction::with(b, Binary::Add, place, 1.0)?;
        let extent = *extent as f64;
        let place = if align_corners {
            Direction::with(b, Binary::Mul, place, (extent - 1.0) / 2.0)?
        } else {
            let place = Direction::with(b, Binary::Mul, place, extent / 2.0)?;
            Direction::with(b, Binary::Sub, place, 0.5)?
        };
        let direction = Direction::new(shape[2 + at], align_corners);
        reads.push(direction.points(b, place, (mode, outside))?);
    }
    let pixels = b.reshape(x, &[batch, channels, elements(&shape[2..])])?;
    let read = interpolated(b, pixels, (&reads, &shape[2..]), &[batch, channels, count])?;
    let read = b.cast(read, b.dtype(x))?;
    one(b.reshape(read, &result)?)
}

/// Pictures read between their pixels, in `f64`: the sum of the points of each direction, each with its share. The pixels of a picture stand in the last
/// dimension, as those that are read do in the result.
fn interpolated(
    b: &mut Builder<'_>,
    pixels: ValueId,
    (reads, extents): (&[Points], &[usize]),
    result: &[usize],
) -> Step<ValueId> {
    let axis = result.len() as i64 - 1;
    let mut sum: Option<ValueId> = None;
    for choice in 0..reads.iter().map(Vec::len).product() {
        let (mut rest, mut index, mut share) = (choice, None, None);
        for (points, extent) in reads.iter().zip(extents) {
            let (own, weight) = points[rest % points.len()];
            rest /= points.len();
            index = Some(match index {
                None => own,
                Some(index) => {
                    let extent = b.scalar(DType::I64, *extent as f64);
                    let row = b.product(index, extent)?;
                    b.sum(row, own)?
                }
            });
            share = Some(match share {
                None => weight,
                Some(share) => b.product(share, weight)?,
            });
        }
        let (Some(index), Some(share)) = (index, share) else { continue };
        let index = b.expand(index, result)?;
        let read = b.add(Operator::GatherElements { axis }, &[pixels, index])?;
        let read = b.cast(read, DType::F64)?;
        let term = b.product(read, share)?;
        sum = Some(match sum {
            None => term,
            Some(sum) => b.sum(sum, term)?,
        });
    }
    sum.map_or_else(|| stop("a picture without dimensions is not supported"), Ok)
}

/// A convolution whose window reads each of its points at a place of its own.
pub(super) fn deform_conv(b: &mut Builder<'_>, c: &Call<'_>) -> Step<Vec<NodeValue>> {
    let (x, weights, offsets) = (c.input(0)?, c.input(1)?, c.input(2)?);
    let (groups, offset_groups) = (c.count("group", 1)?, c.count("offset_group", 1)?);
    let [batch, channels, height, width] = b.shape(x)[..] else {
        return stop("input 0 has to have 4 dimensions; others are not supported");
    };
    let [made, each, rows, columns] = b.shape(weights)[..] else {
        return stop("input 1 has to have 4 dimensions");
    };
    let list = |name: &'static str, usual: &[usize]| -> Step<Vec<usize>> {
        let given = c.counts(name)?;
        if given.is_empty() { Ok(usual.to_vec()) } else { Ok(given) }
    };
    let kernel = list("kernel_shape", &[rows, columns])?;
    let (strides, dilations, pads) =
        (list("strides", &[1, 1])?, list("dilations", &[1, 1])?, list("pads", &[0; 4])?);
    let place = b.shape(offsets);
    let points = rows * columns;
    let fits = kernel == [rows, columns]
        && strides.len() == 2
        && dilations.len() == 2
        && pads.len() == 4
        && groups > 0
        && offset_groups > 0
        && each * groups == channels
        && channels % offset_groups == 0
        && made % groups == 0
        && place.len() == 4
        && place[..2] == [batch, offset_groups * points * 2]
        && height * width > 0;
    if !fits {
        return stop(format!(
            "the picture {:?}, the weights {:?}, the offsets {place:?} and the attributes do not fit one another",
            b.shape(x),
            b.shape(weights)
        ));
    }
    let outputs = [place[2], place[3]];
    let all = outputs[0] * outputs[1];
    if points.saturating_mul(all) > 1 << 26 {
        return stop(format!("{points} points at {all} places are too large"));
    }
    let offsets = b.cast(offsets, DType::F64)?;
    let offsets = b.reshape(offsets, &[batch, offset_groups, points, 2, all])?;
    let mut reads = Vec::new();
    for (at, extent) in [height, width].into_iter().enumerate() {
        let usual: Vec<f64> = (0..points * all)
            .map(|number| {
                let (point, place) = (number / all, number % all);
                let [point, place] = match at {
                    0 => [point / columns, place / outputs[1]],
                    _ => [point % columns, place % outputs[1]],
                };
                (place * strides[at] + point * dilations[at]) as f64 - pads[at] as f64
            })
            .collect();
        let usual = b.numbers(DType::F64, &[points * all], &usual)?;
        let offset = b.part(offsets, 3, at, at + 1)?;
        let offset = b.reshape(offset, &[batch, offset_groups, 1, points * all])?;
        let place = b.sum(offset, usual)?;
        let direction = Direction::new(extent, true);
        reads.push(direction.points(b, place, (Mode::Linear, Outside::Zeros))?);
    }
    let shared = channels / offset_groups;
    let pixels = b.reshape(x, &[batch, offset_groups, shared, height * width])?;
    let result = [batch, offset_groups, shared, points * all];
    let mut read = interpolated(b, pixels, (&reads, &[height, width]), &result)?;
    if let Some(mask) = c.optional(4)? {
        let mask = b.cast(mask, DType::F64)?;
        let mask = b.reshape(mask, &[batch, offset_groups, 1, points * all])?;
        read = b.product(read, mask)?;
    }
    let dtype = b.dtype(x);
    let read = b.cast(read, dtype)?;
    let read = b.reshape(read, &[batch, groups, each * points, all])?;
    let weights = b.reshape(weights, &[groups, made / groups, each * points])?;
    let sums = b.matmul(weights, read)?;
    let mut y = b.reshape(sums, &[batch, made, outputs[0], outputs[1]])?;
    if let Some(bias) = c.optional(3)? {
        let bias = b.reshape(bias, &[made, 1, 1])?;
        y = b.sum(y, bias)?;
    }
    one(y)
}

pub(super) fn affine_grid(b: &mut Builder<'_>, c: &Call<'_>) -> Step<Vec<NodeValue>> {
    let theta = c.input(0)?;
    let size = b.ints(c.input(1)?, "input 1 (size)")?;
    let align_corners = c.flag("align_corners", false)?;
    let size: Vec<usize> = size
        .iter()
        .map(|extent| usize::try_from(*extent).or_else(|_| stop(format!("an extent is {extent}"))))
        .collect::<Step<_>>()?;
    let dims = size.len().saturating_sub(2);
    if !(2..=3).contains(&dims) || b.shape(theta) != [size[0], dims, dims + 1] {
        return stop(format!(
            "theta has the extents {:?}, and the size is {size:?}; give [batch, 2, 3] for 4 extents, or [batch, 3, 4] for 5",
            b.shape(theta)
        ));
    }
    let all = elements(&size[2..]);
    if all > 1 << 24 {
        return stop(format!("a grid of {all} points is too large"));
    }
    let mut points = Vec::with_capacity(all * (dims + 1));
    for at in 0..all {
        let mut rest = at;
        for extent in size[2..].iter().rev() {
            let place = (rest % extent) as f64;
            rest /= extent;
            points.push(if align_corners {
                2.0 * place / (*extent as f64 - 1.0).max(1.0) - 1.0
            } else {
                (2.0 * place + 1.0) / *extent as f64 - 1.0
            });
        }
        points.push(1.0);
    }
    let dtype = b.dtype(theta);
    let points = b.numbers(dtype, &[all, dims + 1], &points)?;
    let turned = b.transpose(theta, &[0, 2, 1])?;
    let grid = b.matmul(points, turned)?;
    one(b.reshape(grid, &[&size[..1], &size[2..], &[dims]].concat())?)
}

/// A box as its corners: y, x, y, x.
fn corners(given: &[f64], is_centered: bool) -> [f64; 4] {
    let [a, d, e, f] = [given[0], given[1], given[2], given[3]];
    if is_centered {
        // x and y of the center, width and height.
        return [d - f / 2.0, a - e / 2.0, d + f / 2.0, a + e / 2.0];
    }
    [a.min(e), d.min(f), a.max(e), d.max(f)]
}

/// The part that two boxes share, of what both cover.
fn overlap(a: &[f64; 4], d: &[f64; 4]) -> f64 {
    let area = |of: &[f64; 4]| (of[2] - of[0]) * (of[3] - of[1]);
    let side = |at: usize| (a[at + 2].min(d[at + 2]) - a[at].max(d[at])).max(0.0);
    let shared = side(0) * side(1);
    if shared == 0.0 { 0.0 } else { shared / (area(a) + area(d) - shared) }
}

/// Which boxes to keep: how many there are depends on the values, so these have to be known.
pub(super) fn non_max_suppression(b: &mut Builder<'_>, c: &Call<'_>) -> Step<Vec<NodeValue>> {
    let boxes = b.known(c.input(0)?, "input 0 (boxes)")?;
    let scores = b.known(c.input(1)?, "input 1 (scores)")?;
    let is_centered = c.flag("center_point_box", false)?;
    let most = match c.optional(2)? {
        Some(most) => b.int(most, "input 2 (max_output_boxes_per_class)")?,
        None => 0,
    };
    let limit = |b: &Builder<'_>, at: usize| -> Step<Option<f64>> {
        c.optional(at)?.map(|value| b.double(value, "a threshold")).transpose()
    };
    let (most_overlap, least_score) = (limit(b, 3)?.unwrap_or(0.0), limit(b, 4)?);
    let (of_boxes, of_scores) = (boxes.shape().to_vec(), scores.shape().to_vec());
    let ([batch, count, 4], [score_batch, classes, score_count]) = (&of_boxes[..], &of_scores[..])
    else {
        return stop("inputs 0 and 1 have to be [batch, boxes, 4] and [batch, classes, boxes]");
    };
    if batch != score_batch || count != score_count || *count > 1 << 14 {
        return stop(format!(
            "the boxes are {of_boxes:?}, and the scores {of_scores:?}; both have the same batch and at most 16,384 boxes"
        ));
    }
    let (boxes, scores) = (boxes.to_doubles(), scores.to_doubles());
    let mut chosen: Vec<i64> = Vec::new();
    for (at, scores) in scores.chunks(count.max(&1).to_owned()).enumerate() {
        let (image, class) = (at / classes, at % classes);
        let place =
            |number: usize| corners(&boxes[4 * (image * count + number)..][..4], is_centered);
        let mut order: Vec<usize> = (0..*count)
            .filter(|number| least_score.is_none_or(|least| scores[*number] > least))
            .collect();
        order.sort_by(|a, d| scores[*d].total_cmp(&scores[*a]));
        let mut kept: Vec<usize> = Vec::new();
        for number in order {
            if kept.len() as i64 >= most {
                break;
            }
            let own = place(number);
            if kept.iter().all(|other| overlap(&place(*other), &own) <= most_overlap) {
                kept.push(number);
            }
        }
        chosen.extend(kept.iter().flat_map(|number| [image as i64, class as i64, *number as i64]));
    }
    let rows = chosen.len() / 3;
    let Some(found) = Tensor::from_elements(&[rows, 3], &chosen) else {
        return stop("there are too many boxes");
    };
    one(b.constant(found))
}

/// Where a region is read: indices of four pixels for each sample, with their shares.
struct Samples {
    indices: [Vec<f64>; 4],
    shares: [Vec<f64>; 4],
    /// Of a cell, at most.
    most: usize,
}

/// A region of a picture: its corners in pixels, and how many samples a cell has in each direction.
struct Region {
    start: [f64; 2],
    cell: [f64; 2],
    samples: [usize; 2],
}

impl Samples {
    fn new(regions: &[Region], cells: [usize; 2], picture: [usize; 2], is_max: bool) -> Self {
        let most = regions.iter().map(|region| region.samples[0] * region.samples[1]).max();
        let most = most.unwrap_or(1).max(1);
        let mut made = Self { indices: Default::default(), shares: Default::default(), most };
        for region in regions {
            let own = region.samples[0] * region.samples[1];
            for cell in 0..cells[0] * cells[1] {
                for sample in 0..most {
                    // A cell with fewer samples than others has its last one again: without a share in a mean, and without effect on a maximum.
                    let number = sample.min(own.saturating_sub(1));
                    let position = |at: usize| {
                        let (cell, number) = match at {
                            0 => (cell / cells[1], number / region.samples[1].max(1)),
                            _ => (cell % cells[1], number % region.samples[1].max(1)),
                        };
                        let part = (number as f64 + 0.5) / region.samples[at].max(1) as f64;
                        region.start[at] + (cell as f64 + part) * region.cell[at]
                    };
                    let weight = match (is_max, sample < own) {
                        (true, _) if own > 0 => 1.0,
                        (false, true) => 1.0 / own as f64,
                        _ => 0.0,
                    };
                    made.add([position(0), position(1)], picture, weight);
                }
            }
        }
        made
    }

    fn add(&mut self, place: [f64; 2], picture: [usize; 2], weight: f64) {
        let is_outside = (0..2).any(|at| place[at] < -1.0 || place[at] > picture[at] as f64);
        let side = |at: usize| {
            let place = place[at].max(0.0);
            let last = picture[at] as f64 - 1.0;
            if place.floor() >= last {
                (last, last, 0.0)
            } else {
                (place.floor(), place.floor() + 1.0, place.fract())
            }
        };
        let ((top, bottom, down), (left, right, across)) = (side(0), side(1));
        let pixels = [
            (top, left, (1.0 - down) * (1.0 - across)),
            (top, right, (1.0 - down) * across),
            (bottom, left, down * (1.0 - across)),
            (bottom, right, down * across),
        ];
        for (at, (row, column, share)) in pixels.into_iter().enumerate() {
            self.indices[at].push(if is_outside { 0.0 } else { row * picture[1] as f64 + column });
            self.shares[at].push(if is_outside { 0.0 } else { share * weight });
        }
    }
}

/// Regions of pictures in cells, each the mean or the maximum of samples between pixels.
pub(super) fn roi_align(b: &mut Builder<'_>, c: &Call<'_>) -> Step<Vec<NodeValue>> {
    let x = c.input(0)?;
    let rois = b.doubles(c.input(1)?, "input 1 (rois)")?;
    let batches = c.input(2)?;
    let is_max = match c.text("mode", "avg")?.as_str() {
        "avg" => false,
        "max" => true,
        other => return stop(format!("attribute mode is '{other}'; use avg or max")),
    };
    let half = c.version >= 16
        && match c.text("coordinate_transformation_mode", "half_pixel")?.as_str() {
            "half_pixel" => true,
            "output_half_pixel" => false,
            other => {
                return stop(format!(
                    "attribute coordinate_transformation_mode is '{other}'; use half_pixel or output_half_pixel"
                ));
            }
        };
    let cells = [c.count("output_height", 1)?, c.count("output_width", 1)?];
    let (ratio, scale) = (c.count("sampling_ratio", 0)?, c.float("spatial_scale", 1.0)?);
    let [_, channels, height, width] = b.shape(x)[..] else {
        return stop("input 0 has to have 4 dimensions");
    };
    let count = rois.len() / 4;
    if b.shape(batches) != [count] || b.shape(c.input(1)?) != [count, 4] || height * width == 0 {
        return stop(
            "inputs 1 and 2 have to be [regions, 4] and [regions], and the picture has pixels",
        );
    }
    let regions: Vec<Region> = rois
        .chunks_exact(4)
        .map(|roi| {
            let offset = if half { 0.5 } else { 0.0 };
            let ends = |at: usize| (roi[at] * scale - offset, roi[at + 2] * scale - offset);
            let sides = [ends(1), ends(0)];
            let extent =
                sides.map(|(from, to)| if half { to - from } else { (to - from).max(1.0) });
            let cell = [extent[0] / cells[0] as f64, extent[1] / cells[1] as f64];
            let samples = [0, 1].map(|at| {
                if ratio > 0 {
                    return ratio;
                }
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "a number of samples, which is clamped"
                )]
                let wanted = cell[at].ceil().clamp(0.0, 4096.0) as usize;
                wanted
            });
            Region { start: sides.map(|(from, _)| from), cell, samples }
        })
        .collect();
    let each = cells[0] * cells[1];
    let most =
        regions.iter().map(|region| region.samples[0] * region.samples[1]).max().unwrap_or(1);
    if count.saturating_mul(each).saturating_mul(most) > 1 << 24 {
        return stop("the regions have more than 16,777,216 samples");
    }
    let samples = Samples::new(&regions, cells, [height, width], is_max);
    let pictures = b.add(Operator::Gather { axis: 0 }, &[x, batches])?;
    let pixels = b.reshape(pictures, &[count, channels, height * width])?;
    let dtype = b.dtype(x);
    let flat = [count, 1, each * samples.most];
    let mut terms = Vec::new();
    for (indices, shares) in samples.indices.iter().zip(&samples.shares) {
        let index = b.numbers(DType::I64, &flat, indices)?;
        let index = b.expand(index, &[count, channels, each * samples.most])?;
        let read = b.add(Operator::GatherElements { axis: 2 }, &[pixels, index])?;
        let share = b.numbers(dtype, &flat, shares)?;
        terms.push(b.product(read, share)?);
    }
    // The maximum is that of the four terms, not of their sum: so says the specification's reference.
    let all = b.add(Operator::Nary(if is_max { Nary::Max } else { Nary::Sum }), &terms)?;
    let all = b.reshape(all, &[count, channels, cells[0], cells[1], samples.most])?;
    let reduction = if is_max { Reduction::Max } else { Reduction::Sum };
    one(b.reduce(reduction, all, &[4], false)?)
}
