//! What the loop makes a core do, counted: for each event, how often each register, the cache and its lines are touched. And what each kernel of the
//! library takes: instructions on tiles, and bytes of the local memories. Both are compared with files, which `PTO_BLESS=1` writes again.

use std::collections::BTreeMap;
use std::path::Path;
use std::{env, fs};

use super::library::{Library, WORKER};
use super::script::{Act, Script, Task, in_cpp_counted, link, single_chain};

/// Operations by their names.
pub(crate) type Counts = BTreeMap<&'static str, u64>;

/// Compares a table with the file of this name.
pub(crate) fn assert_golden(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/aicore/goldens").join(name);
    if env::var_os("PTO_BLESS").is_some() {
        fs::create_dir_all(path.parent().expect("it has one")).expect("writable");
        fs::write(&path, text).expect("writable");
    }
    let golden = fs::read_to_string(&path).unwrap_or_default();
    assert!(golden == text, "{name} says\n{golden}\nand this build does\n{text}");
}

/// A kernel without arguments, so that only the loop loads words.
fn kernel() -> Task {
    Task::Kernel { code: 0x10_0000, place: 0, args: Vec::new() }
}

fn chain(kernels: u32) -> Task {
    // The kernel of a chain reads its block: words that stand on the stack.
    single_chain(&link(&[], &[], &[], kernels))
}

/// The operations of a run of these tasks, one after another.
fn counts(library: &Library, looks: u32, tasks: &[Task]) -> Counts {
    let work = tasks.iter().flat_map(|task| [Act::Dispatch(vec![task.clone()]), Act::Finished]);
    let begin = [Act::Greet(41), Act::Answered(41), Act::Idle(looks)];
    let acts = begin.into_iter().chain(work).chain([Act::Exit]).collect();
    in_cpp_counted(&Script { name: "counted", acts }, false, library)
}

/// How many more operations the second run has.
fn more(fewer: &Counts, all: &Counts, times: u64) -> String {
    let one = |(name, count): (&&str, &u64)| {
        let each = (count - fewer.get(*name).unwrap_or(&0)) / times;
        (each > 0).then(|| format!("{name} {each}"))
    };
    all.iter().filter_map(one).collect::<Vec<_>>().join(", ")
}

/// What each event makes the loop of this source do.
fn operations(source: &str) -> String {
    let library = Library::build(source, false).expect("the worker compiles");
    let of = |looks: u32, tasks: &[Task]| counts(&library, looks, tasks);
    let none = of(1, &[]);
    let (one, two) = ([kernel()], [kernel(), kernel()]);
    let (chain_of_1, chain_of_6) = ([chain(1)], [chain(6)]);
    let rows = [
        ("greeting and exit", more(&Counts::new(), &none, 1)),
        ("a look that finds nothing", more(&none, &of(11, &[]), 10)),
        ("a dispatch of a kernel", more(&of(1, &one), &of(1, &two), 1)),
        (
            "a dispatch of a chain of one kernel",
            more(&of(1, &chain_of_1), &of(1, &[chain(1), chain(1)]), 1),
        ),
        ("each further kernel of a chain", more(&of(1, &chain_of_1), &of(1, &chain_of_6), 5)),
    ];
    rows.iter().map(|(what, did)| format!("{what}: {did}\n")).collect()
}

#[test]
fn the_operations_of_the_loop_are_counted() {
    assert_golden("operations.txt", &operations(WORKER));
}

/// An access to the cache that changes nothing of the result costs time, and is found by the counts.
#[test]
fn an_access_to_the_cache_too_many_is_found() {
    let is_of_cache = |line: &str| {
        let calls = ["fresh(", "write_back(", "machine::drop_cache("];
        calls.iter().any(|call| line.trim_start().starts_with(call))
    };
    let right = operations(WORKER);
    let places: Vec<usize> =
        (0..).zip(WORKER.lines()).filter(|(_, line)| is_of_cache(line)).map(|(at, _)| at).collect();
    assert!(places.len() >= 7, "the source was not understood: {places:?}");
    println!("{} loops with an access to the cache too many", places.len());
    for at in places {
        let line = WORKER.lines().nth(at).expect("it has it");
        let twice = WORKER.lines().enumerate().map(|(number, text)| match number == at {
            true => format!("{text}\n{text}\n"),
            false => format!("{text}\n"),
        });
        assert_ne!(operations(&twice.collect::<String>()), right, "line {}: {line}", at + 1);
    }
}
