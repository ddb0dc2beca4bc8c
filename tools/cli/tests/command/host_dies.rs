//! A host that dies in the middle of a run, by Ctrl-C, by an order to end, and by SIGKILL, which it cannot answer: no
//! process, file, socket or lock is left, and the next run succeeds. What the device does whose host is gone is in
//! tests/system/troubles.rs (`host-dies`, `host-silent`).

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::firmware::{Home, images, text};

/// The machine of a running `pto`.
fn machine_of(child: &Child) -> Option<u32> {
    let entries = fs::read_dir("/proc").expect("Linux").flatten();
    let ids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    ids.into_iter().find(|id| {
        let stat = fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
        let parent = stat.rsplit(')').next().and_then(|rest| rest.split_whitespace().nth(1));
        parent == Some(&child.id().to_string()) && stat.contains("(qemu")
    })
}

/// The same command, with SIGINT as a terminal leaves it: what runs in the background of a shell ignores it, and
/// so do all its children.
fn interruptible(command: &Command) -> Command {
    let mut wrapped = Command::new("env");
    wrapped.arg("--default-signal=INT").arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => wrapped.env(name, value),
            None => wrapped.env_remove(name),
        };
    }
    wrapped
}

fn await_some<T>(mut look: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(start.elapsed() < Duration::from_secs(30), "it does not happen");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Every file below a folder.
fn files(folder: &Path) -> BTreeSet<String> {
    let Ok(entries) = fs::read_dir(folder) else { return BTreeSet::new() };
    let paths = entries.flatten().map(|entry| entry.path());
    paths
        .flat_map(|path| match path.is_dir() {
            true => files(&path),
            false => BTreeSet::from([path.to_string_lossy().into_owned()]),
        })
        .collect()
}

/// What a host could leave: files of the home, files for a while, shared memory, sockets with a name.
fn remains(home: &Home) -> Vec<BTreeSet<String>> {
    let sockets = fs::read_to_string("/proc/net/unix").unwrap_or_default();
    let home_path = home.path();
    let named = sockets.lines().filter(|line| line.contains(&*home_path.to_string_lossy()));
    let shared = files(Path::new("/dev/shm")).into_iter().filter(|name| name.contains("pto"));
    vec![files(&home_path), named.map(ToOwned::to_owned).collect(), shared.collect()]
}

/// Starts a run that would last for hours, and sends its host a signal in the middle of it. Returns the ids of the
/// processes that were there.
fn killed(home: &Home, device: &str, signal: &str) -> Vec<u32> {
    let args = ["run", "random_dag", "--device", device, "--rounds", "100000"];
    let mut run = interruptible(&home.command(&args));
    run.env("TMPDIR", home.path()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = run.spawn().expect("pto");
    let mut processes = vec![child.id()];
    if device == "qemu" {
        processes.push(await_some(|| machine_of(&child)));
    }
    std::thread::sleep(Duration::from_millis(300));
    let sent = Command::new("kill").args([signal, &child.id().to_string()]).status();
    assert!(sent.expect("kill").success());
    assert!(!child.wait().expect("it ends").success(), "{signal}");
    processes
}

#[test]
fn a_host_that_dies_in_a_run_leaves_nothing_and_the_next_run_succeeds() {
    let home = Home::new();
    let [firmware, kernels] = images();
    home.pto(&["fw", "flash", text(firmware), text(kernels)], 0);
    let before = remains(&home);
    for (device, signal) in
        [("qemu", "-INT"), ("qemu", "-TERM"), ("qemu", "-KILL"), ("a2a3sim", "-KILL")]
    {
        for process in killed(&home, device, signal) {
            await_some(|| {
                // A process that has ended is gone, or waits to be collected by init.
                let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
                (stat.is_empty() || stat.contains(") Z ")).then_some(())
            });
        }
        assert_eq!(remains(&home), before, "{device} {signal}");
        let next = home.pto(&["run", "random_dag", "--device", device], 0).stdout;
        assert!(next.contains("PASS"), "{device} {signal}: {next}");
    }
    // The writer's lock on the flashed images is free.
    home.pto(&["fw", "flash", text(firmware)], 0);
}
