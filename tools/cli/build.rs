//! Says which commit the sources are of. A release build asks git each time that the commit has changed; a development
//! build would be compiled again with every commit, and says what it is instead. `pto compat simpler` gets the names of our Python packages.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

#[path = "src/migrate/python.rs"]
#[expect(dead_code, reason = "of our own packages only the names are asked for")]
mod python;

/// Packages that programs of the field import.
const PACKAGES: [&str; 3] = ["_task_interface", "simpler", "simpler_setup"];

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-env=PTO_COMMIT={}", commit());
    println!("cargo::rustc-env=PTO_PROFILE={}", profile());
    let out = std::env::var_os("OUT_DIR").map(PathBuf::from).expect("cargo names a folder");
    fs::write(out.join("python_modules.rs"), modules()).expect("the folder takes a file");
}

/// The modules of our packages with their names, sorted, as an expression.
fn modules() -> String {
    let mut found: Vec<(String, Vec<String>)> = Vec::new();
    for package in PACKAGES {
        let folder = Path::new("../../bindings/python").join(package);
        println!("cargo::rerun-if-changed={}", folder.display());
        of_package(&folder, package, &mut found);
    }
    found.sort();
    format!("&{found:?}").replace("\", [", "\", &[")
}

/// The modules of a folder, which is called `module`.
fn of_package(folder: &Path, module: &str, found: &mut Vec<(String, Vec<String>)>) {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).expect("the packages are in the sources").flatten() {
        let path = entry.path();
        let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        if path.join("__init__.py").is_file() {
            of_package(&path, &format!("{module}.{stem}"), found);
        } else if path.extension().is_some_and(|extension| extension == "py") {
            let text = fs::read_to_string(&path).expect("a module is text");
            if stem == "__init__" {
                names = defined(&text);
            } else {
                found.push((format!("{module}.{stem}"), defined(&text)));
            }
        }
    }
    found.push((module.to_owned(), names));
}

/// What a module defines: functions, classes, variables, and what it imports; of blocks, only those of its conditions and attempts.
fn defined(text: &str) -> Vec<String> {
    let mut names: BTreeSet<String> = BTreeSet::new();
    for import in python::imports(text) {
        let first = import.module.split('.').next().unwrap_or_default().to_owned();
        names.extend([first].into_iter().filter(|_| import.names.is_empty()));
        names.extend(import.names.into_iter().map(|(_, called)| called));
    }
    let mut is_block = false;
    for line in text.lines() {
        if line.starts_with(|letter: char| !letter.is_whitespace()) {
            is_block =
                ["if ", "try:", "else:", "except", "elif "].iter().any(|it| line.starts_with(it));
        } else if !is_block {
            continue;
        }
        names.extend(name_of(line.trim()));
    }
    names.into_iter().collect()
}

/// What a line defines.
fn name_of(line: &str) -> Option<String> {
    let head = line.strip_prefix("async ").unwrap_or(line);
    let head = head.strip_prefix("def ").or_else(|| head.strip_prefix("class ")).unwrap_or(head);
    let end = head.find(|letter: char| !letter.is_alphanumeric() && letter != '_')?;
    let (name, rest) = head.split_at(end);
    let is_definition = head != line || rest.starts_with(':') || rest.trim_start().starts_with('=');
    (is_definition && !name.is_empty()).then(|| name.to_owned())
}

/// The profile's name, from the folder that cargo gives: `PROFILE` says `release` for every profile that inherits it.
fn profile() -> String {
    let folder = std::env::var_os("OUT_DIR").map(std::path::PathBuf::from).unwrap_or_default();
    let name = folder.ancestors().nth(3).and_then(Path::file_name);
    name.map_or_else(|| "unknown".to_owned(), |name| name.to_string_lossy().into_owned())
}

fn commit() -> String {
    if std::env::var("PROFILE").as_deref() != Ok("release") {
        return "development build".to_owned();
    }
    for file in ["HEAD", "logs/HEAD"] {
        let path = git(&["rev-parse", "--git-path", file]).unwrap_or_default();
        if Path::new(&path).exists() {
            println!("cargo::rerun-if-changed={path}");
        }
    }
    match git(&["rev-parse", "--short=12", "HEAD"]) {
        Some(commit) => format!("commit {commit}"),
        None => "commit unknown: built without git".to_owned(),
    }
}

fn git(args: &[&str]) -> Option<String> {
    let output =
        Command::new("git").args(args).output().ok().filter(|done| done.status.success())?;
    Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
