//! The Python packages: their wheel is built, installed into a fresh virtual environment, and tested from there.

use std::path::{Path, PathBuf};
use std::process::Command;

use pto_image_build::toolchain::{ToolError, packages};

use crate::cargo::{build_once, cargo};

/// What the environment gets from PyPI.
const FROM_PYPI: [&str; 4] = ["maturin>=1.9,<2", "numpy", "pytest", "pytest-xdist"];

/// Builds the wheel and runs the package's tests. Everything is in `target`.
pub(crate) fn test(root: &Path, target: &Path) -> Result<(), String> {
    let python = install(root, target)?;
    let home = flash_qemu(root, target)?;
    let mut tests = Command::new(&python);
    tests.env("PTO_HOME", home);
    // The command in the wheel builds kernels of simpler for the emulated machine, and has the libraries of the CANN interface.
    tests.env("PTO_COMMAND", python.with_file_name("pto"));
    // Two at a time: much of a test is waiting for a compiler or for a process.
    tests.args(["-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", "2", "--durations=12"]);
    // From elsewhere, so that the installed package is what is imported.
    run(tests.arg(root.join("bindings/python/tests")).current_dir(target))
}

/// Builds firmware and kernels for the emulated machine, and flashes them to a store for the tests; its folder.
fn flash_qemu(root: &Path, target: &Path) -> Result<PathBuf, String> {
    install_programs(&[packages::QEMU])?;
    build_command(root)?;
    let home = target.join("python-home");
    let images = target.join("aarch64-unknown-none/firmware");
    let image = |name: &str| images.join(name).display().to_string();
    let pto = |arguments: &[&str]| {
        let mut command = Command::new(target.join("debug/pto"));
        run(command.args(arguments).env("PTO_HOME", &home).current_dir(root))
    };
    pto(&["fw", "build", "--release"])?;
    let (firmware, kernels) = (image("pto-fw-qemu.img"), image("pto-kernels-blob.img"));
    pto(&["fw", "flash", &firmware, &kernels])?;
    Ok(home)
}

/// The command, and the libraries of the CANN interface. The tests of both have built them, with the features of the whole workspace: nothing is compiled
/// here after them.
pub(crate) fn build_command(root: &Path) -> Result<(), String> {
    let tests = ["--test", "command", "--test", "programs", "--test", "onnx"];
    run(cargo(root).args(["test", "--quiet", "--workspace", "--no-run"]).args(tests))
}

/// CuPy for Ascend, a pre-release.
pub(crate) const NUMPY_ASCEND: &str = "numpy-ascend==14.0.0a1";

/// An environment for the wheel.
struct Environment {
    /// Its folder below `target`.
    folder: &'static str,
    interpreter: &'static str,
    /// Options of the module venv.
    options: &'static [&'static str],
    /// What it gets from PyPI.
    from_pypi: &'static [&'static str],
    /// What it gets without the packages that these ask for.
    alone: &'static [&'static str],
}

/// With nothing of the machine's.
const FRESH: Environment = Environment {
    folder: "python-venv",
    interpreter: packages::PYTHON.name,
    options: &[],
    from_pypi: &FROM_PYPI,
    alone: &[],
};

/// With the cases of ONNX.
const ONNX: Environment = Environment {
    folder: "onnx-venv",
    interpreter: packages::PYTHON.name,
    options: &[],
    from_pypi: &["onnx==1.23.2", "numpy"],
    alone: &[],
};

/// With ONNX Runtime for CANN, and with what uses it. These ask for the package with the usual ONNX Runtime, which would replace the other one.
const ONNX_RUNTIME: Environment = Environment {
    folder: "onnxruntime-venv",
    interpreter: "python3.11",
    options: &[],
    from_pypi: &[
        "onnxruntime-cann==1.24.4",
        "numpy<2",
        "opencv-python-headless==4.10.0.84",
        "Pillow>=10.1",
        "PyYAML",
        "click",
        "pyclipper",
        "python-dotenv",
        "shapely",
        "six",
        "tqdm",
    ],
    alone: &["rapidocr-onnxruntime==1.4.4", "magika==1.0.3"],
};

/// For CuPy on Ascend, whose wheel is for CPython 3.11.
const CUPY: Environment = Environment {
    folder: "cupy-venv",
    interpreter: "python3.11",
    options: &[],
    from_pypi: &[
        "numpy>=2,<2.4",
        "fastrlock",
        "pytest",
        "pytest-timeout",
        "hypothesis",
        "scipy",
        "setuptools<81",
        "wheel",
        "cython",
    ],
    alone: &[],
};

/// For pyhccl, whose wheel is for CPython 3.11.
const PYHCCL: Environment = Environment {
    folder: "pyhccl-venv",
    interpreter: "python3.11",
    options: &[],
    from_pypi: &["numpy>=2,<2.4"],
    alone: &["pyhccl==0.1.0"],
};

/// With what the suite runs of packages. NumPy is the one that ONNX Runtime for CANN takes; the others run with it as well.
const PARTS: Environment = Environment {
    folder: "package-parts-venv",
    interpreter: "python3.11",
    options: &[],
    from_pypi: &["onnxruntime-cann==1.24.4", "numpy<2", "fastrlock==0.8.4"],
    alone: &[
        "rapidocr-onnxruntime==1.4.4",
        "onnx==1.23.2",
        "ml_dtypes==0.6.0",
        "typing_extensions",
        NUMPY_ASCEND,
    ],
};

/// With Debian's packages, torch among them, under Debian's own interpreter.
const BESIDE_DEBIAN: Environment = Environment {
    folder: "python-venv-debian",
    interpreter: "/usr/bin/python3",
    options: &["--system-site-packages"],
    from_pypi: &["maturin>=1.9,<2"],
    alone: &[],
};

/// Makes a fresh virtual environment with the package that has ONNX's cases; its interpreter.
pub(crate) fn install_onnx(target: &Path) -> Result<PathBuf, String> {
    install_programs(&[packages::PYTHON])?;
    ONNX.packages(target)
}

/// Makes a fresh virtual environment with ONNX Runtime for CANN; its interpreter.
pub(crate) fn install_onnxruntime(target: &Path) -> Result<PathBuf, String> {
    ONNX_RUNTIME.packages(target).map_err(|why| {
        format!(
            "{why}; onnxruntime-cann needs Python 3.11 under the name {}",
            ONNX_RUNTIME.interpreter
        )
    })
}

/// Makes a fresh virtual environment for CuPy on Ascend; its interpreter.
pub(crate) fn install_cupy(target: &Path) -> Result<PathBuf, String> {
    CUPY.packages(target)
}

/// Makes a fresh virtual environment with pyhccl; its interpreter.
pub(crate) fn install_pyhccl(target: &Path) -> Result<PathBuf, String> {
    PYHCCL.packages(target)
}

/// What became of an installation.
pub(crate) enum Installed {
    /// The interpreter of the environment.
    At(PathBuf),
    /// This machine cannot have it: why.
    Not(String),
}

/// Makes a virtual environment with what the suite runs of packages, or takes the one that an earlier call has made.
pub(crate) fn install_parts(target: &Path) -> Result<Installed, String> {
    PARTS.kept(target)
}

/// Builds the wheel and installs it into a fresh virtual environment; the interpreter of that.
pub(crate) fn install(root: &Path, target: &Path) -> Result<PathBuf, String> {
    FRESH.install(root, target)
}

/// The same, with Debian's packages in addition to the wheel.
pub(crate) fn install_beside_debian(root: &Path, target: &Path) -> Result<PathBuf, String> {
    BESIDE_DEBIAN.install(root, target)
}

impl Environment {
    fn install(&self, root: &Path, target: &Path) -> Result<PathBuf, String> {
        install_programs(&[packages::PYTHON, packages::CXX])?;
        let wheels = target.join("wheels");
        removed(&wheels)?;
        let python = self.packages(target)?;
        build_command(root)?;
        build_wheel(root, &python, &wheels, "dev", &target.join("debug"))?;
        let wheel = std::fs::read_dir(&wheels).ok().and_then(|mut files| files.next()?.ok());
        let wheel = wheel.ok_or("maturin has built no wheel")?.path();
        pip(&python, &["--no-deps", &wheel.to_string_lossy()])?;
        Ok(python)
    }

    /// A fresh environment with what comes from PyPI; its interpreter.
    fn packages(&self, target: &Path) -> Result<PathBuf, String> {
        let venv = target.join(self.folder);
        removed(&venv)?;
        self.make(&venv)?;
        let python = venv.join("bin/python");
        pip(&python, self.from_pypi)?;
        if !self.alone.is_empty() {
            pip(&python, &[&["--no-deps"], self.alone].concat())?;
        }
        Ok(python)
    }

    /// An environment with what comes from PyPI, which is kept until other packages are asked for.
    fn kept(&self, target: &Path) -> Result<Installed, String> {
        let venv = target.join(self.folder);
        let python = venv.join("bin/python");
        let (list, wanted) =
            (venv.join("packages"), [self.from_pypi, self.alone].concat().join("\n"));
        if std::fs::read_to_string(&list).is_ok_and(|found| found == wanted) {
            return Ok(Installed::At(python));
        }
        let version = Command::new(self.interpreter).arg("--version").output();
        if !version.is_ok_and(|told| told.status.success()) {
            let why = format!("there is no {}, for which the packages are made", self.interpreter);
            return Ok(Installed::Not(why));
        }
        removed(&venv)?;
        self.make(&venv)?;
        for arguments in [self.from_pypi.to_vec(), [&["--no-deps"], self.alone].concat()] {
            if let Some(why) = pip_where_possible(&python, &arguments)? {
                return Ok(Installed::Not(why));
            }
        }
        std::fs::write(&list, wanted)
            .map_err(|error| format!("{} cannot be written: {error}", list.display()))?;
        Ok(Installed::At(python))
    }

    fn make(&self, venv: &Path) -> Result<(), String> {
        let venv_with = |more: &[&str]| {
            let mut make = Command::new(self.interpreter);
            run(make.args(["-m", "venv"]).args(self.options).args(more).arg(venv))
        };
        venv_with(&[]).or_else(|_| {
            // Debian has the module in a package of its own.
            install_programs(&[packages::PYTHON_VENV])?;
            venv_with(&["--clear"])
        })
    }
}

/// A fresh environment with what builds the package; its interpreter.
pub(crate) fn build_environment(target: &Path) -> Result<PathBuf, String> {
    install_programs(&[packages::PYTHON, packages::CXX])?;
    FRESH.packages(target)
}

/// Builds the wheel into `wheels` as pip does, with the command and the libraries that are in the folder `built` of cargo.
pub(crate) fn build_wheel(
    root: &Path,
    python: &Path,
    wheels: &Path,
    profile: &str,
    built: &Path,
) -> Result<(), String> {
    let mut build = pip_wheel(python)?;
    build.env("PTO_WHEEL_PROFILE", profile).env("PTO_WHEEL_BUILT", built);
    // Optimised as the tests are: much of it is compiled for them already, and the tests of the package run on it.
    build.env("CARGO_PROFILE_DEV_OPT_LEVEL", "1");
    build_once(&mut build);
    run(build.arg(wheels).arg(root).current_dir(root))
}

/// `pip wheel -w`, with what the environment of this interpreter has.
pub(crate) fn pip_wheel(python: &Path) -> Result<Command, String> {
    let mut build = Command::new(python);
    build.args(["-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "-w"]);
    with_programs(&mut build, python)?;
    Ok(build)
}

/// Lets a command find the programs of an environment.
fn with_programs(command: &mut Command, python: &Path) -> Result<(), String> {
    let own = python.parent().map(Path::to_path_buf);
    let others = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::join_paths(own.into_iter().chain(std::env::split_paths(&others)));
    command.env("PATH", path.map_err(|error| format!("PATH: {error}"))?);
    Ok(())
}

/// Builds the source package into `files`, as a build front end does.
pub(crate) fn build_source_package(root: &Path, python: &Path, files: &Path) -> Result<(), String> {
    let hook = "import sys; sys.path.insert(0, 'bindings/python'); import build_backend; build_backend.build_sdist(sys.argv[1])";
    let mut build = Command::new(python);
    with_programs(&mut build, python)?;
    run(build.args(["-c", hook]).arg(files).current_dir(root))
}

/// Nothing in the place of this folder.
pub(crate) fn removed(folder: &Path) -> Result<(), String> {
    if !folder.exists() {
        return Ok(());
    }
    std::fs::remove_dir_all(folder)
        .map_err(|error| format!("{} cannot be removed: {error}", folder.display()))
}

fn pip(python: &Path, arguments: &[&str]) -> Result<(), String> {
    run(Command::new(python).args(["-m", "pip", "install", "--quiet"]).args(arguments))
        .map_err(|why| format!("{why}; nothing was tested: PyPI must be reachable"))
}

/// As [`pip`]; why not, where PyPI cannot be reached.
fn pip_where_possible(python: &Path, arguments: &[&str]) -> Result<Option<String>, String> {
    /// What pip says where it cannot connect.
    const UNREACHABLE: [&str; 4] =
        ["Failed to establish a new connection", "timed out", "ProxyError", "SSLError"];
    let mut install = Command::new(python);
    install.args(["-m", "pip", "install", "--quiet", "--retries", "1", "--timeout", "10"]);
    install.args(arguments);
    println!("{install:?}");
    let told =
        install.output().map_err(|error| format!("{install:?} cannot be started: {error}"))?;
    if told.status.success() {
        return Ok(None);
    }
    let said = String::from_utf8_lossy(&told.stderr);
    match UNREACHABLE.iter().find(|words| said.contains(**words)) {
        Some(words) => Ok(Some(format!("PyPI cannot be reached (pip says: {words})"))),
        None => Err(format!("{install:?}: {}\n{said}", told.status)),
    }
}

fn install_programs(programs: &[packages::Program]) -> Result<(), String> {
    packages::install(programs, &|sentence| println!("{sentence}"))
        .map_err(|error: ToolError| error.to_string())
}

pub(crate) fn run(command: &mut Command) -> Result<(), String> {
    println!("{command:?}");
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{command:?}: {status}")),
        Err(error) => Err(format!("{command:?} cannot be started: {error}")),
    }
}
