//! How many instructions builder and scheduler take per task on AArch64, counted exactly: one vCPU, and a clock
//! that ticks once an instruction. The goldens are in `goldens/instructions.txt`, with a tolerance of 2 %, and shown in
//! `docs/measurements/images.md`.
//!
//! After a change that is meant: `PTO_BLESS=1 cargo test -p pto-images --test emulated counts`.

use std::fmt::Write;

use crate::built::Images;
use crate::goldens;
use crate::graphs::{Pattern, Submission, Unit};
use crate::session::Tables;
use crate::session::{Session, Setup};
use pto_abi::FanoutStrategy;
use pto_abi::sync::Ordering;
use pto_aicore_kernels::func;
use pto_host::qemu::QemuOptions;
use pto_host::qemu::process::Execution;

/// Each in two sizes: what they differ by is the tasks' own, without bring-up and end of a run.
const GRAPHS: [(&str, [Pattern; 2]); 29] = [
    ("chain", [Pattern::Chain(1000), Pattern::Chain(4000)]),
    ("independent", [Pattern::Independent(1000), Pattern::Independent(4000)]),
    ("fork_join", [Pattern::ForkJoin(8, 100), Pattern::ForkJoin(38, 100)]),
    ("wavefront", [Pattern::Wavefront(64, 16), Pattern::Wavefront(64, 64)]),
    // Rows of 64 tasks, each a range, without edges, with one and with three, and with one that a list says; and rows of one task.
    ("rows", [Pattern::Rows(64, 16, 0), Pattern::Rows(64, 64, 0)]),
    ("rows_one", [Pattern::Rows(64, 16, 1), Pattern::Rows(64, 64, 1)]),
    ("rows_three", [Pattern::Rows(64, 16, 3), Pattern::Rows(64, 64, 3)]),
    ("row_listed", [Pattern::Listed(64, 16), Pattern::Listed(64, 64)]),
    ("row_of_one", [Pattern::Rows(1, 1000, 0), Pattern::Rows(1, 4000, 0)]),
    // Tasks of 4 and of 12 words; chains of 16 and of 48 kernels, a word of which is another one for each, and of three
    // links of 16 kernels.
    ("words_4", [Pattern::Words(1000, 4, 0, 0), Pattern::Words(4000, 4, 0, 0)]),
    ("words_12", [Pattern::Words(1000, 12, 0, 0), Pattern::Words(4000, 12, 0, 0)]),
    ("chain_of_16", [Pattern::Words(50, 9, 16, 1), Pattern::Words(150, 9, 16, 1)]),
    ("chain_of_48", [Pattern::Words(50, 9, 48, 1), Pattern::Words(150, 9, 48, 1)]),
    ("three_links", [Pattern::Words(50, 9, 16, 3), Pattern::Words(150, 9, 16, 3)]),
    // The same chains of a template, in which a word of each link is set; and with a template for each.
    ("template_16", templates(16, 1, false)),
    ("template_48", templates(48, 1, false)),
    ("template_links", templates(16, 3, false)),
    ("template_each", templates(16, 1, true)),
    // Two tensors a task: without edges, and with two that are derived.
    ("apart", [Pattern::Tensors(1000, 1 << 20), Pattern::Tensors(4000, 1 << 20)]),
    ("derived", [Pattern::Tensors(1000, 64), Pattern::Tensors(4000, 64)]),
    // The same on tiles, which are used again after 256 tasks: one by one, and each row of eight as a range.
    ("tiles", tiles(Submission::OneByOne)),
    ("tiles_range", tiles(Submission::AtOnce)),
    // In turns a task on a tile, and a chain of seven kernels on tiles. The one vCPU completes no task before all are built, so that each chain is
    // compared with all before it: few of them, as there are under way on a device.
    ("tile_chains", [Pattern::TileChains(16), Pattern::TileChains(64)]),
    // The same on tiles that are dense, so that each part of a tensor is one run of bytes.
    ("dense_chains", [Pattern::DenseChains(16), Pattern::DenseChains(64)]),
    // Tasks as `words_4` and chains as `chain_of_16` in a streaming run: by themselves, and each after the one before.
    ("stream_4", stream_words(1000, Unit::Task, false)),
    ("stream_4_edge", stream_words(1000, Unit::Task, true)),
    ("stream_16", stream_words(50, Unit::Chain, false)),
    ("stream_16_edge", stream_words(50, Unit::Chain, true)),
    ("stream_template", stream_words(50, Unit::Template, true)),
];
const WORKERS: u32 = 8;

const fn tiles(how: Submission) -> [Pattern; 2] {
    [Pattern::Tiles(1024, how), Pattern::Tiles(4096, how)]
}

const fn templates(times: u64, links: u64, anew: bool) -> [Pattern; 2] {
    let [few, many] = [50, 150];
    [
        Pattern::Templates(few, 9, times, links, anew),
        Pattern::Templates(many, 9, times, links, anew),
    ]
}

const fn stream_words(tasks: u64, unit: Unit, in_turn: bool) -> [Pattern; 2] {
    [Pattern::StreamWords(tasks, unit, in_turn), Pattern::StreamWords(4 * tasks, unit, in_turn)]
}

/// Instructions per task of builder and scheduler.
fn count(session: &mut Session, patterns: [Pattern; 2], fanout: FanoutStrategy) -> [f64; 2] {
    let [small, large] = patterns.map(|pattern| count_run(session, pattern, fanout));
    #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
    std::array::from_fn(|instance| {
        (large[instance] - small[instance]) as f64 / (large[2] - small[2]) as f64
    })
}

/// Instructions of builder and scheduler in one run, and its tasks.
fn count_run(session: &mut Session, pattern: Pattern, fanout: FanoutStrategy) -> [u64; 3] {
    let setup = Setup {
        fanout,
        variant: pattern.variant(),
        workers: [0, WORKERS],
        func_id: func::EMPTY_AIV.0,
        tables: Tables::None,
        ..Setup::default()
    };
    let ended = session.run(pattern, &setup).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(ended.fault, None, "{pattern:?}: {:?}", ended.logs);
    let ticks = |instance: usize| {
        session.machine.block().vcpus[instance].step_ticks.load(Ordering::Relaxed)
    };
    [ticks(0), ticks(1), ended.completed]
}

/// One vCPU, whose clock ticks once an instruction.
fn counted() -> Session {
    let image = Images::get().firmware.clone();
    let options = QemuOptions { execution: Execution::Counted, ..QemuOptions::new(image, 1) };
    Session::boot(&options).unwrap_or_else(|error| panic!("{error}"))
}

fn table() -> String {
    let mut table = String::from("graph          fanout     builder scheduler\n");
    for &fanout in FanoutStrategy::ALL {
        for (name, patterns) in GRAPHS {
            // The runs of a session share its memory, which would not hold the arenas of all graphs.
            let mut session = counted();
            let [builder, scheduler] = count(&mut session, patterns, fanout);
            writeln!(table, "{name:14} {fanout:10} {builder:7.1} {scheduler:9.1}").unwrap();
            assert_eq!(
                count(&mut session, patterns, fanout),
                [builder, scheduler],
                "always the same"
            );
        }
    }
    table
}

/// What the counts rest on: a kernel that is longer by 100 instructions takes 100 ticks of 16 ns more.
#[test]
fn a_tick_is_an_instruction() {
    let mut session = counted();
    let mut busy_ns = |length: usize| {
        let mut code = vec![0xD503_201F_u32; length]; // nop
        code.push(0xD65F_03C0); // ret
        let bytes: Vec<u8> = code.iter().flat_map(|word| word.to_le_bytes()).collect();
        let kernel = session.add_code(&bytes);
        session.set_kernel(func::EMPTY_AIV.0, kernel);
        let setup = Setup {
            workers: [0, 1],
            func_id: func::EMPTY_AIV.0,
            tables: Tables::None,
            ..Setup::default()
        };
        let ended = session.run(Pattern::Chain(10), &setup).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(ended.fault, None);
        ended.busy_ns
    };
    assert_eq!(busy_ns(1100) - busy_ns(1000), 10 * 100 * 16);
}

#[test]
fn instructions_per_task() {
    goldens::check("instructions", &table());
}
