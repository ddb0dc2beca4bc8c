//! A rank table: which rank is which device of which server.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::Path;

use serde_json::Value;

use crate::failure::{Checked, Failure, OPEN_FILE, PARAMETER, require};

/// What a communicator needs of it.
#[derive(Debug)]
pub(crate) struct RankTable {
    pub(crate) size: u32,
    /// The device of the rank that was asked for.
    pub(crate) device: u32,
    /// The host of rank 0: that of its server, or this machine where there is one server.
    pub(crate) host: String,
    /// The same for all ranks of the table, and another one for other tables.
    pub(crate) key: String,
}

/// Reads the table for a rank.
pub(crate) fn read(path: &str, rank: u32) -> Checked<RankTable> {
    let text = std::fs::read_to_string(Path::new(path)).map_err(|error| {
        Failure::new(OPEN_FILE, format!("rank table {path}: {error}; pass the path of a file"))
    })?;
    let wrong = |what: String| Failure::new(PARAMETER, format!("rank table {path}: {what}"));
    let table: Value = serde_json::from_str(&text)
        .map_err(|error| wrong(format!("{error}; it has to be a JSON object")))?;
    let servers = table["server_list"].as_array().filter(|servers| !servers.is_empty());
    let servers =
        servers.ok_or_else(|| wrong("server_list is missing; list the servers".into()))?;
    if let Some(status) = table["status"].as_str().filter(|status| *status != "completed") {
        return Err(wrong(format!("status is {status:?}; wait until it is \"completed\"")));
    }
    if let Some(count) = number(&table["server_count"]) {
        require(count as usize == servers.len(), PARAMETER, || {
            wrong(format!("server_count is {count}, and server_list has {}", servers.len())).text
        })?;
    }
    let mut ranks = Vec::new();
    for (at, server) in servers.iter().enumerate() {
        let devices = server["device"].as_array().ok_or_else(|| {
            wrong(format!("server_list[{at}].device is missing; list its devices"))
        })?;
        for (device_at, device) in devices.iter().enumerate() {
            let field = |name: &str| {
                number(&device[name]).ok_or_else(|| {
                    wrong(format!("server_list[{at}].device[{device_at}].{name} is no number; write it as in \"0\""))
                })
            };
            ranks.push((field("rank_id")?, field("device_id")?, at));
        }
    }
    ranks.sort_unstable();
    for (expected, (found, ..)) in (0_u32..).zip(&ranks) {
        require(expected == *found, PARAMETER, || {
            wrong(format!(
                "there is no rank_id {expected}, or one twice; ranks count from 0 without gaps"
            ))
            .text
        })?;
    }
    let size = u32::try_from(ranks.len()).unwrap_or(u32::MAX);
    let own = ranks.get(rank as usize).ok_or_else(|| {
        wrong(format!(
            "it has {size} ranks, and rank {rank} was asked for; pass one of its rank_id"
        ))
    })?;
    let host = if servers.len() == 1 {
        "127.0.0.1".to_owned()
    } else {
        let server = &servers[ranks[0].2];
        let address = server["host_ip"].as_str().or_else(|| server["server_id"].as_str());
        let missing =
            || wrong("server_id of the server of rank 0 is missing; write its address".into());
        address.ok_or_else(missing)?.to_owned()
    };
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    Ok(RankTable { size, device: own.1, host, key: format!("table-{:016x}", hasher.finish()) })
}

/// Numbers are strings in rank tables.
fn number(value: &Value) -> Option<u32> {
    match value {
        Value::String(text) => text.parse().ok(),
        other => other.as_u64().and_then(|number| u32::try_from(number).ok()),
    }
}
