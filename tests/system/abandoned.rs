//! A host that dies with sessions at work, on the simulator and on an emulated machine, leaves nothing over: no process, no file, no shared
//! memory.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use std::{fs, process, thread};

use pto_examples::host;
use pto_host::{Device, DeviceOptions, Hosting, RunOptions, Session, SessionOptions, func};

use crate::qemu;

/// In the environment of a host that is to be killed, and of what it starts: whose it is.
const MARK: &str = "PTO_TEST_ABANDONED";
const LONG: Duration = Duration::from_secs(120);
/// Spins for longer than the host lives.
const FOR_EVER: u64 = 1 << 40;

fn busy(device: Device) -> Session {
    let run = RunOptions { aicpu_instances: 2, task_budget: LONG, ..RunOptions::default() };
    let session = device.session(SessionOptions { run, ..SessionOptions::default() }).unwrap();
    let (first, second) = (session.stream().unwrap(), session.stream().unwrap());
    let (bytes, event) = (session.zeroed::<u8>(1 << 16).unwrap(), session.event().unwrap());
    first.fill(bytes.address(), 1, 1 << 16).unwrap();
    first.record(&event).unwrap();
    event.synchronize_within(LONG).unwrap();
    first.launch(func::SPIN_AIV, &[FOR_EVER]).unwrap();
    second.wait_next(&event).unwrap();
    second.copy_to_device(bytes.address(), vec![2; 1 << 16]).unwrap();
    session
}

/// Not a test: the host that the next one kills.
#[test]
fn host_that_is_killed() {
    let Some(mark) = std::env::var_os(MARK) else { return };
    let open = |hosting| {
        let options = DeviceOptions { hosting, aic: 1, aiv: 2, ..DeviceOptions::default() };
        let mut device = host::open_sim(options).unwrap();
        device.register_library().unwrap();
        busy(device)
    };
    // The machine comes first: it takes long to come up beside kernels that spin.
    let sessions =
        [busy(qemu::small()), open(Hosting::Threads), open(DeviceOptions::default().hosting)];
    println!("\n{MARK}={}", mark.display());
    thread::sleep(LONG);
    drop(sessions);
}

/// Processes with this mark in their environment.
fn processes(mark: &str) -> Vec<String> {
    let mark = format!("{MARK}={mark}");
    let has_mark = |process: &Path| {
        let environ = fs::read(process.join("environ")).unwrap_or_default();
        environ.split(|byte| *byte == 0).any(|entry| entry == mark.as_bytes())
    };
    let all = fs::read_dir("/proc").expect("Linux").filter_map(Result::ok);
    all.filter(|entry| has_mark(&entry.path()))
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect()
}

/// Shared memory with a name of ours.
fn shared_memory() -> usize {
    let names = fs::read_dir("/dev/shm").into_iter().flatten().filter_map(Result::ok);
    names.filter(|entry| entry.file_name().to_string_lossy().contains("pto")).count()
}

#[test]
fn a_host_that_dies_leaves_nothing_of_its_sessions() {
    let (folder, mark) = (tempfile::tempdir().unwrap(), process::id().to_string());
    let before = shared_memory();
    let mut host = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "abandoned::host_that_is_killed", "--nocapture"])
        .env(MARK, &mark)
        .env("TMPDIR", folder.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(host.stdout.take().unwrap()).lines().map_while(Result::ok);
    let is_up = lines.any(|line| line == format!("{MARK}={mark}"));
    assert!(is_up, "the host has no sessions");
    assert_eq!(processes(&mark).len(), 2, "the host and its emulated machine");
    host.kill().unwrap();
    host.wait().unwrap();
    let end = Instant::now() + Duration::from_secs(10);
    while !processes(&mark).is_empty() {
        assert!(Instant::now() < end, "they outlive their host: {:?}", processes(&mark));
        thread::sleep(Duration::from_millis(5));
    }
    let files: Vec<_> = fs::read_dir(folder.path()).unwrap().filter_map(Result::ok).collect();
    assert!(files.is_empty(), "{files:?}");
    assert_eq!(shared_memory(), before, "in /dev/shm");
}
