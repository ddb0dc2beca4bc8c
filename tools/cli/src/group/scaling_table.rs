//! The tables of `pto bench groups`.

use std::time::Duration;

use pto_graph::group::Collective;
use serde_json::{Value, json};

use super::bounds::Bounds;
use crate::text::{duration, grouped, table};

/// A collective of a size on so many devices.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ScalingRow {
    pub(crate) collective: Collective,
    pub(crate) ranks: u32,
    pub(crate) bytes: u64,
    /// Virtual time, tasks of all ranks, and what the run has taken on this machine.
    pub(crate) ran: (Duration, u64, Duration),
    pub(crate) bounds: Bounds,
}

/// The layer on so many devices.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ScalingLayer {
    pub(crate) ranks: u32,
    /// Overlapped, apart, the kernels alone, the transfers alone.
    pub(crate) times: [Duration; 4],
    pub(crate) tasks: u64,
    pub(crate) wall: Duration,
    /// Pieces that are added up one after the other.
    pub(crate) pieces: u64,
}

impl ScalingLayer {
    /// The larger one of kernels and transfers alone, and one piece of each.
    fn bound(&self) -> Duration {
        let [.., kernels, transfers] = self.times;
        let pieces = u32::try_from(self.pieces).unwrap_or(u32::MAX).max(1);
        kernels.max(transfers) + (kernels + transfers) / pieces
    }
}

fn micros(time: Duration) -> String {
    format!("{:.1}", time.as_secs_f64() * 1e6)
}

fn ratio(time: Duration, of: Duration) -> f64 {
    if of.is_zero() { 0.0 } else { time.as_secs_f64() / of.as_secs_f64() }
}

fn lines<const N: usize>(head: [&str; N], rows: impl Iterator<Item = [String; N]>) -> String {
    let head = head.map(str::to_owned).to_vec();
    let rows: Vec<_> = [head].into_iter().chain(rows.map(|row| row.to_vec())).collect();
    table(&rows, &(1..N).collect::<Vec<_>>())
}

pub(crate) fn text(
    (network, aicpu): (&str, u32),
    rows: &[ScalingRow],
    layers: &[ScalingLayer],
) -> String {
    let mut text = format!("network {network}, {aicpu} AICPU instances a device\n");
    if !rows.is_empty() {
        let head = [
            "collective",
            "ranks",
            "bytes",
            "time us",
            "wire us",
            "bound us",
            "of bound",
            "tasks",
            "computed in",
        ];
        text += &lines(
            head,
            rows.iter().map(|row| {
                let (time, tasks, wall) = row.ran;
                [
                    row.collective.name().to_owned(),
                    row.ranks.to_string(),
                    row.bytes.to_string(),
                    micros(time),
                    micros(row.bounds.wire),
                    micros(row.bounds.whole),
                    format!("{:.2}", ratio(time, row.bounds.whole)),
                    grouped(tasks),
                    duration(wall),
                ]
            }),
        );
    }
    if !layers.is_empty() {
        let head = [
            "layer",
            "ranks",
            "overlapped us",
            "apart us",
            "kernels us",
            "transfers us",
            "bound us",
            "of bound",
            "tasks",
            "computed in",
        ];
        text += "\n";
        text += &lines(
            head,
            layers.iter().map(|layer| {
                let [overlapped, apart, kernels, transfers] = layer.times;
                [
                    "tensor-parallel".to_owned(),
                    layer.ranks.to_string(),
                    micros(overlapped),
                    micros(apart),
                    micros(kernels),
                    micros(transfers),
                    micros(layer.bound()),
                    format!("{:.2}", ratio(overlapped, layer.bound())),
                    grouped(layer.tasks),
                    duration(layer.wall),
                ]
            }),
        );
    }
    text
}

pub(crate) fn as_json(
    (network, aicpu): (&str, u32),
    rows: &[ScalingRow],
    layers: &[ScalingLayer],
) -> Value {
    let nanoseconds = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    let row = |row: &ScalingRow| {
        json!({
            "collective": row.collective.name(),
            "ranks": row.ranks,
            "bytes": row.bytes,
            "time_ns": nanoseconds(row.ran.0),
            "wire_ns": nanoseconds(row.bounds.wire),
            "bound_ns": nanoseconds(row.bounds.whole),
            "tasks": row.ran.1,
            "wall_ns": nanoseconds(row.ran.2),
        })
    };
    let layer = |layer: &ScalingLayer| {
        let [overlapped, apart, kernels, transfers] = layer.times.map(nanoseconds);
        json!({
            "ranks": layer.ranks,
            "overlapped_ns": overlapped,
            "apart_ns": apart,
            "kernels_ns": kernels,
            "transfers_ns": transfers,
            "bound_ns": nanoseconds(layer.bound()),
            "tasks": layer.tasks,
            "wall_ns": nanoseconds(layer.wall),
        })
    };
    json!({
        "network": network,
        "aicpu": aicpu,
        "collectives": rows.iter().map(row).collect::<Vec<_>>(),
        "layers": layers.iter().map(layer).collect::<Vec<_>>(),
    })
}
