//! Debian's compiler in a cache of ours: packages fetched with apt, unpacked, nothing installed.
//!
//! ```text
//! <cache>/pto/debian-rust/<version>/root/...   the packages, unpacked
//!                                  /rustc      runs the compiler in there
//! ```
//! A version is unpacked next to its folder and renamed, so that it is there whole or not at all.

use std::collections::BTreeSet;
use std::env;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::process;

/// What is asked for; the versioned packages that they need are looked up.
const PACKAGES: [&str; 3] = ["rustc-web", "libstd-rust-web-dev", "rust-web-src"];
/// Packages among their dependencies that are not part of every system.
const OF_THE_COMPILER: [&str; 2] = ["libstd-rust", "libllvm"];
const LOOK_UP_LIMIT: Duration = Duration::from_secs(60);
const UPDATE_LIMIT: Duration = Duration::from_secs(120);
const FETCH_LIMIT: Duration = Duration::from_secs(600);
const UNPACK_LIMIT: Duration = Duration::from_secs(300);

/// The compiler; fetched where the cache does not have it. Why not, in words.
pub(crate) fn provide(say: &dyn Fn(&str)) -> Result<PathBuf, String> {
    let cache = cache()?;
    let version = version(say)?;
    let installed = cache.join(&version);
    let compiler = installed.join("rustc");
    if compiler.is_file() {
        say(&format!("Debian's compiler {version} from '{}'", installed.display()));
        return Ok(compiler);
    }
    let io = |path: &Path| {
        let path = path.display().to_string();
        move |error: std::io::Error| format!("'{path}': {error}")
    };
    let temporary = cache.join(format!("{version}.{}.new", std::process::id()));
    fs::create_dir_all(&temporary).map_err(io(&temporary))?;
    let made = fill(&temporary, &installed, say);
    let result = made.and_then(|()| fs::rename(&temporary, &installed).map_err(io(&installed)));
    if temporary.exists() {
        // It costs room in a cache, no more.
        let _ = fs::remove_dir_all(&temporary);
    }
    // Another process may have been faster.
    if compiler.is_file() { Ok(compiler) } else { Err(result.err().unwrap_or_default()) }
}

fn cache() -> Result<PathBuf, String> {
    let set = |name: &str| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let cache = set("XDG_CACHE_HOME").or_else(|| Some(set("HOME")?.join(".cache")));
    let cache = cache.ok_or("neither XDG_CACHE_HOME nor HOME is set")?;
    Ok(cache.join("pto/debian-rust"))
}

/// The version that apt would take.
fn version(say: &dyn Fn(&str)) -> Result<String, String> {
    let look_up = || -> Result<String, String> {
        let mut command = Command::new("apt-cache");
        let text = process::output(command.args(["policy", PACKAGES[0]]), LOOK_UP_LIMIT)?;
        candidate(&text).ok_or_else(|| format!("apt knows no package {}", PACKAGES[0]))
    };
    look_up().or_else(|_| {
        say("apt-get update");
        process::output(Command::new("apt-get").args(["update", "-q"]), UPDATE_LIMIT)?;
        look_up()
    })
}

fn candidate(policy: &str) -> Option<String> {
    let version = policy.lines().find_map(|line| line.trim().strip_prefix("Candidate: "))?;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || ".+~-".contains(c);
    (version != "(none)").then(|| version.replace(|c| !is_plain(c), "_"))
}

/// The packages and what they need of each other, by name.
fn names() -> Result<BTreeSet<String>, String> {
    let mut names = BTreeSet::new();
    let mut open: Vec<String> = PACKAGES.map(str::to_owned).to_vec();
    while let Some(name) = open.pop() {
        if !names.insert(name.clone()) {
            continue;
        }
        let mut command = Command::new("apt-cache");
        let text = process::output(command.args(["depends", &name]), LOOK_UP_LIMIT)?;
        open.extend(needed(&text));
    }
    Ok(names)
}

fn needed(depends: &str) -> Vec<String> {
    let names = depends.lines().filter_map(|line| line.trim().strip_prefix("Depends: "));
    let is_ours = |name: &&str| OF_THE_COMPILER.iter().any(|start| name.starts_with(start));
    names.filter(is_ours).map(str::to_owned).collect()
}

/// Fetches and unpacks the packages into `folder`, for use at `installed`.
fn fill(folder: &Path, installed: &Path, say: &dyn Fn(&str)) -> Result<(), String> {
    let names = names()?;
    let list: Vec<_> = names.iter().map(String::as_str).collect();
    say(&format!(
        "apt-get download {} (about 140 MB, kept in '{}')",
        list.join(" "),
        installed.display()
    ));
    let mut download = Command::new("apt-get");
    download.args(["download", "-q"]).args(&names).current_dir(folder);
    process::output(&mut download, FETCH_LIMIT)?;
    let root = folder.join("root");
    let entries = fs::read_dir(folder).map_err(|error| error.to_string())?;
    let files: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    for file in files.iter().filter(|file| file.extension().is_some_and(|end| end == "deb")) {
        say(&format!("unpacking {}", file.file_name().unwrap_or_default().to_string_lossy()));
        process::output(Command::new("dpkg").arg("-x").arg(file).arg(&root), UNPACK_LIMIT)?;
        fs::remove_file(file).map_err(|error| error.to_string())?;
    }
    write_wrapper(folder, installed).map_err(|error| error.to_string())
}

/// A program that runs the compiler at `installed` with its own libraries.
fn write_wrapper(folder: &Path, installed: &Path) -> std::io::Result<()> {
    let root = installed.join("root");
    let root = root.display();
    let text = format!(
        "#!/bin/sh\nLD_LIBRARY_PATH=\"{root}/usr/lib/x86_64-linux-gnu:{root}/usr/lib${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}}\" \\\n\
         exec \"{root}/usr/bin/rustc\" \"$@\"\n"
    );
    let path = folder.join("rustc");
    fs::write(&path, text)?;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755))
}

#[cfg(test)]
mod tests {
    use super::{candidate, needed};

    #[test]
    fn versions_and_versioned_names_are_looked_up() {
        let policy = "rustc-web:\n  Installed: (none)\n  Candidate: 1:1.96.0+dfsg1-1~deb12u2\n";
        assert_eq!(candidate(policy).as_deref(), Some("1_1.96.0+dfsg1-1~deb12u2"));
        assert_eq!(candidate("x:\n  Candidate: (none)\n"), None);
        assert_eq!(candidate(""), None);
        let depends = "libstd-rust-web-dev\n  Depends: libstd-rust-web-1.96\n  Depends: libc6\n  Conflicts: libstd-x\n";
        assert_eq!(needed(depends), ["libstd-rust-web-1.96"]);
    }
}
