//! `acceptance --cann DIR`: the public samples of the vendor's runtime, compiled unmodified against our headers and run on our library.
//!
//! Nothing of the samples is in the project: the caller names the folder `example` of a checkout (commit 681ef76 is what the table was made for).
//! Kernels follow functions of the host, which `bindings/acl/tests/samples/kernels.cpp` has.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long a program may take.
const LIMIT: Duration = Duration::from_secs(60);

/// A sample: its folder below `example`, further sources, and its programs: source, arguments, devices.
struct Sample {
    folder: &'static str,
    more: &'static [&'static str],
    programs: &'static [(&'static str, &'static [&'static str])],
}

const MAIN: &[(&str, &[&str])] = &[("main.cpp", &[])];
const PAIR: &[(&str, &[&str])] = &[("proc_a.cpp", &[]), ("proc_b.cpp", &[])];
const FILES: &[&str] = &["1_basic_features/memory/file_ops.cpp"];

const fn sample(folder: &'static str) -> Sample {
    Sample { folder, more: &[], programs: MAIN }
}

const fn pair(folder: &'static str) -> Sample {
    Sample { folder, more: FILES, programs: PAIR }
}

const SAMPLES: &[Sample] = &[
    // Without kernels.
    sample("0_quickstart/1_error_handling"),
    sample("0_quickstart/2_system_info"),
    sample("1_basic_features/context/0_context_query"),
    sample("1_basic_features/device/2_device_P2P"),
    sample("1_basic_features/memory/0_h2h_memory_copy"),
    Sample {
        folder: "1_basic_features/memory/9_multistream_sync_memory",
        more: &["1_basic_features/memory/9_multistream_sync_memory/file_ops.cpp"],
        programs: MAIN,
    },
    sample("1_basic_features/stream/3_stream_config_query"),
    sample("2_advanced_features/built_in_task/0_reduce_task"),
    Sample { folder: "2_advanced_features/ipcevent/0_ipcevent", more: &[], programs: PAIR },
    Sample {
        folder: "2_advanced_features/ipcevent/1_ipcevent_multi_device",
        more: &[],
        programs: &[("proc_a.cpp", &["1"]), ("proc_b.cpp", &["1", "1"])],
    },
    sample("2_advanced_features/model_ri/4_model_sync_external"),
    sample("3_memory_advanced/allocator/0_custom_allocator"),
    // With kernels of ours.
    sample("0_quickstart/4_custom_kernel_launch"),
    sample("1_basic_features/device/1_device_multi_thread"),
    sample("1_basic_features/event/0_event_status"),
    sample("1_basic_features/event/1_event_timestamp"),
    sample("1_basic_features/memory/1_h2d_sync_memory_copy"),
    sample("1_basic_features/memory/2_h2d_async_memory_copy"),
    sample("1_basic_features/memory/3_d2h_sync_memory_copy"),
    sample("1_basic_features/memory/4_d2h_async_memory_copy"),
    sample("1_basic_features/memory/5_d2d_sync_memory_copy"),
    sample("1_basic_features/memory/6_d2d_async_memory_copy"),
    pair("1_basic_features/memory/7_physical_memory_sharing_withpid"),
    pair("1_basic_features/memory/8_physical_memory_sharing_withoutpid"),
    pair("1_basic_features/memory/10_ipc_memory_withpid"),
    pair("1_basic_features/memory/11_ipc_memory_withoutpid"),
    sample("1_basic_features/stream/0_simple_stream"),
    sample("1_basic_features/stream/1_stream_with_failure_mode"),
    sample("1_basic_features/stream/2_multi_stream"),
    Sample {
        folder: "2_advanced_features/callback/0_simple_callback",
        more: &[
            "2_advanced_features/callback/0_simple_callback/callback_sample.cpp",
            "2_advanced_features/callback/callback_utils.cpp",
        ],
        programs: MAIN,
    },
    Sample {
        folder: "2_advanced_features/callback/1_callback_hostfunc",
        more: &["2_advanced_features/callback/callback_utils.cpp"],
        programs: MAIN,
    },
    Sample {
        folder: "2_advanced_features/callback/2_callback_exception",
        more: &[
            "2_advanced_features/callback/2_callback_exception/exception_callback_sample.cpp",
            "2_advanced_features/callback/callback_utils.cpp",
        ],
        programs: MAIN,
    },
    pair("2_advanced_features/notify/0_ipc_notify_withpid"),
    pair("2_advanced_features/notify/1_ipc_notify_withoutpid"),
];

const OPERATORS: &str = "needs operators (aclnn)";
const TIER_3: &str = "needs functions of tier 3 that are not supported";
const COMPILER: &str = "reads binaries of the vendor's compiler";
const LIBRARIES: &str = "needs libraries in addition to the runtime";
const LATER: &str = "is later than the commit of this table, and was not tried";

/// Samples that are not run, and why: a folder, or the beginning of its name.
const LEFT: &[(&str, &str)] = &[
    ("0_quickstart/0_", OPERATORS),
    ("0_quickstart/3_", "asks for versions of packages"),
    ("0_quickstart/5_", LATER),
    ("1_basic_features/context/1_", LATER),
    ("1_basic_features/device/0_", OPERATORS),
    ("1_basic_features/device/3_", LATER),
    ("1_basic_features/device/4_", LATER),
    ("1_basic_features/event/2_", LATER),
    ("1_basic_features/event/3_", LATER),
    ("1_basic_features/memory/12_", "shares memory between hosts"),
    ("1_basic_features/memory/13_", LATER),
    ("1_basic_features/memory/14_", LATER),
    ("1_basic_features/memory/15_", LATER),
    ("1_basic_features/memory/16_", LATER),
    ("1_basic_features/memory/17_", LATER),
    ("1_basic_features/stream/4_", LATER),
    ("2_advanced_features/api_hook/", LATER),
    ("2_advanced_features/built_in_task/1_", TIER_3),
    ("2_advanced_features/group/", TIER_3),
    ("2_advanced_features/kernel/", COMPILER),
    ("2_advanced_features/label/", TIER_3),
    ("2_advanced_features/model_ri/0_", OPERATORS),
    ("2_advanced_features/model_ri/1_", OPERATORS),
    ("2_advanced_features/model_ri/2_", OPERATORS),
    ("2_advanced_features/model_ri/3_", OPERATORS),
    ("2_advanced_features/model_ri/5_", LATER),
    ("2_advanced_features/notify/2_", LATER),
    ("2_advanced_features/tdt_", LIBRARIES),
    ("3_memory_advanced/cache_maintenance/", LATER),
    (
        "3_memory_advanced/host_register/0_",
        "launches a kernel whose source is for the vendor's compiler; what it calls of the runtime is in the conformance suite",
    ),
    ("3_memory_advanced/managed_memory/", TIER_3),
    ("3_memory_advanced/memory_pool/", TIER_3),
    ("adump/", LIBRARIES),
    ("profiling/", LIBRARIES),
    ("overflow_detection/", TIER_3),
];

/// The folders below `example` that hold programs and have no row.
fn without_row(example: &Path) -> Result<Vec<String>, String> {
    let mut missing = Vec::new();
    let mut folders = vec![example.to_path_buf()];
    while let Some(folder) = folders.pop() {
        let entries = fs::read_dir(&folder).map_err(|error| error.to_string())?;
        let mut has_program = false;
        for path in entries.flatten().map(|entry| entry.path()) {
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|ending| ending == "cpp") {
                let text = fs::read_to_string(&path).map_err(|error| error.to_string())?;
                has_program |= text.contains("int main(") || text.contains("int32_t main(");
            }
        }
        let name = folder.strip_prefix(example).unwrap_or(&folder).display().to_string();
        if has_program && !has_row(&name) {
            missing.push(name);
        }
    }
    missing.sort();
    Ok(missing)
}

fn has_row(name: &str) -> bool {
    let is_left = |(folder, _): &(&str, &str)| {
        name.starts_with(folder) || name.contains(&format!("/{folder}"))
    };
    SAMPLES.iter().any(|sample| sample.folder == name) || LEFT.iter().any(is_left)
}

/// Where things are.
struct AcceptancePaths {
    example: PathBuf,
    root: PathBuf,
    target: PathBuf,
}

/// Runs the samples in `folder`, the folder `example` of a checkout or one above it.
pub(crate) fn run(root: &Path, target: &Path, folder: &Path) -> Result<(), String> {
    let inner = folder.join("example");
    let example = if inner.is_dir() { inner } else { folder.to_path_buf() };
    if !example.join("kernel_func").is_dir() {
        return Err(format!("{} has no samples: name a checkout of the runtime", folder.display()));
    }
    let example = fs::canonicalize(example).map_err(|error| error.to_string())?;
    let places =
        AcceptancePaths { example, root: root.to_path_buf(), target: target.to_path_buf() };
    build()?;
    places.link_libraries()?;
    let mut failed = 0;
    for sample in SAMPLES {
        let outcome = places.sample(sample);
        println!(
            "{:60} {}",
            sample.folder,
            outcome.as_ref().map_or_else(Clone::clone, |()| "ok".to_owned())
        );
        failed += usize::from(outcome.is_err());
    }
    for (what, why) in LEFT {
        println!("{what:60} not run: {why}");
    }
    println!("{} of {} samples run", SAMPLES.len() - failed, SAMPLES.len());
    let missing = without_row(&places.example)?;
    for folder in &missing {
        println!("{folder:60} has no row in the table");
    }
    if failed == 0 && missing.is_empty() {
        return Ok(());
    }
    Err(format!("{failed} samples failed, and {} folders have no row", missing.len()))
}

fn build() -> Result<(), String> {
    let built = Command::new(env!("CARGO"))
        .args(["build", "--quiet", "-p", "pto-acl", "-p", "pto-acl-entry"])
        .status();
    match built {
        Ok(status) if status.success() => Ok(()),
        other => Err(format!("the library was not built: {other:?}")),
    }
}

impl AcceptancePaths {
    fn libraries(&self) -> PathBuf {
        self.target.join("acceptance-cann/lib")
    }

    /// The library under the names that programs link.
    fn link_libraries(&self) -> Result<(), String> {
        let folder = self.libraries();
        fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
        for name in ["libascendcl.so", "libacl_rt.so", "libruntime.so"] {
            let link = folder.join(name);
            // It may not be there yet.
            let _ = fs::remove_file(&link);
            std::os::unix::fs::symlink(self.target.join("debug/libascendcl.so"), &link)
                .map_err(|error| format!("{}: {error}", link.display()))?;
        }
        Ok(())
    }

    /// Compiles and runs a sample, its programs at the same time.
    fn sample(&self, sample: &Sample) -> Result<(), String> {
        let folder = self.target.join("acceptance-cann").join(sample.folder.replace('/', "-"));
        // What an earlier run left would be taken for what this one says.
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(folder.join("file")).map_err(|error| error.to_string())?;
        for (source, _) in sample.programs {
            self.compile(sample, source, &folder)?;
        }
        let started = sample
            .programs
            .iter()
            .map(|(source, arguments)| self.start(source, arguments, &folder));
        let started = started.collect::<Result<Vec<_>, _>>()?;
        let ended: Vec<_> = started.into_iter().map(wait).collect();
        ended.into_iter().collect::<Result<(), String>>()?;
        check_logs(&folder)
    }

    fn compile(&self, sample: &Sample, source: &str, folder: &Path) -> Result<(), String> {
        let own = self.example.join(sample.folder);
        let acl = self.root.join("bindings/acl");
        let mut command = Command::new("c++");
        command.args(["-std=c++17", "-w", "-pthread", "-I"]).arg(acl.join("include"));
        for include in
            [&self.example, &self.example.join("1_basic_features/memory"), &own, &own.join("..")]
        {
            command.arg("-I").arg(include);
        }
        command.arg(own.join(source)).args(sample.more.iter().map(|more| self.example.join(more)));
        command.arg(acl.join("tests/samples/kernels.cpp")).arg("-o").arg(folder.join(stem(source)));
        command.arg("-L").arg(self.libraries()).arg("-lascendcl");
        let output = command.output().map_err(|error| format!("c++ cannot be started: {error}"))?;
        if output.status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        Err(format!(
            "does not compile: {}",
            said.lines().find(|line| line.contains("error")).unwrap_or(&said)
        ))
    }

    fn start(&self, source: &str, arguments: &[&str], folder: &Path) -> Result<Child, String> {
        let log = fs::File::create(folder.join(format!("{}.log", stem(source))))
            .map_err(|error| error.to_string())?;
        let both = log.try_clone().map_err(|error| error.to_string())?;
        let mut command = Command::new(folder.join(stem(source)));
        command.args(arguments).current_dir(folder).env("LD_LIBRARY_PATH", self.libraries());
        command.stdin(Stdio::null()).stdout(log).stderr(both);
        command.spawn().map_err(|error| error.to_string())
    }
}

fn stem(source: &str) -> &str {
    source.trim_end_matches(".cpp")
}

/// Waits for a program; one that takes too long is ended.
fn wait(mut child: Child) -> Result<(), String> {
    let start = Instant::now();
    loop {
        match child.try_wait().map_err(|error| error.to_string())? {
            Some(status) if status.success() => return Ok(()),
            Some(status) => return Err(format!("ended with {status}")),
            None if start.elapsed() < LIMIT => std::thread::sleep(Duration::from_millis(20)),
            None => {
                // It is ended in either case.
                let _ = child.kill();
                let _ = child.wait();
                return Err(format!("was not over after {LIMIT:?}"));
            }
        }
    }
}

/// Samples print errors that they do not end with; some are expected, and these are named here.
fn check_logs(folder: &Path) -> Result<(), String> {
    for entry in fs::read_dir(folder).map_err(|error| error.to_string())?.flatten() {
        let path = entry.path();
        if path.extension().is_some_and(|ending| ending == "log") {
            let text = fs::read_to_string(&path).unwrap_or_default();
            let wrong = text.lines().find(|line| is_error(line));
            if let Some(line) = wrong {
                return Err(format!("said: {line}"));
            }
        }
    }
    Ok(())
}

/// What samples say that fail on purpose: a null pointer, and a kernel that raises an exception.
const ON_PURPOSE: &[&str] =
    &["ret=100000", "returned error code 507035", "peekErr=507035", "was not launched: [507035]"];

/// An error that the sample does not make on purpose.
fn is_error(line: &str) -> bool {
    let is_wrong = line.contains("[ERROR]") || line.contains("was not launched");
    is_wrong && !ON_PURPOSE.iter().any(|part| line.contains(part))
}

#[cfg(test)]
mod tests {
    use super::{LEFT, SAMPLES, has_row, without_row};
    use std::fs;

    #[test]
    fn a_folder_with_a_program_needs_a_row() {
        let example = tempfile::tempdir().expect("a folder");
        let known = SAMPLES[0].folder;
        let places = [known, "3_memory_advanced/host_register/0_any", "9_new/0_sample", "9_new"];
        for (folder, text) in
            places.into_iter().zip(["int main() {}"; 3].into_iter().chain(["void f();"]))
        {
            let folder = example.path().join(folder);
            fs::create_dir_all(&folder).expect("a folder");
            fs::write(folder.join("main.cpp"), text).expect("a file");
        }
        assert_eq!(without_row(example.path()), Ok(vec!["9_new/0_sample".to_owned()]));
    }

    #[test]
    fn no_sample_has_two_rows() {
        for sample in SAMPLES {
            assert!(has_row(sample.folder));
            assert!(
                LEFT.iter().all(|(folder, _)| !sample.folder.starts_with(folder)),
                "{}",
                sample.folder
            );
        }
    }
}
