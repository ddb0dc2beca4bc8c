//! One object of one source.

use std::path::Path;
use std::process::Command;

use super::refused::Refused;
use super::tool::{self, Tool};

/// Flags for every source: nothing unwinds, nothing of a library is assumed.
pub(crate) const FLAGS: &[&str] = &[
    "-O2",
    "-g",
    "-Wall",
    "-Wextra",
    "-ffunction-sections",
    "-fdata-sections",
    "-fno-stack-protector",
    "-fno-asynchronous-unwind-tables",
    "-fno-unwind-tables",
    "-mno-outline-atomics",
    "-mstrict-align",
];

/// Compiles a source with a command that has all flags, and makes one object of it that is there as a whole.
pub(crate) fn whole_object(
    command: &mut Command,
    path: &Path,
    [compiled, whole]: [&Path; 2],
) -> Result<(), Refused> {
    let name = path.display();
    let said = tool::run(command.arg("-c").arg(path).arg("-o").arg(compiled));
    let said =
        said.map_err(|said| Refused(format!("{name} does not compile:\n{said}{}", hint(&said))))?;
    said.lines().for_each(|line| println!("cargo::warning={line}"));
    // Functions of headers stand in groups, of which a linker keeps one for each name: those of another source.
    let mut command = Tool::Ld.command()?;
    command.args(["-r", "--force-group-allocation", "-o"]).arg(whole).arg(compiled);
    tool::run(&mut command).map(drop).map_err(|said| Refused(format!("{name}: {said}")))
}

/// What a compiler's message means for an image.
fn hint(said: &str) -> &'static str {
    if said.contains("-fexceptions") || said.contains("-fno-exceptions") {
        "\nA firmware has no exceptions: return another value than 0 instead."
    } else if said.contains("-fno-rtti") {
        "\nA firmware has no run-time type information."
    } else {
        ""
    }
}
