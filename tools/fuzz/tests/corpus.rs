//! The short run: every input of the corpus, and a fixed number of mutations of it, the same ones in every run. `PTO_FUZZ_MUTATIONS` sets another number.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;

use pto_fuzz::{Mutator, TARGETS, Target, corpus, find};

/// Feeds `bytes`; a panic names the file that the input was written to.
fn feed(target: &Target, bytes: &[u8], what: &str) {
    if catch_unwind(AssertUnwindSafe(|| (target.feed)(bytes))).is_ok() {
        return;
    }
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("broken-{}", target.name));
    std::fs::write(&path, bytes).expect("the input is written");
    let (name, path) = (target.name, path.display());
    panic!(
        "{what} breaks {name}. The input is {path}. Mend it, and keep the input in tools/fuzz/corpus/{name}."
    );
}

fn short_run(name: &str) {
    let target = find(name).expect("the target exists");
    let seeds = corpus::of(name).expect("the corpus can be read");
    assert!(!seeds.is_empty(), "{name} has no corpus");
    for seed in &seeds {
        feed(target, &seed.bytes, &seed.name);
    }
    let wanted = std::env::var("PTO_FUZZ_MUTATIONS").ok();
    let mutations = wanted.map_or(target.mutations, |count| count.parse().expect("a number"));
    let mut mutator = Mutator::new(1);
    for round in 0..mutations {
        let (seed, other) =
            (&seeds[mutator.below(seeds.len())], &seeds[mutator.below(seeds.len())]);
        let input = mutator.mutate(&seed.bytes, &other.bytes);
        feed(target, &input, &format!("mutation {round} of {}", seed.name));
    }
}

macro_rules! short_runs {
    ($($name:ident)*) => {
        $(
            #[test]
            fn $name() {
                short_run(stringify!($name));
            }
        )*

        #[test]
        fn no_target_is_left_out() {
            let names: Vec<_> = TARGETS.iter().map(|target| target.name).collect();
            assert_eq!(names, [$(stringify!($name)),*]);
        }
    };
}

short_runs! { firmware_image relocatable_object graph_file trace npy profile timing graph_image plan tile_kernel workload_file program_file model cann_calls c_calls stream_calls }
