//! `pto fw` and `pto run --device qemu`: images are built, refused, flashed and rolled back. QEMU and the compiler's target are brought where they are missing.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use pto_image_build::packages;
use serde_json::Value;
use tempfile::TempDir;

use crate::pto::{Answer, answer, command, pto};
use crate::schema::{answers, conforms};

/// Firmware and kernels, built once.
pub(crate) fn images() -> &'static [PathBuf; 2] {
    static IMAGES: OnceLock<[PathBuf; 2]> = OnceLock::new();
    IMAGES.get_or_init(|| {
        let say = |sentence: &str| println!("{sentence}");
        let programs = [packages::QEMU, packages::CROSS_C];
        packages::install(&programs, &say).unwrap_or_else(|why| panic!("{why}"));
        let built = answers("fw_build", &["fw", "build", "--release"]);
        let of = |kind: &str| {
            let images = built["images"].as_array().expect("a list");
            let image = images.iter().find(|image| image["kind"] == kind).expect("it is built");
            PathBuf::from(image["file"].as_str().expect("a path"))
        };
        [of("qemu"), of("kernels")]
    })
}

fn json(answer: &Answer) -> Value {
    serde_json::from_str(&answer.stdout).expect("one JSON value")
}

/// A home for flashed images.
pub(crate) struct Home(TempDir);

impl Home {
    pub(crate) fn new() -> Self {
        Self(TempDir::new().expect("a folder"))
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.0.path().to_path_buf()
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = command(args);
        command.env("PTO_HOME", self.0.path().join("home"));
        command
    }

    pub(crate) fn pto(&self, args: &[&str], code: i32) -> Answer {
        let answer = answer(&mut self.command(args));
        assert_eq!(answer.code, Some(code), "{args:?}\n{}{}", answer.stdout, answer.stderr);
        answer
    }

    /// What a command answers with `--json`, which is of this kind of the schema.
    fn answers(&self, kind: &str, args: &[&str]) -> Value {
        conforms(kind, args, &self.pto(&[args, &["--json"]].concat(), 0))
    }

    fn current(&self) -> Value {
        let list = self.answers("fw_list", &["fw", "list"]);
        list["devices"]["qemu"]["current"].clone()
    }

    fn file(&self, name: &str, bytes: &[u8]) -> String {
        let path = self.0.path().join(name);
        fs::write(&path, bytes).expect("a file");
        path.to_string_lossy().into_owned()
    }
}

pub(crate) fn text(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

#[test]
fn an_image_is_inspected() {
    let [firmware, kernels] = images();
    let printed = pto(&["fw", "inspect", text(firmware)], 0).stdout;
    for part in ["AArch64", "0x40200000", "text ", "layout hash", "paged_attention", ".text", "yes"]
    {
        assert!(printed.contains(part), "{part} in\n{printed}");
    }
    answers("fw_inspect", &["fw", "inspect", text(firmware)]);
    let blob = answers("fw_inspect", &["fw", "inspect", text(kernels)]);
    assert_eq!((&blob["kind"], &blob["usable"]), (&"kernels".into(), &true.into()));
    assert!(blob["kernels"].as_array().is_some_and(|kernels| kernels.len() > 10));
}

#[test]
fn a_bad_image_is_refused_with_its_reason_and_nothing_is_flashed() {
    let home = Home::new();
    let whole = fs::read(&images()[0]).expect("the image");
    let with = |at: usize, byte: u8| {
        let mut bytes = whole.clone();
        bytes[at] ^= byte;
        bytes
    };
    let own = fs::read(env!("CARGO_BIN_EXE_pto")).expect("this program");
    for (name, bytes, reason) in [
        ("cut", whole[..whole.len() / 2].to_vec(), "the file is cut"),
        ("x86", own, "x86-64"),
        ("text", b"no image at all".to_vec(), "no ELF file"),
        ("damaged", with(0x1100, 1), "checksum"),
        ("entry", with(24, 4), "e_entry"),
    ] {
        let path = home.file(name, &bytes);
        let refused = home.pto(&["fw", "flash", &path, "--device", "qemu"], 2);
        assert!(refused.stderr.contains(reason), "{name}: {}", refused.stderr);
    }
    let refused = home.pto(&["fw", "flash", text(&images()[0]), "--device", "a2a3"], 2);
    assert!(refused.stderr.contains("a2a3 cannot have"), "{}", refused.stderr);
    assert!(home.pto(&["fw", "flash", "/nowhere"], 4).stderr.contains("/nowhere"));
    assert_eq!(home.current(), Value::Null);
    assert!(home.pto(&["fw", "rollback"], 2).stderr.contains("qemu has no image"));
}

/// For one at a time: kernels of one's own are built into a file of one name.
pub(crate) fn turn_with_own_kernels() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

#[test]
fn kernels_of_ones_own_run_on_the_machine() {
    let _turn = turn_with_own_kernels();
    let home = Home::new();
    let here = home.path();
    let file = |name: &str| here.join(name).display().to_string();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let source = root.join("examples/kernels/scale.c").display().to_string();
    let object = file("kernels.so");
    let mut compile = Command::new("cc");
    compile.args(["-O2", "-shared", "-fPIC", "-I"]).arg(root.join("bindings/include"));
    assert!(compile.args(["-o", &object, &source]).status().expect("cc is there").success());
    let graph = root.join("examples/graphs/own_kernels.jsonl").display().to_string();
    let (program, saved) = (file("mean.ptop"), file("saved"));
    let expected = format!("mean={saved}/mean.npy");
    home.pto(&["program", "build", &graph, "--kernels", &object, "-o", &program], 0);
    let run = ["program", "run", &program, "--seed=7"];
    home.pto(&[&run[..], &["--save", &saved]].concat(), 0);
    let on_machine = [&run[..], &["--device", "qemu", "--expect", &expected]].concat();

    // The blob of the library has no such kernels.
    let [firmware, kernels] = images();
    home.pto(&["fw", "flash", text(firmware), text(kernels)], 0);
    let refused = home.pto(&on_machine, 2).stderr;
    assert!(
        refused.contains("kernel scale") && refused.contains("fw build --kernels"),
        "{refused}"
    );

    let built = json(&home.pto(&["fw", "build", "--release", "--kernels", &source, "--json"], 0));
    let built = built["images"].as_array().expect("a list").iter();
    let files: Vec<_> = built.map(|image| image["file"].as_str().expect("a path")).collect();
    home.pto(&[&["fw", "flash"][..], &files].concat(), 0);
    let said = home.pto(&on_machine, 0).stdout;
    assert!(said.contains("PASS"), "{said}");

    let wrong = |text: &str, words: &[&str]| {
        fs::write(file("wrong.c"), format!("#include \"pto_kernels.h\"\n{text}")).expect("a file");
        let refused = home.pto(&["fw", "build", "--kernels", &file("wrong.c")], 2).stderr;
        assert!(words.iter().all(|word| refused.contains(word)), "{refused}");
    };
    wrong("int x = 1;", &["wrong.c", "has no array `pto_kernels`"]);
    let one = |func: u32, kind: u32| {
        format!(
            "static void f(int64_t *a) {{ a[0] = 1; }}\nPTO_KERNELS = {{{{{func}, {kind}, \"f\", 0, f}}}};"
        )
    };
    wrong(&one(7, 9), &["kind", "pto_kernels[0]"]);
    wrong(&one(5000, 1), &["5000", "func id"]);
    wrong("static void f(int64_t *a) { a[0] = }", &["does not compile"]);

    // The same kernels in Rust.
    let source = file("kernels.rs");
    fs::write(&source, KERNELS_IN_RUST).expect("a file");
    let kernel = |id: u32, kind: &str, name: &str| format!("{id}:{kind}:{name}={source}:{name}");
    let (scale, mean) = (kernel(100, "aiv", "scale"), kernel(101, "aic", "mean"));
    let build = ["fw", "build", "--release", "--json", "--kernel", &scale, "--kernel", &mean];
    let built = json(&home.pto(&build, 0));
    let built = built["images"].as_array().expect("a list").iter();
    let files: Vec<_> = built.map(|image| image["file"].as_str().expect("a path")).collect();
    home.pto(&["fw", "rollback"], 0);
    home.pto(&on_machine, 2);
    home.pto(&[&["fw", "flash"][..], &files].concat(), 0);
    let said = home.pto(&on_machine, 0).stdout;
    assert!(said.contains("PASS"), "{said}");
    let refused = |more: &[&str], words: &[&str]| {
        let refused = home.pto(&[&["fw", "build"][..], more].concat(), 2).stderr;
        assert!(words.iter().all(|word| refused.contains(word)), "{refused}");
    };
    refused(&["--kernel", &kernel(100, "aiv", "halve")], &["cannot find", "halve"]);
    let of_simpler = format!("7:aiv={}", file("wrong.c"));
    refused(&["--kernel", &scale, "--kernel", &of_simpler], &["build two images"]);
    let for_cores = ["--image", "cann", "--aicore", "--kernel", &scale];
    refused(&for_cores, &["kernels.rs", "C++"]);
}

/// The kernels of `examples/kernels/scale.c`.
const KERNELS_IN_RUST: &str = r#"
use core::{ptr, slice};

pub unsafe extern "C" fn scale(words: *const u64) {
    let &[a, factor, out, n] = unsafe { &*words.cast::<[usize; 4]>() };
    let (a, out) = (ptr::with_exposed_provenance::<f32>(a), ptr::with_exposed_provenance_mut::<f32>(out));
    let (a, out) = unsafe { (slice::from_raw_parts(a, n), slice::from_raw_parts_mut(out, n)) };
    for (a, out) in a.iter().zip(out) {
        *out = a * f32::from_bits(factor as u32);
    }
}

pub unsafe extern "C" fn mean(words: *const u64) {
    let &[a, out, n] = unsafe { &*words.cast::<[usize; 3]>() };
    let a = unsafe { slice::from_raw_parts(ptr::with_exposed_provenance::<f32>(a), n) };
    let sum: f64 = a.iter().map(|value| f64::from(*value)).sum();
    unsafe { ptr::with_exposed_provenance_mut::<f32>(out).write((sum / n as f64) as f32) };
}
"#;

#[test]
fn an_interrupted_flash_leaves_the_old_image() {
    let home = Home::new();
    let [firmware, kernels] = images();
    home.answers("fw_flash", &["fw", "flash", text(firmware), text(kernels)]);
    // The kernel ends the process when its file grows beyond the limit, of 64 blocks.
    let mut interrupted = Command::new("sh");
    interrupted.args(["-c", "ulimit -c 0; ulimit -f 64; exec \"$@\"", "sh"]);
    interrupted.args([env!("CARGO_BIN_EXE_pto"), "fw", "flash", text(firmware)]);
    interrupted.env("PTO_HOME", home.0.path().join("home"));
    let output = interrupted.output().expect("sh is there");
    assert!(!output.status.success(), "{output:?}");
    assert_eq!(home.current(), 1);
    let printed = home.pto(&["run", "vector_example", "--device", "qemu"], 0).stdout;
    assert!(printed.contains("PASS"), "{printed}");
    home.answers("fw_flash", &["fw", "flash", text(firmware)]);
    assert_eq!(home.current(), 2);
    home.answers("fw_flash", &["fw", "rollback", "--device", "qemu"]);
    assert_eq!(home.current(), 1);
}

/// Another image than the default one.
fn other_image(home: &Home) -> String {
    let own = concat!(env!("CARGO_MANIFEST_DIR"), "/../../linker/example-firmware");
    let built = json(&home.pto(&["fw", "build", "--release", "--crate", own, "--json"], 0));
    let images = built["images"].as_array().expect("a list");
    let image = images.iter().find(|image| image["kind"] == "qemu").expect("it is built");
    image["file"].as_str().expect("a path").to_owned()
}

/// What a device has after a flash that found no room: the old image, which runs, and no leftovers.
fn assert_old_image_kept(home: &Home, printed: &str, reason: &str) {
    assert!(printed.contains(reason), "{printed}");
    assert!(printed.contains("the device still has what it had"), "{printed}");
    assert_eq!(home.current(), 1);
    let images = fs::read_dir(home.0.path().join("home/images")).expect("a folder").flatten();
    let names: Vec<_> = images.map(|file| file.file_name()).collect();
    assert_eq!(names.len(), 2, "firmware and kernels, and nothing else: {names:?}");
    let ran = home.pto(&["run", "vector_example", "--device", "qemu"], 0).stdout;
    assert!(ran.contains("PASS"), "{ran}");
}

/// The kernel refuses to let a file grow, as on a full disk: the same calls fail.
#[test]
fn a_file_that_may_not_grow_leaves_the_old_image() {
    let home = Home::new();
    let [firmware, kernels] = images();
    home.pto(&["fw", "flash", text(firmware), text(kernels)], 0);
    let other = other_image(&home);
    let mut limited = Command::new("sh");
    // Without the signal the call fails.
    limited.args(["-c", "trap '' XFSZ; ulimit -f 64; exec \"$@\"", "sh"]);
    limited.args([env!("CARGO_BIN_EXE_pto"), "fw", "flash", &other]);
    limited.env("PTO_HOME", home.0.path().join("home"));
    let refused = answer(&mut limited);
    assert_eq!(refused.code, Some(4), "{}", refused.stderr);
    assert_old_image_kept(&home, &refused.stderr, "File too large");
}

/// A disk in a namespace of its own: one pair of images fits, not another image.
#[test]
fn a_full_disk_leaves_the_old_image() {
    const FULL: &str = "mount -t tmpfs -o size=$4 tmpfs \"$PTO_HOME\" || exit 99
        \"$PTO\" fw flash \"$1\" \"$2\" || exit 98
        \"$PTO\" fw flash \"$3\" && exit 97
        df \"$PTO_HOME\"; cp -r \"$PTO_HOME/.\" \"$KEPT\"";
    let home = Home::new();
    let [firmware, kernels] = images();
    let (disk, kept) = (home.0.path().join("disk"), home.0.path().join("home"));
    for folder in [&disk, &kept] {
        fs::create_dir(folder).expect("a folder");
    }
    let other = other_image(&home);
    let bytes = |path: &Path| fs::metadata(path).expect("an image").len();
    let size = (bytes(firmware) + bytes(kernels) + bytes(Path::new(&other)) / 2).to_string();
    let attempt = |way: &[&str]| {
        let mut full = Command::new("unshare");
        full.args(way).args(["sh", "-c", FULL, "sh"]).args([firmware, kernels]);
        full.args([&other, &size]);
        full.env("PTO", env!("CARGO_BIN_EXE_pto")).env("PTO_HOME", &disk).env("KEPT", &kept);
        full.output().ok().filter(|output| output.status.code() != Some(99))
    };
    let tried = attempt(&["--mount"]).filter(|output| output.status.code() != Some(1));
    let Some(output) = tried.or_else(|| attempt(&["--mount", "--map-root-user"])) else {
        println!("nothing can be mounted here: a full disk was tried by a limit on files alone");
        return;
    };
    let printed = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{}: {printed}", output.status);
    assert_old_image_kept(&home, &printed, "No space left on device");
}

#[test]
fn a_run_without_an_image_builds_and_flashes_one_and_says_so() {
    images();
    let home = Home::new();
    let first = home.pto(&["run", "random_dag", "--device", "qemu"], 0);
    assert!(first.stderr.contains("building the default one"), "{}", first.stderr);
    assert!(
        first.stdout.contains("boot") && first.stdout.contains("handshake"),
        "{}",
        first.stdout
    );
    let args = ["run", "random_dag", "--device", "qemu", "--runtime", "host_build_graph", "--json"];
    let second = home.pto(&args, 0);
    assert_eq!(second.stderr, "");
    let start = &json(&second)["device"]["start"];
    let total: u64 =
        ["boot_ns", "first_task_ns"].iter().filter_map(|key| start[key].as_u64()).sum();
    assert!(total > 0 && total < 5_000_000_000, "{start}");
}

/// A program that names a builder of the flashed firmware, whose tasks call the flashed kernels 64 and 65.
fn a_program_runs_with_flashed_kernels(home: &Home) {
    const DESCRIPTION: &str = r#"{"format": "pto-builder", "version": 1, "name": "own", "builder": "polynomials", "variant": "aicpu_build_graph",
        "tensors": [{"name": "x", "role": "input", "element": "f32", "shape": [3, 8]},
                    {"name": "room", "role": "temporary", "element": "f32", "shape": [3, 8]},
                    {"name": "y", "role": "updated", "element": "f32", "shape": [8]}],
        "words": [{"tensor": "x"}, {"tensor": "room"}, {"tensor": "y"}, 3, 8, {"f32": 0.5}]}"#;
    let [description, program] = ["own.json", "own.ptop"].map(|name| home.0.path().join(name));
    fs::write(&description, DESCRIPTION).expect("the folder is there");
    home.pto(&["program", "build", text(&description), "-o", text(&program)], 0);
    let ran = home.pto(&["program", "run", text(&program), "--device", "qemu", "--json"], 0);
    assert_eq!(json(&ran)["outputs"][0]["name"], "y", "{}", ran.stdout);
    let here = home.pto(&["program", "run", text(&program)], 2).stderr;
    assert!(here.contains("polynomials"), "{here}");
}

#[test]
fn a_firmware_crate_of_ones_own_is_built_and_flashed() {
    let home = Home::new();
    let own = concat!(env!("CARGO_MANIFEST_DIR"), "/../../linker/example-firmware");
    let built = json(&home.pto(&["fw", "build", "--crate", own, "--json"], 0));
    let of = |kind: &str| {
        let images = built["images"].as_array().expect("a list");
        let image = images.iter().find(|image| image["kind"] == kind).expect("it is built");
        image["file"].as_str().expect("a path").to_owned()
    };
    let kernels = json(&home.pto(&["fw", "inspect", &of("kernels"), "--json"], 0));
    let names: Vec<_> = kernels["kernels"].as_array().expect("a list").iter().collect();
    assert!(names.iter().any(|one| one["name"] == "axpy" && one["func_id"] == 64), "{kernels}");
    home.pto(&["fw", "flash", &of("qemu"), &of("kernels")], 0);
    let refused = home.pto(&["run", "vector_example", "--device", "qemu"], 3).stderr;
    assert!(refused.contains("the firmware has: increments, polynomials"), "{refused}");
    a_program_runs_with_flashed_kernels(&home);
    assert!(home.pto(&["fw", "build", "--crate", "/nowhere"], 2).stderr.contains("/nowhere"));
    let foreign = home.pto(&["fw", "build", "--features", "misbehaving"], 2).stderr;
    assert!(foreign.contains("does not contain this feature: misbehaving"), "{foreign}");
}

/// Kernels of the field in plain C++ are a blob; what cannot be one is refused before anything is built.
#[test]
fn kernels_of_the_field_are_a_blob_of_their_own() {
    let home = Home::new();
    let file = home.0.path().join("add.cpp");
    let kernel = "#include \"intrinsic.h\"\nextern \"C\" void kernel_entry(int64_t *args) { args[0] = get_block_idx(args); }\n";
    fs::write(&file, kernel).expect("a file");
    let file = text(&file);
    let plain = format!("3:aiv={file}");
    let named = format!("9:aic:product={file}:kernel_entry");
    let built = ["fw", "build", "--release", "--json", "--kernel", &plain, "--kernel", &named];
    let built = json(&home.pto(&built, 0));
    let images = built["images"].as_array().expect("a list");
    let blob = images.iter().find(|image| image["kind"] == "kernels").expect("it is built");
    let file_of_blob = blob["file"].as_str().expect("a path");
    let shown = json(&home.pto(&["fw", "inspect", file_of_blob, "--json"], 0));
    let kernels = shown["kernels"].as_array().expect("a list").iter();
    let kernels: Vec<_> =
        kernels.map(|one| (one["func_id"].as_u64(), one["name"].as_str())).collect();
    assert_eq!(
        kernels,
        [(Some(3), Some("3_add")), (Some(9), Some("product")), (Some(1023), Some("(no kernel)"))]
    );
    let refused = |kernels: &[&str], said: &str| {
        let mut words = vec!["fw", "build"];
        kernels.iter().for_each(|kernel| words.extend(["--kernel", kernel]));
        let stderr = home.pto(&words, 2).stderr;
        assert!(stderr.contains(said), "{stderr}");
    };
    refused(&["add.cpp"], "it has the form ID:aic|aiv[:NAME]=FILE[:FUNCTION]");
    refused(&["0:aiv=/nowhere.cpp"], "there is no file '/nowhere.cpp'");
    refused(&[&format!("1023:aiv={file}")], "a func id is 0 to 1022");
    refused(&[&plain, &plain], "have the same func id or name: 3 (3_add), 3 (3_add)");
    refused(&[&format!("0:aiv:{}={file}", "x".repeat(60))], "1 to 47 bytes, on one line");
}

#[test]
fn a_run_on_qemu_is_traced_by_an_image_that_traces() {
    let home = Home::new();
    let [firmware, kernels] = images();
    home.pto(&["fw", "flash", text(firmware), text(kernels)], 0);
    let file = home.0.path().join("t.json");
    let traced = ["run", "vector_example", "--device", "qemu", "--trace", text(&file), "--gantt"];
    let refused = home.pto(&traced, 2).stderr;
    assert!(refused.contains("pto fw build --tracing"), "{refused}");
    assert!(!file.exists());
    let built = json(&home.pto(&["fw", "build", "--release", "--tracing", "--json"], 0));
    let images = built["images"].as_array().expect("a list");
    let image = images.iter().find(|image| image["kind"] == "qemu").expect("it is built");
    let image = image["file"].as_str().expect("a path");
    assert!(home.pto(&["fw", "inspect", image], 0).stdout.contains("traces runs"));
    home.pto(&["fw", "flash", image], 0);
    let printed = home.pto(&traced, 0).stdout;
    assert!(printed.contains("PASS") && printed.contains("t.json"), "{printed}");
    let analysed = home.pto(&["analyze", text(&file)], 0).stdout;
    assert!(analysed.contains("makespan"), "{analysed}");
}

/// A plan, a graph and a builder run on qemu as on the simulator; what the image cannot do is refused.
#[test]
fn program_files_run_on_qemu() {
    let home = Home::new();
    let [firmware, kernels] = images();
    home.pto(&["fw", "flash", text(firmware), text(kernels)], 0);
    let example = |name: &str| format!("{}/../../examples/{name}", env!("CARGO_MANIFEST_DIR"));
    let path = |name: &str| home.0.path().join(name).to_str().expect("UTF-8").to_owned();
    // As it is, two tasks of the example write the same sum: that is what `pto check` reports.
    let racy = fs::read_to_string(example("graphs/row_sums.jsonl")).expect("the example");
    let graph = racy.replace("\"offset\": 31", "\"offset\": 32");
    assert_ne!(graph, racy, "the example has changed");
    let graph = home.file("row_sums.jsonl", graph.as_bytes());
    for (source, output, params) in [
        (example("workloads/softmax.workload"), "Y", &["--param=scale=0.5"][..]),
        (graph, "sums", &[]),
        (example("programs/vector_example.json"), "out", &[]),
    ] {
        let (program, saved) = (path("x.ptop"), path("saved"));
        home.pto(&["program", "build", &source, "-o", &program], 0);
        // A tensor that is updated keeps its values from run to run.
        let run = [&["program", "run", &program, "--seed=7", "--rounds=2"], params].concat();
        home.pto(&[&run[..], &["--save", &saved]].concat(), 0);
        let expected = format!("{output}={saved}/{output}.npy");
        let on_qemu = [&run[..], &["--device", "qemu", "--expect", &expected]].concat();
        let ran = home.answers("program_run", &on_qemu);
        assert_eq!(
            (&ran["compared"][0]["is_right"], &ran["left_bytes"]),
            (&true.into(), &0.into())
        );
        // Another seed, and other values.
        let other = [&run[..], &["--device", "qemu", "--seed=8", "--expect", &expected]].concat();
        let other: Vec<_> = other.into_iter().filter(|arg| *arg != "--seed=7").collect();
        home.pto(&other, 1);
        let refused = home.pto(&[&on_qemu[..], &["--hosting", "pool"]].concat(), 2).stderr;
        assert!(refused.contains("leave it out with --device qemu"), "{refused}");
        let trace = path("t.json");
        let refused = home.pto(&[&on_qemu[..], &["--trace", &trace]].concat(), 2).stderr;
        assert!(refused.contains("pto fw build --tracing"), "{refused}");
        assert!(!home.0.path().join("t.json").exists());
    }
}

/// A source that does not compile is a bad input file.
#[test]
fn a_builder_that_does_not_compile_is_refused_as_bad_input() {
    let home = Home::new();
    let source = home.0.path().join("bad.c");
    fs::write(&source, "int build( {").expect("a file");
    let refused = home.pto(&["fw", "build", "--builder", text(&source)], 2).stderr;
    assert!(refused.contains("bad.c does not compile"), "{refused}");
}

#[test]
fn a_manifest_that_names_no_binary_as_kernels_is_refused() {
    let home = Home::new();
    let own = home.0.path().join("mine");
    fs::create_dir_all(own.join("src")).expect("a folder");
    fs::write(own.join("src/main.rs"), "fn main() {}").expect("a file");
    for (kernels, reason) in [
        ("[\"other\"]", "names \"other\", which is no binary"),
        ("\"mine\"", "is no list of names"),
    ] {
        let manifest = format!(
            "[package]\nname = \"mine\"\nedition = \"2024\"\n[package.metadata.pto]\nkernels = {kernels}\n[workspace]\n"
        );
        fs::write(own.join("Cargo.toml"), manifest).expect("a file");
        let refused = home.pto(&["fw", "build", "--crate", text(&own)], 2).stderr;
        assert!(refused.contains(reason), "{refused}");
    }
}
