//! The programs that the suite needs beside Rust: emulators and the cross compiler, from Debian's packages.

use std::process::Command;
use std::time::Duration;

use crate::target::wait;

/// How long one call of apt-get may take.
const INSTALL_LIMIT: Duration = Duration::from_secs(600);

/// A program, the package that has it, and what it is for.
struct Tool {
    program: &'static str,
    package: &'static str,
    purpose: &'static str,
}

const TOOLS: &[Tool] = &[
    Tool {
        program: "qemu-system-aarch64",
        package: "qemu-system-arm",
        purpose: "boots the bare-metal image",
    },
    Tool { program: "qemu-aarch64", package: "qemu-user", purpose: "loads the cann image" },
    Tool {
        program: "aarch64-linux-gnu-gcc",
        package: "gcc-aarch64-linux-gnu libc6-dev-arm64-cross",
        purpose: "links the cann image",
    },
    Tool { program: "cc", package: "gcc libc6-dev", purpose: "compiles C programs" },
    Tool { program: "c++", package: "g++", purpose: "compiles C++ programs" },
];

/// Makes sure that every tool is there.
pub(crate) fn provide() -> Result<(), String> {
    let missing: Vec<&Tool> = TOOLS.iter().filter(|tool| !is_there(tool.program)).collect();
    if missing.is_empty() {
        println!("all of them are installed");
        return Ok(());
    }
    let packages: Vec<&str> =
        missing.iter().flat_map(|tool| tool.package.split_whitespace()).collect();
    for tool in &missing {
        println!("{} is missing ({}): package {}", tool.program, tool.purpose, tool.package);
    }
    let by_hand = format!("apt-get install {}", packages.join(" "));
    println!("{by_hand}");
    install(&packages).map_err(|why| {
        format!(
            "the packages cannot be had ({why}); what needs them was not tested: run `{by_hand}`"
        )
    })?;
    match missing.iter().find(|tool| !is_there(tool.program)) {
        None => Ok(()),
        Some(tool) => Err(format!("{} has no {}; run `{by_hand}`", tool.package, tool.program)),
    }
}

fn install(packages: &[&str]) -> Result<(), String> {
    apt_get(&["update", "-qq"])?;
    apt_get(&[&["install", "-y", "-qq", "--no-install-recommends"], packages].concat())
}

fn apt_get(arguments: &[&str]) -> Result<(), String> {
    let mut child = Command::new("apt-get")
        .args(arguments)
        .env("DEBIAN_FRONTEND", "noninteractive")
        .spawn()
        .map_err(|error| format!("apt-get cannot be started: {error}"))?;
    let status = wait(&mut child, INSTALL_LIMIT)?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("apt-get {}: {status}", arguments.join(" ")))
    }
}

/// Whether a program stands in the PATH.
fn is_there(program: &str) -> bool {
    let Some(path) = std::env::var_os("PATH") else { return false };
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

#[cfg(test)]
mod tests {
    use super::{TOOLS, is_there};

    #[test]
    fn a_program_is_found_in_the_path() {
        assert!(is_there("sh"));
        assert!(!is_there("pto-no-such-program"));
    }

    #[test]
    fn every_tool_says_where_it_is_from_and_what_it_is_for() {
        assert!(TOOLS.iter().all(|tool| !tool.package.is_empty() && !tool.purpose.is_empty()));
    }
}
