//! Ring sizes: what does not suffice is found, what is said to suffice does, and less does not.

use pto_abi::BuildMode;
use pto_check::program::Program;
use pto_check::{Kind, Rings};

use crate::{checked, standard, streaming};

/// Scopes with tensors of two sizes, and tasks of two sizes that use them.
fn program(scopes: usize) -> Program {
    let mut lines = vec![r#"{"tensor": 0, "element": "f32", "shape": [64]}"#.to_owned()];
    for scope in 0..scopes {
        let (a, b, first) = (10 * scope + 1, 10 * scope + 2, 4 * scope);
        lines.push(r#"{"scope": "derived"}"#.into());
        lines.push(format!(r#"{{"alloc": {a}, "element": "f32", "shape": [100]}}"#));
        lines.push(format!(r#"{{"alloc": {b}, "element": "f32", "shape": [64]}}"#));
        lines.push(format!(r#"{{"task": {first}, "func": 1, "kind": "aiv", "args": [{{"in": 0}}, {{"out": {a}}}]}}"#));
        for next in 1..3 {
            let task = first + next;
            lines.push(format!(r#"{{"task": {task}, "func": 1, "kind": "aiv", "args": [{{"in": {a}}}, {{"inout": {b}}}, 1, 2, 3]}}"#));
        }
        lines.push(r#"{"end": "scope"}"#.into());
    }
    streaming(&lines.iter().map(String::as_str).collect::<Vec<_>>())
}

fn needs(program: &Program, rings: Rings) -> Vec<(String, u64)> {
    let report = checked(program, rings);
    report.rings.iter().map(|ring| (ring.name.clone(), ring.needs)).collect()
}

#[test]
fn needs_are_those_of_the_largest_task_and_scope() {
    let expected = [
        ("window", 1),
        ("arguments", 6),
        ("edges", 0),
        ("tensor map", 256),
        ("heap 1", 448 + 256 + 448),
    ];
    let expected = expected.map(|(name, needs)| (name.to_owned(), needs));
    let found = needs(&program(50), standard());
    let used: Vec<_> = found.into_iter().filter(|(_, needs)| *needs > 0).collect();
    assert_eq!(used, expected.into_iter().filter(|(_, needs)| *needs > 0).collect::<Vec<_>>());
}

#[test]
fn what_suffices_does_and_less_does_not() {
    let program = program(50);
    let least = Rings {
        window: 1,
        arg_words: 6,
        edge_chunks: 1,
        map_entries: 256,
        heap_bytes: 1152,
        ..standard()
    };
    assert!(checked(&program, least).is_clean());
    let less = |rings: Rings, words: &[&str]| {
        let report = checked(&program, rings);
        assert_eq!((report.findings.len(), report.count(Kind::Ring)), (1, 1));
        let text = report.findings[0].to_string();
        assert!(words.iter().all(|word| text.contains(word)), "{text}");
        // What it says besides does not depend on what it was given.
        assert_eq!(report.rings[1].needs, 6);
    };
    less(Rings { arg_words: 5, ..least }, &["STREAM_ARGS_RING", "task 1", "arguments", "need 6"]);
    let heap =
        ["STREAM_HEAP_RING", "heap 1 (scope 1)", "448 bytes in use", "1152 bytes a heap", "line 5"];
    less(Rings { heap_bytes: 640, ..least }, &heap);
    less(Rings { heap_rings: 1, ..least }, &["STREAM_SCOPE_DEPTH", "2 deep"]);
}

/// While schedulers wait for the program, everything has to fit.
#[test]
fn sequential_mode_needs_all_of_it() {
    let program = program(40);
    let sequential = Rings { build_mode: BuildMode::SEQUENTIAL, ..standard() };
    let found = needs(&program, sequential);
    assert_eq!(found[0], ("window".to_owned(), 128));
    assert_eq!(found[1], ("arguments".to_owned(), 40 * (3 + 6 + 6)));
    assert_eq!(found[4], ("heap 1".to_owned(), 40 * (448 + 256)));
    let report = checked(&program, Rings { window: 64, ..sequential });
    let text = report.findings[0].to_string();
    assert!(text.contains("STREAM_WINDOW_RING") && text.contains("window of 128"), "{text}");
}

/// Tasks that are not published keep their slots, words and chunks.
#[test]
fn tasks_that_are_published_late_are_counted() {
    let task = |id: u32, more: &str| {
        format!(r#"{{"task": {id}, "func": 0, "kind": "aiv", "args": [1, 2, 3]{more}}}"#)
    };
    let mut lines = vec![task(0, r#", "publish": "later""#)];
    lines.extend((1..10).map(|id| task(id, "")));
    lines.push(r#"{"publish": 0}"#.into());
    let program = streaming(&lines.iter().map(String::as_str).collect::<Vec<_>>());
    let found = needs(&program, standard());
    assert_eq!((found[0].1, found[1].1), (16, 40), "ten tasks of four words");
    let report = checked(&program, Rings { window: 8, ..standard() });
    let text = report.findings[0].to_string();
    assert!(
        text.contains("STREAM_WINDOW_RING at task 8") && text.contains("window of 16"),
        "{text}"
    );
    assert_eq!(report.findings[0].tasks, [8]);
}

/// A task that waits for one which the window has no room for.
#[test]
fn a_builder_that_waits_for_itself_is_found() {
    let mut lines = vec![r#"{"task": 0, "func": 0, "kind": "aiv", "publish": "later"}"#.to_owned()];
    lines.push(r#"{"task": 1, "func": 0, "kind": "aiv", "publish": "later"}"#.into());
    lines.push(r#"{"edge": [1, 0]}"#.into());
    lines.push(r#"{"publish": 0}"#.into());
    lines.extend(
        (2..20).map(|id| format!(r#"{{"task": {id}, "func": 0, "kind": "aiv", "after": [0]}}"#)),
    );
    lines.push(r#"{"publish": 1}"#.into());
    let program = streaming(&lines.iter().map(String::as_str).collect::<Vec<_>>());
    assert!(checked(&program, standard()).is_clean());
    let report = checked(&program, Rings { window: 8, ..standard() });
    let text = report.findings[0].to_string();
    assert!(text.contains("STREAM_WINDOW_RING") && text.contains("window of 32"), "{text}");
}

#[test]
fn sizes_that_no_launch_takes_are_told_apart() {
    let defect = |rings: Rings| rings.defect().map(|(fault, found)| (fault.name(), found));
    assert_eq!(defect(standard()), None);
    assert_eq!(defect(Rings { window: 3, ..standard() }), Some(("STREAM_WINDOW_SIZE", 3)));
    assert_eq!(defect(Rings { map_entries: 128, ..standard() }), Some(("STREAM_MAP_SIZE", 128)));
    assert_eq!(defect(Rings { heap_rings: 9, ..standard() }), Some(("STREAM_HEAP_SIZE", 9)));
    assert_eq!(defect(Rings { heap_bytes: 65, ..standard() }), Some(("STREAM_HEAP_SIZE", 65)));
    assert_eq!(defect(Rings { arg_words: 0, ..standard() }), Some(("STREAM_RING_SIZE", 0)));
}
