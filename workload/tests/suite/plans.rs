//! Plans: what compiling writes, what the reader refuses, and that both agree.

use pto_abi::Fault;
use pto_graph::plan::layout::{HEADER_WORDS, MAGIC, VERSION, header, limits, node};
use pto_graph::plan::{Plan, Stop};
use pto_workload::Workload;
use pto_workload::plan::{Compiled, PlanError, SymbolUse, compile};

use super::random::TestRng;

pub(super) const FILES: [(&str, &str); 4] = [
    ("matmul", include_str!("../../../examples/workloads/matmul.workload")),
    ("softmax", include_str!("../../../examples/workloads/softmax.workload")),
    ("ragged_attention", include_str!("../../../examples/workloads/ragged_attention.workload")),
    ("two_producers", include_str!("../../../examples/workloads/two_producers.workload")),
];

fn compiled(text: &str) -> Result<Compiled, PlanError> {
    compile(&Workload::parse(text).unwrap().check().unwrap())
}

/// A workload of `n` dimensions with a body.
fn small(body: &str) -> String {
    format!(
        "workload small {{
  schedule round_robin workers 1 window 8192 stall
  tensor X : f32[64, 64]
  tensor Y : f32[64, 64]
  kernel copy(x: in f32[1, 64], y: out f32[1, 64]) {{
    %0 = load x : f32[1, 64]
    store y, %0
  }}
  do {body}
}}"
    )
}

#[test]
fn ten_million_tasks_are_a_plan_of_less_than_4_kib() {
    let body = "parallel i in dense 10000000 { copy[i](x = X[i % 64], y = Y[(i * 7 + 3) % 64]) }";
    let plan = compiled(&small(body)).unwrap();
    assert_eq!(plan.words().len(), 50);
    assert!(plan.words().len() * 4 + plan.code().len() < 4096, "{}", plan.code().len());
    for (name, text) in FILES {
        let plan = compiled(text).unwrap();
        assert!(plan.words().len() < 512, "{name}: {} words", plan.words().len());
    }
}

#[test]
fn what_has_to_be_bound_is_named_once() {
    let plan = compiled(FILES[1].1).unwrap();
    let symbols: Vec<_> =
        plan.symbols().iter().map(|(name, used)| (name.as_str(), *used)).collect();
    assert_eq!(symbols, [("tiles", SymbolUse::Size(Some(4))), ("scale", SymbolUse::Float)]);
    let plan = compiled(FILES[2].1).unwrap();
    assert_eq!(plan.arrays(), ["blocks"]);
    let tensors: Vec<_> = plan.tensors().iter().map(|tensor| tensor.name.as_str()).collect();
    assert_eq!(tensors, ["LEN", "Q", "KT", "V", "M", "L", "ACC", "OUT"]);
}

#[test]
fn a_workload_without_a_plan_says_why() {
    let copy = "copy[0](x = X[0], y = Y[1])";
    let deep = (0..40).fold(copy.to_owned(), |body, _| format!("sequential {{ {body} }}"));
    let many = format!("sequential {{ {} }}", format!("{copy} ").repeat(400));
    let expression = (0..30).fold("0".to_owned(), |inner, _| format!("-({inner})"));
    let cases = [
        (deep, "At the root", "PLAN_DEPTH"),
        (many, "words of plan", "a plan holds 2048"),
        (
            format!("copy[0](x = X[{expression}], y = Y[1])"),
            "At kernel copy, argument x",
            "PLAN_DEPTH",
        ),
    ];
    for (body, location, cause) in cases {
        // The texts may be too deep for their reader as well.
        let error = compiled(&small(&body)).unwrap_err().to_string();
        assert!(error.contains(location) && error.contains(cause), "{error}");
    }
    let text = small(copy);
    for (from, to, expected) in [
        (
            "tensor X : f32[64, 64]",
            "tensor X : f32[1, 1, 1, 1, 64, 64]",
            "Tensor X has 6 dimensions, and a device knows 5.",
        ),
        (
            "tensor Y : f32[64, 64]",
            "tensor Y : f32[64, 64]\n  tensor Z : f32[5000000000]",
            "Tensor Z has a dimension of 5000000000 places.",
        ),
    ] {
        let text = text
            .replace(from, to)
            .replace("X[0]", if to.contains("X") { "X[0, 0, 0, 0, 0]" } else { "X[0]" });
        assert!(compiled(&text).unwrap_err().to_string().contains(expected), "{expected}");
    }
}

/// The fault with which the reader refuses the plan of [`small`] with one word changed.
fn refused(at: usize, change: impl Fn(u32) -> u32) -> Stop {
    let mut words = compiled(&small("each i in dyn n { copy[i](x = X[i], y = Y[i + 1]) }"))
        .unwrap()
        .words()
        .to_vec();
    words[at] = change(words[at]);
    Plan::accept(&words).unwrap_err()
}

#[test]
fn a_plan_that_was_changed_is_refused_with_a_name_and_a_place() {
    let root = compiled(&small("each i in dyn n { copy[i](x = X[i], y = Y[i + 1]) }"))
        .unwrap()
        .words()[header::ROOT] as usize;
    let (kernel, task) = (HEADER_WORDS + 12, root + 3);
    let cases = [
        (header::MAGIC, 1, Fault::PLAN_HEADER, header::MAGIC),
        (header::VERSION, VERSION + 1, Fault::PLAN_HEADER, header::VERSION),
        (header::WORDS, 7, Fault::PLAN_HEADER, header::WORDS),
        (header::TENSORS, limits::TENSORS as u32 + 1, Fault::PLAN_LIMIT, header::TENSORS),
        (header::ROOT, 3, Fault::PLAN_LENGTH, header::ROOT),
        (header::SYMBOLS, 0, Fault::PLAN_NAME, root),
        (HEADER_WORDS, 0x2FF, Fault::PLAN_TYPE, HEADER_WORDS),
        (HEADER_WORDS + 1, 0, Fault::PLAN_TYPE, HEADER_WORDS),
        (kernel, 0x0207_0029, Fault::PLAN_TYPE, kernel),
        (kernel + 3, 4, Fault::PLAN_TYPE, kernel + 3),
        (root, 99, Fault::PLAN_CODE, root),
        (root, node::LOOP | 0x0001_0101 << 8, Fault::PLAN_NAME, root),
        (root + 1, 1, Fault::PLAN_LENGTH, task),
        (task, node::TASK | 9 << 8, Fault::PLAN_NAME, task),
        (task + 3, 9, Fault::PLAN_NAME, task + 3),
        (task + 5, 3 | 1 << 8, Fault::PLAN_NAME, task + 5),
    ];
    for (at, value, fault, location) in cases {
        let stop = refused(at, |_| value);
        assert_eq!((stop.fault, stop.at), (fault, location), "word {at} as {value:#x}");
    }
    assert_eq!(MAGIC.to_le_bytes(), *b"PLAN");
}

/// Random words instead of those of a plan: the reader never panics, and each error names a word of the plan.
#[test]
fn random_changes_are_accepted_or_refused() {
    let mut random = TestRng(7);
    let (mut accepted, mut refused) = (0, 0);
    for (_, text) in FILES {
        let plan = compiled(text).unwrap().words().to_vec();
        for _ in 0..4000 {
            let mut words = plan.clone();
            for _ in 0..=random.below(3) {
                let at = random.below(words.len());
                words[at] = match random.below(3) {
                    0 => random.below(256) as u32,
                    1 => words[at] ^ 1 << (random.below(32)),
                    _ => random.bits() as u32,
                };
            }
            match Plan::accept(&words) {
                Ok(_) => accepted += 1,
                Err(stop) => {
                    assert!(stop.at <= words.len() && stop.fault.entry().is_some());
                    refused += 1;
                }
            }
        }
    }
    assert!(accepted > 500 && refused > 5000, "{accepted} accepted, {refused} refused");
}

/// The plans of the files are in the corpus of the fuzz target. A change of the words is meant: `PTO_BLESS=1` renews them.
#[test]
fn the_corpus_holds_the_plans_of_the_files() {
    let corpus = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../tools/fuzz/corpus/plan");
    for (name, text) in FILES {
        let plan = compiled(text).unwrap();
        let bytes: Vec<u8> = plan.words().iter().flat_map(|word| word.to_le_bytes()).collect();
        let path = corpus.join(format!("{name}.plan"));
        if std::env::var_os("PTO_BLESS").is_some() {
            std::fs::write(&path, &bytes).unwrap();
        }
        assert_eq!(std::fs::read(&path).unwrap(), bytes, "{name}: PTO_BLESS=1 renews it");
    }
}
