//! `pto program build`: writes a program file.

use std::path::{Path, PathBuf};

use pto_host::workloads::Workload;
use pto_host::workloads::program::{MemorySpace, Program, ProgramError, Role, checksum};
use serde_json::json;

use super::{builder, graph, shown};
use crate::args::ProgramBuildArgs;
use crate::errors::{Exit, Failure};
use crate::form::Form;
use crate::input_file;
use crate::kernels::KernelSet;
use crate::output::answer;
use crate::text::bytes;
use crate::{model, npy, output_file};

/// Builds, and says what came out.
pub(super) fn build(args: &ProgramBuildArgs) -> Result<Exit, Failure> {
    let usual = || input_file::sibling(&args.source, "ptop");
    let path = args.output.clone().unwrap_or_else(usual);
    output_file::check_form(&path, "ptop")?;
    let program = with_options(read(args)?, args)?;
    let file = program.to_bytes();
    output_file::write(&path, |to| std::io::Write::write_all(to, &file))?;
    let as_text = || {
        let size = bytes(file.len() as u64);
        let head = format!("{}: program {}, {size}\n", path.display(), program.name());
        format!(
            "{head}{}\nNext: pto program inspect {}\n",
            shown::tensors(&program),
            path.display()
        )
    };
    let as_json = || {
        json!({
            "file": path.display().to_string(),
            "program": program.name(),
            "bytes": file.len(),
            "checksum": checksum(&file),
        })
    };
    answer(Form::from(args.json), Exit::Pass, as_text, as_json)
}

/// The program of a workload, a graph file or a builder.
fn read(args: &ProgramBuildArgs) -> Result<Program, Failure> {
    let path = args.source.as_path();
    if path.is_dir() {
        return Err(Failure::usage(format!(
            "'{}' is a folder: its orchestration is code, which decides while it runs what tasks there are, and a program file holds tasks; run it as it is: pto run {0}",
            path.display()
        )));
    }
    if !model::is_model(&path.to_string_lossy()) {
        model::refuse_shapes(&args.shapes)?;
    }
    let extension = match input_file::is_standard_input(path) {
        true => form_of(&input_file::text(path)?).into(),
        false => path.extension().unwrap_or_default().to_string_lossy(),
    };
    match &*extension {
        "onnx" if !args.kernels.is_empty() => Err(Failure::usage(
            "--kernels adds kernels for graph files, and the operators of a model are our own; leave it out",
        )),
        "onnx" => model::program(path, &args.shapes),
        "workload" if !args.kernels.is_empty() => Err(Failure::usage(
            "--kernels adds kernels for graph files, and a workload has its kernels in its own file; leave it out",
        )),
        "workload" => workload(path),
        "jsonl" => of_graph(path, &args.kernels),
        "json" if !args.kernels.is_empty() => Err(Failure::usage(
            "--kernels adds kernels for graph files, and a builder names the kernels of its device; leave it out",
        )),
        "json" => builder::program_of(path),
        _ => Err(Failure::usage(format!(
            "'{}' is neither a workload (.workload) nor a graph file (.jsonl) nor a model (.onnx) nor a description of a builder (.json)",
            path.display()
        ))),
    }
}

/// What a text is, as the name of its file would say it: a workload is no object, and a graph file says in its first line what it is.
fn form_of(text: &str) -> &'static str {
    let text = text.trim_start();
    match text.lines().next().unwrap_or_default() {
        first if first.starts_with('{') && first.contains("\"pto-graph\"") => "jsonl",
        first if first.starts_with('{') => "json",
        _ => "workload",
    }
}

fn of_graph(path: &Path, objects: &[PathBuf]) -> Result<Program, Failure> {
    let code = |path: &PathBuf| {
        let shown = path.display().to_string();
        let code = std::fs::read(path);
        let code = code.map_err(|error| {
            Failure::internal(format!("--kernels: '{shown}' cannot be read: {error}"))
        })?;
        Ok((shown, code))
    };
    let codes = objects.iter().map(code).collect::<Result<Vec<_>, Failure>>()?;
    let Some((first, (_, code))) = objects.first().zip(codes.first()) else {
        return graph::program_of(path, &KernelSet::default());
    };
    let kernels = KernelSet::of_code(first, code)?;
    kernels.put_into(graph::program_of(path, &kernels)?, codes)
}

fn workload(path: &Path) -> Result<Program, Failure> {
    let shown = path.display();
    let text = input_file::text(path)?;
    let refused = |error: &dyn std::fmt::Display| Failure::usage(format!("'{shown}', {error}"));
    let workload = Workload::parse(&text).map_err(|error| refused(&error))?;
    let checked = workload.check().map_err(|error| refused(&error))?;
    for warning in checked.warnings() {
        let (name, path) = (&checked.workload().name, &warning.path);
        eprintln!("warning: '{shown}', workload {name}{path}: {}", warning.message);
    }
    Program::of_workload(&checked).map_err(|error| refused(&error))
}

fn with_options(mut program: Program, args: &ProgramBuildArgs) -> Result<Program, Failure> {
    for (name, text) in &args.layouts {
        let mut wrong = None;
        program = changed(program, name, |tensor| wrong = tensor.set_layout(text).err())?;
        if let Some(wrong) = wrong {
            return Err(Failure::usage(format!("--layout {name}: {wrong}")));
        }
    }
    for (name, text) in &args.places {
        let memory = MemorySpace::from_name(text)
            .filter(|memory| matches!(memory, MemorySpace::Device | MemorySpace::OnChip));
        let memory = memory.ok_or_else(|| {
            Failure::usage(format!(
                "--place {name}: '{text}' is no memory of a device; use device or on-chip"
            ))
        })?;
        program = changed(program, name, |tensor| tensor.layout.memory = memory)?;
    }
    for (name, text) in &args.roles {
        let role = Role::from_name(text);
        let role = role.ok_or_else(|| {
            Failure::usage(format!(
                "--role {name}: '{text}' cannot be chosen; use output, updated or temporary"
            ))
        })?;
        let chosen = program.with_role(name, role);
        program = chosen.map_err(|error| Failure::usage(format!("--role {name}: {error}")))?;
    }
    for (name, path) in &args.constants {
        program = with_constant(program, name, path)?;
    }
    match &args.target {
        Some(target) => program.for_target(target).map_err(refused),
        None => Ok(program),
    }
}

fn with_constant(program: Program, name: &str, path: &Path) -> Result<Program, Failure> {
    let tensor = npy::read(path)?;
    let wanted = program.tensor(name).map_err(refused)?;
    if tensor.elements().dtype().name() != wanted.dtype.name() {
        return Err(Failure::usage(format!(
            "--constant {name}: '{}' has elements of type {}, and the tensor has {}",
            path.display(),
            tensor.elements().dtype().name(),
            wanted.dtype
        )));
    }
    program.with_constant(name, tensor.bytes()).map_err(refused)
}

fn changed(
    program: Program,
    name: &str,
    change: impl FnOnce(&mut pto_host::workloads::program::TensorDescription),
) -> Result<Program, Failure> {
    program.with_tensor(name, change).map_err(refused)
}

fn refused(error: ProgramError) -> Failure {
    Failure::usage(error)
}
