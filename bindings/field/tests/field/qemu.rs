//! The programs on the emulated machine: their orchestrations on this one, their kernels compiled for AArch64.

use std::path::Path;

use pto_field::{
    Call, CallOptions, EdgeRule, FieldDevice, Keeps, KernelCode, MemorySpace, ObjectCode, Role,
    Tensor,
};
use pto_host::abi::CoreKind;
use pto_host::fw::{Image, ImageKind};
use pto_image_build::{Built, KernelSource, Profile, Request, packages};

use crate::bench::run_on;
use crate::bench::{KERNELS, program};
use crate::shapes::{SHAPES, has_exponentials, is_close};
use crate::table::{BAD, Bad, GOOD, ProgramTensors};

/// Programs that do not run there, each with the reason.
const LEFT_OUT: &[(&str, &str)] = &[];

/// Programs that rely on an edge that the field does not make.
const RACING: &[(&str, &str)] = &[
    ("write_after_read", "the last task writes what an earlier one reads"),
    ("many_producers", "the last task writes what an earlier one reads"),
];

/// The firmware as it is shipped, and a blob with the kernels of all programs.
fn images() -> [Image; 2] {
    let say = |sentence: &str| println!("{sentence}");
    let programs = [packages::QEMU, packages::CROSS_CXX];
    packages::install(&programs, &say).unwrap_or_else(|why| panic!("{why}"));
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/kernels.cpp");
    let kernel = |(func_id, symbol): (u32, &str)| KernelSource {
        func_id,
        kind: if func_id >= 32 { CoreKind::AIC } else { CoreKind::AIV },
        name: symbol.to_owned(),
        function: symbol.to_owned(),
        path: path.clone(),
    };
    let kernels = KERNELS.map(kernel).to_vec();
    let request = Request { kernels, profile: Profile::Release, ..Request::default() };
    let built = pto_image_build::build(&request, &say).unwrap_or_else(|why| panic!("{why}"));
    let of = |built: &[Built], kind| {
        built.iter().find(|one| one.image.kind == kind).expect("it is built").image.clone()
    };
    [of(&built, ImageKind::Qemu), of(&built, ImageKind::Kernels)]
}

/// Programs of which the machine says something else: the code, and a part of what it says.
const SAID_THERE: &[Bad] = &[
    ("bad_sync_start", 7, "Found 17 (0x11); expected was 16"),
    ("bad_kernel_crash", 100, "A core took an exception in a kernel"),
];

/// Programs that wait for other tasks while they run, or whose blocks meet though they do not start at once: each core of the machine runs by itself.
/// What they leave: the first counts, and the first elements of `out`.
const WAITING: &[(&str, &[i32], f32)] = &[
    ("notified_later", &[4], 1.0),
    ("tasks_that_wait", &[1, 1, 1, 1], 1.0),
    ("wait_by_ld_dev", &[1, 1, 1, 1], 0.0),
    ("wait_by_dcci", &[1, 1, 1, 1], 0.0),
    ("meeting_that_may_not_begin", &[1; 16], 0.0),
];

fn check_good(device: &FieldDevice, options: &CallOptions, left_out: &[(&str, &str)]) {
    let programs = GOOD.iter().chain(SHAPES);
    let is_left_out = |entry: &str| left_out.iter().any(|(name, _)| *name == entry);
    for (entry, expected) in programs.filter(|(entry, _)| !is_left_out(entry)) {
        let (outcome, found) = run_on(device, entry, options);
        assert_eq!((outcome.code, &outcome.error), (0, &None), "{entry}");
        let expected = expected(ProgramTensors::new());
        let is_right =
            if has_exponentials(entry) { is_close(&found, &expected) } else { found == expected };
        assert!(is_right, "{entry}: {found:?}, and not {expected:?}");
    }
}

fn check_waiting(device: &FieldDevice) {
    for (entry, counts, value) in WAITING {
        let (outcome, found) = run_on(device, entry, &CallOptions::default());
        assert_eq!((outcome.code, &outcome.error), (0, &None), "{entry}");
        assert_eq!((&found.counts[..counts.len()], found.out[0]), (*counts, *value), "{entry}");
    }
}

fn check_mistakes(device: &FieldDevice) {
    for bad in BAD {
        let (entry, code, said) = SAID_THERE.iter().find(|there| there.0 == bad.0).unwrap_or(bad);
        let (outcome, _) = run_on(device, entry, &CallOptions::default());
        let error = outcome.error.as_ref().unwrap_or_else(|| panic!("{entry} succeeds"));
        assert_eq!(error.code.0, *code, "{entry}: {error}");
        assert!(error.detail.contains(said), "{entry}: {error}");
        let (outcome, _) = run_on(device, "chain", &CallOptions::default());
        assert_eq!(outcome.error, None, "after {entry}");
    }
}

/// What is said of a call that the machine cannot do.
fn refused(device: &FieldDevice, tensors: &[Tensor<'_>], options: &CallOptions) -> String {
    let control = pto_host::RunControl::default();
    // SAFETY: nothing runs.
    let ended = unsafe {
        device.run(&program("chain"), &Call { tensors, scalars: &[] }, options, &control)
    };
    ended.map(|_| ()).unwrap_err().to_string()
}

fn check_refused(device: &FieldDevice) {
    let refuses = |options: &CallOptions, said: &str| {
        let found = refused(device, &[], options);
        assert!(found.contains(said) && found.contains("hosting mode `threads`"), "{found}");
    };
    let options = CallOptions::default();
    refuses(
        &CallOptions { finds_shared_lines: true, ..options.clone() },
        "lines that kernels share",
    );
    let keeps = |keeps| CallOptions { keeps, ..CallOptions::default() };
    refuses(&keeps(Keeps { spans: true, ..Keeps::default() }), "neither swimlanes nor counters");
    refuses(&keeps(Keeps { arguments: 2, ..Keeps::default() }), "arguments are not dumped");
    let mut own = [0.0_f32; 16];
    let pointer = own.as_mut_ptr().cast();
    let tensor =
        Tensor { pointer, shape: &[16], dtype: 0, role: Role::InOut, space: MemorySpace::Device };
    let found = refused(device, &[tensor], &options);
    assert!(
        found.contains("tensor 0 is used in place, and is none of the device's memory"),
        "{found}"
    );
}

/// The programs run in parts where they read elements of results while they are built.
fn check_parts(device: &FieldDevice) {
    let notes = |entry| run_on(device, entry, &CallOptions::default()).0.notes;
    let [note] = &notes("until")[..] else { panic!("{:?}", notes("until")) };
    assert!(note.contains("the device has run it in"), "{note}");
    assert!(notes("bgemm").is_empty());
    let (outcome, found) = run_on(device, "large", &CallOptions::default());
    assert_eq!((outcome.error, outcome.tasks), (None, 65_792));
    assert_eq!(found.out, vec![2056.0; 1024]);
    assert_eq!(outcome.report.map(|report| report.tasks), Some(65_792));
}

/// A blob of another program is refused, as are kernels on a device that has none.
fn check_kernels(device: &FieldDevice) {
    let [simulator, _, _] = crate::bench::modes();
    let entry = |name| KernelCode {
        func_id: 0,
        kind: CoreKind::AIV,
        name,
        symbol: "",
        code: ObjectCode::OnDevice,
    };
    let run = |device: &FieldDevice, name| {
        let callable = crate::bench::with_kernels("nothing", &[entry(name)]);
        let call = Call { tensors: &[], scalars: &[] };
        // SAFETY: there are no tensors.
        unsafe {
            device.run(&callable, &call, &CallOptions::default(), &pto_host::RunControl::default())
        }
    };
    assert_eq!(run(device, "k_add").unwrap().error, None);
    let said = run(device, "k_other").map(|_| ()).unwrap_err().to_string();
    assert!(
        said.contains("have `k_add` for aiv")
            && said.contains("pto fw build --kernel 0:aiv:k_other=FILE"),
        "{said}"
    );
    let said = run(&crate::bench::device(simulator), "k_add").map(|_| ()).unwrap_err().to_string();
    assert!(said.contains("has its code on a device, and this is the simulator"), "{said}");
}

/// One machine for all of it: a process has one at a time.
#[test]
fn programs_run_on_the_emulated_machine() {
    let [firmware, kernels] = images();
    let device = FieldDevice::open_qemu(&FieldDevice::machine(), &firmware, &kernels).unwrap();
    check_good(&device, &CallOptions::default(), LEFT_OUT);
    let theirs = CallOptions { edges: EdgeRule::Theirs, ..CallOptions::default() };
    check_good(&device, &theirs, RACING);
    check_waiting(&device);
    check_parts(&device);
    check_mistakes(&device);
    check_refused(&device);
    check_kernels(&device);
}
