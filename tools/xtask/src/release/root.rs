//! Using what is released: in an empty root of Debian's packages, which has no Rust and nothing of this machine, and here with an empty environment.

use std::path::{Path, PathBuf};
use std::process::Command;

use pto_image_build::toolchain::packages::{self, CC, CMAKE, DEBOOTSTRAP, PKG_CONFIG};

use super::folder;
use super::wheel::Packages;
use crate::python;

const USE_TARBALL: &str = include_str!("use_tarball.sh");
const USE_WHEEL: &str = include_str!("use_wheel.sh");
/// The program in C that is compiled against the tarball.
const HELLO: &str = "bindings/c/tests/c/hello.c";
/// What a user of the C library and of Python has.
const DEBIAN: &str = "gcc,libc6-dev,pkg-config,cmake,make,python3,python3-venv";
/// Where a test works inside the root.
const WORK: &str = "/work";

/// Unpacks the tarball into a root, and uses it there.
pub(super) fn use_tarball(root: &Path, target: &Path, tarball: &Path) -> Result<(), String> {
    let place = Root::prepared(target)?;
    let prefix = unpacked(tarball, &place.inside("/opt"))?;
    place.put("use_tarball.sh", USE_TARBALL.as_bytes())?;
    place.put("hello.c", &read(&root.join(HELLO))?)?;
    let prefix = format!("/opt/{}", prefix.file_name().unwrap_or_default().to_string_lossy());
    place.run(&["use_tarball.sh", &prefix, &format!("{WORK}/hello.c")])
}

/// Installs the wheel into a root, and uses it there. NumPy comes from PyPI, before.
pub(super) fn use_wheel(target: &Path, made: &Packages) -> Result<(), String> {
    let place = Root::prepared(target)?;
    let wheels = place.inside(WORK).join("wheels");
    folder::replaced(&wheels)?;
    // The interpreter of the root decides which NumPy fits.
    let version =
        place.output("python3 -c 'import sys; print(\"%d.%d\" % sys.version_info[:2])'")?;
    let mut fetch = Command::new(&made.python);
    fetch.args(["-m", "pip", "download", "--quiet", "--only-binary=:all:", "--no-deps"]);
    fetch.args(["--python-version", version.trim(), "numpy", "-d"]);
    python::run(fetch.arg(&wheels))?;
    let name = made.wheel.file_name().unwrap_or_default();
    place.put(&format!("wheels/{}", name.to_string_lossy()), &read(&made.wheel)?)?;
    place.put("use_wheel.sh", USE_WHEEL.as_bytes())?;
    place.run(&["use_wheel.sh", &format!("{WORK}/wheels")])
}

/// Unpacks the tarball into `folder`, and uses it there with this machine's compiler and an empty environment.
pub(super) fn use_tarball_here(root: &Path, folder: &Path, tarball: &Path) -> Result<(), String> {
    let say = |sentence: &str| println!("{sentence}");
    packages::install(&[CC, CMAKE, PKG_CONFIG], &say).map_err(|error| error.to_string())?;
    let prefix = unpacked(tarball, &folder.join("prefix"))?;
    let work = folder::replaced(&folder.join("work"))?;
    let script = work.join("use_tarball.sh");
    std::fs::write(&script, USE_TARBALL).map_err(|error| error.to_string())?;
    let mut command = Command::new("sh");
    command.env_clear().env("PATH", "/usr/bin:/bin").env("HOME", &work).current_dir(&work);
    python::run(command.arg(script).arg(prefix).arg(root.join(HELLO)))
}

/// Unpacks a tarball; the folder that is in it.
fn unpacked(tarball: &Path, into: &Path) -> Result<PathBuf, String> {
    folder::replaced(into)?;
    python::run(Command::new("tar").arg("-xzf").arg(tarball).arg("-C").arg(into))?;
    let first = std::fs::read_dir(into).ok().and_then(|mut files| files.next()?.ok());
    first.map(|file| file.path()).ok_or_else(|| format!("{} is empty", tarball.display()))
}

fn read(file: &Path) -> Result<Vec<u8>, String> {
    std::fs::read(file).map_err(|error| format!("{}: {error}", file.display()))
}

/// A root of Debian's packages.
struct Root(PathBuf);

impl Root {
    /// The root, made if there is none, with an empty folder for a test.
    fn prepared(target: &Path) -> Result<Self, String> {
        let say = |sentence: &str| println!("{sentence}");
        packages::install(&[DEBOOTSTRAP], &say).map_err(|error| error.to_string())?;
        let place = Self(target.join("release-root"));
        // This file is written last: without it an earlier call was interrupted, and the root is made again.
        let is_made = place.0.join("made");
        if !is_made.is_file() {
            if place.0.exists() {
                std::fs::remove_dir_all(&place.0).map_err(|error| error.to_string())?;
            }
            let release = debian_release()?;
            let mut make = Command::new("debootstrap");
            make.args(["--variant=minbase", &format!("--include={DEBIAN}"), &release]);
            python::run(make.arg(&place.0))?;
            std::fs::write(&is_made, "").map_err(|error| error.to_string())?;
        }
        folder::replaced(&place.inside(WORK))?;
        Ok(place)
    }

    fn inside(&self, path: &str) -> PathBuf {
        self.0.join(path.trim_start_matches('/'))
    }

    /// Writes a file of the test.
    fn put(&self, name: &str, bytes: &[u8]) -> Result<(), String> {
        let file = self.inside(WORK).join(name);
        std::fs::write(&file, bytes).map_err(|error| format!("{}: {error}", file.display()))
    }

    /// What enters the root, with `/proc` and `/dev` there, and nothing of this environment.
    fn command(&self, line: &str) -> Command {
        let root = self.0.display();
        let enter = format!(
            "mount -t proc proc '{root}/proc' && mount --bind /dev '{root}/dev' && exec chroot '{root}' \
             /usr/bin/env -i PATH=/usr/bin:/bin HOME={WORK} sh -c 'cd {WORK} && exec {}'",
            line.replace('\'', "'\\''")
        );
        let mut command = Command::new("unshare");
        command.args(["--mount", "--pid", "--fork", "sh", "-c", &enter]);
        command
    }

    fn run(&self, words: &[&str]) -> Result<(), String> {
        python::run(&mut self.command(&format!("sh {}", words.join(" "))))
    }

    fn output(&self, line: &str) -> Result<String, String> {
        let output = self.command(line).output().map_err(|error| format!("unshare: {error}"))?;
        match output.status.success() {
            true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
            false => Err(format!("{line}: {}", String::from_utf8_lossy(&output.stderr))),
        }
    }
}

/// The name of this machine's Debian, whose packages its mirrors have.
fn debian_release() -> Result<String, String> {
    let file = "/etc/os-release";
    let text = std::fs::read_to_string(file).map_err(|error| format!("{file}: {error}"))?;
    let name = text.lines().find_map(|line| line.strip_prefix("VERSION_CODENAME="));
    name.map(|name| name.trim_matches('"').to_owned()).ok_or_else(|| {
        format!("{file} names no release of Debian, whose packages the root consists of")
    })
}
