//! The files of the field's diagnostics, of programs whose tasks and edges are known.

use crate::bench::run_on;
use crate::bench::{device, modes};
use pto_field::{Architecture, CallOptions, Keeps, RunLog};
use serde_json::Value;

fn kept(entry: &str, keeps: Keeps) -> RunLog {
    let options = CallOptions { keeps, ..CallOptions::default() };
    let (outcome, _) = run_on(&device(modes()[0]), entry, &options);
    assert_eq!(outcome.error, None, "{entry}");
    outcome.run_log.unwrap_or_else(|| panic!("{entry} keeps nothing"))
}

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

/// Task ids as the field writes them: ring and number.
fn id(ring: u64, number: u64) -> String {
    (ring << 32 | number).to_string()
}

#[test]
fn edges_of_the_example_are_those_of_the_field() {
    let deps =
        parsed(&kept("vector_example", Keeps { graph: true, ..Keeps::default() }).deps_json());
    let edges = deps["edges"].as_array().unwrap();
    let mut pairs: Vec<(&str, &str)> = edges
        .iter()
        .map(|edge| (edge["pred"].as_str().unwrap(), edge["succ"].as_str().unwrap()))
        .collect();
    pairs.sort_unstable();
    pairs.dedup();
    let task = |number: u64| id(1, number);
    let expected = [
        (id(0, 0), task(0)),
        (id(0, 0), task(1)),
        (id(0, 0), task(3)),
        (task(0), task(2)),
        (task(1), task(2)),
        (task(2), task(3)),
    ];
    let expected: Vec<(&str, &str)> =
        expected.iter().map(|(one, other)| (one.as_str(), other.as_str())).collect();
    assert_eq!(pairs, expected);
    assert!(
        edges.iter().all(|edge| edge["source"] == "creator" && edge["consumer_shape"][0] == 1024)
    );
    assert_eq!(deps["tasks"][1]["kernel_ids"], serde_json::json!([-1, 2, -1]));
}

#[test]
fn a_chain_in_place_has_edges_of_overlap_and_no_reader_holds_a_writer() {
    let keeps = Keeps { graph: true, ..Keeps::default() };
    let deps = parsed(&kept("chain", keeps).deps_json());
    let edges = deps["edges"].as_array().unwrap();
    assert_eq!(edges.len(), 49, "each task replaces the writer before it");
    assert!(edges.iter().all(|edge| edge["source"] == "tensormap" && edge["overlap"] == "covered"));
    let racing = parsed(&kept("write_after_read", keeps).deps_json());
    let waits = |succ: &str| {
        racing["edges"].as_array().unwrap().iter().filter(|edge| edge["succ"] == succ).count()
    };
    assert_eq!(
        (waits("1"), waits("2")),
        (1, 0),
        "the writer after the reader waits for no task there"
    );
}

#[test]
fn scopes_are_sampled_at_both_ends() {
    let run_log = kept("vector_example", Keeps { graph: true, ..Keeps::default() });
    let text = run_log.scope_stats_jsonl(false);
    let lines: Vec<Value> = text.lines().map(parsed).collect();
    assert_eq!((lines.len(), &lines[0]["version"], &lines[0]["total"]), (5, &6.into(), &4.into()));
    let inner = &lines[3];
    assert_eq!((inner["phase"].as_str(), inner["depth"].as_u64()), (Some("end"), Some(1)));
    assert!(inner["site"].as_str().unwrap().starts_with("orchestrations.cpp:"), "{inner}");
    assert_eq!(
        (inner["task_window_start"].as_u64(), inner["task_window_end"].as_u64()),
        (Some(0), Some(4))
    );
    assert_eq!(inner["heap_end"].as_u64(), Some(3 * 4096), "three tensors of 1,024 floats");
}

#[test]
fn every_call_of_a_kernel_has_a_span() {
    let run_log = kept("mix_blocks", Keeps { spans: true, ..Keeps::default() });
    let swimlane = parsed(&run_log.swimlane_json(1));
    let spans = swimlane["aicore_tasks"].as_array().unwrap();
    assert_eq!(spans.len(), 60, "20 blocks of three kernels");
    assert!(spans.iter().all(|span| span[3].as_u64() <= span[4].as_u64() && span[0].is_u64()));
    let lines = run_log.pmu_csv(Architecture::A2a3);
    let cubes = lines.lines().skip(1).filter(|line| line.split(',').nth(4) == Some("0")).count();
    assert_eq!((cubes, lines.lines().count()), (20, 61));
}

/// The cells of a column of `pmu.csv`, by func id.
fn cells(table: &str, column: &str) -> Vec<(String, String)> {
    let mut lines = table.lines().map(|line| line.split(',').collect::<Vec<&str>>());
    let names = lines.next().unwrap();
    let at = |wanted: &str| names.iter().position(|name| *name == wanted).unwrap();
    let (func_id, cell) = (at("func_id"), at(column));
    let mut found: Vec<_> =
        lines.map(|line| (line[func_id].to_owned(), line[cell].to_owned())).collect();
    found.sort();
    found
}

/// `k_mul` reports a product of 1,024 floats, a sort and something unknown, and the other kernels report nothing.
#[test]
fn pipes_are_busy_as_long_as_the_instructions_that_kernels_report() {
    let keeps = Keeps { spans: true, ..Keeps::default() };
    let options = CallOptions { keeps, ..CallOptions::default() };
    for mode in modes() {
        let run = |entry: &str| run_on(&device(mode), entry, &options).0.run_log.unwrap();
        let run_log = run("vector_example");
        let table = run_log.pmu_csv(Architecture::A2a3);
        let owned = |rows: [(&str, &str); 5]| {
            rows.map(|(func_id, cell)| (func_id.to_owned(), cell.to_owned())).to_vec()
        };
        let vector = cells(&table, "vec_busy_cycles");
        // 13 + 19, and 2 for each of 16 repeats; 6 + 2 for the sort.
        assert_eq!(vector, owned([("0", ""), ("0", ""), ("1", "72"), ("2", ""), ("2", "")]));
        let cube = cells(&table, "cube_busy_cycles");
        assert_eq!(cube, owned([("0", ""), ("0", ""), ("1", "0"), ("2", ""), ("2", "")]));
        let unknown = cells(&table, "icache_req");
        assert!(unknown.iter().all(|(_, cell)| cell.is_empty()), "{table}");
        let notes = run_log.pmu_notes(Architecture::A2a3);
        let has = |part: &str| notes.iter().any(|note| note.contains(part));
        assert!(has("scalar_busy_cycles, icache_miss, icache_req are empty"), "{notes:?}");
        assert!(has("The kernels with func id 0, 2 have no tile instruction"), "{notes:?}");
        assert!(has("no numbers for TSORT32"), "{notes:?}");
        assert!(has("No pipe is known for TNEW"), "{notes:?}");
        let other = run_log.pmu_csv(Architecture::A5);
        assert_eq!(cells(&other, "pmu_idc_aic_vec_busy_o"), vector);
        // Every block and lane has what its own call reported: the marks are one store each.
        let blocks = run("mix_blocks").pmu_csv(Architecture::A2a3);
        let mut stores: Vec<String> =
            cells(&blocks, "mte3_busy_cycles").into_iter().map(|(_, cell)| cell).collect();
        stores.sort();
        stores.dedup();
        assert_eq!(
            stores.len(),
            41,
            "40 calls on vector cores differ, and those on cube cores are silent: {blocks}"
        );
    }
}

/// The numbers of a phase: begin, end, how many tasks.
fn numbers(phase: &Value) -> [u64; 3] {
    ["start_cycles", "end_cycles", "tasks_processed"].map(|name| phase[name].as_u64().unwrap())
}

#[test]
fn a_level_adds_to_the_one_below() {
    let keeps = Keeps { spans: true, ..Keeps::default() };
    let options = CallOptions { keeps, ..CallOptions::default() };
    for mode in modes() {
        let (outcome, _) = run_on(&device(mode), "vector_example", &options);
        let run_log = outcome.run_log.unwrap();
        let [first, second, third, fourth] =
            [1, 2, 3, 4].map(|level| parsed(&run_log.swimlane_json(level)));
        assert_eq!(
            (&first["aicpu_tasks"], &second["aicore_tasks"]),
            (&serde_json::json!([]), &first["aicore_tasks"])
        );
        let seen = second["aicpu_tasks"].as_array().unwrap();
        assert_eq!(seen.len(), 5);
        for (call, seen) in first["aicore_tasks"].as_array().unwrap().iter().zip(seen) {
            let at = |value: &Value, index: usize| value[index].as_u64().unwrap();
            assert_eq!((at(call, 0), at(call, 2)), (at(seen, 0), at(seen, 1)), "core and number");
            let moments = [at(seen, 2), at(call, 3), at(call, 4), at(seen, 3)];
            assert!(moments.is_sorted(), "doorbell, start, end, seen: {moments:?}, {mode:?}");
        }
        assert!(
            second["aicpu_scheduler_phases"].is_null()
                && third["aicpu_orchestrator_phases"].is_null()
        );
        let phases: Vec<&Value> = third["aicpu_scheduler_phases"]
            .as_array()
            .unwrap()
            .iter()
            .flat_map(|thread| thread.as_array().unwrap())
            .collect();
        let count = |kind: &str| {
            phases.iter().filter(|one| one["kind"] == kind).map(|one| numbers(one)[2]).sum::<u64>()
        };
        assert_eq!(
            (count("complete"), count("dispatch"), count("resolve")),
            (5, 5, 6),
            "five tasks, six edges"
        );
        assert!(phases.iter().all(|one| numbers(one)[0] <= numbers(one)[1]));
        let cores = third["metadata"]["core_to_thread"].as_array().unwrap();
        assert_eq!(cores.len(), 24);
        let ran = first["aicore_tasks"][0][0].as_u64().unwrap();
        assert!(cores[usize::try_from(ran).unwrap()].as_i64().unwrap() >= 0);
        let submitted = fourth["aicpu_orchestrator_phases"][0].as_array().unwrap();
        assert_eq!((submitted.len(), submitted[4]["submit_idx"].as_u64()), (5, Some(4)));
    }
}

#[test]
fn tasks_without_kernels_and_starts_at_once_have_phases_of_their_own() {
    let phases = |entry: &str| {
        let run_log = kept(entry, Keeps { spans: true, ..Keeps::default() });
        let all = parsed(&run_log.swimlane_json(3));
        let threads = all["aicpu_scheduler_phases"].as_array().unwrap().clone();
        let all: Vec<Value> =
            threads.into_iter().flat_map(|thread| thread.as_array().unwrap().clone()).collect();
        move |kind: &str| {
            all.iter().filter(|one| one["kind"] == kind).cloned().collect::<Vec<Value>>()
        }
    };
    let skipped = phases("skipped")("predicated_skip");
    assert!(
        !skipped.is_empty() && skipped.iter().all(|one| one["task_id"].is_u64()),
        "{skipped:?}"
    );
    assert!(!phases("dummies")("dummy_task").is_empty());
    let of = phases("sync_start");
    let blocks = |kind: &str| of(kind).iter().map(|one| numbers(one)[2]).sum::<u64>();
    assert!(blocks("drain") > 0, "all blocks at once");
    assert_eq!(
        (blocks("drain"), blocks("drain")),
        (blocks("drain_prepare"), blocks("drain_publish"))
    );
}

#[test]
fn times_of_a_run_in_virtual_time_are_virtual() {
    let keeps = Keeps { spans: true, ..Keeps::default() };
    let options = CallOptions { keeps, ..CallOptions::default() };
    let run = || run_on(&device(modes()[2]), "vector_example", &options).0.run_log.unwrap();
    let (one, other) = (run(), run());
    assert_eq!(one.swimlane_json(4), other.swimlane_json(4), "the same run twice");
    let counters = |run_log: &RunLog| run_log.pmu_csv(Architecture::A5);
    assert_eq!(counters(&one), counters(&other));
    assert!(
        one.swimlane().calls.iter().all(|call| call.end - call.begin >= 5_000),
        "5 us a kernel"
    );
}

#[test]
fn arguments_are_dumped_before_and_after_their_task() {
    let all = kept("basics_of_dumps", Keeps { arguments: 2, ..Keeps::default() });
    let manifest = parsed(&all.args_dump_json());
    let entries = manifest["args"].as_array().unwrap();
    let stages: Vec<_> = entries
        .iter()
        .map(|entry| (entry["arg_index"].as_u64().unwrap(), entry["stage"].as_str().unwrap()))
        .collect();
    let (before, after) = ("before_dispatch", "after_completion");
    assert_eq!(stages, [(0, before), (1, before), (2, before), (0, after)]);
    let floats: Vec<f32> = all
        .dumped()
        .bytes
        .chunks_exact(4)
        .map(|bytes| f32::from_le_bytes(bytes.try_into().unwrap()))
        .collect();
    assert_eq!(
        (floats.len(), floats[0], floats[32]),
        (64, 0.0, 3.0),
        "a tile before the task, and after it"
    );
    let marked = parsed(
        &kept("basics_of_dumps", Keeps { arguments: 1, ..Keeps::default() }).args_dump_json(),
    );
    let scalar = &marked["args"][0];
    assert_eq!((marked["total_args"].as_u64(), scalar["arg_index"].as_u64()), (Some(1), Some(1)));
    assert_eq!(scalar["arg_index_ambiguous"], true, "two scalars have the name");
}
