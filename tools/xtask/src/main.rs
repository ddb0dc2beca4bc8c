//! The project's own commands: `cargo xtask <command>`.
//!
//! ```text
//! test               the whole suite: unit, system, doc, loom, shuttle and Python tests, mutants, no_std build, generated files
//! test --apart       those of its steps that need little of the others: `test` runs them in a second process at the same time
//! lint               formatting, clippy, documentation; warnings are errors
//! ci                 both, the lints at the same time as the tests
//! python             builds the wheel of the Python package, and tests it in a fresh virtual environment
//! acceptance         runs the examples and tests of the public project PTO-WSP against our package: `--pto-wsp DIR`;
//!                    with `--cann DIR` the public samples of the vendor's runtime against `bindings/acl`;
//!                    with `--onnx` the node cases of the package onnx, which it fetches, through our operators, and ONNX Runtime's
//!                    provider for CANN on our devices;
//!                    with `--cupy [MINUTES]` CuPy for Ascend, which it fetches: its operators against NumPy, and its own tests;
//!                    with `--hccl [RANKS]` pyhccl, which it fetches: every collective against NumPy;
//!                    with `--simpler DIR --pto-isa DIR` the programs of the field's runtime on our simulators
//! parts              a small part of `acceptance --onnx` and `acceptance --cupy`, which the suite runs where PyPI can be reached
//! seeds [COUNT]      runs every example in Python on the virtual machine with so many seeds, 1,000 without
//! mpi [--mpich]      installs OpenMPI, with `--mpich` MPICH as well, builds the plug-in for each MPI of this machine, and tests ranks over it
//! address            runs programs in C++ under AddressSanitizer
//! race               runs every example, sessions, and programs in C and C++ under ThreadSanitizer
//! recipes            adds a kernel and an example to a copy of the tree as docs/how-to/hacking.md says, and runs them; with `--suite`
//!                    all tests of the copy as well
//! fuzz TARGET        lets libFuzzer look for input that breaks TARGET; `--seconds N` for how long, 60 without
//! fuzz calls DOOR    makes calls of the interface DOOR (rust, c, cpp) by seeds; `--seed N` for the first one, `--calls N` for how many
//! miri               runs unit tests of abi, graph, aicpu-fw, aicore-kernels and host under miri; needs a nightly compiler
//! generate           writes docs/reference/abi.md, the index of decisions, the headers below bindings and docs/reference/acl-functions.md
//! generate --check   fails when they are stale
//! release            builds what people install, and uses each of it in an empty root
//! docs               builds the pages of docs/ as a book, and the documentation of the interface
//! stand-in           builds libraries that stand in for CANN, with an emulated device, for --device a2a3
//! debian-compiler    builds the images with Debian's compiler (fetches 140 MB), and runs one
//! ```
//! [`suite`] lists the steps, [`steps`] runs them, and [`lane`] runs some of them at the same time as the others. [`race`], [`recipes`], [`fuzz`], [`miri`] and [`mpi`] are steps that need a build of their own.
//! [`tools`] installs the tools that the steps need, and [`generate`] makes files from the layout tables of `pto_abi`.

mod acceptance;
mod acceptance_cann;
mod acceptance_cupy;
mod acceptance_dates;
mod acceptance_field;
mod acceptance_hccl;
mod acceptance_headers;
mod acceptance_onnx;
mod address;
mod book;
mod cargo;
mod fuzz;
mod generate;
mod lane;
mod miri;
mod mpi;
mod package_parts;
mod python;
mod race;
mod recipes;
mod release;
mod root;
mod stand_in;
mod steps;
mod suite;
mod tools;

use std::process::ExitCode;

const USAGE: &str = "\
usage: cargo xtask <command>

  test               the whole suite: unit, system, doc, loom, shuttle and Python tests, mutants, no_std build, generated files
  test --apart       those of its steps that need little of the others: loom, shuttle, mutants, what a task costs, the
                     race detector, seeded runs, recipes, the address sanitizer, the Python package, packages of PyPI, ranks over MPI; `test` runs
                     them in a second process at the same time
  lint               formatting, clippy, documentation; warnings are errors
  ci                 both, the lints at the same time as the tests; what .ci/run calls
  python             builds the wheel of the Python package, and tests it in a fresh virtual environment
  acceptance --pto-wsp DIR | --cann DIR | --cann-headers DIR | --onnx | --cupy [MINUTES] | --hccl [RANKS] | --simpler DIR --pto-isa DIR
                     runs the examples and Python tests of the public project PTO-WSP, which is in DIR, against our
                     package, or the samples of the public project hicann/runtime against our library, or the sizes
                     and offsets that we assume against the vendor's headers that a user has, or the node cases of
                     the package onnx, which it fetches from PyPI, through our operators, and ONNX Runtime's provider
                     for CANN on our devices (`--only cases|networks|modes|pipeline|files|refusal|speed` for a part), or the operators
                     and the own tests of CuPy for Ascend, which it fetches from PyPI, on our device, or every
                     collective of pyhccl, which it fetches from PyPI, on 2,4,8 ranks or so many, or the scene
                     tests of the public project hw-native-sys/simpler on our simulators, and prints a table; the last
                     with `--only WORD` for the files with this word in their path, and with `--dates COUNT` the programs
                     of so many dates of its history, newest first
  parts              runs a small part of `acceptance --onnx` and `acceptance --cupy`, as the suite does, in about 40 s; says so
                     where PyPI cannot be reached
  seeds [COUNT]      runs every example in Python on the virtual machine with so many seeds, 1,000 without, and compares
                     the bits of all arrays with program order
  mpi                installs OpenMPI, builds the plug-in for each MPI of this machine, and tests ranks over it;
                     with `--mpich` MPICH is installed as well
  race               runs every example, sessions, and programs in C and C++ under ThreadSanitizer
  address            runs the programs in C++ of the field's interface under AddressSanitizer
  recipes            adds a kernel and an example to a copy of the tree as docs/how-to/hacking.md says, and runs them; with
                     `--suite` all tests of the copy as well
  fuzz TARGET        lets libFuzzer look for input that breaks TARGET; `--seconds N` for how long, 60 without
  fuzz calls DOOR    makes calls of the interface DOOR (rust, c, cpp) by seeds; `--seed N` for the first one, `--calls N` for how many
  miri               runs unit tests of abi, graph, aicpu-fw, aicore-kernels and host under miri; needs a nightly compiler
  generate           writes docs/reference/abi.md, the index of decisions, the headers below bindings and docs/reference/acl-functions.md
  generate --check   fails when they are stale
  release            builds what people install (tarball, wheel, source package), into target/release-files, checks that the
                     crates can be published, and uses tarball and wheel in a root of Debian's packages that has no Rust;
                     with `--profile NAME` of a profile of cargo that builds faster, to try the command;
                     with `--of-tests` only the tarball of what the tests have built, used with this machine's compiler
  docs               builds the pages of docs/ as a book, and the documentation of the interface, into
                     target/book; installs mdBook with cargo where it is missing
  stand-in           builds libraries that stand in for CANN, with an emulated device, into
                     target/stand-in; for `pto run EXAMPLE --device a2a3` (docs/how-to/hardware.md)
  debian-compiler    builds the images with Debian's compiler, for where rustup cannot bring the targets, and runs
                     one; fetches about 140 MB, so that it is not a part of `test`
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let root = root::root();
    let result = match *arguments.as_slice() {
        [suite::TESTS] => steps::run_all(&suite::tests(&root)),
        [suite::TESTS, lane::ARGUMENT] => steps::run_all(&suite::tests_apart(&root)),
        [suite::EVERYTHING] => steps::run_all(&suite::everything(&root)),
        [suite::EVERYTHING, lane::ARGUMENT] => steps::run_all(&suite::everything_apart(&root)),
        ["lint"] => steps::run_all(&suite::lints(&root)),
        ["debian-compiler"] => steps::run_all(&suite::debian_compiler(&root)),
        ["address"] => steps::run_all(&[suite::address_sanitizer(&root)]),
        ["race"] => steps::run_all(&[suite::race_detector(&root)]),
        ["recipes"] => steps::run_all(&[suite::followed_recipes(&root, recipes::Extent::Example)]),
        ["recipes", "--suite"] => {
            steps::run_all(&[suite::followed_recipes(&root, recipes::Extent::Suite)])
        }
        ["mpi"] => steps::run_all(&[suite::mpi_ranks(&root, mpi::RequiredMpi::OpenMpi)]),
        ["mpi", "--mpich"] => steps::run_all(&[suite::mpi_ranks(&root, mpi::RequiredMpi::Both)]),
        ["stand-in"] => stand_in::make(&root, &suite::target_folder(&root)),
        ["miri"] => steps::run_all(&[suite::miri(&root)]),
        ["fuzz", ref request @ ..] => fuzz::run(&root, &suite::target_folder(&root), request),
        ["generate"] => generate::write(&root).and_then(|()| steps::run_all(&suite::c_interface())),
        ["acceptance", ref request @ ..] => {
            acceptance::run(&root, &suite::target_folder(&root), request)
        }
        ["seeds", ref request @ ..] => {
            acceptance::own_seeds(&root, &suite::target_folder(&root), request)
        }
        ["release", "--of-tests"] => steps::run_all(&[suite::release_of_tests(&root)]),
        ["release"] => release::run(&root, &suite::target_folder(&root), release::PROFILE),
        ["release", "--profile", profile] => {
            release::run(&root, &suite::target_folder(&root), profile)
        }
        ["python"] => steps::run_all(&[suite::python_package(&root)]),
        ["parts"] => steps::run_all(&[suite::package_parts(&root)]),
        ["docs"] => book::build(&root, &suite::target_folder(&root)),
        ["generate", "--check"] => generate::check(&root),
        [] | ["help" | "--help" | "-h"] => {
            print!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        _ => Err(format!("unknown command `{}`\n\n{USAGE}", arguments.join(" "))),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("xtask: {message}");
            ExitCode::FAILURE
        }
    }
}
