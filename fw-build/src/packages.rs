//! Programs that are not Rust's, and the Debian packages that bring them.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use crate::BuildError;
use crate::process;

/// How long apt may take.
const APT_LIMIT: Duration = Duration::from_secs(300);

/// A program and where it comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Program {
    /// Its name.
    pub name: &'static str,
    /// The packages that it needs.
    pub packages: &'static str,
}

/// QEMU for the device `virt`.
pub const QEMU: Program = Program { name: "qemu-system-aarch64", packages: "qemu-system-arm" };
/// The linker of images for the CANN driver stack.
pub const CANN_LINKER: Program = Program {
    name: "aarch64-linux-gnu-gcc",
    packages: "gcc-aarch64-linux-gnu libc6-dev-arm64-cross",
};

impl Program {
    /// Where it is, in PATH.
    #[must_use]
    pub fn find(self) -> Option<PathBuf> {
        let paths = std::env::var_os("PATH")?;
        let mut places = std::env::split_paths(&paths).map(|folder| folder.join(self.name));
        places.find(|path| path.is_file())
    }

    /// Where it is.
    ///
    /// # Errors
    /// `NoProgram`, with the packages that bring it.
    pub fn need(self) -> Result<PathBuf, BuildError> {
        self.find().ok_or_else(|| BuildError::NoProgram {
            program: self.name.to_owned(),
            packages: self.packages.to_owned(),
        })
    }

    /// Installs it with `apt-get` where it is missing, for tests: that takes root.
    ///
    /// # Errors
    /// What to run by hand.
    pub fn install(self) -> Result<PathBuf, String> {
        if let Some(path) = self.find() {
            return Ok(path);
        }
        println!("{} is missing: apt-get install {}", self.name, self.packages);
        let apt = |arguments: &[&str]| {
            let mut command = Command::new("apt-get");
            command.args(arguments).env("DEBIAN_FRONTEND", "noninteractive");
            process::output(&mut command, APT_LIMIT)
        };
        let update = apt(&["update", "-q"]);
        let mut install = vec!["install", "-y", "-q", "--no-install-recommends"];
        install.extend(self.packages.split(' '));
        let why = match apt(&install) {
            Ok(_) => "it is still not in PATH".to_owned(),
            Err(why) => format!("{why}; apt-get update: {update:?}"),
        };
        self.find().ok_or_else(|| {
            format!(
                "{} cannot be installed ({why}): as root, run `apt-get install {}`",
                self.name, self.packages
            )
        })
    }
}
