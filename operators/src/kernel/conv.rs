//! Convolutions: columns of the input that the windows cover, packed, times the weights; depthwise ones and transposed ones in ways of their own.
//!
//! A unit is a block of output channels and a block of pixels of one image and group (of a depthwise one a channel, of a transposed one a block of channels).

use super::memory::{In, Out};
use super::product::{Packed, Sum, converted};
use crate::element::with_type;
use crate::infer::Geometry;
use crate::operator::Epilogue;

/// Output channels of a unit.
const CHANNELS: usize = 64;
/// Elements of the packed columns of a unit, about.
const PACKED: usize = 1 << 17;

/// A convolution, with three spatial dimensions.
#[derive(Clone, Debug)]
pub(crate) struct Conv {
    pub(crate) groups: usize,
    /// Channels of a group, in and out.
    pub(crate) channels: [usize; 2],
    pub(crate) images: usize,
    pub(crate) input: [usize; 3],
    pub(crate) output: [usize; 3],
    pub(crate) kernel: [usize; 3],
    strides: [usize; 3],
    dilations: [usize; 3],
    begins: [i64; 3],
}

/// Three numbers, with `fill` in front.
fn three<T: Copy>(numbers: &[T], fill: T) -> [T; 3] {
    let mut three = [fill; 3];
    let missing = 3_usize.saturating_sub(numbers.len());
    three.iter_mut().skip(missing).zip(numbers).for_each(|(to, from)| *to = *from);
    three
}

impl Conv {
    pub(crate) fn of(
        geometry: &Geometry,
        groups: usize,
        images: usize,
        channels: [usize; 2],
    ) -> Self {
        Self {
            groups,
            channels: channels.map(|channels| channels / groups.max(1)),
            images,
            input: three(&geometry.input, 1),
            output: three(&geometry.spatial, 1),
            kernel: three(&geometry.kernel, 1),
            strides: three(&geometry.strides, 1),
            dilations: three(&geometry.dilations, 1),
            begins: three(&geometry.begins, 0),
        }
    }

    pub(crate) fn pixels(&self) -> usize {
        self.output.iter().product()
    }

    /// Products of an output element.
    pub(crate) fn depth(&self) -> usize {
        self.channels[0] * self.taps()
    }

    fn taps(&self) -> usize {
        self.kernel.iter().product()
    }

    pub(crate) const fn is_depthwise(&self) -> bool {
        self.channels[0] == 1 && self.channels[1] == 1
    }

    /// Pixels of a unit.
    pub(crate) fn pixel_block(&self) -> usize {
        (PACKED / self.depth().max(1) / 32 * 32).clamp(32, 512)
    }

    pub(crate) fn channel_blocks(&self) -> usize {
        self.channels[1].div_ceil(CHANNELS)
    }

    /// Units of one image.
    pub(crate) fn units_of_image(&self) -> usize {
        if self.is_depthwise() {
            return self.groups;
        }
        self.groups * self.pixels().div_ceil(self.pixel_block()) * self.channel_blocks()
    }

    /// Elements of the input that the windows of neighbouring blocks of pixels share.
    pub(crate) fn halo(&self) -> usize {
        let beyond = |dim: usize| (self.kernel[dim].max(1) - 1).saturating_mul(self.dilations[dim]);
        let elements = beyond(1).saturating_mul(self.input[2]).saturating_add(beyond(2));
        self.channels[0].saturating_mul(elements)
    }

    /// Where the window of an output index meets the input, at a tap.
    const fn place(&self, dim: usize, index: usize, tap: usize) -> i64 {
        (index * self.strides[dim] + tap * self.dilations[dim]).cast_signed() as i64
            - self.begins[dim]
    }

    fn inside(&self, dim: usize, place: i64) -> Option<usize> {
        usize::try_from(place).ok().filter(|place| *place < self.input[dim])
    }

    /// The output columns whose window meets the input, at a tap of the innermost dimension: from, to.
    fn columns(&self, tap: usize) -> (usize, usize) {
        let stride = self.strides[2].cast_signed() as i64;
        let offset = (tap * self.dilations[2]).cast_signed() as i64 - self.begins[2];
        let extent = self.input[2].cast_signed() as i64;
        // offset + x stride is in 0 .. extent.
        let from = if offset >= 0 { 0 } else { (-offset + stride - 1) / stride };
        let to = if extent <= offset { 0 } else { (extent - offset + stride - 1) / stride };
        let clamp = |x: i64| usize::try_from(x).unwrap_or(0).min(self.output[2]);
        (clamp(from), clamp(to).max(clamp(from)))
    }
}

/// Runs units of a convolution.
pub(crate) fn run(
    conv: &Conv,
    inputs: [Option<&In<'_>>; 3],
    epilogue: &Epilogue,
    output: &mut Out<'_>,
    units: (usize, usize),
) {
    match output.ty.dtype {
        crate::DType::F64 => typed::<f64>(conv, inputs, epilogue, output, units),
        _ => typed::<f32>(conv, inputs, epilogue, output, units),
    }
}

fn typed<S: Sum>(
    conv: &Conv,
    [x, weights, bias]: [Option<&In<'_>>; 3],
    epilogue: &Epilogue,
    output: &mut Out<'_>,
    units: (usize, usize),
) {
    let (Some(x), Some(weights)) = (x, weights) else { return };
    let (x, weights, bias) = (converted::<S>(x), converted::<S>(weights), bias.map(converted::<S>));
    let bias_of = |channel: usize| bias.as_ref().map(|bias| bias[channel]);
    let (pixels, image) = (conv.pixels(), conv.units_of_image());
    let plane: usize = conv.input.iter().product();
    let [in_channels, out_channels] = conv.channels;
    let depth = conv.depth();
    if conv.is_depthwise() {
        let mut plane_out = vec![S::default(); pixels];
        for unit in units.0..units.0 + units.1 {
            let channel = unit % image;
            let from = &x[unit * plane..(unit + 1) * plane];
            depthwise(
                conv,
                from,
                &weights[channel * depth..(channel + 1) * depth],
                bias_of(channel),
                &mut plane_out,
            );
            S::finish(epilogue, &mut plane_out);
            store(&plane_out, output, unit * pixels);
        }
        return;
    }
    let (mut sums, mut row) = (Vec::new(), Vec::new());
    let mut packed: Option<(usize, Packed<S>)> = None;
    let (blocks, width) = (conv.channel_blocks(), conv.pixel_block());
    let pixel_blocks = pixels.div_ceil(width);
    for unit in units.0..units.0 + units.1 {
        // Blocks of channels are inner, so that packed columns serve several.
        let (columns, channel_block) = (unit / blocks, unit % blocks);
        let (group_of_image, pixel_block) = (columns / pixel_blocks, columns % pixel_blocks);
        let (number, group) = (group_of_image / conv.groups, group_of_image % conv.groups);
        let first = pixel_block * width;
        let count = width.min(pixels - first);
        if packed.as_ref().is_none_or(|(of, _)| *of != columns) {
            let channels = (number * conv.groups + group) * in_channels * plane;
            let from = &x[channels..channels + in_channels * plane];
            let mut fresh = match packed.take() {
                Some((_, old)) if old.width == count => old,
                _ => Packed::new(depth, count),
            };
            gather(conv, from, (first, count), &mut row, &mut fresh);
            packed = Some((columns, fresh));
        }
        let Some((_, packed)) = &packed else { return };
        let channel = channel_block * CHANNELS;
        let channels = CHANNELS.min(out_channels - channel);
        let first_channel = group * out_channels + channel;
        packed.times(
            &weights[first_channel * depth..(first_channel + channels) * depth],
            channels,
            depth,
            &mut sums,
        );
        let stride = packed.stride();
        for (at, sums) in sums.chunks_exact_mut(stride).enumerate() {
            let sums = &mut sums[..count];
            if let Some(bias) = bias_of(first_channel + at) {
                sums.iter_mut().for_each(|sum| *sum = sum.add(bias));
            }
            S::finish(epilogue, sums);
            let to = (number * conv.groups * out_channels + first_channel + at) * pixels + first;
            store(sums, output, to);
        }
    }
}

fn store<S: Sum>(sums: &[S], output: &mut Out<'_>, at: usize) {
    with_type!(output.ty.dtype, T => {
        output.elements::<T>(at, sums.len()).iter_mut().zip(sums).for_each(|(to, sum)| *to = sum.to());
    });
}

/// Packs what the windows of so many pixels cover.
fn gather<S: Sum>(
    conv: &Conv,
    x: &[S],
    (first, count): (usize, usize),
    row: &mut Vec<S>,
    packed: &mut Packed<S>,
) {
    let [_, height, width] = conv.input;
    let [_, out_height, out_width] = conv.output;
    let plane: usize = conv.input.iter().product();
    let is_plain = conv.taps() == 1
        && conv.strides == [1; 3]
        && conv.begins == [0; 3]
        && conv.input == conv.output;
    row.clear();
    row.resize(count, S::default());
    let mut k = 0;
    for channel in x.chunks_exact(plane.max(1)).take(conv.channels[0]) {
        if is_plain {
            packed.put(k, &channel[first..first + count]);
            k += 1;
            continue;
        }
        for tap_z in 0..conv.kernel[0] {
            for tap_y in 0..conv.kernel[1] {
                for tap_x in 0..conv.kernel[2] {
                    let (from, to) = conv.columns(tap_x);
                    let mut done = 0;
                    while done < count {
                        let place = first + done;
                        let (line, column) = (place / out_width, place % out_width);
                        let length = (out_width - column).min(count - done);
                        let part = &mut row[done..done + length];
                        done += length;
                        let z = conv.inside(0, conv.place(0, line / out_height, tap_z));
                        let y = conv.inside(1, conv.place(1, line % out_height, tap_y));
                        let (Some(z), Some(y)) = (z, y) else {
                            part.fill(S::default());
                            continue;
                        };
                        let source =
                            &channel[(z * height + y) * width..(z * height + y + 1) * width];
                        let (low, high) = (
                            from.clamp(column, column + length),
                            to.clamp(column, column + length),
                        );
                        part[..low - column].fill(S::default());
                        part[high.max(low) - column..].fill(S::default());
                        if low >= high {
                            continue;
                        }
                        let Some(begin) = conv.inside(2, conv.place(2, low, tap_x)) else {
                            continue;
                        };
                        let middle = &mut part[low - column..high - column];
                        match conv.strides[2] {
                            1 => middle.copy_from_slice(&source[begin..begin + middle.len()]),
                            stride => middle
                                .iter_mut()
                                .zip(source[begin..].iter().step_by(stride))
                                .for_each(|(to, from)| *to = *from),
                        }
                    }
                    packed.put(k, row);
                    k += 1;
                }
            }
        }
    }
}

/// One channel with a kernel of its own.
fn depthwise<S: Sum>(conv: &Conv, x: &[S], weights: &[S], bias: Option<S>, to: &mut [S]) {
    let [_, height, width] = conv.input;
    let [_, out_height, out_width] = conv.output;
    to.fill(S::default());
    for (line, to) in to.chunks_exact_mut(out_width.max(1)).enumerate() {
        let mut weight = 0;
        for tap_z in 0..conv.kernel[0] {
            for tap_y in 0..conv.kernel[1] {
                let z = conv.inside(0, conv.place(0, line / out_height, tap_z));
                let y = conv.inside(1, conv.place(1, line % out_height, tap_y));
                let (Some(z), Some(y)) = (z, y) else {
                    weight += conv.kernel[2];
                    continue;
                };
                let source = &x[(z * height + y) * width..(z * height + y + 1) * width];
                for tap_x in 0..conv.kernel[2] {
                    let factor = weights[weight];
                    weight += 1;
                    let (from, end) = conv.columns(tap_x);
                    let Some(begin) = conv.inside(2, conv.place(2, from, tap_x)) else { continue };
                    let to = &mut to[from..end];
                    match conv.strides[2] {
                        1 => to
                            .iter_mut()
                            .zip(&source[begin..])
                            .for_each(|(sum, x)| *sum = sum.add(factor.mul(*x))),
                        2 => to
                            .iter_mut()
                            .zip(source[begin..].chunks(2))
                            .for_each(|(sum, x)| *sum = sum.add(factor.mul(x[0]))),
                        stride => to
                            .iter_mut()
                            .zip(source[begin..].iter().step_by(stride))
                            .for_each(|(sum, x)| *sum = sum.add(factor.mul(*x))),
                    }
                }
            }
        }
        if let Some(bias) = bias {
            to.iter_mut().for_each(|sum| *sum = sum.add(bias));
        }
    }
}

/// Output channels of a unit of a transposed convolution.
const TRANSPOSED_CHANNELS: usize = 8;

/// Units of a transposed convolution.
pub(crate) fn transposed_units(conv: &Conv) -> usize {
    conv.images * conv.groups * conv.channels[1].div_ceil(TRANSPOSED_CHANNELS)
}

/// Runs units of a transposed convolution: each input pixel adds its products to the output.
pub(crate) fn run_transposed(
    conv: &Conv,
    inputs: [Option<&In<'_>>; 3],
    epilogue: &Epilogue,
    output: &mut Out<'_>,
    units: (usize, usize),
) {
    match output.ty.dtype {
        crate::DType::F64 => transposed::<f64>(conv, inputs, epilogue, output, units),
        _ => transposed::<f32>(conv, inputs, epilogue, output, units),
    }
}

fn transposed<S: Sum>(
    conv: &Conv,
    [x, weights, bias]: [Option<&In<'_>>; 3],
    epilogue: &Epilogue,
    output: &mut Out<'_>,
    units: (usize, usize),
) {
    let (Some(x), Some(weights)) = (x, weights) else { return };
    let (x, weights, bias) = (converted::<S>(x), converted::<S>(weights), bias.map(converted::<S>));
    let [in_channels, out_channels] = conv.channels;
    let (taps, pixels) = (conv.taps(), conv.pixels());
    let in_pixels: usize = conv.input.iter().product();
    let blocks = out_channels.div_ceil(TRANSPOSED_CHANNELS);
    let width = (PACKED / in_channels.max(1) / 32 * 32).clamp(32, 1024);
    let mut sums = Vec::new();
    for unit in units.0..units.0 + units.1 {
        let (group_of_image, block) = (unit / blocks, unit % blocks);
        let group = group_of_image % conv.groups;
        let first = block * TRANSPOSED_CHANNELS;
        let channels = TRANSPOSED_CHANNELS.min(out_channels - first);
        let rows = channels * taps;
        // Row (channel, tap): what it takes of each input channel.
        let mut left = vec![S::default(); rows * in_channels];
        for row in 0..rows {
            for channel in 0..in_channels {
                let at = ((group * in_channels + channel) * out_channels + first) * taps + row;
                left[row * in_channels + channel] = weights[at];
            }
        }
        let mut planes = vec![S::default(); channels * pixels];
        let from = &x[group_of_image * in_channels * in_pixels
            ..(group_of_image + 1) * in_channels * in_pixels];
        let mut start = 0;
        while start < in_pixels {
            let count = width.min(in_pixels - start);
            let mut packed = Packed::new(in_channels, count);
            (0..in_channels).for_each(|channel| {
                packed.put(
                    channel,
                    &from[channel * in_pixels + start..channel * in_pixels + start + count],
                )
            });
            packed.times(&left, rows, in_channels, &mut sums);
            for (row, sums) in sums.chunks_exact(packed.stride()).enumerate() {
                let plane = &mut planes[row / taps * pixels..(row / taps + 1) * pixels];
                spread(conv, row % taps, (start, &sums[..count]), plane);
            }
            start += count;
        }
        let first_channel = group * out_channels + first;
        for (at, plane) in planes.chunks_exact_mut(pixels.max(1)).enumerate().take(channels) {
            if let Some(bias) = &bias {
                let bias = bias[first_channel + at];
                plane.iter_mut().for_each(|sum| *sum = sum.add(bias));
            }
            S::finish(epilogue, plane);
            store(plane, output, (group_of_image * out_channels + first + at) * pixels);
        }
    }
}

/// Adds what input pixels give at a tap.
fn spread<S: Sum>(conv: &Conv, tap: usize, (start, sums): (usize, &[S]), plane: &mut [S]) {
    let [_, height, width] = conv.input;
    let [out_depth, out_height, out_width] = conv.output;
    let taps = [
        tap / (conv.kernel[1] * conv.kernel[2]),
        tap / conv.kernel[2] % conv.kernel[1],
        tap % conv.kernel[2],
    ];
    let place = |dim: usize, index: usize, extent: usize| {
        usize::try_from(conv.place(dim, index, taps[dim])).ok().filter(|place| *place < extent)
    };
    let mut done = 0;
    while done < sums.len() {
        let at = start + done;
        let (line, column) = (at / width, at % width);
        let length = (width - column).min(sums.len() - done);
        let part = &sums[done..done + length];
        done += length;
        let (Some(z), Some(y)) =
            (place(0, line / height, out_depth), place(1, line % height, out_height))
        else {
            continue;
        };
        let to = &mut plane[(z * out_height + y) * out_width..(z * out_height + y + 1) * out_width];
        for (number, sum) in part.iter().enumerate() {
            if let Some(x) = place(2, column + number, out_width) {
                to[x] = to[x].add(*sum);
            }
        }
    }
}
