//! The cargo that has started this program (`cargo +toolchain xtask` stays with its toolchain), and how the suite builds.

use std::path::Path;
use std::process::Command;

/// What holds for every build of the suite, as variables of cargo. Nothing is built a second time in a run, so that what a later build could
/// reuse costs time and room; and a crate in one piece takes a third less time of processors than in sixteen (docs/decisions/suite.md). A developer who edits and
/// builds again and again is better served by cargo's defaults.
const BUILT_ONCE: [(&str, &str); 3] = [
    ("CARGO_INCREMENTAL", "0"),
    ("CARGO_PROFILE_DEV_CODEGEN_UNITS", "1"),
    ("CARGO_PROFILE_TEST_CODEGEN_UNITS", "1"),
];

/// That cargo, in a folder.
pub(crate) fn cargo(folder: &Path) -> Command {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(program);
    command.current_dir(folder);
    build_once(&mut command);
    command
}

/// Lets a program that starts cargo build as the suite does, where the environment says nothing else.
pub(crate) fn build_once(command: &mut Command) {
    for (variable, value) in BUILT_ONCE {
        if std::env::var_os(variable).is_none() {
            command.env(variable, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::ffi::OsStr;
    use std::path::Path;

    use super::{BUILT_ONCE, cargo};

    #[test]
    fn every_build_of_the_suite_has_the_same_settings() {
        let command = cargo(Path::new("."));
        let set: HashMap<_, _> = command.get_envs().collect();
        for (variable, value) in BUILT_ONCE {
            let is_inherited = std::env::var_os(variable).is_some();
            let found = set.get(OsStr::new(variable)).copied().flatten();
            assert_eq!(found, (!is_inherited).then_some(OsStr::new(value)), "{variable}");
        }
    }
}
