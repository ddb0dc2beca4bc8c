//! What no core can run, looked for before the compiler is called: functions that call themselves, calls by a pointer, more stack than a core has, variables.
//!
//! The vendor's compiler says nothing of it, and a core that has run out of its stack writes over what is next to it. So this machine's compiler writes the
//! graph of calls with the stack of each function (`-fcallgraph-info` of GCC). It gets the same source with the header that replaces PTO-ISA, whose tiles are
//! not on the stack then, and inlines nothing that may be a call: a core needs no more than that.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use pto_host::abi::CoreKind;
use pto_host::abi::numbers::Grouped;

/// Bytes of stack that a core has, of which the worker takes some before it calls a kernel.
const STACK: u64 = 32 << 10;
const OF_WORKER: u64 = 4 << 10;
/// Bytes that a kernel has.
pub(super) const OF_KERNEL: u64 = STACK - OF_WORKER;
/// What the graph calls a call by a pointer.
const BY_POINTER: &str = "__indirect_call";

/// A source to look at.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limited<'a> {
    /// What the report calls it.
    pub(super) name: &'a str,
    pub(super) path: &'a Path,
    pub(super) kind: CoreKind,
    /// The function that it is entered by.
    pub(super) entry: &'a str,
    /// Bytes of stack that it may take.
    pub(super) stack: u64,
    /// Where its headers are.
    pub(super) folders: &'a [PathBuf],
}

/// Why a source is not known to be within the limits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Finding {
    /// It is not: what, where, and what to do.
    Refused(String),
    /// This machine's compiler does not take it: why.
    Unknown(String),
}

/// Looks at a source. Gives the bytes of stack that it takes at most.
pub(super) fn check(source: &Limited<'_>) -> Result<u64, Finding> {
    let unknown = |why: String| Finding::Unknown(why);
    let folder = tempfile::tempdir().map_err(|error| unknown(error.to_string()))?;
    let object = folder.path().join("checked.o");
    let mut compiler = Command::new("c++");
    compiler.args(["-x", "c++", "-std=c++17", "-O1", "-w", "-ffreestanding", "-fno-inline"]);
    compiler.args(["-fno-optimize-sibling-calls", "-fno-exceptions", "-fno-rtti"]);
    compiler.args(["-fno-stack-protector", "-fcallgraph-info=su"]);
    compiler.args(["-DPTO_ON_THIS_MACHINE", "-DPTO_CHECK_LIMITS"]);
    compiler.arg(if source.kind == CoreKind::AIC { "-D__DAV_CUBE__" } else { "-D__DAV_VEC__" });
    for folder in source.folders {
        compiler.arg("-I").arg(folder);
    }
    said(compiler.arg("-c").arg("-o").arg(&object).arg(source.path)).map_err(unknown)?;
    let graph = std::fs::read_to_string(object.with_extension("ci"));
    let graph = Graph::read(&graph.map_err(|error| unknown(error.to_string()))?);
    let symbols = said(Command::new("nm").arg("-C").arg(&object)).map_err(unknown)?;
    let refused = |what: String| Finding::Refused(format!("kernel `{}`: {what}", source.name));
    if let Some(variable) = variable(&symbols) {
        return Err(refused(format!(
            "`{variable}` is a variable, and only .text goes to GM. Make a constant of it, or take the memory as an argument"
        )));
    }
    let deepest = graph.deepest(source.entry).map_err(refused)?;
    if deepest.bytes > source.stack {
        let path: Vec<_> = deepest.path.iter().map(|title| graph.with_stack(title)).collect();
        return Err(refused(format!(
            "its functions take {} bytes of stack, and a core has {} for it: {}. Take smaller arrays, or tiles",
            Grouped(deepest.bytes),
            Grouped(source.stack),
            path.join(" -> ")
        )));
    }
    Ok(deepest.bytes)
}

/// What a program prints; else the first line of what it complains.
fn said(command: &mut Command) -> Result<String, String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|error| format!("{program}: {error}"))?;
    let complaint = String::from_utf8_lossy(&output.stderr);
    let first = complaint.lines().find(|line| line.contains("error")).or(complaint.lines().next());
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => Err(first.unwrap_or("no reason given").trim().to_owned()),
    }
}

/// A variable among the lines of `nm`: an address, a kind, a name.
fn variable(symbols: &str) -> Option<&str> {
    symbols.lines().find_map(|line| {
        let (_, named) = line.split_once(' ')?;
        let (kind, name) = named.trim_start().split_once(' ')?;
        matches!(kind, "b" | "B" | "d" | "D" | "C" | "u" | "V").then_some(name)
    })
}

/// A function.
#[derive(Debug, Default)]
struct Function {
    /// As its source has it.
    name: String,
    stack: u64,
    /// More stack at run time.
    grows: bool,
    calls: Vec<String>,
}

/// What calls what, by the names that the linker knows.
#[derive(Debug, Default)]
struct Graph {
    functions: BTreeMap<String, Function>,
}

/// The calls that take the most stack.
#[derive(Clone, Debug, Default)]
struct Deepest {
    bytes: u64,
    path: Vec<String>,
}

impl Graph {
    /// A graph as the compiler writes it: a line for each function, and one for each call.
    fn read(text: &str) -> Self {
        let mut graph = Self::default();
        for line in text.lines() {
            let words: Vec<&str> = line.split('"').collect();
            match *words.as_slice() {
                [head, title, _, label, ..] if head.starts_with("node:") => {
                    let function = graph.functions.entry(title.to_owned()).or_default();
                    let mut parts = label.split("\\n");
                    function.name = parts.next().unwrap_or(title).to_owned();
                    let stack = parts.find_map(|part| part.split_once(" bytes ("));
                    let (bytes, kind) = stack.unwrap_or(("0", ""));
                    function.stack = bytes.parse().unwrap_or(0);
                    function.grows = kind.starts_with("dynamic");
                }
                [head, from, _, to, ..] if head.starts_with("edge:") => {
                    graph.functions.entry(from.to_owned()).or_default().calls.push(to.to_owned());
                }
                _ => {}
            }
        }
        graph
    }

    fn name(&self, title: &str) -> String {
        self.functions.get(title).map_or(title, |function| function.name.as_str()).to_owned()
    }

    fn with_stack(&self, title: &str) -> String {
        let bytes = self.functions.get(title).map_or(0, |function| function.stack);
        format!("{} ({})", self.name(title), Grouped(bytes))
    }

    /// The deepest calls below a function; or what of them no core can do.
    fn deepest(&self, entry: &str) -> Result<Deepest, String> {
        if !self.functions.contains_key(entry) {
            return Err(format!("it has no function `{entry}`"));
        }
        self.visit(entry, &mut Vec::new(), &mut BTreeMap::new())
    }

    fn visit(
        &self,
        title: &str,
        above: &mut Vec<String>,
        known: &mut BTreeMap<String, Deepest>,
    ) -> Result<Deepest, String> {
        if let Some(known) = known.get(title) {
            return Ok(known.clone());
        }
        let caller = above.last().map(|caller| self.name(caller)).unwrap_or_default();
        if title == BY_POINTER {
            return Err(format!(
                "`{caller}` calls a function by a pointer, and a core knows no functions but kernels. Call it by its name"
            ));
        }
        if let Some(first) = above.iter().position(|one| one == title) {
            let round: Vec<_> = above[first..].iter().map(|one| self.name(one)).collect();
            return Err(format!(
                "`{}` calls itself ({} -> it again), and a core has no recursion. Write a loop",
                self.name(title),
                round.join(" -> ")
            ));
        }
        let Some(function) = self.functions.get(title) else { return Ok(Deepest::default()) };
        if function.grows {
            return Err(format!(
                "the stack of `{}` grows at run time, by alloca or an array whose length is no constant. Give the array a constant length",
                function.name
            ));
        }
        above.push(title.to_owned());
        let mut below = Deepest::default();
        for called in &function.calls {
            let one = self.visit(called, above, known)?;
            if one.bytes > below.bytes {
                below = one;
            }
        }
        above.pop();
        let path = [title.to_owned()].into_iter().chain(below.path).collect();
        let deepest = Deepest { bytes: function.stack + below.bytes, path };
        known.insert(title.to_owned(), deepest.clone());
        Ok(deepest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn aicore() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../aicore-kernels/aicore")
    }

    fn folders() -> Vec<PathBuf> {
        let own = ["", "kernels", "this_machine"].map(|folder| aicore().join(folder));
        own.into_iter().chain([aicore().join("../../bindings/include")]).collect()
    }

    fn kernel(path: &Path, kind: CoreKind) -> Result<u64, Finding> {
        let (entry, stack, folders) = ("kernel_entry", OF_KERNEL, folders());
        let name = path.file_stem().and_then(|name| name.to_str()).expect("a name");
        check(&Limited { name, path, kind, entry, stack, folders: &folders })
    }

    /// The kernels of the library, and the worker, are within the limits.
    #[test]
    fn what_is_ours_is_within_the_limits() {
        for (kind, entry) in
            [(CoreKind::AIC, "pto_worker_0_mix_aic"), (CoreKind::AIV, "pto_worker_0_mix_aiv")]
        {
            let (path, folders) = (aicore().join("worker.cpp"), folders());
            let (name, path, stack, folders) = ("worker", path.as_path(), OF_WORKER, &folders[..]);
            let taken = check(&Limited { name, path, kind, entry, stack, folders });
            assert!(taken.as_ref().is_ok_and(|bytes| *bytes > 500), "{taken:?}");
        }
        let kernels: Vec<_> = pto_host::LIBRARY
            .iter()
            .map(|kernel| (aicore().join(format!("kernels/{}.cpp", kernel.name)), kernel.kind))
            .filter(|(path, _)| path.is_file())
            .collect();
        assert!(kernels.len() >= 42, "{}", kernels.len());
        std::thread::scope(|scope| {
            for part in kernels.chunks(kernels.len().div_ceil(4)) {
                scope.spawn(move || {
                    for (path, kind) in part {
                        kernel(path, *kind).unwrap_or_else(|why| panic!("{why:?}"));
                    }
                });
            }
        });
    }

    /// Kernels that break a rule each, and what is said of them: which function, and what to do.
    const BROKEN: &[(&str, &[&str])] = &[
        (
            "static int fold(int n) { return n > 1 ? n * fold(n - 1) : 1; }\nPTO_KERNEL(args) { kernel::store(args.gm(0), 0, float(fold(int(args.size(1))))); }",
            &["`int fold(int)` calls itself", "Write a loop"],
        ),
        (
            "static int other(int n);\nstatic int one(int n) { return n > 0 ? other(n - 1) + 1 : 0; }\nstatic int other(int n) { return one(n) + 2; }\nPTO_KERNEL(args) { kernel::store(args.gm(0), 0, float(one(int(args.size(1))))); }",
            &["`int one(int)` calls itself (int one(int) -> int other(int) -> it again)"],
        ),
        (
            "static float sum(kernel::Args args) { volatile float all[5000]; all[args.size(1)] = 1; return all[0]; }\nstatic float twice(kernel::Args args) { volatile float own[3000]; own[args.size(1)] = sum(args); return own[1]; }\nPTO_KERNEL(args) { kernel::store(args.gm(0), 0, twice(args)); }",
            &[
                "its functions take 31,9",
                "has 28,672 for it",
                "kernel_entry",
                "float twice(kernel::Args) (12,",
                "-> float sum(kernel::Args) (19,896)",
            ],
        ),
        (
            "PTO_KERNEL(args) { float all[args.size(1)]; all[args.size(2)] = 1; kernel::store(args.gm(0), 0, all[0]); }",
            &["the stack of `void kernel_entry", "grows at run time"],
        ),
        (
            "PTO_KERNEL(args) { static int calls; kernel::store(args.gm(0), 0, float(calls++)); }",
            &["calls` is a variable", "only .text goes to GM"],
        ),
        (
            "int table[] = {1, 2};\nPTO_KERNEL(args) { kernel::store(args.gm(0), 0, float(table[args.size(1)])); }",
            &["`table` is a variable"],
        ),
        (
            "PTO_KERNEL(args) { kernel::store(args.gm(0), 0, reinterpret_cast<float (*)()>(args.word(1))()); }",
            &["calls a function by a pointer", "kernel_entry"],
        ),
    ];

    #[test]
    fn a_kernel_that_breaks_a_rule_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        for (text, words) in BROKEN {
            let path = folder.path().join("broken.cpp");
            fs::write(&path, format!("#include \"kernel.h\"\n{text}\n")).expect("writable");
            let refused = kernel(&path, CoreKind::AIV);
            let Err(Finding::Refused(said)) = refused else { panic!("{text}: {refused:?}") };
            for word in words.iter().chain(&["kernel `broken`: "]) {
                assert!(said.contains(word), "{word:?} is not in {said}");
            }
        }
        let unknown = folder.path().join("unknown.cpp");
        fs::write(&unknown, "#include <no/such/header.h>\n").expect("writable");
        let found = kernel(&unknown, CoreKind::AIV);
        assert!(matches!(&found, Err(Finding::Unknown(why)) if why.contains("no/such/header")));
    }
}
