//! What goes wrong on the machine becomes a fault with an epitaph, and the machine serves on.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::built::Images;
use crate::graphs::Pattern;
use crate::session::{Ended, Tables, UNMAPPED};
use crate::session::{Session, Setup};
use pto_abi::fw_image::{VCPU_INSTANCE, VCPU_WORKER};
use pto_abi::runtime::NOBODY;
use pto_abi::session::board::RESIDENT_PROGRAM;
use pto_abi::{FanoutStrategy, Fault, RuntimeVariant};
use pto_aicore_kernels::func;
use pto_host::qemu::memory::Ram;
use pto_host::qemu::process::{Execution, PROGRAM, Process, ProcessOptions};
use pto_host::qemu::{QemuError, QemuMachine, QemuOptions, boot};

/// A func id that the library does not use.
const OWN_FUNC: u16 = func::EMPTY_AIV.0;
const GRAPH: Pattern = Pattern::Chain(20);
const EXCEPTION_BREAKPOINT: u64 = 0x3C;
const EXCEPTION_DATA: u64 = 0x25;
const EXCEPTION_FETCH: u64 = 0x21;

fn run(session: &mut Session, setup: &Setup) -> Ended {
    session.run(GRAPH, setup).unwrap_or_else(|error| panic!("{error}"))
}

fn instructions(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// What the blob of the kernels has of text at most.
const KERNELS_BYTES: u64 = 64 << 10;

/// The machine still runs graphs.
fn serves_on(session: &mut Session) {
    let ended = run(session, &Setup::default());
    assert_eq!((ended.fault, ended.wrong), (None, Vec::new()), "{:?}", ended.logs);
}

#[test]
fn an_exception_in_a_kernel() {
    let mut session = Session::start(5);
    let ended = run(&mut session, &Setup { tables: Tables::Unmapped, ..Setup::default() });
    assert_eq!(ended.fault, Some(Fault::CORE_EXCEPTION), "{}", session.machine.console());
    let epitaph = ended.epitaph;
    assert_eq!((epitaph.fault, epitaph.instance), (Fault::CORE_EXCEPTION.code(), NOBODY));
    assert_eq!((epitaph.task.slot, epitaph.func_id), (0, func::DAG_NODE_AIV.0.into()));
    assert_eq!((epitaph.detail[0] >> 26, epitaph.detail[1]), (EXCEPTION_DATA, UNMAPPED));
    let exceptions = session.machine.exceptions();
    let [exception] = &exceptions[..] else { panic!("one exception") };
    assert_eq!((exception.state, exception.role), (VCPU_WORKER, epitaph.core));
    assert_eq!(exception.fault_address, UNMAPPED);
    // In the blob of the kernels, which have code in common.
    assert!(exception.pc.abs_diff(epitaph.kernel) < KERNELS_BYTES, "{exception}");
    let console = session.machine.console_with(&exceptions);
    assert!(console.contains("esr"), "the console says it, too");
    serves_on(&mut session);
}

#[test]
fn code_that_is_none() {
    let mut session = Session::start(5);
    let setup = Setup { func_id: OWN_FUNC, tables: Tables::None, ..Setup::default() };
    session.set_kernel(OWN_FUNC, UNMAPPED);
    let ended = run(&mut session, &setup);
    assert_eq!(ended.fault, Some(Fault::CORE_EXCEPTION));
    assert_eq!((ended.epitaph.detail[0] >> 26, ended.epitaph.kernel), (EXCEPTION_FETCH, UNMAPPED));
    // `brk #1`.
    let code = session.add_code(&instructions(&[0xD420_0020]));
    session.set_kernel(OWN_FUNC, code);
    let ended = run(&mut session, &setup);
    assert_eq!(ended.fault, Some(Fault::CORE_EXCEPTION));
    assert_eq!(ended.epitaph.detail[0] >> 26, EXCEPTION_BREAKPOINT);
    serves_on(&mut session);
}

#[test]
fn what_an_image_leaves_out_is_refused() {
    let mut session = Session::start_image(Images::get().smallest.clone(), 5);
    let locked = Setup { fanout: FanoutStrategy::LOCKED, ..Setup::default() };
    assert_eq!(run(&mut session, &locked).fault, Some(Fault::RUNTIME_FANOUT));
    let streams = Setup { variant: RuntimeVariant::TENSORMAP_AND_RINGBUFFER, ..Setup::default() };
    assert_eq!(run(&mut session, &streams).fault, Some(Fault::RUNTIME_VARIANT));
    let resident = session.run_named(RESIDENT_PROGRAM, GRAPH, &Setup::default());
    let resident = resident.unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(resident.fault, Some(Fault::BUILD_NO_BUILDER));
    serves_on(&mut session);
}

#[test]
fn a_stack_that_overflows_hits_its_gap() {
    let mut session = Session::start(5);
    // sub sp, sp, #4096; str x0, [sp]; b .-8
    let code = session.add_code(&instructions(&[0xD140_07FF, 0xF900_03E0, 0x17FF_FFFE]));
    session.set_kernel(OWN_FUNC, code);
    let setup = Setup { func_id: OWN_FUNC, tables: Tables::None, ..Setup::default() };
    let ended = run(&mut session, &setup);
    assert_eq!(ended.fault, Some(Fault::CORE_EXCEPTION));
    let [exception] = &session.machine.exceptions()[..] else { panic!("one exception") };
    assert_eq!(exception.fault_address & !4095, exception.sp & !4095, "{exception}");
    serves_on(&mut session);
}

#[test]
fn an_exception_in_a_builder() {
    let mut session = Session::start_image(Images::get().misbehaving.clone(), 5);
    let setup = Setup { func_id: OWN_FUNC, tables: Tables::None, ..Setup::default() };
    let ended = session.run_named("crashing", GRAPH, &setup).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(ended.fault, Some(Fault::FW_EXCEPTION));
    assert_eq!((ended.epitaph.instance, ended.epitaph.detail[1]), (0, 8));
    assert_eq!(session.machine.exceptions()[0].state, VCPU_INSTANCE);
    let ended = session.run_named("diamond", GRAPH, &setup).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!((ended.fault, ended.completed), (None, 4));
}

#[test]
fn a_panic_in_a_builder() {
    let mut session = Session::start_image(Images::get().misbehaving.clone(), 5);
    let setup = Setup { func_id: OWN_FUNC, tables: Tables::None, ..Setup::default() };
    let ended = session.run_named("panicking", GRAPH, &setup).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!((ended.fault, ended.epitaph.instance), (Some(Fault::FW_PANIC), 0));
    let console = session.machine.console();
    assert!(
        console.contains("misbehaving.rs") && console.contains("of 8 words is 14"),
        "{console}"
    );
    let ended = session.run_named("diamond", GRAPH, &setup).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!((ended.fault, ended.completed), (None, 4));
}

#[test]
fn a_builder_that_fails() {
    let mut session = Session::start_image(Images::get().misbehaving.clone(), 5);
    let failing = session.run_named("failing", GRAPH, &Setup::default());
    let ended = failing.unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(ended.fault, Some(Fault::BUILD_FAILED));
    assert_eq!(ended.epitaph.detail[0].cast_signed(), -7);
    assert!(ended.logs[0].contains("BUILD_FAILED"), "{:?}", ended.logs);
    let unknown = session.run_named("nobody", GRAPH, &Setup::default());
    let ended = unknown.unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(ended.fault, Some(Fault::BUILD_NO_BUILDER));
    let setup = Setup { func_id: OWN_FUNC, tables: Tables::None, ..Setup::default() };
    let served = session.run_named("diamond", GRAPH, &setup).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!((served.fault, served.completed), (None, 4));
}

#[test]
fn more_workers_than_vcpus() {
    let mut session = Session::start(4);
    let ended = run(&mut session, &Setup::default());
    assert_eq!(ended.fault, Some(Fault::RUNTIME_WORKER_COUNT));
    assert_eq!(ended.epitaph.detail, [5, 4]);
    let ended = run(&mut session, &Setup { workers: [0, 2], ..Setup::default() });
    assert_eq!((ended.fault, ended.wrong), (None, Vec::new()));
}

#[test]
fn a_kernel_that_never_returns() {
    let mut session = Session::start(5);
    // b .
    let code = session.add_code(&instructions(&[0x1400_0000]));
    session.set_kernel(OWN_FUNC, code);
    let task_budget = Duration::from_millis(200);
    let setup = Setup { func_id: OWN_FUNC, tables: Tables::None, task_budget, ..Setup::default() };
    let ended = run(&mut session, &setup);
    assert_eq!(ended.fault, Some(Fault::STALL_CORE));
    assert_eq!((ended.epitaph.kernel, ended.epitaph.task.slot), (code, 0));
    let stuck = session.machine.let_go(Duration::from_millis(100)).unwrap_err();
    let worker = format!("worker {}", ended.epitaph.core);
    assert!(matches!(&stuck, QemuError::Hangs { vcpus, .. } if vcpus.contains(&worker)), "{stuck}");
}

#[test]
fn a_machine_that_is_killed_in_a_run() {
    let mut session = Session::start(5);
    let code = session.add_code(&instructions(&[0x1400_0000]));
    session.set_kernel(OWN_FUNC, code);
    let process = i32::try_from(session.machine.process().id()).unwrap();
    let killer = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(100));
        // SAFETY: sends a signal to the process that this test owns.
        unsafe { libc::kill(process, libc::SIGKILL) }
    });
    let setup = Setup { func_id: OWN_FUNC, tables: Tables::None, ..Setup::default() };
    let error = session.run(GRAPH, &setup).unwrap_err();
    assert!(matches!(error, QemuError::Ended { when: "of the run", .. }), "{error}");
    assert_eq!(killer.join().unwrap(), 0);
}

#[test]
fn nothing_is_left_behind() {
    let session = Session::start(3);
    let process = PathBuf::from(format!("/proc/{}", session.machine.process().id()));
    assert!(process.exists());
    drop(session);
    assert!(!process.exists());
}

/// Not a test: the process that the next one kills.
#[test]
fn owner_that_is_killed() {
    if std::env::var_os(OWNER).is_some() {
        let session = Session::start(2);
        println!("\n{OWNER}={}", session.machine.process().id());
        std::thread::sleep(Duration::from_secs(60));
    }
}

const OWNER: &str = "PTO_TEST_OWNER";

#[test]
fn nothing_is_left_of_an_owner_that_is_killed() {
    use std::io::{BufRead, BufReader};
    let mut owner = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "faults::owner_that_is_killed", "--nocapture"])
        .env(OWNER, "1")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(owner.stdout.take().unwrap()).lines().map_while(Result::ok);
    let id = lines.find_map(|line| Some(line.strip_prefix(OWNER)?.strip_prefix('=')?.to_owned()));
    let process = PathBuf::from(format!("/proc/{}/exe", id.expect("the owner has a machine")));
    assert!(process.exists());
    owner.kill().unwrap();
    owner.wait().unwrap();
    // Nobody here waits for the process, whose parent is gone: a zombie has no `exe`.
    let end = Instant::now() + Duration::from_secs(5);
    while std::fs::read_link(&process).is_ok() {
        assert!(Instant::now() < end, "QEMU outlives its owner");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn what_cannot_be_booted() {
    let options = QemuOptions::new(Images::get().firmware.clone(), 2);
    let boot = |options: &QemuOptions| QemuMachine::boot(options).err().expect("no machine");
    let error = boot(&QemuOptions { program: "qemu-of-nobody".into(), ..options.clone() });
    assert!(error.to_string().contains("apt-get install qemu-system-arm"), "{error}");
    let error = boot(&QemuOptions { vcpus: 65, ..options.clone() });
    assert!(matches!(error, QemuError::Vcpus(65)), "{error}");
    let error = boot(&QemuOptions { ram_bytes: 3 << 20, ..options.clone() });
    assert!(matches!(error, QemuError::RamBytes(_)), "{error}");
    let error = boot(&QemuOptions { image: "/nowhere".into(), ..options });
    assert!(matches!(&error, QemuError::Ended { .. }) && error.to_string().contains("/nowhere"));
}

#[test]
fn a_boot_header_of_another_release_is_refused() {
    let ram = Ram::new(64 << 20).unwrap();
    let block = ram.boot_block().unwrap();
    boot::write_header(block, 2, ram.bytes());
    block.header.layout_hash.store(5, pto_abi::sync::Ordering::Relaxed);
    let options = ProcessOptions {
        program: PROGRAM.into(),
        image: Images::get().firmware.clone(),
        image_file: None,
        vcpus: 2,
        execution: Execution::Parallel,
        extra: Vec::new(),
    };
    let process = Process::start(&options, &ram).unwrap();
    let status = loop {
        if let Some(status) = process.ended() {
            break status;
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    assert_eq!(status.code(), Some(0x71));
    assert_eq!(boot::state(block, 2), boot::BootState::Refused(16, 5));
}
