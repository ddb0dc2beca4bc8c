//! What the tests of examples share on every device: each way to run an example gives what the reference says, and the same
//! bits as every other way. The table of examples has a test for each row.

use pto_examples::ExampleBuilders;
use pto_examples::host::{Example, Prepared, Program, RunMode, Tensor};
use pto_host::graph::BuilderSet;
use pto_host::{Device, RunOptions, RunReport};

/// Examples whose graphs have chains: an AICPU adds edges between chains, which are fewer than those between their kernels.
const CHAINED: [&str; 3] = ["cholesky", "matmul", "paged_attention"];

/// What an example gives: its outputs by name.
pub(crate) type Outputs = Vec<(&'static str, Tensor)>;

/// Runs an example in every way on one device; the outputs of the first one are those of all.
pub(crate) fn in_every_way(
    example: &dyn Example,
    device: &mut Device,
    prepared: &mut Prepared,
    first: &mut Option<Outputs>,
) {
    for way in RunMode::of(example.program()) {
        let case = format!("{}, {}, {way}", example.name(), device.name());
        let report = way.run(device, prepared, &RunOptions::default());
        let report = report.unwrap_or_else(|error| panic!("{case}: {error}"));
        check_report(example, prepared, &report, &case);
        let verdict = prepared.verify().expect("the outputs are read");
        assert!(verdict.passed(), "{case}: {verdict:?}");
        let outputs = prepared.outputs().expect("the outputs are read");
        assert!(*first.get_or_insert_with(|| outputs.clone()) == outputs, "{case}: other bits");
    }
}

fn check_report(example: &dyn Example, prepared: &Prepared, report: &RunReport, way: &str) {
    let (program, size) = (example.program(), prepared.size());
    // What a program submits that waits for values is known when it has ended.
    if program == Program::TensorsAndValues {
        assert!((1..=size.tasks).contains(&report.kernels), "{way}");
    } else {
        assert_eq!(report.kernels, size.tasks, "{way}");
    }
    // A streaming program derives its edges, and has none from tasks that are retired.
    let derives = ExampleBuilders.stream_names().contains(&example.name());
    if report.stream.is_none() || !derives {
        let has_chains = CHAINED.contains(&example.name()) && !way.contains("host_build_graph");
        let fewest = if has_chains { 1 } else { size.edges };
        let edges = report.edges;
        assert!((fewest..=size.edges).contains(&edges), "{way}: {edges} edges of {}", size.edges);
    }
    // A task that needs several cores may run on several, or not at all.
    if program == Program::Graph {
        assert_eq!(report.parts_run.iter().sum::<u64>(), report.kernels, "{way}");
    }
}

/// A test for each example, which hands it to the function `in_every_way` of the module.
macro_rules! test_each {
    ($($name:literal $module:ident $job:ident $graph:tt $stream:tt;)*) => {
        $(
            #[test]
            fn $module() {
                super::in_every_way(pto_examples::host::find($name).expect("it is in the table"));
            }
        )*
    };
}

pub(crate) use test_each;
