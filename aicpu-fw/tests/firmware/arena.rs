//! An arena in ordinary memory, as a host prepares it.

use std::alloc::{Layout, alloc_zeroed, dealloc};

use pto_abi::arena::{Arena, ArenaLayout, Capacities};
use pto_abi::gm::GmWindow;
use pto_abi::handshake::Handshake;
use pto_abi::kinds::RunFlags;
use pto_abi::launch::{Epochs, LaunchBlock};
use pto_abi::launch_args::LaunchArgs;
use pto_abi::limits::MAX_FUNC_ID;
use pto_abi::runtime::{OrchArgs, RunConfig};
use pto_abi::stream::StreamCapacities;
use pto_abi::trace::TraceCapacities;
use pto_abi::{BuildMode, FanoutStrategy, GmAddr, RuntimeVariant};

/// First address of the tests' GM.
const GM: GmAddr = GmAddr(0x8000_0000);
/// GM before and after the arena.
const MARGIN: u64 = 4096;
/// What an arena of the tests provides for.
pub(crate) const CAPACITIES: Capacities = Capacities {
    tasks: 8,
    arg_words: 32,
    edges: 12,
    image_bytes: 512,
    log_entries: 2,
    trace: TraceCapacities { instances: 3, instance_events: 8, cores: 9, core_events: 4 },
    stream: StreamCapacities { window: 8, map_entries: 256, heap_rings: 1, heap_bytes: 64 },
};

/// Passes a valid launch to `test`: 3 AIC, 6 AIV, 3 AICPU instances, `aicpu_build_graph`.
pub(crate) fn with_arena<R>(test: impl FnOnce(Arena<'_>) -> R) -> R {
    let layout = ArenaLayout::plan(&CAPACITIES).unwrap();
    let bytes = layout.total_bytes + 2 * MARGIN;
    let memory = Layout::from_size_align(usize::try_from(bytes).unwrap(), 4096).unwrap();
    // SAFETY: the layout has a size above zero.
    let start = unsafe { alloc_zeroed(memory) };
    assert!(!start.is_null());
    // SAFETY: the memory is mapped until the end of this function, is aligned to a page, and is reached
    // through windows only.
    let gm = unsafe { GmWindow::from_raw(start, bytes, GM) };
    let result = {
        let arena = Arena::new(gm, GM.offset(MARGIN), layout.total_bytes).unwrap();
        prepare(&arena, &layout);
        test(arena)
    };
    // SAFETY: allocated above with this layout; `test` cannot keep the arena.
    unsafe { dealloc(start, memory) };
    result
}

fn prepare(arena: &Arena<'_>, layout: &ArenaLayout) {
    let config = RunConfig {
        variant: RuntimeVariant::AICPU_BUILD_GRAPH.get(),
        build_mode: BuildMode::CONCURRENT.get(),
        fanout: FanoutStrategy::LOCK_FREE.get(),
        flags: RunFlags::KEEP_CORES.bits(),
        aicpu_instances: 3,
        worker_count: 0,
        builder: 99,
        task_budget_ns: 1,
        stall_budget_ns: 2,
        bring_up_budget_ns: 3,
        run_budget_ns: 4,
    };
    let block = LaunchBlock {
        config,
        orch: OrchArgs::of(LaunchArgs::default()).unwrap(),
        capacities: &CAPACITIES,
        image_bytes: CAPACITIES.image_bytes,
        kernels: &[0x40; MAX_FUNC_ID],
        cores: [3, 6],
        epochs: Epochs { run: 5, bring_up: 2 },
    };
    block.write(arena, layout).unwrap();
    arena.workers().iter().for_each(Handshake::reset);
}
