//! What an object defines, and what it needs that an image has not.

use std::path::Path;

use super::refused::Refused;
use super::tool::{self, Tool};

/// A function of a source, and what the blob calls it.
#[derive(Clone, Copy, Debug)]
pub struct Named<'a> {
    /// `extern "C"`.
    pub function: &'a str,
    /// Different for each kernel.
    pub symbol: &'a str,
}

/// What all images have: what compilers call by themselves.
const CALLED_BY_COMPILERS: &[&str] = &[
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

/// What images have besides that: the interface of builders in C.
const PROVIDED: &[&str] = &[
    "aicpu_runtime_add_task",
    "aicpu_runtime_add_successor_conditional",
    "aicpu_runtime_publish_task",
    "pto_read",
    "pto_submit_range",
    "pto_stream_submit",
    "pto_stream_submit_range",
    "pto_stream_add",
    "pto_stream_open_scope",
    "pto_stream_close_scope",
    "pto_stream_alloc",
    "pto_stream_get",
    "pto_stream_set",
    "pto_stream_begin_recording",
    "pto_stream_end_recording",
    "pto_stream_replay",
];

/// What the blob with kernels of the field has besides it.
const PROVIDED_TO_KERNELS: &[&str] = &[
    "pto_sim_get_subblock_id",
    "pto_sim_get_pipe_shared_state",
    "pto_field_device_ticks",
    "pto_field_device_raise",
    "pto_field_device_wait",
    "sched_yield",
    "expf",
    "exp",
    "logf",
    "log",
    "tanhf",
    "tanh",
    "sinf",
    "sin",
    "cosf",
    "cos",
];

/// Sections with variables.
const OF_VARIABLES: &[&str] = &[".data", ".bss", ".tdata", ".tbss", ".init_array"];

/// The object of `name` has these kernels, and needs nothing that a device has not.
pub(crate) fn kernels(object: &Path, name: &str, kernels: &[Named<'_>]) -> Result<(), Refused> {
    let say = |said: String| Refused(format!("{name}: {said}"));
    let sections = tool::run(Tool::Objdump.command()?.arg("-h").arg(object)).map_err(say)?;
    let symbols = tool::run(Tool::Nm.command()?.arg(object)).map_err(say)?;
    for Named { function, .. } in kernels {
        // A table may name a function that only its file knows.
        defines(&symbols, (name, "TtW"), function, "void", "int64_t *args")?;
    }
    let is_there = |part: &&&str| sections_with_bytes(&sections).any(|one| one.starts_with(**part));
    if let Some(section) = OF_VARIABLES.iter().find(is_there) {
        let readable = tool::run(Tool::Nm.command()?.arg("-C").arg(object)).map_err(say)?;
        let variable = |line: &'_ str| {
            let (_, named) = line.split_once(' ')?;
            let (kind, name) = named.split_once(' ')?;
            ["d", "D", "b", "B"].contains(&kind).then(|| name.to_owned())
        };
        let variables: Vec<_> = readable.lines().filter_map(variable).collect();
        return Err(Refused(format!(
            "{name} has variables ({section}: {}): kernels on a device have their arguments and their stack alone. Make constants of them \
             without pointers in them, or take the memory as a tensor",
            if variables.is_empty() { "without a name".to_owned() } else { variables.join(", ") }
        )));
    }
    let readable = tool::run(Tool::Nm.command()?.args(["-u", "-C"]).arg(object)).map_err(say)?;
    let needs = Needs {
        provided: PROVIDED_TO_KERNELS,
        what: "what a device has not",
        remedy: "Kernels on it have the functions of our headers, memcpy and its neighbours, and of <math.h> exp, log, tanh, sin, cos and \
                 what is an instruction",
    };
    needs.nothing(&symbols, &readable, name)
}

/// The object of `name` has the function, and needs nothing that an image has not.
pub(crate) fn object(object: &Path, name: &str, function: &str) -> Result<(), Refused> {
    let say = |said: String| Refused(format!("{name}: {said}"));
    let sections = tool::run(Tool::Objdump.command()?.arg("-h").arg(object)).map_err(say)?;
    let symbols = tool::run(Tool::Nm.command()?.arg(object)).map_err(say)?;
    let readable = tool::run(Tool::Nm.command()?.args(["-u", "-C"]).arg(object)).map_err(say)?;
    defines(&symbols, (name, "TW"), function, "int", "Runtime *")?;
    constructs_nothing(&sections, name)?;
    let needs = Needs {
        provided: PROVIDED,
        what: "what a firmware has not, the C++ library or the C library",
        remedy: "Use arrays instead of containers, and leave files, output and memory to the orchestration",
    };
    needs.nothing(&symbols, &readable, name)
}

/// The lines of `nm`: an address or none, a kind, a name.
fn of_kind<'a>(symbols: &'a str, kinds: &'a str) -> impl Iterator<Item = &'a str> {
    symbols.lines().filter_map(move |line| {
        let mut words = line.split_whitespace().rev();
        let (name, kind) = (words.next()?, words.next()?);
        (kind.len() == 1 && kinds.contains(kind)).then_some(name)
    })
}

fn defines(
    symbols: &str,
    (name, kinds): (&str, &str),
    function: &str,
    returns: &str,
    takes: &str,
) -> Result<(), Refused> {
    if of_kind(symbols, kinds).any(|symbol| symbol == function) {
        return Ok(());
    }
    let there: Vec<_> = of_kind(symbols, "T").filter(|symbol| !symbol.starts_with("_Z")).collect();
    let there = if there.is_empty() { "none".to_owned() } else { there.join(", ") };
    Err(Refused(format!(
        "{name} has no function `{function}` (extern \"C\", {returns} {function}({takes})); there are: {there}"
    )))
}

/// The sections that `objdump -h` lists and that have contents.
fn sections_with_bytes(listed: &str) -> impl Iterator<Item = &str> {
    listed.lines().filter_map(|line| {
        let mut words = line.split_whitespace().skip(1);
        let (section, size) = (words.next()?, words.next()?);
        u64::from_str_radix(size, 16).is_ok_and(|size| size > 0).then_some(section)
    })
}

fn constructs_nothing(sections: &str, name: &str) -> Result<(), Refused> {
    for section in sections_with_bytes(sections) {
        let is = |prefix: &str| section.starts_with(prefix);
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

/// What there is, and what is said of an object that needs more.
struct Needs {
    provided: &'static [&'static str],
    what: &'static str,
    remedy: &'static str,
}

impl Needs {
    /// `symbols` and `readable`: what `nm` says of the object, and of what it needs in the words of its source.
    fn nothing(&self, symbols: &str, readable: &str, name: &str) -> Result<(), Refused> {
        let Self { provided, what, remedy } = self;
        let is_missing =
            |symbol: &str| !provided.contains(&symbol) && !CALLED_BY_COMPILERS.contains(&symbol);
        let missing = of_kind(symbols, "Uvw").filter(|symbol| is_missing(symbol));
        if missing.count() == 0 {
            return Ok(());
        }
        let names = readable.lines().map(str::trim);
        let names: Vec<_> = names
            .filter_map(|line| line.split_once(' ').map(|(_, name)| name.trim()))
            .filter(|name| is_missing(name))
            .collect();
        Err(Refused(format!("{name} needs {what}: {}. {remedy}", names.join("; "))))
    }
}
