//! What a device must do, in every way of hosting it: both fanout strategies, both build modes, both
//! variants. One body per property; [`ways::for_every_way`] runs it everywhere.

mod again;
mod block_shapes;
mod dag;
mod faults;
mod graphs;
mod image;
mod logs;
mod stuck;
mod trace;
mod ways;

use pto_graph::builder_set;

builder_set! {
    /// Every builder program of these tests.
    struct ConformanceBuilders {
        "dag" => dag::build,
        "logs" => logs::build,
        "code" => faults::returns_a_code,
        "panics" => faults::panics,
        "unknown_func" => faults::names_an_unknown_func,
        "missing_kernel" => faults::names_a_missing_kernel,
        "an_aiv_task" => faults::adds_an_aiv_task,
        "cycle" => faults::adds_a_cycle,
        "not_published" => faults::forgets_to_publish,
        "stuck_builder" => stuck::builder,
        "stuck_kernel" => stuck::kernel_task,
        "slow_chain" => stuck::slow_chain,
    }
}
