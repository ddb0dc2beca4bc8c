//! Where the ranks of a communicator meet: the last one that comes to a call runs it for all.
//!
//! Invariants:
//! - A rank comes to a key once.
//! - A call whose ranks have all come ends with a result or a failure for each of them, whatever happens to the ranks afterwards.
//! - No rank waits for one that is gone.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use pto_host::graph::group::Order;

use crate::call::{Call, Item, Key, MOST_RANKS};
use crate::engine::{Engine, OfRanks};
use crate::failure::{Checked, Failure, INTERNAL, PARAMETER, REMOTE, TIMEOUT, require};

/// The ranks of a communicator.
#[derive(Default)]
pub(crate) struct Meeting {
    state: Mutex<State>,
    changed: Condvar,
    engine: Mutex<Engine>,
}

#[derive(Default)]
struct State {
    size: Option<u32>,
    order: Option<Order>,
    joined: BTreeSet<u32>,
    /// Those of them that are in other processes.
    elsewhere: BTreeSet<u32>,
    /// Ranks that take part no more, and why.
    gone: BTreeMap<u32, String>,
    /// A rank that has died ends the communicator.
    dead: Option<u32>,
    calls: BTreeMap<Key, Calls>,
    /// Requests of other processes that are not answered yet.
    requests: u64,
}

#[derive(Default)]
struct Calls {
    given: OfRanks<(Call, Vec<u8>)>,
    /// What the ranks get that have not fetched it.
    results: Option<OfRanks<Checked<Vec<u8>>>>,
}

/// For no limit: ten years.
const NEVER: u64 = 10 * 365 * 86_400;

/// How long something takes at most, by a variable of the environment with seconds; 0: there is no limit.
fn limit(variable: &str, default: u64) -> Checked<Duration> {
    let seconds = match std::env::var(variable) {
        Err(_) => default,
        Ok(text) => text.trim().parse().map_err(|_| {
            Failure::new(PARAMETER, format!("{variable} is {text:?}; set it to whole seconds"))
        })?,
    };
    Ok(Duration::from_secs(if seconds == 0 { NEVER } else { seconds.min(NEVER) }))
}

/// How long ranks may take to join.
pub(crate) fn join_limit() -> Checked<Duration> {
    limit("HCCL_CONNECT_TIMEOUT", 120)
}

fn listed(ranks: impl IntoIterator<Item = u32>) -> String {
    let ranks: Vec<String> = ranks.into_iter().map(|rank| rank.to_string()).collect();
    format!("{} {}", if ranks.len() == 1 { "rank" } else { "ranks" }, ranks.join(", "))
}

impl Meeting {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes part as a rank, without a wait for the others.
    pub(crate) fn enter(&self, rank: u32, size: u32, order: Order) -> Checked {
        require((1..=MOST_RANKS).contains(&size), PARAMETER, || {
            format!("a communicator of {size} ranks; it has 1 to {MOST_RANKS}")
        })?;
        require(rank < size, PARAMETER, || {
            format!("rank {rank} of {size}; pass 0 to {}", size - 1)
        })?;
        let mut state = self.state();
        let known = *state.size.get_or_insert(size);
        require(known == size, PARAMETER, || {
            format!("rank {rank} says that there are {size} ranks, and another one {known}")
        })?;
        // One rank that asks for the order of the ranks is enough.
        if order == Order::FIXED || state.order.is_none() {
            state.order = Some(order);
        }
        require(state.joined.insert(rank), PARAMETER, || {
            format!("rank {rank} has joined already; each rank joins once")
        })?;
        self.changed.notify_all();
        Ok(())
    }

    /// As [`enter`](Self::enter), for a rank of another process.
    pub(crate) fn enter_from_elsewhere(&self, rank: u32, size: u32, order: Order) -> Checked {
        self.enter(rank, size, order)?;
        self.state().elsewhere.insert(rank);
        Ok(())
    }

    /// The ranks of this process, for people.
    pub(crate) fn here(&self) -> String {
        let state = self.state();
        listed(state.joined.difference(&state.elsewhere).copied())
    }

    /// Waits until all ranks take part.
    pub(crate) fn wait_for_all(&self) -> Checked {
        let end = Instant::now() + join_limit()?;
        let mut state = self.state();
        loop {
            let size = state.size.unwrap_or(0);
            let missing: Vec<u32> = (0..size).filter(|rank| !state.joined.contains(rank)).collect();
            if missing.is_empty() {
                return Ok(());
            }
            if let Some(why) = state.gone.values().next() {
                return Err(Failure::new(REMOTE, format!("{why} before all ranks had joined")));
            }
            let left = end.saturating_duration_since(Instant::now());
            require(!left.is_zero(), TIMEOUT, || {
                format!(
                    "{} of {size} did not join within HCCL_CONNECT_TIMEOUT; start all of them, or set it to more seconds",
                    listed(missing.iter().copied())
                )
            })?;
            let waited = self.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Whether all ranks are gone.
    pub(crate) fn is_over(&self) -> bool {
        let state = self.state();
        state.size.is_some_and(|size| state.gone.len() == size as usize)
    }

    /// A rank takes part no more.
    pub(crate) fn leave(&self, rank: u32, has_died: bool) {
        let mut state = self.state();
        let how = if has_died { "has died" } else { "has destroyed its communicator" };
        state.gone.entry(rank).or_insert_with(|| format!("rank {rank} {how}"));
        if has_died {
            state.dead.get_or_insert(rank);
        }
        self.changed.notify_all();
    }

    /// Answers a request of another process, which [`drain`](Self::drain) waits for.
    pub(crate) fn answer(&self, request: impl FnOnce() -> bool) -> bool {
        self.state().requests += 1;
        let is_good = request();
        self.state().requests -= 1;
        self.changed.notify_all();
        is_good
    }

    /// Waits until other processes have their results, for at most `limit`.
    pub(crate) fn drain(&self, limit: Duration) {
        let waited =
            self.changed.wait_timeout_while(self.state(), limit, |state| state.requests > 0);
        drop(waited);
    }

    /// The calls of a rank, which do not wait for each other; what it gets of each.
    pub(crate) fn perform(&self, rank: u32, items: Vec<Item>) -> Checked<Vec<Vec<u8>>> {
        let keys: Vec<Key> = items.iter().map(|item| item.key).collect();
        let end = Instant::now() + limit("HCCL_EXEC_TIMEOUT", 1836)?;
        for item in items {
            self.come(rank, item)?;
        }
        keys.into_iter().map(|key| self.result(rank, key, end)).collect()
    }

    /// A rank comes to a call; runs it if it is the last one.
    fn come(&self, rank: u32, Item { key, call, data }: Item) -> Checked {
        let mut state = self.state();
        if let Some(dead) = state.dead {
            return Err(ended(&state.gone[&dead], rank));
        }
        let (size, order) = (state.size.unwrap_or(0), state.order.unwrap_or(Order::ANY));
        let calls = state.calls.entry(key).or_default();
        require(calls.given.insert(rank, (call, data)).is_none(), INTERNAL, || {
            format!("rank {rank} came to a call twice")
        })?;
        if calls.given.len() < participants(key, size).len() {
            return Ok(());
        }
        let given = std::mem::take(&mut calls.given);
        drop(state);
        let mut engine = self.engine.lock().unwrap_or_else(PoisonError::into_inner);
        let results = engine.run(size, order, key.pair, &given);
        drop(engine);
        let results = match results {
            Ok(results) => results.into_iter().map(|(rank, data)| (rank, Ok(data))).collect(),
            Err(failure) => given.keys().map(|rank| (*rank, Err(failure.clone()))).collect(),
        };
        if let Some(calls) = self.state().calls.get_mut(&key) {
            calls.results = Some(results);
        }
        self.changed.notify_all();
        Ok(())
    }

    fn result(&self, rank: u32, key: Key, end: Instant) -> Checked<Vec<u8>> {
        let mut state = self.state();
        loop {
            let size = state.size.unwrap_or(0);
            let calls = state
                .calls
                .get_mut(&key)
                .ok_or_else(|| Failure::new(INTERNAL, "a call without ranks"))?;
            if let Some(results) = &mut calls.results {
                let own = results.remove(&rank);
                if results.is_empty() {
                    state.calls.remove(&key);
                }
                return own
                    .unwrap_or_else(|| Err(Failure::new(INTERNAL, "a result is fetched twice")));
            }
            let is_running = calls.given.is_empty();
            if !is_running {
                let missing: Vec<u32> = participants(key, size)
                    .into_iter()
                    .filter(|rank| !calls.given.contains_key(rank))
                    .collect();
                let gone = state.dead.into_iter().chain(missing.iter().copied());
                if let Some(why) = gone.into_iter().find_map(|rank| state.gone.get(&rank)) {
                    return Err(ended(why, rank));
                }
                require(Instant::now() < end, TIMEOUT, || {
                    format!(
                        "{} did not come to a call of rank {rank} within HCCL_EXEC_TIMEOUT; see what these ranks do, or set it to more seconds",
                        listed(missing)
                    )
                })?;
            }
            let left = end.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
            let waited = self.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

/// The failure of a rank whose communicator has ended: why.
fn ended(why: &str, rank: u32) -> Failure {
    let text = format!(
        "{why}; rank {rank} waits for it. Destroy the communicators of all ranks, and make new ones"
    );
    Failure::new(REMOTE, text)
}

/// The ranks that a call needs.
fn participants(key: Key, size: u32) -> Vec<u32> {
    key.pair.map_or_else(|| (0..size).collect(), |(from, to)| vec![from, to])
}
