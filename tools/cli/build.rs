//! Says which commit the sources are of. A release build asks git each time that the commit has changed; a development
//! build would be compiled again with every commit, and says what it is instead.

use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-env=PTO_COMMIT={}", commit());
    println!("cargo::rustc-env=PTO_PROFILE={}", profile());
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
