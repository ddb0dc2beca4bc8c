//! `pto info`: lists, and layouts, limits and faults from the tables that host and firmware are compiled from.

use pto_abi::layout::{self, LAYOUT_HASH, StructLayout};
use pto_abi::runtime::{ABI_MAJOR, ABI_MINOR};
use pto_abi::{fault, limits};
use pto_examples::host::EXAMPLES;
use serde_json::{Value, json};

use crate::args::{InfoArgs, InfoTopic};
use crate::errors::{Exit, Failure};
use crate::form::Form;
use crate::help::{EXIT_CODES, VERSION};
use crate::list;
use crate::output::answer;
use crate::text::{grouped, table};

/// Shows facts.
pub(crate) fn info(args: &InfoArgs) -> Result<Exit, Failure> {
    answer(Form::from(args.json), Exit::Pass, || text(args.what), || json(args.what))
}

fn text(what: Option<InfoTopic>) -> String {
    match what {
        None => overview(),
        Some(InfoTopic::Examples) => list::examples_text(),
        Some(InfoTopic::Runtimes) => list::runtimes_text(),
        Some(InfoTopic::Devices) => list::devices_text(),
        Some(InfoTopic::Kernels) => list::kernels_text(),
        Some(InfoTopic::ExitCodes) => format!("{EXIT_CODES}\n"),
        Some(InfoTopic::Layouts) => {
            let structs: Vec<_> = layout::ALL.iter().map(struct_text).collect();
            format!("layout hash {LAYOUT_HASH:#018x}\n\n{}", structs.join("\n"))
        }
        Some(InfoTopic::Limits) => table(&limits(), &[1]),
        Some(InfoTopic::Faults) => {
            fault::TABLE.iter().map(fault_text).collect::<Vec<_>>().join("\n")
        }
    }
}

fn json(what: Option<InfoTopic>) -> Value {
    let all = [
        (InfoTopic::Examples, "examples", list::examples_json as fn() -> Value),
        (InfoTopic::Examples, "loops", list::loops_json),
        (InfoTopic::Runtimes, "runtimes", list::runtimes_json),
        (InfoTopic::Devices, "devices", list::devices_json),
        (InfoTopic::Kernels, "kernels", list::kernels_json),
        (InfoTopic::Layouts, "layouts", layouts_json),
        (InfoTopic::Limits, "limits", limits_json),
        (InfoTopic::Faults, "faults", faults_json),
        (InfoTopic::ExitCodes, "exit_codes", exit_codes_json),
    ];
    let mut object = serde_json::Map::new();
    object.insert("version".into(), json!(env!("CARGO_PKG_VERSION")));
    object.insert("abi".into(), json!({ "major": ABI_MAJOR, "minor": ABI_MINOR }));
    object.insert("layout_hash".into(), json!(format!("{LAYOUT_HASH:#018x}")));
    for (_, name, values) in all.into_iter().filter(|(shown, ..)| what.is_none_or(|w| w == *shown))
    {
        object.insert(name.into(), values());
    }
    object.into()
}

fn overview() -> String {
    let rows = [
        ("version", VERSION.to_owned()),
        ("ABI", format!("{ABI_MAJOR}.{ABI_MINOR}")),
        ("layout hash", format!("{LAYOUT_HASH:#018x}")),
        ("layouts", format!("{} shared structs: pto info layouts", layout::ALL.len())),
        ("limits", format!("{}: pto info limits", limits::TABLE.len())),
        ("faults", format!("{}, each with its remedy: pto info faults", fault::TABLE.len())),
    ];
    let facts = table(&rows.map(|(name, value)| vec![name.to_owned(), value]), &[]);
    format!(
        "{}\n{facts}\nMore: pto info examples, pto info kernels, pto info faults. Run one: pto run {}\n",
        list::overview(),
        EXAMPLES.first().map_or("", |example| example.name()),
    )
}

fn struct_text(layout: &StructLayout) -> String {
    let field = |field: &layout::FieldLayout| {
        let (offset, size) = (field.offset.to_string(), field.size.to_string());
        vec![offset, size, field.name.to_owned(), field.type_name.to_owned()]
    };
    let mut rows = vec![["offset", "size", "field", "type"].map(str::to_owned).to_vec()];
    rows.extend(layout.fields.iter().map(field));
    format!(
        "{}: {} bytes, aligned to {}\n{}",
        layout.name,
        layout.size,
        layout.align,
        table(&rows, &[0, 1])
    )
}

fn limits() -> Vec<Vec<String>> {
    let row = |(name, value, meaning): &(&str, u64, &str)| {
        vec![(*name).to_owned(), grouped(*value), (*meaning).to_owned()]
    };
    limits::TABLE.iter().map(row).collect()
}

fn fault_text(entry: &fault::FaultEntry) -> String {
    let fault::FaultEntry { fault, name, sentence, remedy } = entry;
    format!("{:#010x}  {name}\n  {sentence}\n  What to do: {remedy}\n", fault.code())
}

fn layouts_json() -> Value {
    let field = |field: &layout::FieldLayout| json!({ "name": field.name, "type": field.type_name, "offset": field.offset, "size": field.size });
    let layout = |layout: &StructLayout| {
        let fields: Vec<_> = layout.fields.iter().map(field).collect();
        json!({ "name": layout.name, "size": layout.size, "align": layout.align, "fields": fields })
    };
    layout::ALL.iter().map(layout).collect()
}

fn limits_json() -> Value {
    let limit = |(name, value, meaning): &(&str, u64, &str)| json!({ "name": name, "value": value, "meaning": meaning });
    limits::TABLE.iter().map(limit).collect()
}

fn faults_json() -> Value {
    let entry = |entry: &fault::FaultEntry| {
        json!({
            "code": entry.fault.code(),
            "name": entry.name,
            "subsystem": entry.fault.subsystem(),
            "sentence": entry.sentence,
            "remedy": entry.remedy,
        })
    };
    fault::TABLE.iter().map(entry).collect()
}

/// What each exit code means.
fn exit_codes_json() -> Value {
    let lines = EXIT_CODES.lines().filter_map(|line| line.trim().split_once("  "));
    let code = |(code, meaning): (&str, &str)| {
        Some(json!({ "code": code.parse::<u8>().ok()?, "meaning": meaning }))
    };
    lines.filter_map(code).collect()
}

#[cfg(test)]
mod tests {
    use super::{InfoTopic, json, text};
    use clap::ValueEnum;
    use pto_abi::{fault, layout, limits};

    #[test]
    fn nothing_of_the_tables_is_left_out() {
        let faults = text(Some(InfoTopic::Faults));
        assert!(fault::TABLE.iter().all(|entry| faults.contains(entry.name)));
        let layouts = text(Some(InfoTopic::Layouts));
        assert!(layout::ALL.iter().all(|layout| layouts.contains(layout.name)));
        let shown = text(Some(InfoTopic::Limits));
        assert!(limits::TABLE.iter().all(|(name, ..)| shown.contains(name)));
    }

    #[test]
    fn json_has_the_same_tables() {
        for what in InfoTopic::value_variants() {
            assert!(text(Some(*what)).lines().count() >= 1, "{what:?}");
            assert!(json(Some(*what)).as_object().unwrap().len() > 3, "{what:?}");
        }
        let all = json(None);
        assert_eq!(all["exit_codes"].as_array().unwrap().len(), 6);
        assert_eq!(all["faults"].as_array().unwrap().len(), fault::TABLE.len());
        assert_eq!(all["layouts"].as_array().unwrap().len(), layout::ALL.len());
        assert_eq!(json(Some(InfoTopic::Limits)).get("faults"), None);
    }
}
