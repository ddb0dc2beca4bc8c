//! A compiler for AArch64: the one in use, with a target that rustup adds where it is missing, or Debian's.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::{ToolError, debian, process};

/// How long rustup may take.
const RUSTUP_LIMIT: Duration = Duration::from_secs(60);
/// How long a compiler may take to say where its libraries are.
const ASK_LIMIT: Duration = Duration::from_secs(30);

/// Where the compiler comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Source {
    /// From rustup; where that fails, from Debian.
    #[default]
    Any,
    /// From rustup.
    Rustup,
    /// From Debian's packages, in a cache.
    Debian,
}

/// A compiler that has a target, and what cargo must be told to use it.
#[derive(Clone, Debug)]
pub struct Toolchain {
    environment: Vec<(String, PathBuf)>,
    arguments: Vec<String>,
}

impl Toolchain {
    /// Finds one for a target, or brings it; tells `say` what it does.
    ///
    /// # Errors
    /// `NoCompiler`, with the reasons.
    pub fn provide(
        triple: &'static str,
        source: Source,
        say: &dyn Fn(&str),
    ) -> Result<Self, ToolError> {
        let not_asked = "not asked for".to_owned();
        let rustup = match source {
            Source::Any | Source::Rustup => of_rustup(triple, say),
            Source::Debian => Err(not_asked.clone()),
        };
        let rustup = match rustup {
            Ok(()) => return Ok(Self { environment: Vec::new(), arguments: Vec::new() }),
            Err(why) => why,
        };
        if source == Source::Any {
            say(&format!(
                "{triple} cannot be had from rustup ({rustup}): taking Debian's packages"
            ));
        }
        let debian = match source {
            Source::Any | Source::Debian => debian::provide(say),
            Source::Rustup => Err(not_asked),
        };
        match debian {
            Ok(compiler) => Ok(Self::of_debian(triple, compiler)),
            Err(debian) => Err(ToolError::NoCompiler { triple, rustup, debian }),
        }
    }

    /// Makes a `cargo build` use it.
    pub fn equip(&self, cargo: &mut Command) {
        cargo.args(&self.arguments).envs(self.environment.iter().map(|(name, to)| (name, to)));
    }

    /// Debian's compiler has no libraries for the target: cargo builds them.
    fn of_debian(triple: &str, compiler: PathBuf) -> Self {
        let mut environment = vec![
            ("RUSTC".to_owned(), compiler),
            ("RUSTC_BOOTSTRAP".to_owned(), PathBuf::from("1")),
        ];
        if triple.ends_with("-none")
            && let Some(linker) = rust_lld()
        {
            let variable = triple.to_uppercase().replace('-', "_");
            environment.push((format!("CARGO_TARGET_{variable}_LINKER"), linker));
        }
        let arguments = ["-Z", "build-std=core,alloc,compiler_builtins"].map(str::to_owned);
        Self { environment, arguments: arguments.to_vec() }
    }
}

/// Makes sure that the compiler in use has the target.
fn of_rustup(triple: &str, say: &dyn Fn(&str)) -> Result<(), String> {
    if is_installed(triple)? {
        return Ok(());
    }
    say(&format!("{triple} is missing: rustup target add {triple}"));
    let mut rustup = Command::new("rustup");
    rustup.args(["target", "add", triple]).env("RUSTUP_AUTO_SELF_UPDATE", "disable");
    process::output(&mut rustup, RUSTUP_LIMIT)?;
    if is_installed(triple)? { Ok(()) } else { Err("the compiler in use is not rustup's".into()) }
}

fn compiler() -> String {
    std::env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned())
}

/// Whether the compiler in use finds the target's core library, however it came there.
fn is_installed(triple: &str) -> Result<bool, String> {
    let mut command = Command::new(compiler());
    command.args(["--print", "target-libdir", "--target", triple]);
    let folder = process::output(&mut command, ASK_LIMIT)?;
    Ok(holds_core(Path::new(folder.trim())))
}

fn holds_core(folder: &Path) -> bool {
    let Ok(entries) = std::fs::read_dir(folder) else { return false };
    let is_core = |name: &str| name.starts_with("libcore-") && name.ends_with(".rlib");
    entries.flatten().any(|entry| is_core(&entry.file_name().to_string_lossy()))
}

/// The linker that comes with the compiler in use.
fn rust_lld() -> Option<PathBuf> {
    let mut command = Command::new(compiler());
    let folder = process::output(command.args(["--print", "target-libdir"]), ASK_LIMIT).ok()?;
    let linker = Path::new(folder.trim()).parent()?.join("bin/rust-lld");
    linker.is_file().then_some(linker)
}

#[cfg(test)]
mod tests {
    use super::{Toolchain, holds_core, is_installed};
    use std::path::{Path, PathBuf};

    #[test]
    fn a_folder_without_core_is_no_target() {
        assert!(!holds_core(Path::new("/nonexistent")));
        assert!(is_installed("no-such-target").is_err());
    }

    #[test]
    fn debians_compiler_builds_the_libraries() {
        let toolchain = Toolchain::of_debian("aarch64-unknown-none", PathBuf::from("/x/rustc"));
        assert!(toolchain.arguments.join(" ").starts_with("-Z build-std=core"));
        let names: Vec<_> = toolchain.environment.iter().map(|(name, _)| name.as_str()).collect();
        assert!(names.starts_with(&["RUSTC", "RUSTC_BOOTSTRAP"]), "{names:?}");
    }
}
