//! What `pto run EXAMPLE --group virtual:N --explore RUNS` prints.

use pto_host::group::GroupExploration;
use serde_json::{Value, json};

use crate::errors::Exit;
use crate::text::grouped;

/// What a search over the orders of arrivals has found.
pub(super) struct Explored<'e> {
    pub(super) example: &'e str,
    pub(super) group_name: String,
    pub(super) found: GroupExploration,
}

impl Explored<'_> {
    /// A failure is a wrong result; so are orders that were not tried, because nothing is said of them.
    pub(super) const fn exit(&self) -> Exit {
        if self.found.failure.is_none() && self.found.is_complete {
            Exit::Pass
        } else {
            Exit::Wrong
        }
    }

    pub(super) fn text(&self) -> String {
        let Self { example, group_name, found } = self;
        let head = match (&found.failure, found.is_complete) {
            (Some(_), _) => "WRONG in one order",
            (None, true) => "passed in every order of arrivals",
            (None, false) => "NOT all orders were tried",
        };
        let mut text = format!("{example} on {group_name}: {head}\n  {} runs", grouped(found.runs));
        text += &match (&found.failure, found.is_complete) {
            (Some((choices, what)), _) => format!(
                "; in the last one: {what}\n  its choices, for Group::explore_one: {}\n",
                listed(choices)
            ),
            (None, true) => format!(
                " stand for {} orders; the longest has {} choices\n",
                found.orders, found.longest
            ),
            (None, false) => format!(
                ", all right; the longest has {} choices. Raise --explore, or take a smaller case\n",
                found.longest
            ),
        };
        text
    }

    pub(super) fn json(&self) -> Value {
        let Self { example, group_name, found } = self;
        let failure = found.failure.as_ref();
        json!({
            "example": example,
            "group": group_name,
            "runs": found.runs,
            "is_complete": found.is_complete,
            "orders": found.orders.to_string(),
            "states": found.states,
            "longest": found.longest,
            "failure": failure.map(|(choices, what)| json!({ "choices": choices, "what": what })),
        })
    }
}

fn listed(choices: &[u32]) -> String {
    choices.iter().map(u32::to_string).collect::<Vec<_>>().join(",")
}
