//! What an object defines, and what it needs that an image has not.

use std::path::Path;

use crate::refused::Refused;
use crate::tool::{self, Tool};

/// What images have: the interface of builders in C, and what compilers call by themselves.
const PROVIDED: &[&str] = &[
    "aicpu_runtime_add_task",
    "aicpu_runtime_add_successor_conditional",
    "aicpu_runtime_publish_task",
    "pto_stream_submit",
    "pto_stream_add",
    "pto_stream_open_scope",
    "pto_stream_close_scope",
    "pto_stream_alloc",
    "pto_stream_get",
    "pto_stream_set",
    "pto_stream_begin_recording",
    "pto_stream_end_recording",
    "pto_stream_replay",
    "memcpy",
    "memmove",
    "memset",
    "memcmp",
    "bcmp",
    "__divti3",
    "__modti3",
    "__udivti3",
    "__umodti3",
];

/// The object of `name` has the function, and needs nothing that an image has not.
pub(crate) fn object(object: &Path, name: &str, function: &str) -> Result<(), Refused> {
    let say = |said: String| Refused(format!("{name}: {said}"));
    let sections = tool::run(Tool::Objdump.command()?.arg("-h").arg(object)).map_err(say)?;
    let symbols = tool::run(Tool::Nm.command()?.arg(object)).map_err(say)?;
    let readable = tool::run(Tool::Nm.command()?.args(["-u", "-C"]).arg(object)).map_err(say)?;
    defines(&symbols, name, function)?;
    constructs_nothing(&sections, name)?;
    needs_nothing(&symbols, &readable, name)
}

/// The lines of `nm`: an address or none, a kind, a name.
fn of_kind<'a>(symbols: &'a str, kinds: &'a str) -> impl Iterator<Item = &'a str> {
    symbols.lines().filter_map(move |line| {
        let mut words = line.split_whitespace().rev();
        let (name, kind) = (words.next()?, words.next()?);
        (kind.len() == 1 && kinds.contains(kind)).then_some(name)
    })
}

fn defines(symbols: &str, name: &str, function: &str) -> Result<(), Refused> {
    if of_kind(symbols, "TW").any(|symbol| symbol == function) {
        return Ok(());
    }
    let there: Vec<_> = of_kind(symbols, "T").filter(|symbol| !symbol.starts_with("_Z")).collect();
    let there = if there.is_empty() { "none".to_owned() } else { there.join(", ") };
    Err(Refused(format!(
        "{name} has no function `{function}` (extern \"C\", int {function}(Runtime *)); there are: {there}"
    )))
}

fn constructs_nothing(sections: &str, name: &str) -> Result<(), Refused> {
    for line in sections.lines() {
        let mut words = line.split_whitespace().skip(1);
        let (Some(section), Some(size)) = (words.next(), words.next()) else { continue };
        let has_bytes = u64::from_str_radix(size, 16).is_ok_and(|size| size > 0);
        let is = |prefix: &str| section.starts_with(prefix) && has_bytes;
        if is(".init_array") || is(".ctors") {
            return Err(Refused(format!(
                "{name} has variables with constructors (or includes <iostream>): a firmware runs none before the builder"
            )));
        }
        if is(".tdata") || is(".tbss") {
            return Err(Refused(format!("{name} has thread-local variables: a firmware has none")));
        }
    }
    Ok(())
}

fn needs_nothing(symbols: &str, readable: &str, name: &str) -> Result<(), Refused> {
    let missing = of_kind(symbols, "Uvw").filter(|symbol| !PROVIDED.contains(symbol));
    if missing.count() == 0 {
        return Ok(());
    }
    let names = readable.lines().map(str::trim);
    let names: Vec<_> = names
        .filter_map(|line| line.split_once(' ').map(|(_, name)| name.trim()))
        .filter(|name| !PROVIDED.contains(name))
        .collect();
    Err(Refused(format!(
        "{name} needs what a firmware has not, the C++ library or the C library: {}. Use arrays instead of \
         containers, and leave files, output and memory to the orchestration",
        names.join("; ")
    )))
}
