//! Every program of the table, in every hosting mode; and the errors of programs with a mistake.

use crate::bench::{device, modes, program, run_on};
use crate::shapes::{SHAPES, has_exponentials, is_close};
use crate::table::{BAD, GOOD, ProgramTensors};
use pto_field::{CallOptions, EdgeRule, FieldDevice, Keeps, Rings, TheirLimits};
use pto_host::Hosting;

fn check_good(device: &FieldDevice, options: &CallOptions, left_out: &[&str], mode: &Hosting) {
    for (entry, expected) in
        GOOD.iter().chain(SHAPES).filter(|(entry, _)| !left_out.contains(entry))
    {
        let (outcome, found) = run_on(device, entry, options);
        assert_eq!((outcome.code, &outcome.error), (0, &None), "{entry}, {mode:?}");
        let expected = expected(ProgramTensors::new());
        let is_right =
            if has_exponentials(entry) { is_close(&found, &expected) } else { found == expected };
        assert!(is_right, "{entry}, {mode:?}: {found:?}, and not {expected:?}");
    }
}

#[test]
fn programs_run_in_every_hosting_mode() {
    for mode in modes() {
        check_good(&device(mode), &CallOptions::default(), &[], &mode);
    }
}

/// A task completes when others have notified it that it has no edges from. On one OS thread they cannot, and the error names the modes in which they
/// can.
#[test]
fn a_completion_waits_for_other_tasks_where_they_can_run() {
    let [_, threads, machine] = modes();
    for mode in [threads, machine] {
        let (outcome, found) = run_on(&device(mode), "notified_later", &CallOptions::default());
        assert_eq!((outcome.code, &outcome.error), (0, &None), "{mode:?}");
        assert_eq!((found.counts[0], found.out[0]), (4, 1.0), "{mode:?}");
    }
    let one = Hosting::Pool { os_threads: std::num::NonZero::<usize>::MIN };
    let (outcome, _) = run_on(&device(one), "notified_later", &CallOptions::default());
    let error = outcome.error.expect("no task notifies it");
    assert_eq!((outcome.code, error.code.0), (-100, 100), "{error}");
    assert!(error.hint.contains("hosting mode `threads` or `virtual`"), "{error}");
}

/// A flag that all blocks raise comes where each of them has an OS thread, and elsewhere where they start at once. What cannot
/// come is reported without waiting for it.
#[test]
fn a_meeting_of_blocks_that_may_not_begin_is_refused_at_once() {
    let [pool, threads, machine] = modes();
    let entry = "meeting_that_may_not_begin";
    for mode in [pool, machine] {
        let (outcome, _) = run_on(&device(mode), entry, &CallOptions::default());
        let error = outcome.error.expect("its blocks run one after the other");
        assert_eq!(error.code.0, 100, "{error}");
        assert!(error.detail.contains("waits for the cores of all 16 blocks"), "{error}");
        assert!(error.hint.contains("set_require_sync_start(true)"), "{error}");
    }
    let (outcome, found) = run_on(&device(threads), entry, &CallOptions::default());
    assert_eq!((outcome.error, found.counts[31]), (None, 16));
}

/// Separate tasks that wait for each other while they run: with a thread for each core, and in virtual time, where a kernel goes on after its call
/// and others get their turns. A pool ends the run with its budget and says which modes do it.
#[test]
fn tasks_that_wait_for_each_other_run_where_both_can() {
    let [_, threads, machine] = modes();
    for mode in [threads, machine] {
        let (outcome, found) = run_on(&device(mode), "tasks_that_wait", &CallOptions::default());
        assert_eq!((outcome.code, &outcome.error), (0, &None), "{mode:?}");
        assert_eq!((&found.counts[..4], found.out[0]), (&[1, 1, 1, 1][..], 1.0), "{mode:?}");
        let notes = outcome.notes.iter().filter(|note| note.contains("the run went on around it"));
        assert_eq!(notes.count(), usize::from(matches!(mode, Hosting::Virtual(_))), "{mode:?}");
    }
    let mut options = CallOptions::default();
    options.run.task_budget = std::time::Duration::from_millis(500);
    let one = Hosting::Pool { os_threads: std::num::NonZero::<usize>::MIN };
    let (outcome, _) = run_on(&device(one), "tasks_that_wait", &options);
    let error = outcome.error.expect("one OS thread runs both");
    assert_eq!(error.code.0, 100, "{error}");
    assert!(error.hint.contains("hosting mode `threads`, or `virtual`"), "{error}");
}

/// Where one OS thread runs several cores, kernels that look at memory through the prelude while no kernel can write it end the run at once. Kernels that
/// see something new do not.
#[test]
fn kernels_that_look_for_what_cannot_come_are_refused_at_once() {
    let [_, threads, machine] = modes();
    let two = Hosting::Pool { os_threads: 2.try_into().unwrap() };
    let one = Hosting::Pool { os_threads: std::num::NonZero::<usize>::MIN };
    for entry in ["wait_by_ld_dev", "wait_by_dcci"] {
        for mode in [threads, machine] {
            let (outcome, found) = run_on(&device(mode), entry, &CallOptions::default());
            assert_eq!((outcome.code, &outcome.error), (0, &None), "{entry}, {mode:?}");
            assert_eq!(found.counts[..4], [1, 1, 1, 1], "{entry}, {mode:?}");
        }
        for mode in [one, two] {
            let (outcome, found) = run_on(&device(mode), entry, &CallOptions::default());
            let Some(error) = outcome.error else {
                // Each of the two threads may have come to run one of the kernels.
                assert_eq!((mode == two, &found.counts[..4]), (true, &[1, 1, 1, 1][..]), "{entry}");
                continue;
            };
            assert_eq!(error.code.0, 100, "{error}");
            assert!(error.detail.contains("looks at memory again and again"), "{error}");
            assert!(error.hint.contains("hosting mode `threads`, or `virtual`"), "{error}");
        }
    }
    let (outcome, found) = run_on(&device(one), "reads_for_long", &CallOptions::default());
    assert_eq!((outcome.error, found.counts[0]), (None, 1), "it computes");
}

#[test]
fn programs_run_under_the_rule_of_the_field() {
    let options = CallOptions { edges: EdgeRule::Theirs, ..CallOptions::default() };
    // These rely on an edge that the field does not make: the last one writes what an earlier task reads.
    let racing = ["write_after_read", "many_producers"];
    for mode in [modes()[0], modes()[2]] {
        check_good(&device(mode), &options, &racing, &mode);
    }
}

#[test]
fn mistakes_are_named_and_the_device_goes_on() {
    let device = device(modes()[0]);
    let options = CallOptions { rings: Rings::default(), ..CallOptions::default() };
    for (entry, code, said) in BAD {
        let (outcome, _) = run_on(&device, entry, &options);
        let error = outcome.error.as_ref().unwrap_or_else(|| panic!("{entry} succeeds"));
        assert_eq!(error.code.0, *code, "{entry}: {error}");
        assert_eq!(outcome.code, -i32::try_from(*code).unwrap());
        assert!(error.detail.contains(said), "{entry}: {error}");
        let (outcome, _) = run_on(&device, "chain", &options);
        assert_eq!(outcome.error, None, "after {entry}");
    }
}

/// The program reads beyond what it has allocated, and does nothing else: without a sanitizer it succeeds.
#[test]
#[ignore = "for `cargo xtask address`, which runs it to see it fail"]
fn the_sanitizer_sees_a_planted_mistake() {
    let (outcome, _) = run_on(&device(modes()[0]), "planted", &CallOptions::default());
    assert_eq!(outcome.error, None);
}

#[test]
fn more_tasks_than_the_field_holds() {
    let (outcome, found) = run_on(&device(modes()[0]), "large", &CallOptions::default());
    assert_eq!((outcome.error, outcome.tasks), (None, 65_792));
    assert_eq!(found.out, vec![2056.0; 1024]);
}

#[test]
fn a_program_that_the_rings_of_the_field_do_not_hold_gets_a_note() {
    let options = CallOptions { compares_rules: true, ..CallOptions::default() };
    let (outcome, _) = run_on(&device(modes()[0]), "large", &options);
    let [note] = outcome.notes.as_slice() else { panic!("{:?}", outcome.notes) };
    assert!(note.contains("fails there with code -1: the scope has 16383 tasks"), "{note}");
    assert_eq!(outcome.error, None);
}

#[test]
fn scalars_that_a_graph_would_keep_there_are_reported() {
    let options = CallOptions { compares_rules: true, ..CallOptions::default() };
    let device = device(modes()[0]);
    let (outcome, _) = run_on(&device, "frozen", &options);
    let [second, third] = outcome.notes.as_slice() else { panic!("{:?}", outcome.notes) };
    assert!(
        second.contains("scalar 0 of this task was 0x40000000"),
        "2.0 the first time: {second}"
    );
    assert!(second.contains("is 0x40800000 now") && third.contains("is 0x40c00000 now"));
    let (outcome, _) = run_on(&device, "graph_scalars", &options);
    assert!(outcome.notes[0].contains("this graph had 1 task when"), "{:?}", outcome.notes);
    for entry in ["graphs", "graph_keys", "graph_rounds"] {
        assert!(run_on(&device, entry, &options).0.notes.is_empty(), "{entry}");
    }
}

#[test]
fn lines_that_two_kernels_write_are_reported() {
    let options = CallOptions { finds_shared_lines: true, ..CallOptions::default() };
    for mode in [Hosting::Pool { os_threads: std::num::NonZero::<usize>::MIN }, modes()[2]] {
        let device = device(mode);
        let notes = |entry: &str| run_on(&device, entry, &options).0.notes;
        let of_blocks = notes("blocks");
        assert!(
            of_blocks[0].contains("blocks 0 and 1 of this task write different bytes of one line"),
            "{of_blocks:?}"
        );
        assert_eq!(of_blocks.len(), 1, "one for each location: {of_blocks:?}");
        let of_tasks = notes("thirds_of_a_line");
        let [note] = of_tasks.as_slice() else {
            panic!("the fourth task is ordered: {of_tasks:?}")
        };
        assert!(
            note.contains("nothing orders the two") && note.contains("orchestrations.cpp:"),
            "{note}"
        );
        for entry in ["vector_example", "tiles", "chain", "strided_tiles", "bgemm", "attention_2"] {
            assert!(notes(entry).is_empty(), "{entry}: {:?}", notes(entry));
        }
    }
    let refused = refused(&device(Hosting::Threads), &options);
    assert!(refused.contains("hosting mode `virtual`, or `pool` with one OS thread"), "{refused}");
}

/// Arguments that are no memory, or not in their buffer, are no argument's of the reports: a run with them goes as one without.
#[test]
fn arguments_without_memory_are_noted_where_contents_are_asked_for() {
    let plain = CallOptions { edges: EdgeRule::Theirs, ..CallOptions::default() };
    let dumps = CallOptions {
        keeps: Keeps { arguments: 2, ..Keeps::default() },
        compares_rules: true,
        ..plain.clone()
    };
    let lines = CallOptions { finds_shared_lines: true, ..plain.clone() };
    for mode in [Hosting::Pool { os_threads: std::num::NonZero::<usize>::MIN }, modes()[2]] {
        let device = device(mode);
        for (options, missing) in [
            (&plain, None),
            (&dumps, Some("its contents are missing")),
            (&lines, Some("what kernels write there is not compared")),
        ] {
            let (outcome, found) = run_on(&device, "unused_pointers", options);
            assert_eq!((outcome.error, found.counts[0]), (None, 1), "{missing:?}");
            let notes =
                outcome.notes.iter().filter(|note| note.contains("argument 1 of this task"));
            let notes: Vec<_> = notes.collect();
            assert_eq!(notes.len(), usize::from(missing.is_some()), "{:?}", outcome.notes);
            assert!(notes.iter().all(|note| note.contains(missing.unwrap())), "{notes:?}");
        }
    }
}

#[test]
fn a_completion_whose_counter_is_no_memory_is_refused() {
    for mode in modes() {
        let (outcome, _) = run_on(&device(mode), "counter_of_no_memory", &CallOptions::default());
        assert_eq!(outcome.error.expect("there is no counter").code.0, 101, "{mode:?}");
    }
}

/// Why a run of a program does not begin.
fn refused(device: &FieldDevice, options: &CallOptions) -> String {
    let control = pto_host::RunControl::default();
    let call = pto_field::Call { tensors: &[], scalars: &[] };
    // SAFETY: there are no tensors.
    let ended = unsafe { device.run(&program("chain"), &call, options, &control) };
    ended.map(|_| ()).unwrap_err().to_string()
}

#[test]
fn a_slow_kernel_is_no_stall() {
    let mut options = CallOptions::default();
    options.run.stall_budget = std::time::Duration::from_micros(200);
    let device = device(Hosting::Threads);
    assert_eq!(run_on(&device, "timing", &options).0.error, None, "slow, and alive");
}

#[test]
fn a_small_window_suffices() {
    let rings = Rings { window: 16, ..Rings::default() };
    let options = CallOptions { rings, ..CallOptions::default() };
    let device = device(modes()[0]);
    for entry in ["chain", "retired_dependency", "bgemm"] {
        let (outcome, _) = run_on(&device, entry, &options);
        assert_eq!(outcome.error, None, "{entry}");
    }
}

#[test]
fn the_limits_of_the_field_are_there_for_those_who_ask() {
    let options = |their_limits| CallOptions { their_limits, ..CallOptions::default() };
    let device = device(modes()[0]);
    let limits = TheirLimits { window: 4, dep_pool: 4 };
    let (outcome, _) = run_on(&device, "chain", &options(Some(limits)));
    assert_eq!((outcome.code, outcome.lines()[0].as_str()), (-1, "orch_error_code=1"));
    assert_eq!(run_on(&device, "chain", &options(None)).0.code, 0);
}

#[test]
fn messages_and_times_are_in_the_outcome() {
    let device = device(modes()[0]);
    let (outcome, _) = run_on(&device, "basics", &CallOptions::default());
    let said: Vec<_> = outcome.log.iter().map(|line| (line.level, line.text.as_str())).collect();
    assert_eq!(said, [(3, "scalar=5"), (1, "careful")]);
    assert!(outcome.log[0].location.contains("orchestrations.cpp:"), "{:?}", outcome.log);
    let (outcome, _) = run_on(&device, "timing", &CallOptions::default());
    let timed: Vec<_> = outcome.timing.iter().map(Option::is_some).collect();
    assert!(timed[3] && timed.iter().filter(|is_timed| **is_timed).count() == 1);
}

#[test]
fn races_under_the_rule_of_the_field_are_named() {
    let options = CallOptions { compares_rules: true, ..CallOptions::default() };
    let device = device(modes()[0]);
    let (outcome, _) = run_on(&device, "write_after_read", &options);
    let [note] = outcome.notes.as_slice() else { panic!("{:?}", outcome.notes) };
    assert!(
        note.contains("nothing orders the two") && note.contains("orchestrations.cpp:"),
        "{note}"
    );
    for entry in ["vector_example", "chain", "tiles", "manual_scope", "bgemm"] {
        let (outcome, _) = run_on(&device, entry, &options);
        assert!(outcome.notes.is_empty(), "{entry}: {:?}", outcome.notes);
    }
}
