//! `pto program inspect`: what a program file holds.

use pto_host::workloads::program::{Program, ProgramBody};
use serde_json::{Value, json};

use super::shown;
use crate::args::{ProgramInspectArgs, ShownSection};
use crate::errors::{Exit, Failure};
use crate::form::Form;
use crate::output::answer;
use crate::text::{bytes, counted, filled, grouped, table};

/// Shows a program.
pub(super) fn inspect(args: &ProgramInspectArgs, program: &Program) -> Result<Exit, Failure> {
    let text = match args.section {
        None => text(program),
        Some(ShownSection::Source) => {
            let none = || Failure::usage(format!("program {} has no source", program.name()));
            program.source().ok_or_else(none)?.to_owned()
        }
        Some(ShownSection::Kernels) => kernels(program),
    };
    answer(Form::from(args.json), Exit::Pass, || text, || as_json(program))
}

fn kernels(program: &Program) -> String {
    match program.body() {
        ProgramBody::Plan(compiled) => {
            let texts: Vec<_> = compiled.tile_kernels().iter().map(ToString::to_string).collect();
            texts.join("\n")
        }
        ProgramBody::Graph(_) | ProgramBody::Builder(_) => {
            let own = shown::native(program).into_iter();
            own.chain(program.needs().kernels).collect::<Vec<_>>().join("\n")
        }
    }
}

fn text(program: &Program) -> String {
    let mut rows: Vec<Vec<String>> = Vec::new();
    let mut row = |name: &str, value: String| rows.push(vec![name.to_owned(), value]);
    let needs = program.needs();
    row("program", program.name().to_owned());
    row("written by", program.producer().to_owned());
    row("target", program.target().to_owned());
    row("interface", format!("{:#018x}", program.interface_hash()));
    row("body", body(program));
    let (symbols, arrays) = shown::bound(program);
    symbols.iter().for_each(|(name, used)| row("symbol", format!("{name}: {used}")));
    arrays.iter().for_each(|name| row("array", format!("{name}: i32, of an axis")));
    let operations = shown::operations(program);
    let operations: Vec<_> =
        operations.iter().map(|(name, count)| format!("{name} {count}")).collect();
    for (index, line) in filled(&operations).into_iter().enumerate() {
        row(if index == 0 { "operations" } else { "" }, line);
    }
    for (number, shape) in shown::shapes(program) {
        row(&format!("task {number}"), shape);
    }
    for line in shown::native(program) {
        row("native kernels", line);
    }
    let kinds: Vec<_> = needs.kinds.iter().map(ToString::to_string).collect();
    let memory = bytes(needs.tensor_bytes.saturating_add(needs.code_bytes));
    let what = match &needs.builder {
        Some(name) => format!("the builder {name}"),
        None => format!("cores {}", kinds.join(" and ")),
    };
    row("needs", format!("{what}; {memory} of device memory"));
    let sections = program.sections().iter().map(|section| {
        let known = if section.is_known { "" } else { "this reader does not know it" };
        vec![section.name.clone(), grouped(section.bytes as u64), known.to_owned()]
    });
    let sections: Vec<_> = sections.collect();
    let (rows, sections) = (table(&rows, &[]), table(&sections, &[1]));
    format!("{rows}\ntensors\n{}\nsections, in bytes\n{sections}", shown::tensors(program))
}

fn body(program: &Program) -> String {
    match program.body() {
        ProgramBody::Plan(compiled) => {
            let words = counted(compiled.words().len() as u64, "word");
            let kernels = counted(compiled.tile_kernels().len() as u64, "tile kernel");
            let code = bytes(compiled.code().len() as u64);
            format!("plan of {words}, {kernels} of {code}")
        }
        ProgramBody::Graph(tasks) => {
            let edges: usize = tasks.iter().map(|task| task.producers.len()).sum();
            let [tasks, edges] = [(tasks.len(), "task"), (edges, "edge")]
                .map(|(count, what)| counted(count as u64, what));
            format!("graph of {tasks} and {edges}")
        }
        ProgramBody::Builder(reference) => {
            let words = counted(reference.words.len() as u64, "word");
            format!(
                "builder {} of the device, variant {}, with {words}",
                reference.name, reference.variant
            )
        }
    }
}

fn as_json(program: &Program) -> Value {
    let needs = program.needs();
    let (symbols, arrays) = shown::bound(program);
    let symbol = |(name, used): &(String, String)| json!({ "name": name, "use": used });
    let operation = |(name, count): &(String, usize)| json!({ "name": name, "count": count });
    json!({
        "program": program.name(),
        "producer": program.producer(),
        "target": program.target(),
        "interface_hash": format!("{:#018x}", program.interface_hash()),
        "body": program.body().name(),
        "tensors": program.tensors().iter().map(shown::tensor).collect::<Vec<_>>(),
        "symbols": symbols.iter().map(symbol).collect::<Vec<_>>(),
        "arrays": arrays,
        "operations": shown::operations(program).iter().map(operation).collect::<Vec<_>>(),
        "shapes": shown::shapes(program).iter().map(|(number, shape)| json!({
            "task": number,
            "shape": shape,
        })).collect::<Vec<_>>(),
        "needs": {
            "kinds": needs.kinds.iter().map(ToString::to_string).collect::<Vec<_>>(),
            "kernels": needs.kernels,
            "builder": needs.builder,
            "tensor_bytes": needs.tensor_bytes,
            "code_bytes": needs.code_bytes,
        },
        "native": shown::native_as_json(program),
        "sections": program.sections().iter().map(|section| json!({
            "name": section.name,
            "offset": section.offset,
            "bytes": section.bytes,
            "is_known": section.is_known,
        })).collect::<Vec<_>>(),
        "source": program.source(),
    })
}
