//! Runs cargo, and finds what it has built.

use std::ffi::OsStr;
use std::io::{BufReader, IsTerminal, stderr};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use cargo_metadata::{Artifact, CrateType, Message, TargetKind};

use crate::packages::CANN_LINKER;
use crate::{BuildError, Platform, Profile, Request, Toolchain};

/// The profiles of firmware images, said in full, so that they hold in any workspace.
const RELEASE: &[&str] = &[
    "profile.firmware.inherits='release'",
    "profile.firmware.panic='abort'",
    "profile.firmware.lto='fat'",
    "profile.firmware.codegen-units=1",
    "profile.firmware.opt-level='s'",
    "profile.firmware.debug=1",
];
const CHECKED: &[&str] = &[
    "profile.firmware-checked.inherits='release'",
    "profile.firmware-checked.panic='abort'",
    "profile.firmware-checked.lto='thin'",
    "profile.firmware-checked.opt-level='s'",
    "profile.firmware-checked.debug=1",
    "profile.firmware-checked.debug-assertions=true",
    "profile.firmware-checked.overflow-checks=true",
];

/// One call of cargo.
struct Job {
    folder: PathBuf,
    /// `None`: what the folder's own package makes.
    package: Option<&'static str>,
    profile: Profile,
    what: String,
}

impl Job {
    /// What `request` needs. The kernels are always built as they are shipped: where a panic stands in constants,
    /// they would need relocations.
    fn of(request: &Request) -> Result<Vec<Self>, BuildError> {
        let profile = request.profile;
        if let Some(folder) = &request.crate_folder {
            if !folder.join("Cargo.toml").is_file() {
                return Err(BuildError::NoCrate(folder.clone()));
            }
            let what = format!("the crate in '{}'", folder.display());
            return Ok(vec![Self { folder: folder.clone(), package: None, profile, what }]);
        }
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let folder = here.parent().unwrap_or(here).to_path_buf();
        if !folder.join("linker").is_dir() {
            return Err(BuildError::NoSources(folder));
        }
        let packages: &[_] = match request.platform {
            Platform::Virt => &[("pto-fw-virt", profile), ("pto-kernels-blob", Profile::Release)],
            Platform::Cann => &[("pto-fw-cann", profile)],
        };
        let job = |&(package, profile): &(&'static str, Profile)| {
            let (folder, what) = (folder.clone(), package.to_owned());
            Self { folder, package: Some(package), profile, what }
        };
        Ok(packages.iter().map(job).collect())
    }
}

/// The ELF files that `request` asks for.
pub(crate) fn build(
    request: &Request,
    toolchain: &Toolchain,
    say: &dyn Fn(&str),
) -> Result<Vec<PathBuf>, BuildError> {
    let mut files = Vec::new();
    for job in Job::of(request)? {
        say(&format!("building {} for {}", job.what, request.platform.triple()));
        files.extend(run(request, toolchain, &job)?);
    }
    Ok(files)
}

fn run(request: &Request, toolchain: &Toolchain, job: &Job) -> Result<Vec<PathBuf>, BuildError> {
    let mut command = command(request, toolchain, job)?;
    let failed = |how: String| BuildError::Cargo { what: job.what.clone(), how };
    let mut child = command.spawn().map_err(|error| failed(error.to_string()))?;
    let output = child.stdout.take().map(BufReader::new);
    let mut files = Vec::new();
    for message in output.into_iter().flat_map(Message::parse_stream) {
        let message = message.map_err(|error| failed(error.to_string()))?;
        let Message::CompilerArtifact(artifact) = message else { continue };
        let is_image = match request.platform {
            Platform::Virt => artifact.target.kind.contains(&TargetKind::Bin),
            Platform::Cann => artifact.target.crate_types.contains(&CrateType::CDyLib),
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
    fn asks_for(&self, artifact: &Artifact) -> bool {
        // A library's target is called like its package, with underscores.
        let plain = |name: &str| name.replace('-', "_");
        match self.package {
            Some(package) => plain(package) == plain(&artifact.target.name),
            None => {
                let own = self.folder.join("Cargo.toml").canonicalize();
                own.is_ok_and(|own| {
                    artifact.manifest_path.as_std_path().canonicalize().is_ok_and(|at| at == own)
                })
            }
        }
    }
}

fn command(request: &Request, toolchain: &Toolchain, job: &Job) -> Result<Command, BuildError> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let (profile, settings) = match job.profile {
        Profile::Release => ("firmware", RELEASE),
        Profile::Checked => ("firmware-checked", CHECKED),
    };
    let part = match request.platform {
        Platform::Virt => "--bins",
        Platform::Cann => "--lib",
    };
    let mut command = Command::new(cargo);
    command.current_dir(&job.folder).args(["build", part, "--profile", profile]);
    command.args(["--target", request.platform.triple()]);
    command.args(["--message-format", "json-render-diagnostics"]);
    job.package.iter().for_each(|package| {
        command.args(["--package", package]);
    });
    settings.iter().for_each(|setting| {
        command.args(["--config", setting]);
    });
    command.args(&toolchain.arguments).envs(toolchain.environment.iter().map(|(k, v)| (k, v)));
    if request.platform == Platform::Cann {
        let linker = CANN_LINKER.need()?;
        command.env("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER", linker);
    }
    // Flags for the caller's own build (coverage, sanitizers) are not for an image.
    for variable in
        ["RUSTFLAGS", "CARGO_ENCODED_RUSTFLAGS", "CARGO_BUILD_TARGET", "RUSTC_WORKSPACE_WRAPPER"]
    {
        command.env_remove(variable);
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

fn is_of_cargo(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_")
}
