//! A recorded run as a chart on the terminal.

use pto_host::timeline::{Trace, gantt};

use crate::output::terminal_columns;

/// Characters of time in a chart, where the terminal does not say how wide it is.
const COLUMNS: usize = 80;

/// The run as a chart for this terminal.
pub(crate) fn chart(trace: &Trace) -> String {
    let wide = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse::<usize>().ok());
    let wide = wide.or_else(terminal_columns);
    gantt::chart(
        trace,
        wide.map_or(COLUMNS, |columns| columns.saturating_sub(gantt::margin(trace))),
    )
}
