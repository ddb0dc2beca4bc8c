//! Every operator once more, naively: one element after another, in `f64`, by indices.

#![expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "numbers of tests are small"
)]

use pto_operators::{
    Activation, Binary, Coordinates, DepthOrder, Epilogue, Function, Interpolation, Nary,
    NearestMode, Operator, PadMode, Padding, Pooling, Reduction, Resize, ResizeTarget,
    ScatterReduction, Unary, Window,
};

use crate::array::{Array, indices};

/// What the operator gives; `whole`: of integers, `limit`: bits of the type.
pub(crate) fn reference(
    operator: &Operator,
    inputs: &[Option<Array>],
    shapes: &[Vec<usize>],
    whole: bool,
) -> Vec<Array> {
    let x = inputs.first().and_then(Option::as_ref);
    let given = |at: usize| inputs.get(at).and_then(Option::as_ref);
    let shape = &shapes[0];
    let one = |element: &mut dyn FnMut(&[usize]) -> f64| vec![Array::build(shape, element)];
    let axis_of = |axis: i64, rank: usize| {
        if axis < 0 { (axis + rank as i64) as usize } else { axis as usize }
    };
    match operator {
        Operator::Unary(f) => one(&mut |at| unary(*f, x.unwrap().at(at))),
        Operator::Activation(f) => one(&mut |at| activation(f, x.unwrap().at(at))),
        Operator::Binary(f) => one(&mut |at| {
            binary(*f, given(0).unwrap().broadcast(at), given(1).unwrap().broadcast(at), whole)
        }),
        Operator::Nary(f) => one(&mut |at| {
            let all: Vec<f64> = inputs.iter().flatten().map(|x| x.broadcast(at)).collect();
            let sum: f64 = all.iter().sum();
            match f {
                Nary::Sum => sum,
                Nary::Mean if whole => (sum / all.len() as f64).trunc(),
                Nary::Mean => sum / all.len() as f64,
                Nary::Max => all.iter().copied().fold(f64::MIN, f64::max),
                Nary::Min => all.iter().copied().fold(f64::MAX, f64::min),
            }
        }),
        Operator::Where => one(&mut |at| {
            if given(0).unwrap().broadcast(at) != 0.0 {
                given(1).unwrap().broadcast(at)
            } else {
                given(2).unwrap().broadcast(at)
            }
        }),
        Operator::Clip => one(&mut |at| {
            let x = x.unwrap().at(at);
            let x = given(1).map_or(x, |low| x.max(low.data[0]));
            given(2).map_or(x, |high| x.min(high.data[0]))
        }),
        Operator::Cast { .. } => one(&mut |at| x.unwrap().at(at)),
        Operator::Reduce { reduction, axes, keep_dims } => {
            let x = x.unwrap();
            let rank = x.shape.len();
            let axes: Vec<usize> = axes.as_ref().map_or((0..rank).collect(), |axes| {
                axes.iter().map(|axis| axis_of(*axis, rank)).collect()
            });
            one(&mut |at| {
                let mut rest = at.iter();
                let group: Vec<f64> = {
                    // The index of the group, with places for the reduced axes.
                    let own: Vec<Option<usize>> = (0..rank)
                        .map(|dim| {
                            if axes.contains(&dim) {
                                if *keep_dims {
                                    rest.next();
                                }
                                None
                            } else {
                                rest.next().copied()
                            }
                        })
                        .collect();
                    indices(&x.shape)
                        .into_iter()
                        .filter(|index| {
                            index.iter().zip(&own).all(|(at, own)| own.is_none_or(|own| own == *at))
                        })
                        .map(|index| x.at(&index))
                        .collect()
                };
                reduce(*reduction, &group, whole)
            })
        }
        Operator::ArgReduce { largest, axis, keep_dims, select_last } => {
            let x = x.unwrap();
            let axis = axis_of(*axis, x.shape.len());
            one(&mut |at| {
                let line: Vec<f64> = (0..x.shape[axis])
                    .map(|place| {
                        let mut index = at.to_vec();
                        if *keep_dims {
                            index[axis] = place
                        } else {
                            index.insert(axis, place)
                        }
                        x.at(&index)
                    })
                    .collect();
                let best = line
                    .iter()
                    .copied()
                    .fold(line[0], |a, b| if *largest { a.max(b) } else { a.min(b) });
                let found = if *select_last {
                    line.iter().rposition(|x| *x == best)
                } else {
                    line.iter().position(|x| *x == best)
                };
                found.unwrap() as f64
            })
        }
        Operator::Reshape { .. }
        | Operator::Squeeze { .. }
        | Operator::Unsqueeze { .. }
        | Operator::Flatten { .. } => {
            vec![Array { shape: shape.clone(), data: x.unwrap().data.clone() }]
        }
        Operator::Transpose { permutation } => {
            let x = x.unwrap();
            let order = permutation.clone().unwrap_or_else(|| (0..x.shape.len()).rev().collect());
            one(&mut |at| {
                let mut index = vec![0; at.len()];
                order.iter().zip(at).for_each(|(dim, at)| index[*dim] = *at);
                x.at(&index)
            })
        }
        Operator::Slice { starts, ends, axes, steps } => {
            let x = x.unwrap();
            let rank = x.shape.len();
            let mut picked: Vec<Vec<usize>> =
                x.shape.iter().map(|extent| (0..*extent).collect()).collect();
            for number in 0..starts.len() {
                let axis = axes.as_ref().map_or(number, |axes| axis_of(axes[number], rank));
                let step = steps.as_ref().map_or(1, |steps| steps[number]);
                picked[axis] =
                    python_slice(x.shape[axis] as i64, starts[number], ends[number], step);
            }
            one(&mut |at| {
                x.at(&at.iter().zip(&picked).map(|(at, picked)| picked[*at]).collect::<Vec<_>>())
            })
        }
        Operator::Concat { axis } => {
            let axis = axis_of(*axis, shape.len());
            one(&mut |at| {
                let mut place = at[axis];
                for input in inputs.iter().flatten() {
                    if place < input.shape[axis] {
                        let mut index = at.to_vec();
                        index[axis] = place;
                        return input.at(&index);
                    }
                    place -= input.shape[axis];
                }
                unreachable!()
            })
        }
        Operator::Split { axis, sizes } => {
            let x = x.unwrap();
            let axis = axis_of(*axis, x.shape.len());
            let mut first = 0;
            sizes
                .iter()
                .map(|size| {
                    let mut shape = x.shape.clone();
                    shape[axis] = *size;
                    let part = Array::build(&shape, |at| {
                        let mut index = at.to_vec();
                        index[axis] += first;
                        x.at(&index)
                    });
                    first += size;
                    part
                })
                .collect()
        }
        Operator::Expand { .. } => one(&mut |at| x.unwrap().broadcast(at)),
        Operator::Tile { .. } => {
            let x = x.unwrap();
            one(&mut |at| {
                x.at(&at.iter().zip(&x.shape).map(|(at, extent)| at % extent).collect::<Vec<_>>())
            })
        }
        Operator::Pad { mode, pads, axes } => {
            let x = x.unwrap();
            let rank = x.shape.len();
            let axes: Vec<usize> = axes.as_ref().map_or((0..rank).collect(), |axes| {
                axes.iter().map(|axis| axis_of(*axis, rank)).collect()
            });
            let value = given(1).map_or(0.0, |value| value.data[0]);
            one(&mut |at| {
                let mut index = Vec::new();
                for (dim, at) in at.iter().enumerate() {
                    let begin =
                        axes.iter().position(|axis| *axis == dim).map_or(0, |number| pads[number]);
                    let mut place = *at as i64 - begin;
                    let extent = x.shape[dim] as i64;
                    while !(0..extent).contains(&place) {
                        place = match mode {
                            PadMode::Constant => return value,
                            PadMode::Edge => place.clamp(0, extent - 1),
                            PadMode::Wrap => {
                                if place < 0 {
                                    place + extent
                                } else {
                                    place - extent
                                }
                            }
                            PadMode::Reflect if extent == 1 => 0,
                            PadMode::Reflect => {
                                if place < 0 {
                                    -place
                                } else {
                                    2 * (extent - 1) - place
                                }
                            }
                        };
                    }
                    index.push(place as usize);
                }
                x.at(&index)
            })
        }
        Operator::Gather { axis } => {
            let (x, chosen) = (x.unwrap(), given(1).unwrap());
            let axis = axis_of(*axis, x.shape.len());
            let count = chosen.shape.len();
            one(&mut |at| {
                let place = from_end(chosen.at(&at[axis..axis + count]), x.shape[axis]);
                x.at(&[&at[..axis], &[place], &at[axis + count..]].concat())
            })
        }
        Operator::GatherElements { axis } => {
            let (x, chosen) = (x.unwrap(), given(1).unwrap());
            let axis = axis_of(*axis, x.shape.len());
            one(&mut |at| {
                let mut index = at.to_vec();
                index[axis] = from_end(chosen.at(at), x.shape[axis]);
                x.at(&index)
            })
        }
        Operator::GatherNd { batch_dims } => {
            let (x, chosen) = (x.unwrap(), given(1).unwrap());
            let last = chosen.shape.len() - 1;
            one(&mut |at| {
                let tuple: Vec<usize> = (0..chosen.shape[last])
                    .map(|number| {
                        from_end(
                            chosen.at(&[&at[..last], &[number]].concat()),
                            x.shape[batch_dims + number],
                        )
                    })
                    .collect();
                x.at(&[&at[..*batch_dims], &tuple, &at[last..]].concat())
            })
        }
        Operator::ScatterElements { axis, reduction } => {
            let (mut to, chosen, updates) =
                (x.unwrap().clone(), given(1).unwrap(), given(2).unwrap());
            let axis = axis_of(*axis, to.shape.len());
            for at in indices(&chosen.shape) {
                let mut index = at.clone();
                index[axis] = from_end(chosen.at(&at), to.shape[axis]);
                let place =
                    index.iter().zip(&to.shape).fold(0, |place, (at, extent)| place * extent + at);
                to.data[place] = combine(*reduction, to.data[place], updates.at(&at));
            }
            vec![to]
        }
        Operator::ScatterNd { reduction } => {
            let (mut to, chosen, updates) =
                (x.unwrap().clone(), given(1).unwrap(), given(2).unwrap());
            let last = chosen.shape.len() - 1;
            let depth = chosen.shape[last];
            for at in indices(&updates.shape) {
                let tuple: Vec<usize> = (0..depth)
                    .map(|number| {
                        from_end(chosen.at(&[&at[..last], &[number]].concat()), to.shape[number])
                    })
                    .collect();
                let index = [&tuple, &at[last..]].concat();
                let place =
                    index.iter().zip(&to.shape).fold(0, |place, (at, extent)| place * extent + at);
                to.data[place] = combine(*reduction, to.data[place], updates.at(&at));
            }
            vec![to]
        }
        Operator::SpaceToDepth { block } => {
            let x = x.unwrap();
            let channels = x.shape[1];
            one(&mut |at| {
                let (within, channel) = (at[1] / channels, at[1] % channels);
                x.at(&[
                    at[0],
                    channel,
                    at[2] * block + within / block,
                    at[3] * block + within % block,
                ])
            })
        }
        Operator::DepthToSpace { block, order } => {
            let x = x.unwrap();
            let depth = shape[1];
            one(&mut |at| {
                let within = at[2] % block * block + at[3] % block;
                let channel = match order {
                    DepthOrder::Dcr => within * depth + at[1],
                    DepthOrder::Crd => at[1] * block * block + within,
                };
                x.at(&[at[0], channel, at[2] / block, at[3] / block])
            })
        }
        Operator::OneHot { depth, axis } => {
            let (chosen, values) = (x.unwrap(), given(1).unwrap());
            let axis = axis_of(*axis, shape.len());
            one(&mut |at| {
                let mut index = at.to_vec();
                let hot = index.remove(axis);
                let wanted = chosen.at(&index);
                let wanted = if wanted < 0.0 { wanted + *depth as f64 } else { wanted };
                values.data[usize::from(wanted == hot as f64)]
            })
        }
        Operator::Range => {
            one(&mut |at| x.unwrap().data[0] + at[0] as f64 * given(2).unwrap().data[0])
        }
        Operator::Fill { .. } => one(&mut |_| x.unwrap().data[0]),
        Operator::Shape { start, end } => {
            let x = x.unwrap();
            let rank = x.shape.len() as i64;
            let place = |at: i64| (if at < 0 { at + rank } else { at }).clamp(0, rank) as usize;
            let part: Vec<f64> = x.shape.iter().map(|extent| *extent as f64).collect();
            let (from, to) = (place(*start), end.map_or(rank as usize, place));
            vec![Array {
                shape: shape.clone(),
                data: if from < to { part[from..to].to_vec() } else { Vec::new() },
            }]
        }
        Operator::Size => one(&mut |_| x.unwrap().data.len() as f64),
        Operator::EyeLike { k, .. } => {
            one(&mut |at| f64::from(u8::from(at[1] as i64 - at[0] as i64 == *k)))
        }
        Operator::Trilu { upper, k } => {
            let x = x.unwrap();
            let rank = x.shape.len();
            one(&mut |at| {
                let diagonal = at[rank - 1] as i64 - at[rank - 2] as i64;
                if (*upper && diagonal >= *k) || (!*upper && diagonal <= *k) {
                    x.at(at)
                } else {
                    0.0
                }
            })
        }
        Operator::NonZero => {
            let x = x.unwrap();
            let found: Vec<_> =
                indices(&x.shape).into_iter().filter(|index| x.at(index) != 0.0).collect();
            one(&mut |at| found[at[1]][at[0]] as f64)
        }
        Operator::Compress { axis } => {
            let (x, condition) = (x.unwrap(), given(1).unwrap());
            let chosen: Vec<usize> =
                (0..condition.data.len()).filter(|at| condition.data[*at] != 0.0).collect();
            match axis {
                None => one(&mut |at| x.data[chosen[at[0]]]),
                Some(axis) => {
                    let axis = axis_of(*axis, x.shape.len());
                    one(&mut |at| {
                        let mut index = at.to_vec();
                        index[axis] = chosen[at[axis]];
                        x.at(&index)
                    })
                }
            }
        }
        Operator::CumSum { axis, exclusive, reverse }
        | Operator::CumProd { axis, exclusive, reverse } => {
            let x = x.unwrap();
            let axis = axis_of(*axis, x.shape.len());
            let is_product = matches!(operator, Operator::CumProd { .. });
            one(&mut |at| {
                let range =
                    |place: usize| if *reverse { place >= at[axis] } else { place <= at[axis] };
                let line = (0..x.shape[axis])
                    .filter(|place| range(*place) && !(*exclusive && *place == at[axis]))
                    .map(|place| {
                        let mut index = at.to_vec();
                        index[axis] = place;
                        x.at(&index)
                    });
                if is_product { line.product() } else { line.sum() }
            })
        }
        Operator::ReverseSequence { batch_axis, time_axis } => {
            let (x, lengths) = (x.unwrap(), given(1).unwrap());
            one(&mut |at| {
                let length = lengths.data[at[*batch_axis]] as usize;
                let mut index = at.to_vec();
                if at[*time_axis] < length {
                    index[*time_axis] = length - 1 - at[*time_axis];
                }
                x.at(&index)
            })
        }
        Operator::MatMul { epilogue } => {
            let (a, b) = (x.unwrap(), given(1).unwrap());
            let (is_row, is_column) = (a.shape.len() == 1, b.shape.len() == 1);
            let a = if is_row {
                Array { shape: vec![1, a.shape[0]], data: a.data.clone() }
            } else {
                a.clone()
            };
            let b = if is_column {
                Array { shape: vec![b.shape[0], 1], data: b.data.clone() }
            } else {
                b.clone()
            };
            let inner = b.shape[b.shape.len() - 2];
            one(&mut |at| {
                let mut place = at.to_vec();
                let column = if is_column { 0 } else { place.pop().unwrap() };
                let row = if is_row { 0 } else { place.pop().unwrap() };
                let sum: f64 = (0..inner)
                    .map(|k| a.broadcast_to(&place, [row, k]) * b.broadcast_to(&place, [k, column]))
                    .sum();
                behind(epilogue, sum + given(2).map_or(0.0, |bias| bias.broadcast(at)))
            })
        }
        Operator::Gemm { alpha, beta, trans_a, trans_b, epilogue } => {
            let (a, b) = (x.unwrap(), given(1).unwrap());
            let inner = if *trans_a { a.shape[0] } else { a.shape[1] };
            one(&mut |at| {
                let sum: f64 = (0..inner)
                    .map(|k| {
                        let left = if *trans_a { a.at(&[k, at[0]]) } else { a.at(&[at[0], k]) };
                        left * if *trans_b { b.at(&[at[1], k]) } else { b.at(&[k, at[1]]) }
                    })
                    .sum();
                behind(epilogue, alpha * sum + beta * given(2).map_or(0.0, |c| c.broadcast(at)))
            })
        }
        Operator::Conv { window, groups, epilogue } => {
            let (x, w) = (x.unwrap(), given(1).unwrap());
            let rank = x.shape.len() - 2;
            let (strides, dilations) =
                (or_ones(&window.strides, rank), or_ones(&window.dilations, rank));
            let begins = begins(window, &x.shape[2..], &w.shape[2..], shape);
            let per_group = shape[1] / groups;
            one(&mut |at| {
                let mut sum = given(2).map_or(0.0, |bias| bias.data[at[1]]);
                for tap in indices(&w.shape[1..]) {
                    let mut index = vec![at[0], at[1] / per_group * w.shape[1] + tap[0]];
                    let places: Vec<i64> = (0..rank)
                        .map(|dim| {
                            (at[2 + dim] * strides[dim] + tap[1 + dim] * dilations[dim]) as i64
                                - begins[dim]
                        })
                        .collect();
                    if places
                        .iter()
                        .zip(&x.shape[2..])
                        .all(|(place, extent)| (0..*extent as i64).contains(place))
                    {
                        index.extend(places.iter().map(|place| *place as usize));
                        sum += x.at(&index) * w.at(&[&[at[1]], tap.as_slice()].concat());
                    }
                }
                behind(epilogue, sum)
            })
        }
        Operator::ConvTranspose { window, groups, epilogue, .. } => {
            let (x, w) = (x.unwrap(), given(1).unwrap());
            let rank = x.shape.len() - 2;
            let (strides, dilations) =
                (or_ones(&window.strides, rank), or_ones(&window.dilations, rank));
            let Padding::Explicit(pads) = &window.padding else { unreachable!() };
            let begins: Vec<i64> =
                (0..rank).map(|dim| pads.get(dim).copied().unwrap_or(0)).collect();
            let mut sums = Array::build(shape, |at| given(2).map_or(0.0, |bias| bias.data[at[1]]));
            let (in_group, out_group) = (x.shape[1] / groups, w.shape[1]);
            for from in indices(&x.shape) {
                for tap in indices(&w.shape[1..]) {
                    let channel = from[1] / in_group * out_group + tap[0];
                    let places: Vec<i64> = (0..rank)
                        .map(|dim| {
                            (from[2 + dim] * strides[dim] + tap[1 + dim] * dilations[dim]) as i64
                                - begins[dim]
                        })
                        .collect();
                    if places
                        .iter()
                        .zip(&shape[2..])
                        .all(|(place, extent)| (0..*extent as i64).contains(place))
                    {
                        let mut index = vec![from[0], channel];
                        index.extend(places.iter().map(|place| *place as usize));
                        let place = index
                            .iter()
                            .zip(shape)
                            .fold(0, |place, (at, extent)| place * extent + at);
                        sums.data[place] +=
                            x.at(&from) * w.at(&[&[from[1]], tap.as_slice()].concat());
                    }
                }
            }
            sums.data.iter_mut().for_each(|x| *x = behind(epilogue, *x));
            vec![sums]
        }
        Operator::Pool { pooling, window, .. } => pool(pooling, window, x.unwrap(), shape),
        Operator::GlobalPool { pooling } => {
            let x = x.unwrap();
            let window = Window {
                kernel: x.shape[2..].to_vec(),
                strides: vec![],
                dilations: vec![],
                padding: Padding::Valid,
            };
            pool(pooling, &window, x, shape)[..1].to_vec()
        }
        Operator::Resize(resize) => self::resize(resize, x.unwrap(), shape),
        Operator::BatchNormalization { epsilon } => {
            let [scale, bias, mean, variance] = [1, 2, 3, 4].map(|at| given(at).unwrap());
            one(&mut |at| {
                (x.unwrap().at(at) - mean.data[at[1]]) / (variance.data[at[1]] + epsilon).sqrt()
                    * scale.data[at[1]]
                    + bias.data[at[1]]
            })
        }
        Operator::InstanceNormalization { epsilon } => {
            let x = x.unwrap();
            let of = |at: &[usize]| x_where(x, |index| index[..2] == at[..2]);
            one(&mut |at| {
                normal(x.at(at), &of(at), *epsilon) * given(1).unwrap().data[at[1]]
                    + given(2).unwrap().data[at[1]]
            })
        }
        Operator::GroupNormalization { groups, epsilon } => {
            let x = x.unwrap();
            let size = x.shape[1] / groups;
            let of = |at: &[usize]| {
                x_where(x, |index| index[0] == at[0] && index[1] / size == at[1] / size)
            };
            one(&mut |at| {
                normal(x.at(at), &of(at), *epsilon) * given(1).unwrap().data[at[1]]
                    + given(2).unwrap().data[at[1]]
            })
        }
        Operator::LayerNormalization { axis, epsilon } => {
            let x = x.unwrap();
            let axis = axis_of(*axis, x.shape.len());
            let of = |at: &[usize]| x_where(x, |index| index[..axis] == at[..axis]);
            let y = Array::build(shape, |at| {
                normal(x.at(at), &of(at), *epsilon) * given(1).unwrap().broadcast(at)
                    + given(2).map_or(0.0, |bias| bias.broadcast(at))
            });
            let mean = Array::build(&shapes[1], |at| mean_of(&of(at)));
            let deviation =
                Array::build(&shapes[2], |at| 1.0 / (variance_of(&of(at)) + epsilon).sqrt());
            vec![y, mean, deviation]
        }
        Operator::RmsNormalization { axis, epsilon } => {
            let x = x.unwrap();
            let axis = axis_of(*axis, x.shape.len());
            one(&mut |at| {
                let squares: Vec<f64> =
                    x_where(x, |index| index[..axis] == at[..axis]).iter().map(|x| x * x).collect();
                x.at(at) / (mean_of(&squares) + epsilon).sqrt() * given(1).unwrap().broadcast(at)
            })
        }
        Operator::Lrn { size, alpha, beta, bias } => {
            let x = x.unwrap();
            one(&mut |at| {
                let channel = at[1] as i64;
                let (low, high) = (channel - (*size as i64 - 1) / 2, channel + *size as i64 / 2);
                let squares: f64 = (low.max(0)..=high.min(x.shape[1] as i64 - 1))
                    .map(|other| {
                        let mut index = at.to_vec();
                        index[1] = other as usize;
                        x.at(&index).powi(2)
                    })
                    .sum();
                x.at(at) / (bias + alpha / *size as f64 * squares).powf(*beta)
            })
        }
        Operator::LpNormalization { axis, p } => {
            let x = x.unwrap();
            let axis = axis_of(*axis, x.shape.len());
            one(&mut |at| {
                let line = line_of(x, at, axis);
                let norm = if *p == 1 {
                    line.iter().map(|x| x.abs()).sum()
                } else {
                    line.iter().map(|x| x * x).sum::<f64>().sqrt()
                };
                if norm == 0.0 { 0.0 } else { x.at(at) / norm }
            })
        }
        Operator::MeanVarianceNormalization { axes } => {
            let x = x.unwrap();
            let axes: Vec<usize> = axes.iter().map(|axis| axis_of(*axis, x.shape.len())).collect();
            one(&mut |at| {
                let group = x_where(x, |index| {
                    (0..index.len()).all(|dim| axes.contains(&dim) || index[dim] == at[dim])
                });
                (x.at(at) - mean_of(&group)) / (variance_of(&group).sqrt() + 1e-9)
            })
        }
        Operator::Softmax { axis } | Operator::LogSoftmax { axis } | Operator::Hardmax { axis } => {
            let x = x.unwrap();
            let axis = axis_of(*axis, x.shape.len());
            one(&mut |at| {
                let line = line_of(x, at, axis);
                let largest = line.iter().copied().fold(f64::MIN, f64::max);
                let sum: f64 = line.iter().map(|x| (x - largest).exp()).sum();
                match operator {
                    Operator::Softmax { .. } => (x.at(at) - largest).exp() / sum,
                    Operator::LogSoftmax { .. } => x.at(at) - largest - sum.ln(),
                    _ => f64::from(u8::from(
                        line.iter().position(|x| *x == largest) == Some(at[axis]),
                    )),
                }
            })
        }
        Operator::Attention { scale, causal, softcap } => {
            let (q, k, v) = (x.unwrap(), given(1).unwrap(), given(2).unwrap());
            let rank = q.shape.len();
            let scale = scale.unwrap_or(1.0 / (q.shape[rank - 1] as f64).sqrt());
            one(&mut |at| {
                let outer: Vec<usize> =
                    (0..rank - 2).map(|dim| at[dim] / (q.shape[dim] / k.shape[dim])).collect();
                let scores: Vec<f64> = (0..k.shape[rank - 2])
                    .map(|key| {
                        let sum: f64 = (0..q.shape[rank - 1])
                            .map(|d| {
                                q.at(&[&at[..rank - 1], &[d]].concat())
                                    * k.at(&[outer.as_slice(), &[key, d]].concat())
                            })
                            .sum();
                        let mut score = sum * scale;
                        if *softcap > 0.0 {
                            score = softcap * (score / softcap).tanh();
                        }
                        score += given(3).map_or(0.0, |mask| {
                            mask.broadcast(&[&at[..rank - 1], &[key]].concat())
                        });
                        if *causal && key > at[rank - 2] { f64::NEG_INFINITY } else { score }
                    })
                    .collect();
                let largest = scores.iter().copied().fold(f64::MIN, f64::max);
                let sum: f64 = scores.iter().map(|x| (x - largest).exp()).sum();
                scores
                    .iter()
                    .enumerate()
                    .map(|(key, score)| {
                        (score - largest).exp() / sum
                            * v.at(&[outer.as_slice(), &[key, at[rank - 1]]].concat())
                    })
                    .sum()
            })
        }
        Operator::TopK { axis, largest: descending, .. } | Operator::Sort { axis, descending } => {
            let x = x.unwrap();
            let axis = axis_of(*axis, x.shape.len());
            let order = |at: &[usize]| {
                let mut full = at.to_vec();
                full[axis] = 0;
                let line = line_of(x, &full, axis);
                let mut order: Vec<usize> = (0..line.len()).collect();
                order.sort_by(|a, b| {
                    let compared = line[*a].partial_cmp(&line[*b]).unwrap();
                    if *descending { compared.reverse() } else { compared }
                });
                (line[order[at[axis]]], order[at[axis]] as f64)
            };
            vec![Array::build(shape, |at| order(at).0), Array::build(shape, |at| order(at).1)]
        }
        other => panic!("no reference for {other:?}"),
    }
}

impl Array {
    /// An element of a matrix whose outer dimensions are broadcast.
    fn broadcast_to(&self, outer: &[usize], [row, column]: [usize; 2]) -> f64 {
        let rank = self.shape.len() - 2;
        let own: Vec<usize> = outer[outer.len() - rank..]
            .iter()
            .zip(&self.shape)
            .map(|(at, extent)| if *extent == 1 { 0 } else { *at })
            .collect();
        self.at(&[own.as_slice(), &[row, column]].concat())
    }
}

fn x_where(x: &Array, is_wanted: impl Fn(&[usize]) -> bool) -> Vec<f64> {
    indices(&x.shape).iter().filter(|index| is_wanted(index)).map(|index| x.at(index)).collect()
}

fn line_of(x: &Array, at: &[usize], axis: usize) -> Vec<f64> {
    (0..x.shape[axis])
        .map(|place| {
            let mut index = at.to_vec();
            index[axis] = place;
            x.at(&index)
        })
        .collect()
}

fn mean_of(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn variance_of(values: &[f64]) -> f64 {
    let mean = mean_of(values);
    values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / values.len() as f64
}

fn normal(x: f64, group: &[f64], epsilon: f64) -> f64 {
    (x - mean_of(group)) / (variance_of(group) + epsilon).sqrt()
}

fn from_end(index: f64, extent: usize) -> usize {
    (if index < 0.0 { index + extent as f64 } else { index }) as usize
}

fn combine(reduction: ScatterReduction, old: f64, new: f64) -> f64 {
    match reduction {
        ScatterReduction::None => new,
        ScatterReduction::Add => old + new,
        ScatterReduction::Mul => old * new,
        ScatterReduction::Max => old.max(new),
        ScatterReduction::Min => old.min(new),
    }
}

/// The indices that a slice of Python's takes.
fn python_slice(extent: i64, start: i64, end: i64, step: i64) -> Vec<usize> {
    let place = |at: i64| if at < 0 { at.saturating_add(extent) } else { at };
    let (mut at, end) = if step > 0 {
        (place(start).clamp(0, extent), place(end).clamp(0, extent))
    } else {
        (place(start).clamp(-1, extent - 1), place(end).clamp(-1, extent - 1))
    };
    let mut all = Vec::new();
    while (step > 0 && at < end) || (step < 0 && at > end) {
        all.push(at as usize);
        at = at.saturating_add(step);
    }
    all
}

fn or_ones(numbers: &[usize], rank: usize) -> Vec<usize> {
    if numbers.is_empty() { vec![1; rank] } else { numbers.to_vec() }
}

/// Padding at the beginnings.
fn begins(window: &Window, input: &[usize], kernel: &[usize], output: &[usize]) -> Vec<i64> {
    let rank = input.len();
    let (strides, dilations) = (or_ones(&window.strides, rank), or_ones(&window.dilations, rank));
    (0..rank)
        .map(|dim| match &window.padding {
            Padding::Explicit(pads) => pads.get(dim).copied().unwrap_or(0),
            Padding::Valid => 0,
            same => {
                let covered = ((kernel[dim] - 1) * dilations[dim] + 1) as i64;
                let total = ((output[2 + dim] as i64 - 1) * strides[dim] as i64 + covered
                    - input[dim] as i64)
                    .max(0);
                if *same == Padding::SameUpper { total / 2 } else { total - total / 2 }
            }
        })
        .collect()
}

fn pool(pooling: &Pooling, window: &Window, x: &Array, shape: &[usize]) -> Vec<Array> {
    let rank = x.shape.len() - 2;
    let (strides, dilations) = (or_ones(&window.strides, rank), or_ones(&window.dilations, rank));
    let begins = begins(window, &x.shape[2..], &window.kernel, shape);
    let ends: Vec<i64> = (0..rank)
        .map(|dim| match &window.padding {
            Padding::Explicit(pads) => pads.get(rank + dim).copied().unwrap_or(0),
            Padding::Valid => 0,
            _ => {
                let covered = ((window.kernel[dim] - 1) * dilations[dim] + 1) as i64;
                ((shape[2 + dim] as i64 - 1) * strides[dim] as i64 + covered
                    - x.shape[2 + dim] as i64)
                    .max(0)
                    - begins[dim]
            }
        })
        .collect();
    let mut found = Vec::new();
    let values = Array::build(shape, |at| {
        let (mut inside, mut padded) = (Vec::new(), 0);
        for tap in indices(&window.kernel) {
            let places: Vec<i64> = (0..rank)
                .map(|dim| {
                    (at[2 + dim] * strides[dim] + tap[dim] * dilations[dim]) as i64 - begins[dim]
                })
                .collect();
            let is_in = |dim: usize, more: i64| places[dim] < x.shape[2 + dim] as i64 + more;
            if (0..rank).all(|dim| is_in(dim, ends[dim])) {
                padded += 1;
            }
            if (0..rank).all(|dim| places[dim] >= 0 && is_in(dim, 0)) {
                let index: Vec<usize> = places.iter().map(|place| *place as usize).collect();
                inside.push((x.at(&[&at[..2], &index].concat()), index));
            }
        }
        let sum: f64 = inside.iter().map(|(x, _)| x).sum();
        match pooling {
            Pooling::Max { column_major } => {
                let largest = inside.iter().map(|(x, _)| *x).fold(f64::NEG_INFINITY, f64::max);
                let (_, index) = inside.iter().find(|(x, _)| *x == largest).unwrap();
                let of = |(dim, at): (usize, usize)| -> usize {
                    let inner: Vec<usize> = if *column_major {
                        x.shape[2..2 + dim].to_vec()
                    } else {
                        x.shape[3 + dim..].to_vec()
                    };
                    at * inner.iter().product::<usize>()
                };
                let plane: usize = x.shape[2..].iter().product();
                let within: usize = index.iter().copied().enumerate().map(of).sum();
                found.push(((at[0] * x.shape[1] + at[1]) * plane + within) as f64);
                largest
            }
            Pooling::Average { count_padding: true } => sum / f64::from(padded),
            Pooling::Average { .. } => sum / inside.len() as f64,
            Pooling::Lp { p } => inside
                .iter()
                .map(|(x, _)| x.abs().powi(*p as i32))
                .sum::<f64>()
                .powf(1.0 / *p as f64),
        }
    });
    let mut all = vec![values];
    if matches!(pooling, Pooling::Max { .. }) {
        all.push(Array { shape: shape.to_vec(), data: found });
    }
    all
}

/// Positions in a dimension, with their weights.
type Weights = Vec<(usize, f64)>;

fn resize(resize: &Resize, x: &Array, shape: &[usize]) -> Vec<Array> {
    let rank = shape.len();
    let axes: Vec<usize> = resize.axes.as_ref().map_or((0..rank).collect(), |axes| {
        axes.iter()
            .map(|axis| if *axis < 0 { (*axis + rank as i64) as usize } else { *axis as usize })
            .collect()
    });
    let taps: Vec<Vec<Option<Weights>>> = (0..rank)
        .map(|dim| {
            let (input, output) = (x.shape[dim] as f64, shape[dim] as f64);
            let number = axes.iter().position(|axis| *axis == dim);
            let scale = match (&resize.target, number) {
                (_, None) => 1.0,
                (ResizeTarget::Scales(scales), Some(number)) => scales[number],
                (ResizeTarget::Sizes { .. }, Some(_)) => output / input,
            };
            let region = number
                .filter(|_| resize.coordinates == Coordinates::CropAndResize)
                .map_or((0.0, 1.0), |number| {
                    (resize.regions[number], resize.regions[number + axes.len()])
                });
            (0..shape[dim])
                .map(|index| {
                    if number.is_none() {
                        return Some(vec![(index, 1.0)]);
                    }
                    let at = index as f64;
                    let place = match resize.coordinates {
                        Coordinates::HalfPixel => (at + 0.5) / scale - 0.5,
                        Coordinates::HalfPixelSymmetric => {
                            let adjustment = output / (scale * input);
                            input / 2.0 * (1.0 - adjustment) + (at + 0.5) / scale - 0.5
                        }
                        Coordinates::PytorchHalfPixel => {
                            if output > 1.0 {
                                (at + 0.5) / scale - 0.5
                            } else {
                                0.0
                            }
                        }
                        Coordinates::AlignCorners => {
                            if output > 1.0 {
                                at * (input - 1.0) / (output - 1.0)
                            } else {
                                0.0
                            }
                        }
                        Coordinates::Asymmetric => at / scale,
                        Coordinates::CropAndResize => {
                            let place = if output > 1.0 {
                                region.0 * (input - 1.0)
                                    + at * (region.1 - region.0) * (input - 1.0) / (output - 1.0)
                            } else {
                                0.5 * (region.0 + region.1) * (input - 1.0)
                            };
                            if place < 0.0 || place > input - 1.0 {
                                return None;
                            }
                            place
                        }
                    };
                    Some(around(resize, place, scale, x.shape[dim]))
                })
                .collect()
        })
        .collect();
    vec![Array::build(shape, |at| {
        let of_dims: Option<Vec<_>> =
            at.iter().enumerate().map(|(dim, at)| taps[dim][*at].clone()).collect();
        let Some(of_dims) = of_dims else { return resize.extrapolation };
        let counts: Vec<usize> = of_dims.iter().map(Vec::len).collect();
        indices(&counts)
            .iter()
            .map(|chosen| {
                let picked: Vec<(usize, f64)> =
                    chosen.iter().enumerate().map(|(dim, at)| of_dims[dim][*at]).collect();
                let place: Vec<usize> = picked.iter().map(|(at, _)| *at).collect();
                x.at(&place) * picked.iter().map(|(_, weight)| weight).product::<f64>()
            })
            .sum()
    })]
}

/// Positions and weights around a coordinate.
fn around(resize: &Resize, place: f64, scale: f64, extent: usize) -> Vec<(usize, f64)> {
    let last = extent as i64 - 1;
    if let Interpolation::Nearest(mode) = &resize.interpolation {
        let floor = place.floor();
        let rest = place - floor;
        let at = match mode {
            NearestMode::Floor => floor,
            NearestMode::Ceil => place.ceil(),
            NearestMode::RoundPreferFloor => {
                if rest <= 0.5 {
                    floor
                } else {
                    floor + 1.0
                }
            }
            NearestMode::RoundPreferCeil => {
                if rest < 0.5 {
                    floor
                } else {
                    floor + 1.0
                }
            }
        };
        return vec![((at as i64).clamp(0, last) as usize, 1.0)];
    }
    let filter = |x: f64| {
        let x = x.abs();
        match &resize.interpolation {
            Interpolation::Cubic { a } if x <= 1.0 => {
                (a + 2.0) * x.powi(3) - (a + 3.0) * x.powi(2) + 1.0
            }
            Interpolation::Cubic { a } if x < 2.0 => {
                a * x.powi(3) - 5.0 * a * x.powi(2) + 8.0 * a * x - 4.0 * a
            }
            Interpolation::Cubic { .. } => 0.0,
            _ => (1.0 - x).max(0.0),
        }
    };
    let shrink = if resize.antialias { scale.min(1.0) } else { 1.0 };
    let radius =
        if matches!(resize.interpolation, Interpolation::Linear) { 1.0 } else { 2.0 } / shrink;
    let mut all: Vec<(i64, f64)> = Vec::new();
    for at in (place - radius).floor() as i64 - 1..=(place + radius).ceil() as i64 + 1 {
        let weight = filter((place - at as f64) * shrink);
        if weight != 0.0 && (!resize.exclude_outside || (0..=last).contains(&at)) {
            all.push((at, weight));
        }
    }
    let sum: f64 = all.iter().map(|(_, weight)| weight).sum();
    let norm = if resize.exclude_outside || shrink < 1.0 { sum } else { 1.0 };
    all.iter().map(|(at, weight)| ((*at).clamp(0, last) as usize, weight / norm)).collect()
}

fn reduce(reduction: Reduction, group: &[f64], whole: bool) -> f64 {
    let sum: f64 = group.iter().sum();
    let squares: f64 = group.iter().map(|x| x * x).sum();
    match reduction {
        Reduction::Sum => sum,
        Reduction::Mean if whole => (sum / group.len() as f64).trunc(),
        Reduction::Mean => sum / group.len() as f64,
        Reduction::Max => group.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        Reduction::Min => group.iter().copied().fold(f64::INFINITY, f64::min),
        Reduction::Prod => group.iter().product(),
        Reduction::L1 => group.iter().map(|x| x.abs()).sum(),
        Reduction::L2 if whole => squares.sqrt().trunc(),
        Reduction::L2 => squares.sqrt(),
        Reduction::LogSum => sum.ln(),
        Reduction::LogSumExp => group.iter().map(|x| x.exp()).sum::<f64>().ln(),
        Reduction::SumSquare => squares,
        Reduction::All => f64::from(u8::from(group.iter().all(|x| *x != 0.0))),
        Reduction::Any => f64::from(u8::from(group.iter().any(|x| *x != 0.0))),
    }
}

fn behind(epilogue: &Epilogue, x: f64) -> f64 {
    match epilogue {
        Epilogue::None => x,
        Epilogue::Unary(f) => unary(*f, x),
        Epilogue::Activation(f) => activation(f, x),
        Epilogue::Steps(steps) => {
            let mut all = vec![x];
            for step in steps {
                let given: Vec<f64> = step.operands.iter().map(|at| all[at.unwrap()]).collect();
                all.push(match (&step.function, given.as_slice()) {
                    (Function::Unary(f), [x]) => unary(*f, *x),
                    (Function::Activation(f), [x]) => activation(f, *x),
                    (Function::Binary(f), [a, b]) => binary(*f, *a, *b, false),
                    other => panic!("{other:?}"),
                });
            }
            all[steps.len()]
        }
    }
}

fn logistic(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

/// The error function by Simpson's rule.
fn erf(x: f64) -> f64 {
    let steps = 2000;
    let h = x / f64::from(steps);
    let f = |t: f64| (-t * t).exp();
    let sum: f64 =
        (0..steps).map(|i| f64::from(i) * h).map(|t| f(t) + 4.0 * f(t + h / 2.0) + f(t + h)).sum();
    sum * h / 6.0 * 2.0 / std::f64::consts::PI.sqrt()
}

fn unary(f: Unary, x: f64) -> f64 {
    match f {
        Unary::Identity => x,
        Unary::Abs => x.abs(),
        Unary::Neg => -x,
        Unary::Sign => {
            if x == 0.0 {
                0.0
            } else {
                x.signum()
            }
        }
        Unary::Floor => x.floor(),
        Unary::Ceil => x.ceil(),
        Unary::Round => {
            let floor = x.floor();
            if x - floor == 0.5 { 2.0 * (x / 2.0).round() } else { (x + 0.5).floor() }
        }
        Unary::Trunc => x.trunc(),
        Unary::Sqrt => x.powf(0.5),
        Unary::Rsqrt => x.powf(-0.5),
        Unary::Reciprocal => x.powi(-1),
        Unary::Square => x.powi(2),
        Unary::Exp => x.exp(),
        Unary::Exp2 => 2.0_f64.powf(x),
        Unary::Expm1 => x.exp() - 1.0,
        Unary::Log => x.ln(),
        Unary::Log2 => x.ln() / 2.0_f64.ln(),
        Unary::Log10 => x.ln() / 10.0_f64.ln(),
        Unary::Log1p => (1.0 + x).ln(),
        Unary::Sin => x.sin(),
        Unary::Cos => x.cos(),
        Unary::Tan => x.sin() / x.cos(),
        Unary::Asin => x.asin(),
        Unary::Acos => x.acos(),
        Unary::Atan => x.atan(),
        Unary::Sinh => (x.exp() - (-x).exp()) / 2.0,
        Unary::Cosh => (x.exp() + (-x).exp()) / 2.0,
        Unary::Tanh => 2.0 * logistic(2.0 * x) - 1.0,
        Unary::Asinh => (x + (x * x + 1.0).sqrt()).ln(),
        Unary::Acosh => (x + (x * x - 1.0).sqrt()).ln(),
        Unary::Atanh => 0.5 * ((1.0 + x) / (1.0 - x)).ln(),
        Unary::Erf => erf(x),
        Unary::Sigmoid => logistic(x),
        Unary::Relu => x.max(0.0),
        Unary::Softplus => (1.0 + x.exp()).ln(),
        Unary::Softsign => x / (1.0 + x.abs()),
        Unary::Gelu => 0.5 * x * (1.0 + erf(x / 2.0_f64.sqrt())),
        Unary::GeluTanh => {
            0.5 * x
                * (1.0 + ((2.0 / std::f64::consts::PI).sqrt() * (x + 0.044_715 * x.powi(3))).tanh())
        }
        Unary::HardSwish => x * (x / 6.0 + 0.5).clamp(0.0, 1.0),
        Unary::Mish => x * (1.0 + x.exp()).ln().tanh(),
        Unary::Not => f64::from(u8::from(x == 0.0)),
        Unary::BitwiseNot => -1.0 - x,
        Unary::IsNaN => f64::from(u8::from(x.is_nan())),
    }
}

fn activation(f: &Activation, x: f64) -> f64 {
    match *f {
        Activation::LeakyRelu { alpha } => {
            if x < 0.0 {
                alpha * x
            } else {
                x
            }
        }
        Activation::Elu { alpha } => {
            if x < 0.0 {
                alpha * (x.exp() - 1.0)
            } else {
                x
            }
        }
        Activation::Selu { alpha, gamma } => {
            if x <= 0.0 {
                gamma * (alpha * x.exp() - alpha)
            } else {
                gamma * x
            }
        }
        Activation::Celu { alpha } => x.max(0.0) + (alpha * ((x / alpha).exp() - 1.0)).min(0.0),
        Activation::HardSigmoid { alpha, beta } => (alpha * x + beta).clamp(0.0, 1.0),
        Activation::ThresholdedRelu { alpha } => {
            if x > alpha {
                x
            } else {
                0.0
            }
        }
        Activation::Shrink { bias, lambda } => {
            if x < -lambda {
                x + bias
            } else if x > lambda {
                x - bias
            } else {
                0.0
            }
        }
        Activation::Swish { alpha } => x * logistic(alpha * x),
        Activation::Clamp { low, high } => x.max(low).min(high),
        Activation::Affine { alpha, beta } => alpha * x + beta,
        Activation::IsInf { negative, positive } => {
            f64::from(u8::from(x.is_infinite() && ((x > 0.0 && positive) || (x < 0.0 && negative))))
        }
    }
}

fn binary(f: Binary, a: f64, b: f64, whole: bool) -> f64 {
    let truth = |is: bool| f64::from(u8::from(is));
    let bits = |f: fn(i64, i64) -> i64| f(a as i64, b as i64) as f64;
    match f {
        Binary::Add => a + b,
        Binary::Sub => a - b,
        Binary::Mul => a * b,
        Binary::Div if whole => {
            if b == 0.0 {
                0.0
            } else {
                (a / b).trunc()
            }
        }
        Binary::Div => a / b,
        Binary::Mod if whole && b == 0.0 => 0.0,
        Binary::Mod => a - b * (a / b).floor(),
        Binary::Fmod if whole && b == 0.0 => 0.0,
        Binary::Fmod => a - b * (a / b).trunc(),
        Binary::Pow => a.powf(b),
        Binary::Max => a.max(b),
        Binary::Min => a.min(b),
        Binary::PRelu => {
            if a < 0.0 {
                a * b
            } else {
                a
            }
        }
        Binary::BitwiseAnd => bits(|a, b| a & b),
        Binary::BitwiseOr => bits(|a, b| a | b),
        Binary::BitwiseXor => bits(|a, b| a ^ b),
        Binary::ShiftLeft => bits(|a, b| a << b),
        Binary::ShiftRight => bits(|a, b| a >> b),
        Binary::And => truth(a != 0.0 && b != 0.0),
        Binary::Or => truth(a != 0.0 || b != 0.0),
        Binary::Xor => truth((a != 0.0) != (b != 0.0)),
        Binary::Equal => truth(a == b),
        Binary::NotEqual => truth(a != b),
        Binary::Less => truth(a < b),
        Binary::LessOrEqual => truth(a <= b),
        Binary::Greater => truth(a > b),
        Binary::GreaterOrEqual => truth(a >= b),
        Binary::Atan2 => a.atan2(b),
    }
}
