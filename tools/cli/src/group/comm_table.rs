//! The table of `pto bench collectives`. The algorithm bandwidth is size over time. The bus bandwidth is what the links carry for that, so that it
//! can be compared with theirs, and between numbers of ranks.

use std::time::Duration;

use pto_graph::group::Collective;
use serde_json::{Value, json};

use crate::text::table;

/// One size.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CommRow {
    pub(crate) bytes: u64,
    /// Of one call.
    pub(crate) time: Duration,
    /// Elements that are not what they must be.
    pub(crate) wrong: u64,
    /// Of one call of MPI's own.
    pub(crate) mpi: Option<Duration>,
}

impl CommRow {
    /// In GB/s; `None`: the time is too short to be measured.
    pub(super) fn bandwidth(&self) -> Option<f64> {
        let seconds = self.time.as_secs_f64();
        (seconds > 0.0).then(|| self.bytes as f64 / seconds / 1e9)
    }

    fn ratio(&self) -> Option<f64> {
        let mpi = self.mpi?.as_secs_f64();
        (mpi > 0.0).then(|| self.time.as_secs_f64() / mpi)
    }
}

/// How many bytes a link carries for each byte of the tensor.
pub(crate) fn bus_factor(collective: Collective, ranks: u32) -> f64 {
    let ranks = f64::from(ranks);
    let others = (ranks - 1.0) / ranks;
    match collective {
        Collective::ALL_REDUCE => 2.0 * others,
        Collective::ALL_GATHER | Collective::REDUCE_SCATTER | Collective::ALL_TO_ALL => others,
        _ => 1.0,
    }
}

/// Collective, where, ranks.
pub(super) type Head<'a> = (Collective, &'a str, u32);

pub(crate) fn text((collective, group_name, ranks): Head<'_>, rows: &[CommRow]) -> String {
    let is_mpi = rows.iter().any(|row| row.mpi.is_some());
    let mut head =
        ["bytes", "time us", "algorithm GB/s", "bus GB/s", "check"].map(str::to_owned).to_vec();
    if is_mpi {
        head.extend(["MPI us", "of MPI"].map(str::to_owned));
    }
    let number = |value: Option<f64>, digits| {
        value.map_or_else(|| "-".to_owned(), |value| format!("{value:.digits$}"))
    };
    let factor = bus_factor(collective, ranks);
    let row = |row: &CommRow| {
        let check = if row.wrong == 0 { "ok".to_owned() } else { format!("{} wrong", row.wrong) };
        let mut cells = vec![
            row.bytes.to_string(),
            number(Some(row.time.as_secs_f64() * 1e6), 1),
            number(row.bandwidth(), 3),
            number(row.bandwidth().map(|bandwidth| bandwidth * factor), 3),
            check,
        ];
        if is_mpi {
            cells.push(number(row.mpi.map(|time| time.as_secs_f64() * 1e6), 1));
            cells.push(number(row.ratio(), 2));
        }
        cells
    };
    let lines: Vec<_> = [head].into_iter().chain(rows.iter().map(row)).collect();
    let table = table(&lines, &[0, 1, 2, 3, 5, 6]);
    format!("{} of f32 on {group_name}\n{table}{}", collective.name(), told_worst(rows))
}

/// Sizes from which on the ratio to MPI's own is reported: below, the time of a call is that of its steps.
const LARGE: u64 = 64 << 10;

/// The largest ratio to MPI's own all-reduce.
fn worst(rows: &[CommRow]) -> Option<f64> {
    let large = rows.iter().filter(|row| row.bytes >= LARGE);
    large.filter_map(CommRow::ratio).max_by(f64::total_cmp)
}

fn told_worst(rows: &[CommRow]) -> String {
    let text_of =
        |worst| format!("from 64 KiB up at most {worst:.2} times as long as MPI_Allreduce\n");
    worst(rows).map(text_of).unwrap_or_default()
}

pub(crate) fn json((collective, group_name, ranks): Head<'_>, rows: &[CommRow]) -> Value {
    let factor = bus_factor(collective, ranks);
    let nanoseconds = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    let row = |row: &CommRow| {
        json!({
            "bytes": row.bytes,
            "time_ns": nanoseconds(row.time),
            "algorithm_gb_per_s": row.bandwidth(),
            "bus_gb_per_s": row.bandwidth().map(|bandwidth| bandwidth * factor),
            "wrong": row.wrong,
            "mpi_ns": row.mpi.map(nanoseconds),
        })
    };
    json!({
        "collective": collective.name(),
        "group": group_name,
        "ranks": ranks,
        "most_of_mpi_from_64k": worst(rows),
        "sizes": rows.iter().map(row).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::{CommRow, bus_factor, text};
    use pto_graph::group::Collective;
    use std::time::Duration;

    #[test]
    fn bandwidths_follow_from_size_time_and_ranks() {
        let time = Duration::from_micros(1000);
        let row = CommRow { bytes: 1 << 20, time, wrong: 0, mpi: Some(time / 2) };
        let text = text((Collective::ALL_REDUCE, "x", 4), &[row]);
        let cells: Vec<_> = text.lines().nth(2).unwrap().split_whitespace().collect();
        assert_eq!(cells, ["1048576", "1000.0", "1.049", "1.573", "ok", "500.0", "2.00"]);
        assert!(text.ends_with("at most 2.00 times as long as MPI_Allreduce\n"), "{text}");
        assert!((bus_factor(Collective::ALL_TO_ALL, 2) - 0.5).abs() < 1e-12);
    }

    #[test]
    fn wrong_elements_are_told() {
        let row = CommRow { bytes: 8, time: Duration::ZERO, wrong: 3, mpi: None };
        let text = text((Collective::BROADCAST, "x", 2), &[row]);
        assert!(text.contains("3 wrong") && text.contains(" - "), "{text}");
    }
}
