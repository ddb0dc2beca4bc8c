//! Workloads on devices: every file of `examples/workloads` in every hosting mode, and with a thousand seeds of the virtual machine, gives
//! the bits of its execution in program order; what goes wrong names loop, kernel and argument; another size compiles nothing.

use std::num::NonZeroUsize;
use std::time::Duration;

use pto_examples::host::{self, Example, Inputs, Params, Prepared, Tensor, open_sim};
use pto_examples::workload::WorkloadFile;
use pto_host::abi::{FanoutStrategy, RuntimeVariant};
use pto_host::virtual_time::{Profile, VirtualOptions};
use pto_host::workload::{BindingError, WorkloadBindings, WorkloadError, WorkloadRun};
use pto_host::workloads::clock::{self, Bindings};
use pto_host::workloads::plan::compile;
use pto_host::workloads::{Workload, plan::Compiled};
use pto_host::{Device, DeviceBuffer, DeviceOptions, Hosting, RunOptions, RunReport};

const MATMUL: &str = include_str!("../workloads/matmul.workload");
const SOFTMAX: &str = include_str!("../workloads/softmax.workload");
const SHORT: &str = include_str!("../workloads/short_kernels.workload");
const CHAINS: &str = include_str!("../workloads/short_chains.workload");
const PRODUCERS: &str = include_str!("../workloads/two_producers.workload");
const FOLDS: &str = include_str!("../workloads/fold_on_ranks.workload");
const HANDED_ON: &str = include_str!("../workloads/handed_on.workload");
const ATTENTION: &str = include_str!("../workloads/ragged_attention.workload");

/// Lengths of sequences: partial blocks, whole ones, and one key alone.
const LENGTHS: [i32; 5] = [3, 24, 8, 17, 1];

/// A file with its parameters and inputs.
struct WorkloadCase {
    file: &'static WorkloadFile,
    params: &'static [(&'static str, &'static str)],
    inputs: Inputs,
}

fn cases() -> [WorkloadCase; 7] {
    let read = |text| WorkloadFile::read(text).expect("the file holds a workload");
    let mut ragged = Inputs::default();
    ragged.insert("LEN", Tensor::i32(vec![5, 1], LENGTHS.to_vec()));
    let blocks = LENGTHS.map(|length| (length + 7) / 8);
    ragged.insert("blocks", Tensor::i32(vec![5], blocks.to_vec()));
    [
        WorkloadCase { file: read(MATMUL), params: &[], inputs: Inputs::default() },
        WorkloadCase {
            file: read(SOFTMAX),
            params: &[("scale", "0.5")],
            inputs: Inputs::default(),
        },
        WorkloadCase { file: read(ATTENTION), params: &[("sequences", "5")], inputs: ragged },
        WorkloadCase { file: read(PRODUCERS), params: &[], inputs: Inputs::default() },
        WorkloadCase { file: read(CHAINS), params: &[], inputs: Inputs::default() },
        WorkloadCase { file: read(FOLDS), params: &[], inputs: Inputs::default() },
        WorkloadCase { file: read(HANDED_ON), params: &[], inputs: Inputs::default() },
    ]
}

impl WorkloadCase {
    fn prepare(&self, device: &Device) -> Prepared {
        let mut params = Params::defaults(self.file.params());
        for (name, value) in self.params {
            let number = self.file.number(name, value);
            params.set(name, number.as_deref().unwrap_or(value)).expect("the value is accepted");
        }
        host::resolve(self.file, &mut params, &self.inputs).expect("the inputs fit");
        self.file.prepare(&params, &self.inputs, device).expect("the device has room")
    }
}

fn small(hosting: Hosting) -> Device {
    let options = DeviceOptions { aic: 4, aiv: 8, gm_bytes: 1 << 30, hosting };
    let mut device = open_sim(options).expect("the device opens");
    device.register_library().expect("the library registers");
    device
}

fn pool() -> Device {
    small(Hosting::Pool { os_threads: NonZeroUsize::MIN })
}

fn run_once(
    case: &WorkloadCase,
    prepared: &mut Prepared,
    device: &mut Device,
    options: &RunOptions,
) -> RunReport {
    prepared.reset().expect("the outputs are reset");
    let capacities = prepared.capacities().streamed_whole();
    let options = RunOptions { capacities, ..options.clone() };
    let name = case.file.name();
    let work = prepared.work(RuntimeVariant::TENSORMAP_AND_RINGBUFFER);
    let report = device.run(work, &options);
    let report = report.unwrap_or_else(|error| panic!("{name}: {error} {:?}", prepared.explain()));
    assert_eq!(report.kernels, prepared.size().tasks, "{name}");
    let verdict = prepared.verify().expect("the outputs are read");
    assert!(verdict.passed(), "{name}: {verdict:?}");
    report
}

#[test]
fn every_file_in_every_hosting_mode() {
    let pool = |n| Hosting::Pool { os_threads: NonZeroUsize::new(n).expect("not zero") };
    for hosting in [pool(1), pool(2), Hosting::Threads, Hosting::Virtual(VirtualOptions::default())]
    {
        let mut device = small(hosting);
        for case in cases() {
            let mut prepared = case.prepare(&device);
            for &build_mode in case.file.program().build_modes() {
                for &fanout in FanoutStrategy::ALL {
                    let options = RunOptions { build_mode, fanout, ..RunOptions::default() };
                    run_once(&case, &mut prepared, &mut device, &options);
                }
            }
        }
    }
}

#[test]
fn a_thousand_seeds_give_the_same_bits() {
    for seed in 0..334 {
        let mut device =
            small(Hosting::Virtual(VirtualOptions { seed, ..VirtualOptions::default() }));
        for case in cases() {
            let mut prepared = case.prepare(&device);
            run_once(&case, &mut prepared, &mut device, &RunOptions::default());
        }
    }
}

fn compiled(text: &str) -> Compiled {
    let checked =
        Workload::parse(text).expect("the text is a workload").check().expect("it is checked");
    compile(&checked).expect("it has a plan")
}

/// A workload with one tensor, one array and one symbol, whose tasks add 1 to an element, and divide it.
fn counting(body: &str) -> String {
    format!(
        "workload counting {{
  schedule round_robin workers 1 window 8192 stall
  tensor X : i32[4, 8]
  kernel step(x: inout i32[1, 8], by: i32) {{
    %0 = load x : i32[1, 8]
    %1 = scalar by : i32
    %2 = div %0, %1 by one : i32[1, 8]
    %3 = constant 1 : i32
    %4 = add %2, %3 by one : i32[1, 8]
    store x, %4
  }}
  kernel far(x: inout i32[1, 8]) {{
    %0 = load x at [0, 4] : i32[1, 8]
    store x, %0
  }}
  kernel wide(x: inout i32[1, 16]) {{
    %0 = load x : i32[1, 16]
    store x, %0
  }}
  do {body}
}}"
    )
}

/// The tensor and the array of [`counting`], on a device.
struct Counting {
    device: Device,
    tensor: DeviceBuffer<i32>,
    array: DeviceBuffer<i32>,
}

impl Counting {
    fn new(array: &[i32]) -> Self {
        let device = pool();
        let tensor = device.upload(&[0_i32; 32]).expect("there is room");
        let array = device.upload(array).expect("there is room");
        Self { device, tensor, array }
    }

    fn bind(&self, body: &str, bound: WorkloadBindings) -> WorkloadRun {
        let compiled = compiled(&counting(body));
        let bound = bound.tensor("X", self.tensor.address());
        WorkloadRun::bind(&self.device, compiled, &bound).expect("it is bound")
    }

    /// The error of a run.
    fn error(&mut self, body: &str, bound: WorkloadBindings) -> String {
        let run = self.bind(body, bound);
        let result = run.run(&mut self.device, &RunOptions::default());
        let error = result.expect_err("the run ends with a fault");
        assert!(matches!(error, WorkloadError::Fault { .. }), "{error}");
        // The device and the workload run again, and end the same way.
        let again = run.run(&mut self.device, &RunOptions::default()).expect_err("it does again");
        assert_eq!(error.to_string(), again.to_string());
        error.to_string()
    }
}

#[test]
fn a_fault_names_loop_kernel_argument_and_what_was_found() {
    let rows = |value| WorkloadBindings::new().symbol("rows", value);
    let mut counting = Counting::new(&[1, 2, -1, 4]);
    let lengths = |bound: WorkloadBindings| bound.array_of("lengths", &counting.array);
    let cases = [
        (
            "each i in dyn n { step[i](x = X[i + 2], by = 1) }",
            WorkloadBindings::new().size("n", 3),
            "At loop i in dyn n, kernel step, argument x, with i = 2: the index is 4, and the dimension has 4 places. (PLAN_INDEX",
        ),
        (
            "each i in dyn n { wide[i](x = X[i * 3]) }",
            WorkloadBindings::new().size("n", 2),
            "kernel wide, argument x, with i = 1: the tile begins at element 24 of 32 and leaves its tensor.",
        ),
        (
            "each i in dyn n { step[i](x = X[i * 2 for 1], by = 1) }",
            WorkloadBindings::new().size("n", 3),
            "At loop i in dyn n, kernel step, argument x, with i = 2: the index is 4, and the dimension has 4 places. (PLAN_INDEX",
        ),
        (
            "each i in dyn n { step[i](x = X[i], by = 8 / (1 - i)) }",
            WorkloadBindings::new().size("n", 2),
            "kernel step, argument by, with i = 1: 8 is divided by zero. (PLAN_DIVISION",
        ),
        (
            "each i in dense 2 { step[i](x = X[i], by = 1 - i) }",
            WorkloadBindings::new(),
            "workload counting: Kernel step, instruction 2 (div): the divisor is zero at row 0, column 0.",
        ),
        (
            "each i in dense 2 { far[i](x = X[i + 2]) }",
            WorkloadBindings::new(),
            "Kernel far, instruction 0 (load), operand x: the tile leaves its tensor at row 0, column 4: that is element 32 of 32.",
        ),
        (
            "each p (r, c) in ragged(rows, lengths) { step[p](x = X[r], by = 1) }",
            lengths(rows(4)),
            "At loop p in ragged(rows, lengths): element 2 of the array is -1, and cannot be. (PLAN_ELEMENT",
        ),
        (
            "each p (r, c) in ragged(rows, lengths) { step[p](x = X[r], by = 1) }",
            lengths(rows(5)),
            "At loop p in ragged(rows, lengths): the array has 4 elements, and the axis needs 5. (PLAN_ARRAY",
        ),
        (
            "select e in sparse(rows, lengths, lengths) { step[e](x = X[0], by = 1) }",
            lengths(rows(3)),
            "element 2 of the array is -1, and cannot be. (PLAN_ELEMENT",
        ),
        (
            "sequential { slot 1 from X[0] at (0, 0) slot 2 from X[slot_i64(1) + 4] at (0, 0) }",
            WorkloadBindings::new(),
            "At slot 2: the index is 4, and the dimension has 4 places. (PLAN_INDEX",
        ),
    ];
    for (body, bound, expected) in cases {
        let error = counting.error(body, bound);
        assert!(error.contains(expected), "{body}\n{error}\n{expected}");
    }
}

/// A range begins in its dimension, or at its end where it is empty; it may end after it. Both clocks say so, for every position.
#[test]
fn a_range_begins_in_its_tensor_on_both_clocks() {
    let body =
        "each i in dyn n { step[i](x = X[i64(symbol(start)) for i64(symbol(length))], by = 1) }";
    let checked = Workload::parse(&counting(body)).expect("it is one").check().expect("it fits");
    let mut device = Counting::new(&[0]);
    for start in -1_i64..6 {
        for length in -1_i64..3 {
            let words = [start, length].map(i64::cast_unsigned);
            let bound =
                WorkloadBindings::new().symbol("start", words[0]).symbol("length", words[1]);
            let run = device.bind(body, bound.size("n", 1));
            let engine = run.run(&mut device.device, &RunOptions::default()).map(|run| run.tasks);
            let mut rows = [0_i32; 32];
            let clock = {
                let bound = Bindings::new().symbol("start", words[0]).symbol("length", words[1]);
                let bound = bound.size("n", 1).dense(&checked, "X", &mut rows);
                clock::run(&checked, &bound.expect("it is bound")).map(|report| report.tasks)
            };
            let is_inside = (0..4).contains(&start) || start == 4 && length <= 0;
            let message =
                format!("the index is {start}, and the dimension has 4 places. (PLAN_INDEX");
            let engine =
                engine.map_err(|error| assert!(error.to_string().contains(&message), "{error}"));
            let message =
                format!("Kernel step, operand x: the index of dimension 0 of X is {start}, ");
            let clock =
                clock.map_err(|error| assert!(error.to_string().contains(&message), "{error}"));
            assert_eq!(engine.is_ok(), is_inside, "{start} for {length}");
            assert_eq!(engine, clock, "{start} for {length}");
        }
    }
}

/// A plan whose loops add no task gives way: the run ends by the stall budget where a scheduler watches, and else by the number of turns.
#[test]
fn a_plan_that_loops_without_tasks_ends_in_every_hosting_mode() {
    let two = Hosting::Pool { os_threads: NonZeroUsize::new(2).expect("not zero") };
    let one = Hosting::Pool { os_threads: NonZeroUsize::MIN };
    let stalls = Duration::from_millis(50);
    for (hosting, aicpu_instances, stall_budget, fault) in [
        (one, 2, stalls, "STALL_BUILDER"),
        (two, 4, stalls, "STALL_BUILDER"),
        (Hosting::Threads, 4, stalls, "STALL_BUILDER"),
        (Hosting::Virtual(VirtualOptions::default()), 4, Duration::from_millis(1), "STALL_BUILDER"),
        (one, 2, Duration::from_secs(600), "PLAN_TURNS"),
    ] {
        let mut device = small(hosting);
        let tensor = device.upload(&[0_i32; 32]).expect("there is room");
        let body = "sequential { each i in dense 3 { step[i](x = X[0], by = 1) } \
                    each i in dense 1000000000000 { slot 0 = i } }";
        let bound = WorkloadBindings::new().tensor("X", tensor.address());
        let run =
            WorkloadRun::bind(&device, compiled(&counting(body)), &bound).expect("it is bound");
        let options = RunOptions { aicpu_instances, stall_budget, ..RunOptions::default() };
        let error = run.run(&mut device, &options).expect_err("the run ends").to_string();
        assert!(error.contains("At loop i: "), "{error}");
        assert!(error.contains("turns of loops went by without a task."), "{error}");
        assert!(error.contains(fault), "{hosting:?} {aicpu_instances}: {error}");
    }
}

#[test]
fn another_size_is_another_binding_and_the_plan_stays() {
    let mut counting = Counting::new(&[0]);
    let size = |n| WorkloadBindings::new().size("n", n).tensor("X", counting.tensor.address());
    let (two, four) = (size(2), size(4));
    let mut run = counting.bind(
        "sequential { each i in dyn n { step[i](x = X[i], by = 1) } each i in dyn n { if i > 1 { step[i](x = X[i], by = 1) } else { empty } } }",
        WorkloadBindings::new().size("n", 2),
    );
    let words = run.compiled().words().to_vec();
    let mut tasks = |run: &WorkloadRun| {
        run.run(&mut counting.device, &RunOptions::default()).expect("it runs").tasks
    };
    assert_eq!(tasks(&run), 2);
    run.rebind(&four).expect("it is bound");
    assert_eq!(tasks(&run), 6);
    run.rebind(&two).expect("it is bound");
    assert_eq!(tasks(&run), 2);
    assert_eq!(run.compiled().words(), words);
    let first: Vec<i32> =
        counting.tensor.read().expect("it is read").into_iter().step_by(8).collect();
    assert_eq!(first, [3, 3, 2, 2]);
}

#[test]
fn a_binding_that_is_missing_or_unknown_is_named() {
    let counting = Counting::new(&[0]);
    let compiled =
        || compiled(&self::counting("each i in dyn n { step[i](x = X[i], by = symbol(by)) }"));
    let whole = WorkloadBindings::new().tensor("X", counting.tensor.address()).size("n", 2);
    let cases = [
        (WorkloadBindings::new(), "the size n is not bound"),
        (WorkloadBindings::new().size("n", 1).symbol("by", 1), "the tensor X is not bound"),
        (whole.clone(), "the symbol by is not bound"),
        (whole.clone().symbol("n", 2), "the workload has no symbol n"),
        (whole.clone().size("by", 2), "the workload has no size by"),
        (whole.tensor("Y", counting.tensor.address()), "the workload has no tensor Y"),
    ];
    for (bound, expected) in cases {
        let error =
            WorkloadRun::bind(&counting.device, compiled(), &bound).expect_err("it is refused");
        assert!(matches!(
            error,
            WorkloadError::Binding(BindingError::Missing { .. } | BindingError::Unknown { .. })
        ));
        assert!(error.to_string().contains(expected), "{error}");
    }
}

/// A slot waits for the task that writes what it reads, whatever the order of the cores.
#[test]
fn a_loop_on_the_device_ends_when_a_task_says_so() {
    let body = "each i in dense 20 { sequential { slot 0 from X[0] at (0, 0) \
                if slot_i64(0) < 5 { step[i](x = X[0], by = 1) } else { empty } } }";
    for seed in 0..20 {
        let mut device =
            small(Hosting::Virtual(VirtualOptions { seed, ..VirtualOptions::default() }));
        let tensor = device.upload(&[0_i32; 32]).expect("there is room");
        let bound = WorkloadBindings::new().tensor("X", tensor.address());
        let run =
            WorkloadRun::bind(&device, compiled(&counting(body)), &bound).expect("it is bound");
        let report = run.run(&mut device, &RunOptions::default()).expect("it runs");
        assert_eq!((report.tasks, tensor.read().expect("it is read")[0]), (5, 5));
    }
}

/// Tensors of every type of elements are given by files and written to files, without a change of a bit.
#[test]
fn every_type_of_elements_is_in_files() {
    use pto_examples::host::{DType, ElementVec};
    for (name, dtype) in [
        ("f16", DType::U16),
        ("bf16", DType::U16),
        ("f64", DType::F64),
        ("i8", DType::I8),
        ("i16", DType::I16),
        ("i64", DType::I64),
        ("u8", DType::U8),
        ("u16", DType::U16),
        ("u32", DType::U32),
        ("u64", DType::U64),
    ] {
        let text = COPY.replace("TYPE", name);
        let file = WorkloadFile::read(&text).expect("the file holds a workload");
        let bytes: Vec<u8> = (1..=u8::MAX).take(8 * dtype.bytes()).collect();
        let given =
            Tensor::new(vec![1, 8], ElementVec::from_bytes(dtype, &bytes)).expect("it fits");
        let mut inputs = Inputs::default();
        inputs.insert("X", given.clone());
        let case = WorkloadCase { file, params: &[], inputs };
        let mut device = pool();
        let mut prepared = case.prepare(&device);
        run_once(&case, &mut prepared, &mut device, &RunOptions::default());
        let outputs = prepared.outputs().expect("they are read");
        let copied = outputs.iter().find(|(tensor, _)| *tensor == "Y").expect("it is written");
        assert_eq!(copied.1, given, "{name}");
    }
}

const COPY: &str = "workload copies {
  schedule round_robin workers 1 window 64 stall
  tensor X : TYPE[1, 8]
  tensor Y : TYPE[1, 8]
  kernel copy(x: in TYPE[1, 8], y: out TYPE[1, 8]) {
    %0 = load x : TYPE[1, 8]
    store y, %0
  }
  do parallel i in dense 1 {
    copy[i](x = X[i for 1], y = Y[i for 1])
  }
}
";

/// Whatever is put together, the bits are those of program order and every call counts as a task. What is put together takes
/// less time.
#[test]
fn calls_that_are_put_together_give_the_same_bits_sooner() {
    for text in [SHORT, CHAINS] {
        let [alone, chosen] = makespans_of_grains(text);
        assert!(2 * chosen < alone, "{alone:?} {chosen:?}");
    }
}

/// How long a workload of 900 tasks takes with a dispatch for each task, and as the device chooses.
fn makespans_of_grains(text: &str) -> [Duration; 2] {
    let mut makespans = Vec::new();
    let file = WorkloadFile::read(text).expect("the file holds a workload");
    for params in [[("grain", "1")], [("grain", "7")], [("grain", "0")]] {
        let params: &'static [_] = Vec::leak(params.to_vec());
        let case = WorkloadCase { file, params, inputs: Inputs::default() };
        for seed in 0..20 {
            let mut device =
                small(Hosting::Virtual(VirtualOptions { seed, ..VirtualOptions::default() }));
            let mut prepared = case.prepare(&device);
            let report = run_once(&case, &mut prepared, &mut device, &RunOptions::default());
            assert_eq!(report.kernels, 900);
            if seed == 0 {
                makespans.push(report.makespan);
            }
        }
    }
    let [alone, _, chosen] = makespans[..] else { panic!("three grains") };
    [alone, chosen]
}

/// Two processes, of which the first sends ten tokens through a channel of this depth: the first four are cheap to make, and all but the
/// first are cheap to use.
fn back_pressure(depth: u64) -> String {
    format!(
        "workload stages {{
  tensor X : f32[64, 128]
  tensor Y : f32[10, 64, 128]
  tensor Z : f32[10, 64, 128]
  channel c depth {depth}
  kernel small(x: in f32[4, 4], y: out f32[4, 4]) {{
    %0 = load x : f32[4, 4]
    store y, %0
  }}
  kernel medium(x: in f32[64, 64], y: out f32[64, 64]) {{
    %0 = load x : f32[64, 64]
    store y, %0
  }}
  kernel large(x: in f32[64, 128], y: out f32[64, 128]) {{
    %0 = load x : f32[64, 128]
    store y, %0
  }}
  do pipeline {{
    process maker produces c {{
      each t in dense 10 {{
        if t < 4 {{ send c small[t](x = X[0 for 4, 0 for 4], y = Y[t, 0 for 4, 0 for 4]) }}
        else {{ send c large[t](x = X, y = Y[t]) }}
      }}
    }}
    process user consumes c {{
      consume c as t {{
        if t < 1 {{ large[t](x = X, y = Z[t]) }} else {{ medium[t](x = X[0 for 64, 0 for 64], y = Z[t, 0 for 64, 0 for 64]) }}
      }}
    }}
  }}
}}"
    )
}

/// A deeper channel lets the sender run ahead, though no tile says who waits for whom.
#[test]
fn a_channel_holds_as_many_tokens_as_it_is_deep() {
    let makespans = [0, 1, 2].map(|depth| {
        // Nothing but kernels takes time: what a dispatch takes differs by more than one entry of a channel saves.
        let profile = Profile::ideal();
        let virtual_time = VirtualOptions { profile, ..VirtualOptions::default() };
        let mut device = small(Hosting::Virtual(virtual_time));
        let [x, y, z] =
            [1, 10, 10].map(|tiles| device.zeroed::<f32>(tiles * 64 * 128).expect("there is room"));
        let bound = WorkloadBindings::new()
            .tensor("X", x.address())
            .tensor("Y", y.address())
            .tensor("Z", z.address());
        let plan = compiled(&back_pressure(depth));
        let run = WorkloadRun::bind(&device, plan, &bound).expect("it is bound");
        let report = run.run(&mut device, &RunOptions::default()).expect("it runs");
        assert_eq!(report.tasks, 20);
        report.makespan
    });
    assert!(makespans.is_sorted_by(|a, b| a > b), "{makespans:?}");
}

/// Processes that wait for each other end the run, which says who waits for whom, as the `v9` clock does.
#[test]
fn a_deadlock_says_who_waits_for_whom() {
    let body = "pipeline {
      process a consumes d produces c { consume d as t { send c step[t](x = X[t], by = 1) } }
      process b consumes c produces d { sequential {
        each t in dense 2 { send d step[t](x = X[t], by = 1) }
        send d step[3](x = X[3], by = 1)
        each t in dense 3 { send d step[t](x = X[t], by = 1) }
        consume c as t { step[t](x = X[t], by = 1) }
      } }
    }";
    let text = counting(body)
        .replace("kernel step", "channel c depth 1\n  channel d depth 1\n  kernel step");
    let waits = "a waits until b takes a token of c; b waits until a takes a token of d";
    let checked = Workload::parse(&text).expect("it is read").check().expect("it is checked");
    let mut on_host = [0_i32; 32];
    let bindings = Bindings::new().dense(&checked, "X", &mut on_host).expect("it fits");
    let error = clock::run(&checked, &bindings).expect_err("no process can go on").to_string();
    assert_eq!(error, format!("The pipeline is in a deadlock: {waits}."));
    for hosting in [Hosting::Threads, Hosting::Virtual(VirtualOptions::default())] {
        let mut device = small(hosting);
        let tensor = device.upload(&[0_i32; 32]).expect("there is room");
        let bound = WorkloadBindings::new().tensor("X", tensor.address());
        let run = WorkloadRun::bind(&device, compiled(&text), &bound).expect("it is bound");
        let error = run.run(&mut device, &RunOptions::default()).expect_err("no process can go on");
        let error = error.to_string();
        assert!(error.contains(&format!("in a deadlock: {waits}.")), "{error}");
        assert!(error.contains("PLAN_DEADLOCK"), "{error}");
    }
}

/// What a plan has no room for, and a schedule that speaks of single tasks, are refused when the pipeline is compiled.
#[test]
fn pipelines_that_no_plan_holds_are_refused() {
    let refusal = |text: &str| {
        let checked = Workload::parse(text).expect("it is read").check().expect("it is checked");
        compile(&checked).expect_err("no plan holds it").to_string()
    };
    let error = refusal(&back_pressure(129));
    assert!(
        error.contains("has 129 places for tokens in its channels, and a plan holds 128."),
        "{error}"
    );
    let scheduled = |dispatch: &str| {
        let schedule = format!("schedule {dispatch} workers 4 window 8192 stall\n  tensor X");
        back_pressure(1).replacen("tensor X", &schedule, 1)
    };
    let error = refusal(&scheduled("streams"));
    assert!(error.contains("is a pipeline, whose processes order its tasks."), "{error}");
    // Its processes are its workers.
    assert_eq!(compiled(&scheduled("round_robin")).words(), compiled(&back_pressure(1)).words());
}
