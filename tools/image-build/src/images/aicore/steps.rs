//! Which tool is called for which file, with which flags: as facts of the vendor's toolchain give them (docs/how-to/hardware.md).

use pto_host::abi::CoreKind;

use super::manifest::{Manifest, OUT};

/// A program of the vendor's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tool {
    /// `ccec`.
    Compiler,
    /// `ld.lld`.
    Linker,
}

/// A word of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Word {
    /// As it is.
    Plain(&'static str),
    /// A file or a folder of the tree.
    InTree(String),
    /// The folder of PTO-ISA's headers, with `-I` before it; left out where there is none.
    PtoIsa,
}

/// One call.
#[derive(Clone, Debug)]
pub(super) struct Step {
    pub(super) tool: Tool,
    pub(super) words: Vec<Word>,
    /// Files of the tree that it reads, besides headers.
    pub(super) inputs: Vec<String>,
    pub(super) output: String,
}

/// How each source is compiled, besides the kind of core.
const COMPILE: &[&str] = &[
    "-c",
    "-x",
    "cce",
    "-std=c++17",
    "-O3",
    "--cce-aicore-only",
    "-mllvm",
    "-cce-aicore-stack-size=0x8000",
    "-mllvm",
    "-cce-aicore-function-stack-size=0x8000",
    "-mllvm",
    "-cce-aicore-record-overflow=false",
    "-mllvm",
    "-cce-aicore-addr-transform",
    "-mllvm",
    "-cce-aicore-dcci-insert-for-scalar=false",
];
/// How worker and kernels are linked: no relocation may be left.
const LINK: &[&str] = &["-m", "aicorelinux", "-Ttext=0", "-static", "-n"];

const fn architecture(kind: CoreKind) -> &'static str {
    match kind {
        CoreKind::AIC => "--cce-aicore-arch=dav-c220-cube",
        _ => "--cce-aicore-arch=dav-c220-vec",
    }
}

fn plain(words: &[&'static str]) -> impl Iterator<Item = Word> {
    words.iter().map(|word| Word::Plain(word))
}

fn compile(source: &str, kind: CoreKind, folders: &[String], is_kernel: bool) -> Step {
    let output = match is_kernel {
        true => format!("{OUT}/{}.o", source.trim_end_matches(".cpp")),
        false => format!("{OUT}/worker-{}.o", kind.name()),
    };
    let mut words: Vec<Word> = plain(COMPILE).chain(plain(&[architecture(kind)])).collect();
    if is_kernel {
        words.extend(plain(&["-DMEMORY_BASE"]));
        words.push(Word::PtoIsa);
    }
    for folder in folders {
        words.extend([Word::Plain("-I"), Word::InTree(folder.clone())]);
    }
    words.extend([
        Word::Plain("-o"),
        Word::InTree(output.clone()),
        Word::InTree(source.to_owned()),
    ]);
    Step { tool: Tool::Compiler, words, inputs: vec![source.to_owned()], output }
}

fn link(inputs: Vec<String>, output: &str, entry: &[&'static str]) -> Step {
    let mut words: Vec<Word> = plain(LINK).chain(plain(entry)).collect();
    words.extend([Word::Plain("-o"), Word::InTree(output.to_owned())]);
    words.extend(inputs.iter().cloned().map(Word::InTree));
    Step { tool: Tool::Linker, words, inputs, output: output.to_owned() }
}

/// All calls, each after those whose files it reads.
pub(super) fn all(manifest: &Manifest) -> Vec<Step> {
    let include = ["include".to_owned()];
    let worker = CoreKind::ALL.iter().map(|kind| compile("worker.cpp", *kind, &include, false));
    let mut steps: Vec<Step> = worker.collect();
    let objects = steps.iter().map(|step| step.output.clone()).collect();
    steps.push(link(objects, &manifest.worker, &[]));
    for kernel in &manifest.kernels {
        let folders = [vec!["kernels".to_owned()], manifest.includes.clone()].concat();
        let compiled = compile(&kernel.source, kernel.kind, &folders, true);
        let linked = link(vec![compiled.output.clone()], &kernel.file, &["-e", "kernel_entry"]);
        steps.extend([compiled, linked]);
    }
    steps
}
