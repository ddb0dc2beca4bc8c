//! Programs of a folder: Python files, each with the sources in C++ that are in folders below it.
//!
//! A test file has what it imports from files next to it as parts of its own. Until April 2026 a program is a folder with `golden.py` and `kernels/kernel_config.py`. Sources that belong to
//! none of these are a program as well: those in one folder `kernels` together, any other one by itself.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use super::python::imports;
use super::vintages::{Vintage, headers};
use super::{names, reach, rules};
use crate::errors::Failure;

/// Words by which a Python file is known as a program of the field.
const PROGRAM: [&str; 4] =
    ["scene_test(", "simpler.worker", "simpler.task_interface", "st_platform"];
const SIMULATORS: [&str; 4] = ["\"a2a3sim\"", "\"a5sim\"", "'a2a3sim'", "'a5sim'"];
/// Words after which a program names its platforms.
const PLATFORMS: [&str; 2] = ["\"platforms\"", "mark.platforms("];
/// Folders that hold no programs.
const SKIPPED: [&str; 4] = [".git", "build", "target", "__pycache__"];

/// Whether a program runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Runs,
    /// Some of its tests do.
    Partly,
    /// It names devices, and no simulator.
    Hardware,
    Stops,
}

impl Verdict {
    pub(super) fn words(self) -> &'static str {
        match self {
            Self::Runs => "runs",
            Self::Partly => "runs in part",
            Self::Hardware => "hardware only",
            Self::Stops => "does not run",
        }
    }
}

/// Why not, and in which line.
pub(super) struct Reason {
    pub(super) path: PathBuf,
    pub(super) line: usize,
    pub(super) sentence: String,
}

/// A program with what keeps it from running.
pub(super) struct Program {
    pub(super) path: PathBuf,
    names_simulator: bool,
    /// Whether some of its tests run whatever the reasons are.
    spares_some: bool,
    pub(super) reasons: Vec<Reason>,
    pub(super) vintage: Vintage,
}

impl Program {
    pub(super) fn verdict(&self) -> Verdict {
        match (self.reasons.is_empty(), self.names_simulator) {
            (true, true) => Verdict::Runs,
            (false, true) if self.spares_some => Verdict::Partly,
            (true, false) => Verdict::Hardware,
            (false, _) => Verdict::Stops,
        }
    }
}

/// The programs of a folder, or of one file.
pub(super) fn programs(path: &Path) -> Result<Vec<Program>, Failure> {
    let mut files = Vec::new();
    collect(path, &mut files)?;
    files.sort();
    let mut programs = Vec::new();
    let mut claimed = BTreeSet::new();
    // Tests first: what they import from files next to them is no program of its own.
    let mut python: Vec<&PathBuf> =
        files.iter().filter(|file| is(file, &["py"]) && !is_beside_programs(file)).collect();
    python.sort_by_key(|file| !is_named(file, |name| name.starts_with("test_")));
    for file in python {
        let text = read(file)?;
        let is_folder = is_named(file, |name| name == "golden.py")
            && file.with_file_name("kernels").join("kernel_config.py").is_file();
        let is_program = is_folder || PROGRAM.iter().any(|word| text.contains(word));
        if is_program && !claimed.contains(file) {
            let mut program = python_program(file, &text, &files, &mut claimed)?;
            if is_folder {
                program.path = file.parent().unwrap_or(file).to_path_buf();
            }
            programs.push(program);
        }
    }
    programs.sort_by(|one, other| one.path.cmp(&other.path));
    let mut of_sources: BTreeMap<PathBuf, (Vec<Reason>, Vintage)> = BTreeMap::new();
    for file in files.iter().filter(|file| is_source(file) && !claimed.contains(*file)) {
        let text = read(file)?;
        if text.contains("pto_orchestration_api.h") || text.contains("kernel_entry") {
            let (found, vintage) = of_sources.entry(program_of(file)).or_default();
            found.extend(reasons(file, &text));
            vintage.take(&text);
        }
    }
    let program = |(path, (reasons, vintage))| Program {
        path,
        names_simulator: true,
        spares_some: false,
        reasons,
        vintage,
    };
    programs.extend(of_sources.into_iter().map(program));
    if programs.is_empty() {
        return Err(Failure::usage(format!(
            "{} has no programs of the field's runtime: no scene tests, no scripts with simpler.worker, no orchestrations",
            path.display()
        )));
    }
    Ok(programs)
}

fn python_program(
    file: &Path,
    text: &str,
    files: &[PathBuf],
    claimed: &mut BTreeSet<PathBuf>,
) -> Result<Program, Failure> {
    let mut found = reasons(file, text);
    let mut vintage = Vintage::default();
    vintage.take(text);
    let lines: Vec<usize> = found.iter().map(|reason| reason.line).collect();
    let mut spares_some = reach::spares_some(text, &lines);
    for part in imports(text).iter().filter_map(|import| import.module.strip_prefix('.')) {
        let part = file.with_file_name(format!("{part}.py"));
        if files.contains(&part) {
            let text = read(&part)?;
            vintage.take(&text);
            let of_part = reasons(&part, &text);
            spares_some &= of_part.is_empty();
            found.extend(of_part);
            claimed.insert(part);
        }
    }
    let kernels = file.with_file_name("kernels");
    for source in files.iter().filter(|source| is_source(source) && source.starts_with(&kernels)) {
        let text = read(source)?;
        vintage.take(&text);
        let of_source = reasons(source, &text);
        spares_some &= of_source.is_empty();
        found.extend(of_source);
        claimed.insert(source.clone());
    }
    let names_platforms = PLATFORMS.iter().any(|word| text.contains(word));
    let names_simulator = SIMULATORS.iter().any(|name| text.contains(name)) || !names_platforms;
    let path = file.to_path_buf();
    Ok(Program { path, names_simulator, spares_some, reasons: found, vintage })
}

/// The program that a source in C++ is of: the folder that has its folder `kernels`, or the source.
fn program_of(source: &Path) -> PathBuf {
    let mut folders = source.ancestors().skip(1);
    let kernels = folders.find(|folder| folder.file_name().is_some_and(|name| name == "kernels"));
    kernels.and_then(Path::parent).unwrap_or(source).to_path_buf()
}

/// What pytest and the programs in its folder import.
fn is_beside_programs(path: &Path) -> bool {
    is_named(path, |name| name == "conftest.py" || name.starts_with('_'))
}

fn is_named(path: &Path, is_it: impl Fn(&str) -> bool) -> bool {
    path.file_name().is_some_and(|name| is_it(&name.to_string_lossy()))
}

fn collect(path: &Path, files: &mut Vec<PathBuf>) -> Result<(), Failure> {
    let unreadable =
        |error| Failure::internal(format!("{} cannot be read: {error}", path.display()));
    if !path.is_dir() {
        fs::metadata(path).map_err(unreadable)?;
        files.push(path.to_path_buf());
        return Ok(());
    }
    for entry in fs::read_dir(path).map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        let is_skipped = SKIPPED.iter().any(|name| entry.file_name() == *name);
        // A link to a folder may lead back up, and one to nothing is no file.
        let path = entry.path();
        let is_link = entry.file_type().is_ok_and(|kind| kind.is_symlink());
        if !is_skipped && (!is_link || path.is_file()) {
            collect(&path, files)?;
        }
    }
    Ok(())
}

fn read(path: &Path) -> Result<String, Failure> {
    let bytes = fs::read(path).map_err(|error| {
        Failure::internal(format!("{} cannot be read: {error}", path.display()))
    })?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn is(path: &Path, extensions: &[&str]) -> bool {
    path.extension().is_some_and(|one| extensions.iter().any(|extension| one == *extension))
}

fn is_source(path: &Path) -> bool {
    is(path, &["cpp", "cc", "cxx", "h", "hpp"])
}

/// What in a file keeps its program from running.
fn reasons(path: &Path, text: &str) -> Vec<Reason> {
    let is_python = is(path, &["py"]);
    let lines = text.lines().enumerate();
    let sentence = |line: &str| {
        let broken = rules::broken(line, rules::of(is_python)).map(|rule| rule.sentence.to_owned());
        broken.or_else(|| if is_python { None } else { missing_header(path, line) })
    };
    let of_lines = lines.filter_map(|(at, line)| Some((at + 1, sentence(line)?)));
    let mut found: BTreeMap<usize, String> = of_lines.collect();
    if is_python {
        for (line, sentence) in names::missing(text) {
            found.entry(line).or_insert(sentence);
        }
    }
    let reason = |(line, sentence)| Reason { path: path.to_path_buf(), line, sentence };
    found.into_iter().map(reason).collect()
}

/// A header that is neither ours, nor PTO-ISA's, nor next to the source.
fn missing_header(path: &Path, line: &str) -> Option<String> {
    let name = rules::quoted_include(line)?;
    let is_known = name.starts_with("pto/") || headers().any(|header| header == name);
    let mut folders = path.ancestors().skip(1).take(4);
    if is_known || folders.any(|folder| folder.join(name).is_file()) {
        return None;
    }
    Some(format!(
        "There is no header {name:?}: it is neither one of ours, nor PTO-ISA's, nor next to the source."
    ))
}
