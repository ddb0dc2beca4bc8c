//! The device `a2a3`: the host's backend, the whole launch sequence, and the real image on the stand-in for the vendor's
//! libraries, which checks every structure byte by byte.
//!
//! The stand-in has one device, so that these tests run one after the other.

use std::ffi::{CStr, CString, c_void};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use pto_abi::{CoreKind, Fault, RuntimeVariant};
use pto_examples::host::{self, Example};
use pto_field::FieldDevice;
use pto_host::fw::{AicoreKernel, AicoreWorker, Image, Machine, pack_aicore};
use pto_host::{A2a3Options, Device, Error, RunOptions, Work};
use pto_image_build::stand_in;

use crate::common;
use crate::examples::on_simulator;

/// Whose code the device of this process runs, by its name; else this machine's. A process brings one firmware to devices.
const MACHINE_VARIABLE: &str = "PTO_TEST_A2A3_MACHINE";
/// What the cores of this process's device run: `cpp` for the worker and the kernels in C++, else those in Rust.
const CORES_VARIABLE: &str = "PTO_TEST_A2A3_CORES";
/// How many cycles of `a_thousand_cycles_leave_nothing_behind` are run; the suite has few.
const CYCLES_VARIABLE: &str = "PTO_A2A3_CYCLES";

/// One test at a time.
pub(crate) fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whose code the device of this process runs.
fn machine() -> Machine {
    let asked = std::env::var(MACHINE_VARIABLE).ok();
    let found = common::MACHINES.iter().find(|one| asked.as_deref() == Some(one.name()));
    *found.or(common::MACHINES.last()).expect("there is one")
}

/// Whether the cores run the worker and the kernels in C++.
fn cores_are_cpp() -> bool {
    std::env::var(CORES_VARIABLE).is_ok_and(|cores| cores == "cpp")
}

/// The folder that stands for CANN's.
fn home() -> &'static Path {
    static HOME: OnceLock<PathBuf> = OnceLock::new();
    HOME.get_or_init(|| {
        let test = std::env::current_exe().expect("a test has a path");
        let library = test.parent().expect("and a folder").join(stand_in::LIBRARY);
        let home = common::target_folder().join("stand-in-of-tests");
        let emulator = (common::triple(machine()), common::loader(machine()));
        stand_in::lay_out(&home, &library, &[emulator]).unwrap_or_else(|why| panic!("{why}"));
        home
    })
}

fn images() -> &'static (Image, Image) {
    static IMAGES: OnceLock<(Image, Image)> = OnceLock::new();
    IMAGES.get_or_init(|| {
        let read = |path: PathBuf| Image::read(&path).expect("an image of this release");
        let kernels = if cores_are_cpp() { common::aicore() } else { common::kernels(machine()) };
        (read(common::default_image(machine())), read(kernels))
    })
}

fn options() -> A2a3Options {
    let home = Some(home().to_path_buf());
    A2a3Options { gm_bytes: 1 << 30, home, ..A2a3Options::default() }
}

pub(crate) fn open() -> Result<Device, Error> {
    let (firmware, kernels) = images();
    let mut device = Device::open_a2a3(&options(), firmware, kernels)?;
    device.register_library()?;
    Ok(device)
}

/// The device with the kernels of programs of the field.
pub(crate) fn open_field(kernels: &Image) -> FieldDevice {
    let firmware = Image::read(&common::default_image(machine())).expect("an image");
    FieldDevice::open_a2a3(&options(), &firmware, kernels).unwrap_or_else(|why| panic!("{why}"))
}

/// A function of the stand-in.
fn of_stand_in(name: &CStr) -> *mut c_void {
    let found = pto_host::a2a3::function(Some(home()), name).unwrap_or_else(|why| panic!("{why}"));
    found.unwrap_or_else(|| panic!("{name:?} is missing"))
}

/// The next calls fail so.
pub(crate) fn inject(faults: &str) {
    let faults = CString::new(faults).unwrap();
    let symbol = of_stand_in(c"pto_stand_in_inject");
    // SAFETY: the function of this name has this type.
    let inject = unsafe {
        std::mem::transmute::<*mut c_void, unsafe extern "C" fn(*const libc::c_char)>(symbol)
    };
    // SAFETY: a string.
    unsafe { inject(faults.as_ptr()) };
}

/// What is open: inits, contexts, blocks, streams, binaries, processes; then registered, launches, resets.
fn ledger() -> [u64; 9] {
    let symbol = of_stand_in(c"pto_stand_in_ledger");
    // SAFETY: the function of this name has this type.
    let read =
        unsafe { std::mem::transmute::<*mut c_void, unsafe extern "C" fn(*mut [u64; 9])>(symbol) };
    let mut ledger = [0; 9];
    // SAFETY: as many words as a ledger has.
    unsafe { read(&raw mut ledger) };
    ledger
}

pub(crate) fn nothing_is_open() {
    assert_eq!(ledger()[..6], [0; 6], "inits, contexts, blocks, streams, binaries, processes");
}

/// Runs an example at its little size, and gives the checksum of its outputs.
fn run(device: &mut Device, example: &dyn Example) -> Result<u64, Error> {
    let mut prepared = host::prepare(example, example.sizes().little, device).expect("it fits");
    prepared.reset().expect("the outputs are reset");
    let variant = example.program().variants()[0];
    let graph = (variant == RuntimeVariant::HOST_BUILD_GRAPH)
        .then(|| prepared.build_on_host(device).expect("a graph"));
    let work = match &graph {
        Some(graph) => Work::HostGraph(graph),
        None => prepared.work(variant),
    };
    let options = RunOptions { capacities: prepared.capacities(), ..RunOptions::default() };
    device.run(work, &options)?;
    let verdict = prepared.verify().expect("the outputs are read");
    assert!(verdict.passed(), "{}: {verdict:?}", example.name());
    let outputs = prepared.outputs().expect("the outputs are read");
    let bytes: Vec<u8> = outputs.iter().flat_map(|(_, tensor)| tensor.bytes()).collect();
    Ok(pto_abi::image::Checksum::of(&bytes))
}

fn vector_example() -> &'static dyn Example {
    host::find("vector_example").expect("it exists")
}

#[test]
fn every_example_makes_the_bits_of_the_simulator() {
    let _alone = alone();
    let mut device = open().unwrap_or_else(|error| panic!("{error}"));
    assert_eq!((device.name(), device.describe().cores), ("a2a3", [4, 8]));
    let mut wrong = Vec::new();
    for example in host::EXAMPLES {
        let in_cpp = if cores_are_cpp() { of_cpp(example.name()) } else { InCpp::SameBits };
        let params = example.sizes().little.iter().map(|(name, value)| format!(":{name}={value}"));
        let named = format!("{}{}", example.name(), params.collect::<String>());
        let found = match run(&mut device, *example) {
            Ok(bits) if bits == on_simulator(&named) => InCpp::SameBits,
            Ok(_) => InCpp::Close,
            Err(error) => panic!("{named}: {error}"),
        };
        println!("{named}: {found:?}");
        if found != in_cpp {
            wrong.push(format!("{named}: {found:?}, and not {in_cpp:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    drop(device);
    nothing_is_open();
}

/// How the results of an example with the kernels in C++ stand to those with the kernels in Rust.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum InCpp {
    SameBits,
    /// A kernel adds in another order: the results are within the example's own tolerance, and not the same bits.
    Close,
}

fn of_cpp(example: &str) -> InCpp {
    // Attention and the norm of rows add in another order (`aicore-kernels/tests/aicore/kernels.rs`).
    const CLOSE: &[&str] = &["paged_attention", "decoder_layer", "tp_decoder", "pp_decoder"];
    if CLOSE.contains(&example) { InCpp::Close } else { InCpp::SameBits }
}

/// What is injected, and what the error must say of it. Each is tried at the opening of a device.
const STEPS: &[(&str, &[&str])] = &[
    ("aclInit:500000", &["initialising CANN", "aclInit answered 500000"]),
    ("aclrtGetDeviceCount:207004", &["counting the devices", "there is no device"]),
    ("aclrtSetDevice:507033", &["taking the device", "cannot be set up", "npu-smi"]),
    ("aclrtMalloc:207001", &["taking memory of the device", "memory is used up", "--memory"]),
    ("aclrtMemset:107000", &["filling memory of the device", "aclrtMemset answered 107000"]),
    ("aclrtMemcpy:507013", &["copying to the device", "a copy failed"]),
    ("aclrtGetDeviceInfo:107000", &["counting the cores"]),
    ("halGetDeviceInfoByBuff:13", &["asking which cores are in service"]),
    ("halGetDeviceInfo:13", &["asking which AICPUs are in service"]),
    ("halMemCtl:13:9", &["mapping the control registers", "halMemCtl answered 13"]),
    ("aclrtCreateStream:207008", &["making the AICPUs' stream", "no stream left"]),
    ("rtAicpuKernelLaunchExWithArgs:107000", &["the bootstrap of the firmware"]),
    ("aicpu:507018", &["the bootstrap of the firmware", "an AICPU took an exception"]),
    ("rtsBinaryLoadFromFile:107009", &["registering the firmware", "rtsBinaryLoadFromFile"]),
    ("rtsFuncGetByName:507027", &["registering the firmware", "rtsFuncGetByName"]),
    ("rtsLaunchCpuKernel:107017", &["initialising the firmware", "rtsLaunchCpuKernel"]),
    ("aicpu:507018:1:1", &["initialising the firmware", "507018"]),
];

/// The other codes of the interface, with which any call may fail: what is said of each. The device is taken by the call that fails.
const CODES: &[(i32, &str)] = &[
    (100_000, "an argument of the call is invalid"),
    (100_003, "a file is invalid"),
    (100_006, "a file cannot be understood"),
    (107_001, "there is no device with this id"),
    (107_002, "this thread has no context"),
    (107_003, "the stream belongs to another context"),
    (107_017, "the handle is not valid any more"),
    (200_000, "the host has no memory left"),
    (207_000, "this is not supported"),
    (207_005, "the device's resources are used up"),
    (207_006, "permission denied"),
    (207_018, "the device's memory is used up"),
    (507_000, "the runtime of the vendor failed"),
    (507_007, "the context was released once too often"),
    (507_899, "the driver failed"),
    (4_711, "a code that this host does not know"),
];

#[test]
fn each_code_is_told_with_its_meaning() {
    let _alone = alone();
    home();
    for (code, meaning) in CODES {
        inject(&format!("aclrtSetDevice:{code}"));
        let error = open().err().unwrap_or_else(|| panic!("{code} is not seen"));
        inject("");
        let text = error.to_string();
        for words in ["taking the device", &format!("aclrtSetDevice answered {code}"), meaning] {
            assert!(text.contains(words), "{code}: {words:?} is not in {text:?}");
        }
        nothing_is_open();
    }
    // An interface that somebody has initialised before is used as it is.
    inject("aclInit:100002");
    drop(open().unwrap_or_else(|error| panic!("{error}")));
    inject("");
}

#[test]
fn each_step_that_fails_is_named_and_leaves_nothing_open() {
    let _alone = alone();
    home();
    for (fault, words) in STEPS {
        inject(fault);
        let error = open().err().unwrap_or_else(|| panic!("{fault} is not seen"));
        inject("");
        let text = error.to_string();
        for word in *words {
            assert!(text.contains(word), "{fault}: {word:?} is not in {text:?}");
        }
        nothing_is_open();
    }
    // The driver refuses the registers now and then; the third try is given them.
    inject("halMemCtl:13:2");
    drop(open().unwrap_or_else(|error| panic!("{error}")));
    nothing_is_open();
}

/// What a report says of each core.
const KNOWN: &str = "The last that is known of core";

/// What is injected into a run, and what the report must say of it.
const RUNS: &[(&str, &[&str])] = &[
    (
        "aicpu:507018",
        &[
            "waiting for the AICPUs",
            "an AICPU took an exception",
            "its library was not found",
            KNOWN,
        ],
    ),
    (
        "aicore:507015",
        &["waiting for the AICores", "an AICore took an exception", "a relocation left", KNOWN],
    ),
    ("rtKernelLaunchWithHandleV2:207001", &["launching the AICores", "memory is used up"]),
    ("rtsLaunchCpuKernel:107000", &["launching the AICPUs", "rtsLaunchCpuKernel answered 107000"]),
    ("aclrtSetOpExecuteTimeOut:107000", &["setting the driver's time-out"]),
    ("aclrtResetDeviceForce:507899:1,aicpu:507018", &["works again"]),
    // Launches that never end: the driver's limits, which are 45 s without the fault.
    ("aicpu:-300", &["waiting for the AICPUs", "507017", "an AICPU ran into its time limit"]),
    (
        "aicore:-300",
        &[
            "waiting for the AICores",
            "507014",
            "an AICore ran into its time limit",
            "A core did not leave its loop in time",
            "AICPU has greeted it, and it has not answered",
        ],
    ),
    ("aicpu:507010", &["the device does not answer any more"]),
    ("aicpu:507011", &["the device failed while it ran"]),
    ("aicore:507016", &["an AICore took a trap"]),
    ("aclrtStreamQuery:507046", &["the wait for a stream took too long"]),
    ("aicore:507053", &["memory has an error"]),
    ("aicpu:507900", &["the AICPU's own software failed"]),
    ("aclrtStreamQuery:107023", &["the stream was aborted"]),
];

#[test]
fn a_fault_of_the_device_is_told_and_the_device_runs_again() {
    let _alone = alone();
    let mut device = open().unwrap_or_else(|error| panic!("{error}"));
    for (fault, words) in RUNS {
        inject(fault);
        let error = run(&mut device, vector_example()).expect_err("the fault is seen");
        assert_eq!(error.fault(), Some(Fault::FW_LOST), "{fault}: {error}");
        let text = error.to_string();
        for word in words.iter().chain(&["reset by force, and works again"]) {
            assert!(text.contains(word), "{fault}: {word:?} is not in {text:?}");
        }
        run(&mut device, vector_example()).unwrap_or_else(|error| panic!("{fault}: {error}"));
    }
    assert_eq!(ledger()[6], 1, "one AICore binary a process");
    drop(device);
    nothing_is_open();
}

/// The firmware gives up cores that do not answer, and ends. The host does not wait for them until the driver's time is over, and reports the firmware's fault.
#[test]
fn cores_that_the_firmware_has_given_up_are_not_waited_for() {
    let _alone = alone();
    let mut device = open().unwrap_or_else(|error| panic!("{error}"));
    inject("aicore:0");
    let start = std::time::Instant::now();
    let error = run(&mut device, vector_example()).expect_err("no core answers");
    assert_eq!(error.fault(), Some(Fault::CORE_NO_ANSWER), "{error}");
    assert!(start.elapsed() < Duration::from_secs(30), "{:?}", start.elapsed());
    let text = error.to_string();
    for words in
        ["the AICores still run", "AICPU has greeted it, and it has not answered", "works again"]
    {
        assert!(text.contains(words), "{words:?} is not in {text:?}");
    }
    run(&mut device, vector_example()).unwrap_or_else(|error| panic!("{error}"));
    drop(device);
    nothing_is_open();
}

/// What the firmware finds by itself is in the arena: the device is not reset, and buffers keep what they hold.
#[test]
fn a_fault_of_the_firmware_needs_no_reset() {
    let _alone = alone();
    let mut device = open().unwrap_or_else(|error| panic!("{error}"));
    let (kept, resets) = (device.upload(&[7_u32; 100]).expect("there is room"), ledger()[8]);
    let work = Work::AicpuBuilder { builder: "nowhere", orch_args: &[] };
    let error = device.run(work, &RunOptions::default()).expect_err("there is no such builder");
    assert_eq!(error.fault(), Some(Fault::BUILD_NO_BUILDER), "{error}");
    run(&mut device, vector_example()).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!((kept.read().expect("it is there"), ledger()[8]), (vec![7; 100], resets));
}

#[test]
fn a_device_that_does_not_come_back_says_so_and_is_left_alone() {
    let _alone = alone();
    let mut device = open().unwrap_or_else(|error| panic!("{error}"));
    inject("aicpu:507018,aclrtResetDeviceForce:507899:9");
    let error = run(&mut device, vector_example()).expect_err("the fault is seen");
    let text = error.to_string();
    assert!(text.contains("reset by force, and does not work"), "{text}");
    inject("");
    let work = Work::AicpuBuilder { builder: "vector_example", orch_args: &[] };
    let error = device.run(work, &RunOptions::default()).expect_err("it is lost");
    assert!(error.to_string().contains("was not confirmed"), "{error}");
    drop(device);
    assert_ne!(ledger()[1], 0, "nothing was called on a device whose state is not known");
    // What a user does next: `npu-smi` resets it.
    let symbol = of_stand_in(c"aclrtResetDeviceForce");
    // SAFETY: the function of this name has this type.
    let reset = unsafe { std::mem::transmute::<*mut c_void, extern "C" fn(i32) -> i32>(symbol) };
    let finalize = of_stand_in(c"aclFinalize");
    // SAFETY: the function of this name has this type.
    let finalize = unsafe { std::mem::transmute::<*mut c_void, extern "C" fn() -> i32>(finalize) };
    assert_eq!((reset(0), finalize()), (0, 0));
    nothing_is_open();
}

/// The tests above with the image of a real device, where the others run this machine's.
#[test]
fn the_image_for_aarch64_does_the_same() {
    if machine() == Machine::Aarch64 {
        return;
    }
    let _alone = alone();
    let test = std::env::current_exe().expect("a test has a path");
    let mut command = Command::new(test);
    command.args(OF_BOTH).args(["--exact", "--test-threads=1"]);
    command.env_remove(CORES_VARIABLE).env(MACHINE_VARIABLE, Machine::Aarch64.name());
    let said = common::text(&mut command);
    assert!(said.contains(&format!("{} passed", OF_BOTH.len())), "{said}");
}

/// The same tests with the worker and the kernels in C++ on the cores.
#[test]
fn the_program_for_aicores_does_the_same() {
    if machine() != Machine::X86_64 || cores_are_cpp() {
        return;
    }
    let _alone = alone();
    let test = std::env::current_exe().expect("a test has a path");
    let mut command = Command::new(test);
    command.args(OF_BOTH).args(["--exact", "--test-threads=1", "--nocapture"]);
    let said = common::text(command.env(CORES_VARIABLE, "cpp"));
    println!("{said}");
    assert!(said.contains(&format!("{} passed", OF_BOTH.len())), "{said}");
}

/// Each example, each fault.
const OF_BOTH: &[&str] = &[
    "a2a3::every_example_makes_the_bits_of_the_simulator",
    "a2a3::each_step_that_fails_is_named_and_leaves_nothing_open",
    "a2a3::a_fault_of_the_device_is_told_and_the_device_runs_again",
    "a2a3::a_fault_of_the_firmware_needs_no_reset",
    "a2a3::a_device_that_does_not_come_back_says_so_and_is_left_alone",
    "sessions::a_session_is_a_series_of_launches",
    "sessions::a_session_outlives_a_fault_of_the_device",
];

/// The name that a processor of the stand-in has instead of its own.
const PROCESSOR_VARIABLE: &str = "PTO_STAND_IN_PROCESSOR";

/// What the vendor's compiler would make: objects of another machine, without what the loader of this one needs.
fn as_of_aicores(elf: &[u8]) -> Vec<u8> {
    let mut file = elf.to_vec();
    file[18..20].copy_from_slice(&0x1029_u16.to_le_bytes());
    let word = |at: usize| u64::from_le_bytes(elf[at..at + 8].try_into().expect("8 bytes"));
    let headers = usize::try_from(word(40)).expect("64-bit");
    for section in 0..usize::from(u16::from_le_bytes([elf[60], elf[61]])) {
        // Nothing is written.
        file[headers + 64 * section + 8] &= !1;
    }
    file
}

/// The program of AICores as if for a real device.
fn program_for_aicores() -> Image {
    let out = common::aicore().with_file_name("out");
    let read = |name: &str| as_of_aicores(&fs::read(out.join(name)).expect("it is built"));
    let (worker, add) = (read("worker.elf"), read("kernels/add.elf"));
    let worker = AicoreWorker { file: "worker.elf", object: &worker };
    let (file, object) = ("add.elf", add.as_slice());
    let add = AicoreKernel { name: "add", func_id: 0, kind: CoreKind::AIV, file, object };
    let image = pack_aicore(&worker, &[add]).unwrap_or_else(|why| panic!("{why}"));
    Image::parse("aicore.img".to_owned(), image).unwrap_or_else(|why| panic!("{why}"))
}

/// A real processor is accepted if what is flashed is for it. It gets as far as the stand-in plays one.
#[test]
fn a_real_processor_takes_a_program_for_aicores() {
    if std::env::var_os(PROCESSOR_VARIABLE).is_some() {
        return on_a_real_processor();
    }
    let _alone = alone();
    for name in ["Ascend910B1", "Ascend910_9391", "Ascend310P3"] {
        let test = std::env::current_exe().expect("a test has a path");
        let mut command = Command::new(test);
        command.args(["a2a3::a_real_processor_takes_a_program_for_aicores", "--exact"]);
        command.env_remove(CORES_VARIABLE).env(PROCESSOR_VARIABLE, name);
        command.env(MACHINE_VARIABLE, Machine::Aarch64.name());
        let said = common::text(&mut command);
        assert!(said.contains("1 passed"), "{said}");
    }
    // The stand-in does not run it.
    let program = program_for_aicores();
    let firmware = Image::read(&common::default_image(Machine::Aarch64)).expect("an image");
    let error = Device::open_a2a3(&options(), &firmware, &program).expect_err("it is refused");
    assert!(error.to_string().contains("what is flashed is for AICores"), "{error}");
    nothing_is_open();
}

/// In a process of its own, whose stand-in has the name of another processor.
fn on_a_real_processor() {
    let (firmware, blob) = images();
    let refusal = |image: &Image| {
        let opened = Device::open_a2a3(&options(), firmware, image);
        opened.err().unwrap_or_else(|| panic!("{} is taken", image.name)).to_string()
    };
    let name = std::env::var(PROCESSOR_VARIABLE).expect("it is set");
    let (of_blob, of_program) = (refusal(blob), refusal(&program_for_aicores()));
    if name == "Ascend310P3" {
        assert!(of_blob.contains("an Ascend 910B or 910C alone"), "{of_blob}");
        assert!(of_program.contains("Ascend310P3"), "{of_program}");
        return;
    }
    for words in [&name, "the flashed kernels are AArch64 code", "--image cann --aicore"] {
        assert!(of_blob.contains(words), "{words:?} is not in {of_blob}");
    }
    assert!(of_program.contains("registering the kernels: rtRegisterAllKernel"), "{of_program}");
}

/// Kernels of another machine than the firmware's are refused before anything is done.
#[test]
fn firmware_and_kernels_are_of_one_machine() {
    let [Machine::Aarch64, Machine::X86_64] = *common::MACHINES else { return };
    let _alone = alone();
    let read = |path: PathBuf| Image::read(&path).expect("an image of this release");
    let firmware = read(common::default_image(Machine::Aarch64));
    let kernels = read(common::kernels(Machine::X86_64));
    let error = Device::open_a2a3(&options(), &firmware, &kernels).expect_err("it is refused");
    let text = error.to_string();
    assert!(
        text.contains("the firmware is AArch64 code and the kernels are x86-64 code"),
        "{text}"
    );
    nothing_is_open();
}

/// What this process has open: files by their names, and how many places of memory are mapped. A thread of the cycle that is at its end may still
/// hold something: what stays is what counts, so that this looks again for as long as `is_known` says no.
fn kept(is_known: impl Fn(&Kept) -> bool) -> Kept {
    let look = || {
        let files = fs::read_dir("/proc/self/fd").expect("Linux").filter_map(Result::ok);
        let mut files: Vec<PathBuf> =
            files.filter_map(|file| fs::read_link(file.path()).ok()).collect();
        files.sort();
        let maps = fs::read_to_string("/proc/self/maps").expect("Linux").lines().count();
        Kept { files, maps }
    };
    let mut now = look();
    for _ in 0..100 {
        if is_known(&now) {
            break;
        }
        std::thread::sleep(Duration::from_millis(20));
        now = look();
    }
    now
}

/// Runs the test `name` in a process of its own, where no other test opens files, unless this is that process. Whether it has run.
pub(crate) fn ran_alone(name: &str) -> bool {
    const VARIABLE: &str = "PTO_TEST_RUNS_ALONE";
    if std::env::var_os(VARIABLE).is_some() {
        return false;
    }
    let mut test = Command::new(std::env::current_exe().expect("a test has a path"));
    // As long as its cycles take: the variable may ask for a thousand.
    let done = test.args(["--exact", name, "--nocapture"]).env(VARIABLE, "1").output();
    let done = done.expect("the test can be started");
    let output = [done.stdout, done.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    assert!(done.status.success() && output[0].contains("1 passed"), "{}{}", output[0], output[1]);
    println!("{}", output[0]);
    true
}

/// Files and mappings of a process.
struct Kept {
    files: Vec<PathBuf>,
    maps: usize,
}

/// Bytes of this process that are in memory.
fn resident() -> u64 {
    let text = fs::read_to_string("/proc/self/statm").expect("Linux");
    let pages = text.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok());
    pages.expect("a number") * 4096
}

/// Open, run, fault, reset, close. `PTO_A2A3_CYCLES=1000` runs a thousand.
#[test]
fn a_thousand_cycles_leave_nothing_behind() {
    /// Cycles after which the process has what it keeps.
    const SETTLED: u32 = 6;
    /// Mappings that come and go with arenas of the allocator and stacks that the system keeps for threads.
    const MAPS: usize = 40;
    /// Bytes that so many cycles may take; a block of the device that leaks in each would be more.
    const BYTES: u64 = 64 << 20;
    if ran_alone("a2a3::a_thousand_cycles_leave_nothing_behind") {
        return;
    }
    let _alone = alone();
    let asked = std::env::var(CYCLES_VARIABLE).ok().and_then(|text| text.parse().ok());
    let cycles: u32 = asked.unwrap_or(12);
    let threads = || fs::read_dir("/proc/self/task").expect("Linux").count();
    let mut before: Option<(Kept, u64)> = None;
    for cycle in 0..cycles {
        let mut device = open().unwrap_or_else(|error| panic!("cycle {cycle}: {error}"));
        run(&mut device, vector_example()).unwrap_or_else(|error| panic!("{cycle}: {error}"));
        inject(if cycle % 2 == 0 { "aicpu:507018" } else { "aicore:507015" });
        run(&mut device, vector_example()).expect_err("the fault is seen");
        drop(device);
        nothing_is_open();
        assert!(threads() < 64, "threads after cycle {cycle}");
        let Some((first, bytes)) = &mut before else {
            if cycle + 1 >= SETTLED {
                before = Some((kept(|_| true), resident()));
            }
            continue;
        };
        let now = kept(|now| now.files.len() <= first.files.len());
        // Fewer than before: something of the first look was at its end.
        if now.files.len() < first.files.len() {
            first.files.clone_from(&now.files);
        }
        assert_eq!(now.files, first.files, "open files after cycle {cycle}");
        assert!(now.maps <= first.maps + MAPS, "{} mappings after cycle {cycle}", now.maps);
        assert!(resident() <= *bytes + BYTES, "{} bytes after cycle {cycle}", resident());
        if cycle % 50 == 0 {
            println!("cycle {cycle}: {} mappings, {} bytes", now.maps, resident());
        }
    }
    println!("{cycles} cycles");
}

/// A program in C reaches the stand-in through `libascendcl.so`, which has loaded it once, and keeps it. As many cycles as above.
#[test]
fn a_thousand_cycles_through_the_plug_in_leave_nothing_behind() {
    let cycles = std::env::var(CYCLES_VARIABLE).unwrap_or_else(|_| "20".to_owned());
    let test = std::env::current_exe().expect("a test has a path");
    let libraries = test.parent().expect("and a folder");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folder = tempfile::tempdir().expect("a folder");
    let program = folder.path().join("cycles");
    let mut compiler = Command::new("cc");
    compiler.args(["-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", "-I"]);
    compiler.arg(root.join("bindings/acl/include"));
    compiler.arg(root.join("linker/images/tests/images/cycles.c")).arg("-o").arg(&program);
    common::text(compiler.arg("-L").arg(libraries).arg("-lascendcl"));
    let count: usize = cycles.parse().expect("a number of cycles");
    // Every second call fails, each fault after one call that passes.
    let faults = vec!["aclrtMemcpy:507015:1:1"; 2 * count].join(",");
    let mut command = Command::new(&program);
    command.arg(&cycles).env("LD_LIBRARY_PATH", libraries);
    command.env("PTO_ACL_DEVICE", "a2a3").env("ASCEND_HOME_PATH", home());
    let said = common::text(command.env("PTO_STAND_IN_FAULTS", faults));
    assert_eq!(said, format!("{cycles} cycles\n"));
}

#[test]
fn what_is_missing_is_named() {
    // Its compilers are open files of the process.
    let _alone = alone();
    let folder = tempfile::tempdir().expect("a folder");
    let libraries = folder.path().join("lib64");
    fs::create_dir(&libraries).expect("writable");
    let home = folder.path();
    let text = pto_host::a2a3::check(Some(home)).expect_err("it is empty").to_string();
    assert!(text.contains("libascend_hal.so of CANN cannot be loaded"), "{text}");
    assert!(text.contains(&libraries.display().to_string()), "{text}");
    let source = folder.path().join("old.c");
    fs::write(
        &source,
        "int aclrtGetVersion(int *a, int *b, int *c) { *a = 1; *b = 9; *c = 0; return 0; }\n",
    )
    .expect("writable");
    for name in stand_in::NAMES {
        let mut compiler = Command::new("cc");
        compiler.args(["-shared", "-fPIC", "-o"]).arg(libraries.join(name)).arg(&source);
        common::text(&mut compiler);
    }
    let text = pto_host::a2a3::check(Some(home)).expect_err("they are empty").to_string();
    for word in ["libacl_rt.so has no aclInit, aclFinalize,", "version 1.9.0", "1.17"] {
        assert!(text.contains(word), "{word:?} is not in {text:?}");
    }
}
