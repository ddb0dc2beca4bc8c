//! What cargo is called for, and what it has built.

use std::ffi::{OsStr, OsString};
use std::io::{BufReader, IsTerminal, stderr};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use cargo_metadata::{Artifact, CrateType, Message, TargetKind};

use crate::toolchain::{Toolchain, packages};
use pto_host::abi::CoreKind;
use pto_host::fw::{Machine, Tracing};

use super::error::BuildError;
use super::request::{BuilderSource, CoreCode, KernelSource, Platform, Profile, Request};

/// The profiles of firmware images, said in full, so that they hold in any workspace.
/// Those that are shipped are without debug information, also that of the standard library; symbols stay.
const SHIPPED: &[&str] = &[
    "inherits='release'",
    "panic='abort'",
    "lto='fat'",
    "codegen-units=1",
    "debug=0",
    "strip='debuginfo'",
];
const CHECKED: &[&str] = &[
    "inherits='release'",
    "panic='abort'",
    "lto='thin'",
    "debug=1",
    "debug-assertions=true",
    "overflow-checks=true",
];
/// .. and the level of each.
const FOR_SPEED: &str = "opt-level=3";
const FOR_SIZE: &str = "opt-level='s'";

/// Sequences of instructions that stand in several places become functions. The compiler does so by itself for `opt-level = "z"` alone, which gives up more speed.
const OUTLINED: &str = "-Cllvm-args=-enable-machine-outliner";

/// The feature of a firmware that records runs.
const TRACING: &str = "tracing";

/// Code for a development machine reaches the functions of its own file without a table of addresses: nobody relocates a blob. The
/// compiler has the flag only for those who say that they know.
const WITHOUT_TABLES: [(&str, &str); 2] =
    [("CARGO_ENCODED_RUSTFLAGS", "-Zrelax-elf-relocations=yes"), ("RUSTC_BOOTSTRAP", "1")];

/// The package with the firmware images.
const IMAGES: &str = "pto-images";
/// Its feature whose builders are sources in C and C++.
const PLUGINS: &str = "plugins";

/// The package with the kernels: its binary with those of the library, and the one with those of the field, which is a feature.
const KERNELS: &str = "pto-kernels-blob";
const FIELD_KERNELS: &str = "pto-field-kernels";
const FIELD: &str = "field";
/// The one with those of a table beside those of the library, and its feature.
const OWN_KERNELS: &str = "pto-own-kernels";
const OWN: &str = "own";

/// One call of cargo.
pub(crate) struct Job {
    folder: PathBuf,
    /// `None`: what the folder's own package makes.
    package: Option<&'static str>,
    /// Which of its binaries; empty: all of them.
    binaries: Vec<String>,
    features: Vec<String>,
    /// The feature with which the kernels are those of the request.
    kernels: Option<&'static str>,
    profile: Profile,
    /// Whether it makes firmware. Kernels are built in one way only.
    is_firmware: bool,
    what: String,
}

impl Job {
    /// What `request` needs. The kernels are always built as they are shipped, which is for their size: where a panic or a table is in constants,
    /// they would need relocations.
    pub(crate) fn of(request: &Request) -> Result<Vec<Self>, BuildError> {
        let profile = request.profile;
        if let Some(folder) = &request.crate_folder {
            return Self::of_crate(folder, request);
        }
        let folder = sources();
        if !folder.join("linker").is_dir() {
            return Err(BuildError::NoSources(folder));
        }
        let builders = (!request.builders.is_empty()).then(|| PLUGINS.to_owned());
        let firmware = Self {
            folder: folder.clone(),
            package: Some(IMAGES),
            binaries: Vec::new(),
            features: features(request).into_iter().chain(builders).collect(),
            kernels: None,
            profile,
            is_firmware: true,
            what: IMAGES.to_owned(),
        };
        // The blob that `qemu` has is that of the stand-in for AArch64 as well.
        let has_blob = request.machine == Machine::X86_64 && request.core_code == CoreCode::Blob;
        if request.platform == Platform::Cann && !has_blob {
            return Ok(vec![firmware]);
        }
        let is_own = request.adds_to_library();
        let (binary, of_request) = match request.kernels.is_empty() {
            true => (KERNELS, None),
            false if is_own => (OWN_KERNELS, Some(OWN)),
            false => (FIELD_KERNELS, Some(FIELD)),
        };
        let kernels = Self {
            folder,
            package: Some(KERNELS),
            binaries: vec![binary.to_owned()],
            features: Vec::new(),
            kernels: of_request,
            profile: Profile::Small,
            is_firmware: false,
            what: binary.to_owned(),
        };
        Ok(vec![firmware, kernels])
    }

    /// What a crate of a user's own needs.
    fn of_crate(folder: &Path, request: &Request) -> Result<Vec<Self>, BuildError> {
        if !folder.join("Cargo.toml").is_file() {
            return Err(BuildError::NoCrate(folder.to_path_buf()));
        }
        let job = |binaries: Vec<String>, (profile, is_firmware), part: &str| Self {
            folder: folder.to_path_buf(),
            package: None,
            binaries,
            features: features(request),
            kernels: None,
            profile,
            is_firmware,
            what: format!("{part} in '{}'", folder.display()),
        };
        if request.platform == Platform::Cann {
            return Ok(vec![job(Vec::new(), (request.profile, true), "the crate")]);
        }
        let manifest = Manifest::read(folder)?;
        let mut jobs = Vec::new();
        if !manifest.firmware.is_empty() || manifest.kernels.is_empty() {
            jobs.push(job(manifest.firmware, (request.profile, true), "the firmware"));
        }
        if !manifest.kernels.is_empty() {
            jobs.push(job(manifest.kernels, (Profile::Small, false), "the kernels"));
        }
        Ok(jobs)
    }
}

/// Of the crate with the firmware.
fn features(request: &Request) -> Vec<String> {
    let traces = request.tracing == Tracing::On && request.platform == Platform::Qemu;
    let tracing = traces.then(|| TRACING.to_owned());
    request.features.iter().cloned().chain(tracing).collect()
}

/// What a crate of a user's own makes for `qemu`.
struct Manifest {
    /// Binaries that are firmware.
    firmware: Vec<String>,
    /// Binaries that are blobs of kernels: `package.metadata.pto.kernels`.
    kernels: Vec<String>,
}

impl Manifest {
    fn read(folder: &Path) -> Result<Self, BuildError> {
        let manifest = folder.join("Cargo.toml");
        let wrong = |what: String| BuildError::Manifest { path: manifest.clone(), what };
        let metadata = metadata(&manifest)?;
        let own = manifest.canonicalize().map_err(|error| wrong(error.to_string()))?;
        let is_own = |manifest: &Path| manifest.canonicalize().is_ok_and(|at| at == own);
        let package = metadata.packages.iter().find(|one| is_own(one.manifest_path.as_std_path()));
        let package = package.ok_or_else(|| wrong("there is no package in it".to_owned()))?;
        let binaries = package.targets.iter().filter(|one| one.kind.contains(&TargetKind::Bin));
        let mut firmware: Vec<_> = binaries.map(|one| one.name.clone()).collect();
        let kernels = named_kernels(&package.metadata["pto"]["kernels"]).map_err(wrong)?;
        if let Some(name) = kernels.iter().find(|name| !firmware.contains(name)) {
            let what = format!("package.metadata.pto.kernels names \"{name}\", which is no binary");
            return Err(wrong(what));
        }
        firmware.retain(|name| !kernels.contains(name));
        Ok(Self { firmware, kernels })
    }
}

/// What cargo knows of a manifest.
fn metadata(manifest: &Path) -> Result<cargo_metadata::Metadata, BuildError> {
    let mut command = cargo_metadata::MetadataCommand::new();
    command.cargo_path(cargo()).manifest_path(manifest).no_deps();
    command.exec().map_err(|error| BuildError::Manifest {
        path: manifest.to_path_buf(),
        what: error.to_string(),
    })
}

fn named_kernels(value: &serde_json::Value) -> Result<Vec<String>, String> {
    if value.is_null() {
        return Ok(Vec::new());
    }
    let list = value.as_array().map(|list| list.iter().map(|name| name.as_str()));
    let names = list.and_then(|names| names.map(|name| name.map(str::to_owned)).collect());
    names.ok_or_else(|| "package.metadata.pto.kernels is no list of names of binaries".to_owned())
}

/// The folder of the workspace that this program was built from.
pub(super) fn sources() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).unwrap_or(here).to_path_buf()
}

/// Where cargo puts all that a request builds.
pub(crate) fn target_folder(request: &Request) -> Result<PathBuf, BuildError> {
    let folder = request.crate_folder.clone().unwrap_or_else(sources);
    match &request.target_folder {
        Some(target) => Ok(folder.join(target)),
        None => Ok(metadata(&folder.join("Cargo.toml"))?.target_directory.into()),
    }
}

/// Builds what `job` is for: the ELF files, where cargo puts them.
pub(crate) fn run(
    request: &Request,
    toolchain: &Toolchain,
    job: &Job,
) -> Result<Vec<PathBuf>, BuildError> {
    let mut command = command(request, toolchain, job)?;
    let failed = |how: String| BuildError::Cargo { what: job.what.clone(), how };
    let mut child = command.spawn().map_err(|error| failed(error.to_string()))?;
    let output = child.stdout.take().map(BufReader::new);
    let mut files = Vec::new();
    for message in output.into_iter().flat_map(Message::parse_stream) {
        let message = message.map_err(|error| failed(error.to_string()))?;
        let Message::CompilerArtifact(artifact) = message else { continue };
        let is_image = match job.is_library(request) {
            false => artifact.target.kind.contains(&TargetKind::Bin),
            true => artifact.target.crate_types.contains(&CrateType::CDyLib),
        };
        if is_image && job.asks_for(&artifact) {
            let shared = artifact.filenames.iter().find(|file| file.extension() == Some("so"));
            files.extend(artifact.executable.as_ref().or(shared).map(|file| file.clone().into()));
        }
    }
    let status = child.wait().map_err(|error| failed(error.to_string()))?;
    if status.success() { Ok(files) } else { Err(failed(status.to_string())) }
}

impl Job {
    /// What it builds, for a person.
    pub(crate) fn what(&self) -> &str {
        &self.what
    }

    /// What its images are called by, besides the name of their program: the features that the crate is built with, and how.
    pub(crate) fn variant(&self) -> Vec<String> {
        let small =
            (self.is_firmware && self.profile == Profile::Small).then(|| "small".to_owned());
        self.features.iter().cloned().chain(small).collect()
    }

    /// The profile, as cargo calls it, what it sets, and its level. Code for a development machine is built with [`WITHOUT_TABLES`], whose variable is seen by build
    /// scripts of macros as well: in one profile, each kind of build would compile the macros of the other again, and all that is above them.
    pub(crate) const fn profile(
        &self,
        machine: Machine,
    ) -> (&'static str, &'static [&'static str], &'static str) {
        let (settings, level) = match self.profile {
            Profile::Release => (SHIPPED, FOR_SPEED),
            Profile::Small => (SHIPPED, FOR_SIZE),
            Profile::Checked => (CHECKED, FOR_SIZE),
        };
        // An image for size is built in the folder of one for speed, with which it shares its macros.
        let name = match (self.profile, machine) {
            (Profile::Release | Profile::Small, Machine::Aarch64 | Machine::DavC220) => "firmware",
            (Profile::Release | Profile::Small, Machine::X86_64) => "firmware-native",
            (Profile::Checked, Machine::Aarch64 | Machine::DavC220) => "firmware-checked",
            (Profile::Checked, Machine::X86_64) => "firmware-native-checked",
        };
        (name, settings, level)
    }

    /// Flags of the compiler for what runs on `machine`. Kernels are called by their offsets in a blob, and are loops over elements: they stay whole.
    fn flags(&self, machine: Machine) -> Option<&'static str> {
        let is_small_firmware = self.is_firmware && self.profile == Profile::Small;
        (is_small_firmware && machine == Machine::Aarch64).then_some(OUTLINED)
    }

    /// Whether it makes a shared object, or programs.
    fn is_library(&self, request: &Request) -> bool {
        request.platform == Platform::Cann && self.package != Some(KERNELS)
    }

    fn asks_for(&self, artifact: &Artifact) -> bool {
        match self.package {
            // The id ends with `#NAME@VERSION`, because no folder is called like its package.
            Some(package) => artifact.package_id.repr.contains(&format!("#{package}@")),
            None => {
                let own = self.folder.join("Cargo.toml").canonicalize();
                own.is_ok_and(|own| {
                    artifact.manifest_path.as_std_path().canonicalize().is_ok_and(|at| at == own)
                })
            }
        }
    }
}

fn cargo() -> OsString {
    std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}

fn command(request: &Request, toolchain: &Toolchain, job: &Job) -> Result<Command, BuildError> {
    let (profile, settings, level) = job.profile(request.machine);
    let mut command = Command::new(cargo());
    command.current_dir(&job.folder).args(["build", "--profile", profile]);
    match job.is_library(request) {
        true => command.arg("--lib"),
        false if job.binaries.is_empty() => command.arg("--bins"),
        false => command.args(job.binaries.iter().flat_map(|name| ["--bin", name])),
    };
    let features: Vec<_> = job.features.iter().map(String::as_str).chain(job.kernels).collect();
    if !features.is_empty() {
        command.args(["--features", &features.join(",")]);
    }
    command.args(["--target", request.triple()]);
    command.args(["--message-format", "json-render-diagnostics"]);
    job.package.iter().for_each(|package| {
        command.args(["--package", package]);
    });
    settings.iter().chain([&level]).for_each(|setting| {
        command.args(["--config", &format!("profile.{profile}.{setting}")]);
    });
    if let Some(flag) = job.flags(request.machine) {
        // Beside those that the crate's own configuration has.
        command.args(["--config", &format!("target.{}.rustflags=['{flag}']", request.triple())]);
    }
    if let Some(folder) = &request.target_folder {
        command.arg("--target-dir").arg(folder);
    }
    toolchain.equip(&mut command);
    if !request.builders.is_empty() {
        command.env("PTO_FW_BUILDERS", builders(request)?);
    }
    if job.kernels.is_some() {
        command.env("PTO_FW_KERNELS", kernels(request)?);
        let whole = request.kernel_includes.iter().map(|path| whole(path));
        let includes = std::env::join_paths(whole.collect::<Result<Vec<_>, _>>()?);
        let includes = includes.map_err(|error| BuildError::Kernel(error.to_string()))?;
        command.env("PTO_FW_KERNEL_INCLUDES", includes);
    }
    if request.platform == Platform::Cann && request.machine == Machine::Aarch64 {
        let linker = packages::CROSS_C.need()?;
        command.env("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER", linker);
    }
    // Flags for the caller's own build (coverage, sanitizers) are not for an image.
    for variable in
        ["RUSTFLAGS", "CARGO_ENCODED_RUSTFLAGS", "CARGO_BUILD_TARGET", "RUSTC_WORKSPACE_WRAPPER"]
    {
        command.env_remove(variable);
    }
    if request.machine == Machine::X86_64 {
        command.envs(WITHOUT_TABLES);
    }
    // cargo's own progress on a terminal; elsewhere only what goes wrong.
    if !stderr().is_terminal() {
        command.arg("--quiet");
    }
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::inherit());
    // What cargo set for this process, when it was started by `cargo run`, is not for another build.
    for (name, _) in std::env::vars_os() {
        if is_of_cargo(&name) {
            command.env_remove(name);
        }
    }
    Ok(command)
}

/// The builders as `linker/images/build.rs` reads them.
fn builders(request: &Request) -> Result<OsString, BuildError> {
    let mut lines = OsString::new();
    for BuilderSource { name, function, path } in &request.builders {
        lines.push(format!("{name}\t{function}\t"));
        lines.push(whole(path)?);
        lines.push("\n");
    }
    Ok(lines)
}

/// The kernels as `linker/kernels-blob/listed_kernels.rs` reads them.
fn kernels(request: &Request) -> Result<OsString, BuildError> {
    let mut lines = OsString::new();
    for KernelSource { func_id, kind, name, function, path } in &request.kernels {
        let kind = if *kind == CoreKind::AIC { "AIC" } else { "AIV" };
        lines.push(format!("{func_id}\t{kind}\t{name}\t{function}\t"));
        lines.push(whole(path)?);
        lines.push("\n");
    }
    Ok(lines)
}

/// A path for cargo, which runs elsewhere.
fn whole(path: &Path) -> Result<PathBuf, BuildError> {
    path.canonicalize().map_err(|source| BuildError::File { path: path.to_path_buf(), source })
}

fn is_of_cargo(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_")
}
