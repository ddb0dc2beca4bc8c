//! What every command answers with `--json` is what `docs/reference/json-schema.json` says, field by field.

use serde_json::Value;

use crate::pto::{Answer, answer, command};

/// Checks `value` against a schema; what is wrong, with its path. The keywords are those that the file uses.
fn defect(schema: &Value, value: &Value, location: &str) -> Option<String> {
    let types = match &schema["type"] {
        Value::Null => return None,
        Value::Array(types) => types.clone(),
        one => vec![one.clone()],
    };
    if !types.iter().any(|name| is_of(name.as_str().unwrap_or_default(), value)) {
        return Some(format!("{location} is {value}, and should be {}", schema["type"]));
    }
    match value {
        Value::Object(fields) => {
            let required = schema["required"].as_array().into_iter().flatten();
            let missing =
                required.filter_map(Value::as_str).find(|name| !fields.contains_key(*name));
            if let Some(name) = missing {
                return Some(format!("{location} has no {name}"));
            }
            fields.iter().find_map(|(name, value)| {
                let location = format!("{location}.{name}");
                match (schema["properties"].get(name), &schema["additionalProperties"]) {
                    (Some(schema), _) => defect(schema, value, &location),
                    (None, Value::Bool(false)) => Some(format!("{location} is not in the schema")),
                    (None, schema) => defect(schema, value, &location),
                }
            })
        }
        Value::Array(items) => items
            .iter()
            .enumerate()
            .find_map(|(at, item)| defect(&schema["items"], item, &format!("{location}[{at}]"))),
        _ => None,
    }
}

fn is_of(name: &str, value: &Value) -> bool {
    match name {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_u64() || value.is_i64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => false,
    }
}

/// Runs a command with `--json`: its answer is of this kind, and says the code that it exits with.
pub(crate) fn answers(kind: &str, args: &[&str]) -> Value {
    conforms(kind, args, &answer(&mut command(&[args, &["--json"]].concat())))
}

/// The output of a command is of this kind, and has the code that it has exited with.
pub(crate) fn conforms(kind: &str, args: &[&str], printed: &Answer) -> Value {
    let schema: Value =
        serde_json::from_str(include_str!("../../../../docs/reference/json-schema.json"))
            .expect("the schema is JSON");
    let value: Value = serde_json::from_str(&printed.stdout)
        .unwrap_or_else(|error| panic!("{args:?}: {error}\n{}{}", printed.stdout, printed.stderr));
    let schema = schema["$defs"].get(kind).expect("the schema has this kind");
    assert_eq!(defect(schema, &value, kind), None, "{args:?}");
    assert_eq!(value["exit_code"].as_i64(), printed.code.map(i64::from), "{args:?}");
    // A run that ended well has an error where a file could not be written.
    let is_wrong = kind == "failure" || value["exit_code"] == 4;
    assert_eq!(!value["error"].is_null(), is_wrong, "{args:?}");
    value
}

#[test]
fn every_command_answers_as_the_schema_says() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).to_str().expect("UTF-8").to_owned();
    let (trace, output) = (path("t.json"), format!("f={}", path("f.npy")));
    let input = format!("a={}", path("f.npy"));
    let files = ["--hosting=virtual", "--trace", &trace, "--output", &output];
    answers("run", &[&["run", "vector_example"][..], &files].concat());
    answers("analyze", &["analyze", &trace]);
    answers("run", &["run", "vector_example", "--runtime=host_build_graph"]);
    answers("run", &["run", "vector_example", "--hosting=virtual", "--no-compute", "--rounds=2"]);
    answers("run", &["run", "moe_layer"]);
    let square = ["--param=k=128", "--param=m=128", "--param=tile_m=64", "--param=tile_k=64"];
    answers("run", &[&["run", "matmul", "--input", &input][..], &square].concat());
    let hang = ["--hosting=virtual", "--fault=hang", "--aicpu=2", "--aic=1", "--aiv=2"];
    answers("failure", &[&["run", "random_dag", "--trace", &trace][..], &hang].concat());
    answers("analyze", &["analyze", &trace]);
    answers("analyze", &["analyze", &trace, "--against", &trace]);
    answers("failure", &["run", "nothing"]);
    answers("failure", &["run", "matmul", "--rounds=none"]);
    answers("failure", &["analyze", &path("none.json")]);
    answers("soak", &["soak", "--seeds=64"]);
    answers("soak_replay", &["soak", "--replay=7"]);
    answers("soak_sessions", &["soak", "--sessions", "--seeds=8"]);
    answers("soak_groups", &["soak", "--groups", "--seeds=8"]);
    answers("check", &["check", "decoder_layer", "--heap-bytes=64K"]);
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/graphs/row_sums.jsonl");
    answers("check", &["check", file]);
    answers("graph", &["graph", file]);
    answers("graph", &["graph", "task_shapes", "--param=layers=1"]);
    answers("info", &["info"]);
    answers("info", &["info", "kernels"]);
    answers("info", &["info"]);
    answers("info", &["info", "limits"]);
    answers("bench", &["bench", "--tasks=100", "--rounds=1", "--graph=chain", "--threads=1"]);
    answers("group_run", &["run", "dp_training", "--param=steps=1", "--group=local:2"]);
    let workload =
        concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/workloads/handed_on.workload");
    let explored = ["run", workload, "--group=virtual:2", "--explore=50"];
    answers("group_explored", &explored);
    answers("bench", &["bench", "--device-metg=matmul"]);
    answers("bench", &["bench", "--field-timings"]);
    answers("comm_bench", &["bench", "collectives", "-b=4K", "-e=4K", "--rounds=1", "--repeats=1"]);
    answers("comm_scaling", &["bench", "groups", "--ranks=2", "--sizes=8K"]);
    answers("fw_list", &["fw", "list"]);
    answers("failure", &["fw", "inspect", &path("none.img")]);
}

/// The page has a row for every kind of answer.
#[test]
fn the_page_names_every_kind_of_answer() {
    let page = include_str!("../../../../docs/reference/json.md");
    let table = page.split("## By command").nth(1).expect("the table");
    let schema: Value =
        serde_json::from_str(include_str!("../../../../docs/reference/json-schema.json"))
            .expect("JSON");
    let kinds = schema["$defs"].as_object().expect("the kinds").keys();
    let missing: Vec<_> =
        kinds.filter(|kind| *kind != "failure" && !table.contains(&format!("`{kind}`"))).collect();
    assert!(missing.is_empty(), "docs/reference/json.md has no row for {missing:?}");
}

/// A check that cannot fail holds nothing.
#[test]
fn what_is_not_in_the_schema_is_found() {
    let schema = serde_json::json!({
        "type": "object", "required": ["a"], "additionalProperties": false,
        "properties": { "a": { "type": ["integer", "null"] }, "b": { "type": "array", "items": { "type": "string" } } },
    });
    let says = |value: Value| defect(&schema, &value, "x");
    assert_eq!(says(serde_json::json!({ "a": null, "b": ["c"] })), None);
    assert_eq!(says(serde_json::json!({})).as_deref(), Some("x has no a"));
    assert_eq!(
        says(serde_json::json!({ "a": 1, "c": 2 })).as_deref(),
        Some("x.c is not in the schema")
    );
    assert!(says(serde_json::json!({ "a": 1.5 })).is_some());
    assert!(
        says(serde_json::json!({ "a": 1, "b": ["c", 3] }))
            .is_some_and(|printed| printed.contains("b[1]"))
    );
}
