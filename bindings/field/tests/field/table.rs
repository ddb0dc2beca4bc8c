//! What each program gives: the tensors it leaves, or the code that it fails with.
//!
//! Every program gets `a` (0 to 6 in turn), `b` (2 everywhere), `out` (0 everywhere) and 64 counts, and the scalar 5.

/// The tensors of a program.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ProgramTensors {
    pub(crate) a: Vec<f32>,
    pub(crate) b: Vec<f32>,
    pub(crate) out: Vec<f32>,
    pub(crate) counts: Vec<i32>,
}

impl ProgramTensors {
    /// As programs get them.
    pub(crate) fn new() -> Self {
        let a = (0..1024_u16).map(|at| f32::from(at % 7)).collect();
        Self { a, b: vec![2.0; 1024], out: vec![0.0; 1024], counts: vec![0; 64] }
    }

    pub(crate) fn out(mut self, value: impl Fn(usize, &Self) -> f32) -> Self {
        self.out = (0..1024).map(|at| value(at, &self)).collect();
        self
    }

    fn words(mut self, words: &[u64]) -> Self {
        for (at, word) in words.iter().enumerate() {
            for (half, bytes) in word.to_le_bytes().chunks_exact(4).enumerate() {
                self.counts[2 * at + half] = i32::from_le_bytes(bytes.try_into().unwrap());
            }
        }
        self
    }

    pub(crate) fn counted(mut self, counts: impl IntoIterator<Item = i32>) -> Self {
        for (to, count) in self.counts.iter_mut().zip(counts) {
            *to = count;
        }
        self
    }
}

/// A program that succeeds: its entry, and what it makes of the tensors.
pub(crate) type Good = (&'static str, fn(ProgramTensors) -> ProgramTensors);

/// Programs that run in every hosting mode.
pub(crate) const GOOD: &[Good] = &[
    ("vector_example", |t| t.out(|at, t| (t.a[at] + 3.0) * (t.a[at] + 4.0) + t.a[at] + 2.0)),
    ("nothing", |t| t),
    ("tiles", |t| t.out(|at, t| t.a[at] + t.b[at])),
    ("strided_tiles", |t| t.out(|at, _| if at % 32 < 16 { 5.0 } else { 6.0 })),
    ("transposed", |t| t.out(|at, t| t.a[at % 32 * 32 + at / 32])),
    ("sliced", |t| t.out(|at, _| if (100..150).contains(&at) { 1.0 } else { 0.0 })),
    ("empty_view", |t| t.out(|_, _| 1.0)),
    ("chain", |t| t.out(|_, _| 50.0)),
    ("existing_output", |mut t| {
        (t.b, t.out) = (vec![7.0; 1024], vec![7.0; 1024]);
        t
    }),
    ("two_outputs", |t| t.out(|at, t| t.a[at] + t.b[at])),
    ("bgemm", |t| {
        let product = |at: usize, t: &ProgramTensors| {
            (0..8).map(|k| t.a[at / 8 * 8 + k] * t.b[k * 8 + at % 8]).sum::<f32>()
        };
        // 500 products over 16 sums: the first four get one more.
        t.out(|at, t| product(at % 64, t) * if at / 64 < 4 { 32.0 } else { 31.0 })
    }),
    ("scalars", |t| {
        let float = |value: f32| u64::from(value.to_bits());
        t.words(&[
            0xFFFF_FFFF,
            float(2.5),
            3.5_f64.to_bits(),
            1,
            0xFE,
            0xFFFF_FFFF,
            7,
            11,
            12,
            22,
            float(23.0),
            5,
        ])
    }),
    ("descriptor", |t| t.words(&[2 * 32 + 5, 2, 3, 32, 0, 0, 2 * 32 + 4, 12])),
    ("basics", |t| t),
    ("write_after_read", |mut t| {
        t.b[0] += 2_000_000.0;
        t = t.out(|at, t| t.a[at] + t.b[at]);
        t.a = vec![-5.0; 1024];
        t
    }),
    ("no_dep", |t| t.out(|at, t| t.a[at] + t.b[at])),
    ("manual_dep", |t| t.out(|_, _| 10.0)),
    ("manual_scope", |mut t| {
        t.b[..32].fill(10.0);
        t.out(|_, _| 10.0)
    }),
    ("dependency_kinds", |mut t| {
        t.b = vec![4.0; 1024];
        t.out(|_, _| 7.0)
    }),
    ("with_deps", |mut t| {
        t.b = vec![4.0; 1024];
        t.out(|_, _| 7.0)
    }),
    ("dummies", |t| t.out(|at, _| f32::from(u16::try_from(at / 32).unwrap()) + 100.0)),
    ("retired_dependency", |t| t.out(|_, _| 1001.0)),
    ("twice_in_a_task", |t| t.out(|_, _| 1.0)),
    ("nested_scopes", |t| t.out(|at, t| 20.0 * t.a[at] + 190.0)),
    ("guarded_scope", |t| t.out(|_, _| 2.0)),
    ("heap_reuse", |t| t.out(|at, _| if at < 512 { 1.0 } else { 0.0 })),
    ("alloc", |t| t.out(|_, _| 7.0)),
    ("initial_value", |t| t.out(|_, _| 2.5)),
    ("get_and_set", |t| t.out(|at, _| if at == 4 { 16.0 } else { 15.0 })),
    ("until", |t| t.out(|_, _| 21.0).counted([7])),
    ("get_of_manual", |t| t.out(|at, t| if at == 7 { t.a[7] + 2.0 } else { 0.0 })),
    ("predicates", |mut t| {
        (t.counts[40], t.counts[41]) = (5, -3);
        let holds = [
            true, false, false, false, true, true, // 5 and 5
            false, true, true, false, true, false, // 5 and 4
            false, true, false, true, false, true, // -3 and -2
        ];
        t.out(|at, _| f32::from(u8::from(holds.get(at) == Some(&true))))
    }),
    ("skipped", |t| t.out(|_, _| 1.0)),
    ("routed", |t| {
        t.counted((0..4).map(|at| at + 4000)).out(|at, _| if at < 128 { 1.0 } else { 0.0 })
    }),
    ("mix", |t| t.counted([1, 1, 1])),
    ("mix_blocks", |t| t.counted([1; 60])),
    ("mix_pairs", |t| t.counted([1, 3, 1])),
    ("blocks", |t| t.counted((0..60).map(|at| at + 60_000))),
    ("meet", |t| t.counted([16])),
    ("ping_pong", |t| t.counted([40; 20])),
    ("cross_core", |t| t.counted([55; 60])),
    ("all_meet", |t| t.counted((0..32).map(|at| if at < 16 { 1 } else { 16 }))),
    ("thirds_of_a_line", |t| {
        t.out(|at, _| match at {
            0..15 => f32::from(u8::try_from(1 + at / 5).unwrap()),
            15 => 9.0,
            _ => 0.0,
        })
    }),
    ("early_resolve", |t| t.out(|_, _| 5.0)),
    ("notified", |t| t.counted([4]).out(|_, _| 1.0)),
    ("graphs", |t| t.out(|_, _| 1106.0)),
    ("february", february),
    ("first_weeks", february),
    ("frozen", |t| t.out(|_, _| 18.0)),
];

fn february(t: ProgramTensors) -> ProgramTensors {
    t.out(|at, t| 3.0 * (t.a[at] + t.b[at]) + if at < 512 { 1.0 } else { 6.0 })
}

/// A program that fails: its entry, the code, and a part of what is said.
pub(crate) type Bad = (&'static str, u32, &'static str);

/// Programs with a mistake.
pub(crate) const BAD: &[Bad] = &[
    ("bad_many_tensors", 5, "too many tensors"),
    ("bad_many_scalars", 5, "too many scalars"),
    ("bad_order", 5, "a tensor was added after a scalar"),
    ("bad_kernel", 5, "no kernel with func id 31"),
    ("bad_kind", 5, "is compiled for aiv, and the task submits it for aic"),
    ("bad_dependency", 5, "dependency 0 is no task"),
    ("bad_null_dependencies", 5, "the pointer to the tasks is null"),
    ("bad_dependencies_twice", 5, "set_dependencies was called twice"),
    ("bad_auto_in_manual", 5, "a scope AUTO within a scope MANUAL"),
    ("bad_scope_end", 5, "no scope is open"),
    ("bad_depth", 10, "more than 64 scopes"),
    ("bad_sync_start", 7, "orchestrations.cpp:"),
    ("bad_blocks", 5, "0 blocks"),
    ("bad_calls", 5, "10923 blocks of 3 kernels"),
    ("bad_own_code", 42, "the batch is 9"),
    ("bad_exception", 9, "no such table"),
    ("bad_signal", 9, "raised SIGSEGV"),
    ("bad_assert", 9, "args.tensor_count() == 99"),
    ("bad_stale", 5, "argument 0 of task 0 is a tensor of a scope that has ended"),
    ("bad_heap", 2, "output 0 of 167772160 bytes"),
    ("bad_element", 5, "element [1024] is not in a tensor of shape [1024]"),
    ("bad_pointer_to_read", 5, "element [3]: this process cannot use the memory at 0xa0c"),
    ("bad_pointer_to_write", 5, "element [3]: this process cannot use the memory at 0xa0c"),
    (
        "bad_offset",
        5,
        "element [0, 5] is not in a tensor of shape [1, 64] in a buffer of 256 bytes",
    ),
    ("bad_offset_of_a_predicate", 5, "the predicate's element is not in its tensor"),
    (
        "bad_owner",
        5,
        "the tensor of get_tensor_data says that task 17 of ring 0 made it, and no such task",
    ),
    ("bad_owner_of_an_argument", 5, "argument 0 of task 0 says that task 17 of ring 0 made it"),
    ("bad_rank", 5, "6 dimensions"),
    ("bad_reshape", 5, "6 dimensions"),
    ("bad_transposed", 5, "1073741824 dimensions"),
    ("bad_output_index", 5, "get_ref(0): the task has 0 outputs"),
    ("bad_slot", 5, "a slot is 0 to 15"),
    ("bad_conditions", 102, "completion"),
    ("bad_predicate", 5, "the predicate's element is not in its tensor"),
    ("bad_flag", 100, "waits for flag 4, which no core of its task raises"),
    ("bad_kernel_crash", 100, "`k_crash`, the kernel of task 0, raised SIGSEGV"),
    ("february_bad_count", 1, "expects 7 arguments, and gets 5"),
    ("february_bad_worker", 5, "a task runs on PTO2_WORKER_CUBE or PTO2_WORKER_VECTOR"),
    ("february_bad_view", 5, "6 dimensions"),
    ("first_weeks_bad_count", 5, "february.cpp:55: the orchestration expects 10 words, and gets 9"),
    ("bad_count", 1, "expects 6 arguments, and gets 5"),
];
