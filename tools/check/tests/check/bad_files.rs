//! Files that are none: the line, the field, and what to do.

use pto_check::file;
use pto_check::program::Argument;

const HEADER: &str =
    r#"{"format": "pto-graph", "version": 1, "variant": "tensormap_and_ringbuffer"}"#;

fn refused(text: &str, words: &[&str]) {
    let error = file::read(text.as_bytes()).map(|_| ()).unwrap_err().to_string();
    for word in words {
        assert!(error.contains(word), "no {word:?} in: {error}");
    }
}

/// What is said of one line after the header and a tensor.
fn line(line: &str, words: &[&str]) {
    let tensor = r#"{"tensor": 0, "element": "f32", "shape": [4, 4]}"#;
    let text = format!("{HEADER}\n{tensor}\n\n{line}\n");
    refused(&text, &[&["line 4: "], words].concat());
}

#[test]
fn what_is_no_graph_file_is_refused() {
    refused("", &["line 1", "empty"]);
    refused("\n\n", &["empty"]);
    refused("nothing", &["line 1", "column 2", "JSON object"]);
    refused("[1, 2]", &["line 1", "JSON object"]);
    refused(r#"{"task": 0}"#, &["line 1", "no graph file", "pto-graph"]);
    refused(r#"{"format": "pto-graph", "version": 2}"#, &["version: 2", "version 1", "newer pto"]);
    refused(r#"{"format": "pto-graph"}"#, &["line 1", "version"]);
    let variant = r#"{"format": "pto-graph", "version": 1, "variant": "host"}"#;
    refused(variant, &["variant: no 'host'", "host_build_graph"]);
    let bytes = file::read(&b"{\"format\": \"\xFF\"}"[..]).map(|_| ()).unwrap_err();
    assert!(bytes.to_string().contains("line 1: it is not UTF-8"), "{bytes}");
}

#[test]
fn a_byte_order_mark_is_no_part_of_the_first_line() {
    file::read(format!("\u{FEFF}{HEADER}\n").as_bytes()).unwrap();
    let second = format!("{HEADER}\n\u{FEFF}{{}}\n");
    refused(&second, &["line 2", "column 1"]);
}

#[test]
fn floats_that_json_has_no_number_for_have_names() {
    for (text, bits) in [
        (r#""inf""#, f32::INFINITY.to_bits()),
        (r#""-inf""#, f32::NEG_INFINITY.to_bits()),
        (r#""nan""#, f32::NAN.to_bits()),
        ("3.4028235e38", f32::MAX.to_bits()),
        ("-0.0", (-0.0_f32).to_bits()),
    ] {
        let task =
            format!(r#"{{"task": 0, "func": 0, "kind": "aiv", "args": [{{"f32": {text}}}]}}"#);
        let program = file::read(format!("{HEADER}\n{task}\n").as_bytes()).unwrap();
        assert_eq!(program.tasks[0].args, [Argument::Scalar(bits.into())], "{text}");
    }
}

#[test]
fn lines_that_are_not_known_are_refused() {
    line("{}", &["one of the fields", "task", "replay"]);
    line(r#"{"tusk": 1}"#, &["one of the fields"]);
    line(r#"{"task": 1"#, &["column 10", "EOF"]);
    line(r#"{"task": 1, "func": 0}"#, &["missing field `kind`"]);
    line(
        r#"{"task": 1, "func": 0, "kind": "aiv", "afer": []}"#,
        &["unknown field `afer`", "`after`"],
    );
    line(r#"{"task": -1, "func": 0, "kind": "aiv"}"#, &["line 4: task: ", "-1", "u32"]);
    let shape = r#"{"tensor": 1, "element": "f32", "shape": [4, 1e20]}"#;
    line(shape, &["line 4: shape: invalid type: floating point"]);
    let two = r#"{"task": 1, "func": 0, "kind": "aiv", "name": 7, "blocks": -2}"#;
    line(two, &["line 4: ", ": invalid "]);
    line(r#"{"task": 1, "func": 1024, "kind": "aiv"}"#, &["func: 1024", "1024"]);
    line(r#"{"task": 1, "func": 0, "kind": "gpu"}"#, &["kind: no 'gpu'", "aic, aiv"]);
    line(r#"{"task": 1, "func": 0, "kind": "aiv", "priority": "top"}"#, &["priority", "urgent"]);
    line(r#"{"task": 1, "func": 0, "kind": "aiv", "publish": "never"}"#, &["publish", "later"]);
    line(r#"{"scope": "free"}"#, &["scope: no 'free'", "derived, explicit, manual"]);
    line(r#"{"end": "scope"}"#, &["no scope is open"]);
    line(r#"{"end": "record"}"#, &["no record is open"]);
    line(r#"{"end": "all"}"#, &["'all'", "scope"]);
    line(r#"{"replay": 3}"#, &["no record 3"]);
    line(r#"{"publish": 3}"#, &["no task 3"]);
    line(r#"{"record": 3}"#, &["record 3 does not end"]);
    line(r#"{"edge": [1]}"#, &["invalid length 1"]);
}

#[test]
fn tensors_that_cannot_be_are_refused() {
    line(r#"{"tensor": 0, "bytes": 4}"#, &["a tensor 0 already"]);
    line(r#"{"tensor": 1}"#, &["\"bytes\"", "\"shape\""]);
    line(r#"{"tensor": 1, "shape": [4]}"#, &["element"]);
    line(r#"{"tensor": 1, "element": "f33", "shape": [4]}"#, &["no 'f33'", "bf16"]);
    line(r#"{"tensor": 1, "element": "f32", "shape": [4], "bytes": 15}"#, &["15", "16"]);
    line(r#"{"tensor": 1, "element": "f32", "shape": [4, 0]}"#, &["shape", "no element"]);
    line(r#"{"tensor": 1, "element": "f32", "shape": [1, 1, 1, 1, 1, 1]}"#, &["shape", "5"]);
    line(r#"{"tensor": 1, "bytes": 4, "base": "4096"}"#, &["base: '4096'", "0x"]);
    line(r#"{"tensor": 1, "bytes": 4, "base": "0xffffffffffffffff"}"#, &["base", "not between"]);
    line(r#"{"tensor": 1, "bytes": 18446744073709551615}"#, &["at most"]);
    line(r#"{"alloc": 1, "element": "f64", "shape": [4294967295, 4294967295]}"#, &["shape"]);
}

#[test]
fn arguments_say_where_they_are_wrong() {
    let arg = |arg: &str, words: &[&str]| {
        line(&format!(r#"{{"task": 1, "func": 0, "kind": "aiv", "args": [0, {arg}]}}"#), words);
    };
    arg("-1", &["args[1]: -1", "64 bits"]);
    arg("0.5", &["args[1]: 0.5", "f32"]);
    arg(r#"{"f32": 1e300}"#, &["args[1].f32: 1e+300", "beyond the largest f32", "write \"inf\""]);
    arg(r#"{"f32": -3.5e38}"#, &["args[1].f32: -3.5e+38", "write \"-inf\""]);
    arg(r#"{"f32": "infinite"}"#, &["args[1].f32: it is a number, or one of"]);
    arg("\"x\"", &["args[1]", "an object with one of in"]);
    arg("{}", &["args[1]", "one of in"]);
    arg(r#"{"in": 0, "out": 0}"#, &["args[1]", "one of in"]);
    arg(r#"{"int": 0}"#, &["args[1]: unknown field 'int'"]);
    arg(r#"{"in": 0, "use": "read"}"#, &["args[1].use", "nodep"]);
    arg(r#"{"nodep": 0, "use": "both"}"#, &["args[1].nodep", "\"write\""]);
    arg(r#"{"in": 9}"#, &["args[1].in: no tensor 9", "declare it above"]);
    arg(r#"{"in": "a"}"#, &["args[1].in: a view is"]);
    arg(r#"{"in": 1.5}"#, &["args[1].in: 1.5 is not the id"]);
    arg(r#"{"in": {"tensor": 0, "shapes": [1]}}"#, &["args[1].in: unknown field `shapes`"]);
    arg(r#"{"in": {"tensor": 0, "offset": 1}}"#, &["args[1].in", "want a \"shape\""]);
    arg(r#"{"in": {"tensor": 0, "shape": [4], "strides": []}}"#, &["1 extents and 0 strides"]);
    arg(r#"{"in": {"tensor": 0, "shape": [1, 1, 1, 1, 1, 1]}}"#, &["6 extents", "at most 5"]);
    arg(
        r#"{"in": {"tensor": 0, "shape": [17]}}"#,
        &["args[1].in: tensor 0 has 64 bytes", "outside"],
    );
    arg(r#"{"in": {"tensor": 0, "shape": [0]}}"#, &["args[1].in", "none"]);
    arg(r#"{"in": {"tensor": 0, "element": "f64", "shape": [9]}}"#, &["outside"]);
    arg(r#"{"in": {"tensor": 0, "element": "f16x", "shape": [9]}}"#, &["args[1].in.element"]);
    arg(r#"{"bound": -3}"#, &["args[1].bound", "bound scalar"]);
    line(r#"{"get": 0}"#, &["get: it is one element"]);
    let when =
        r#"{"task": 1, "func": 0, "kind": "aiv", "when": {"element": 0, "is": ">", "value": 1}}"#;
    line(when, &["when.element: it is one element"]);
    let args = vec!["0"; 129].join(", ");
    line(
        &format!(r#"{{"task": 1, "func": 0, "kind": "aiv", "args": [{args}]}}"#),
        &["args: 129", "128"],
    );
}

#[test]
fn ids_are_given_once() {
    let task = r#"{"task": 1, "func": 0, "kind": "aiv"}"#;
    refused(&format!("{HEADER}\n{task}\n{task}\n"), &["line 3", "1 is the id", "line 2"]);
    let record = "{\"record\": 5}\n{\"end\": \"record\"}\n";
    refused(&format!("{HEADER}\n{record}{record}"), &["line 4", "record: 5", "line 2"]);
}

#[test]
fn graphs_have_tasks_edges_tensors_and_publishes_only() {
    let header = HEADER.replace("tensormap_and_ringbuffer", "host_build_graph");
    let with = |line: &str, words: &[&str]| refused(&format!("{header}\n{line}"), words);
    with(r#"{"scope": "manual"}"#, &["line 2: scope", "host_build_graph"]);
    with(r#"{"get": 0}"#, &["get"]);
    with(r#"{"task": 0, "func": 0, "kind": "aiv", "blocks": 2}"#, &["blocks"]);
}

/// Whatever is in a file, reading ends with a program or a message.
#[test]
fn no_file_breaks_the_reader() {
    let program = r#"{"tensor": 0, "element": "f32", "shape": [4, 4]}
{"scope": "derived"}
{"alloc": 1, "element": "f32", "shape": [4]}
{"task": 0, "func": 3, "kind": "aiv", "args": [{"in": 0}, {"out": {"tensor": 1, "shape": [2]}}, 7], "after": [0]}
{"end": "scope"}
{"record": 2, "tensors": [{"tensor": 9, "element": "i8", "shape": [3], "strides": [2]}]}
{"task": 5, "func": 3, "kind": "aic", "args": [{"inout": 9}]}
{"end": "record"}
{"replay": 2, "tensors": [{"tensor": 0, "element": "i8", "shape": [3], "strides": [2]}]}
"#;
    let text = format!("{HEADER}\n{program}");
    assert!(file::read(text.as_bytes()).is_ok());
    let mut seed = 3_u64;
    let mut random = |below: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        usize::try_from(seed >> 33).unwrap() % below
    };
    for _ in 0..3000 {
        let mut bytes = text.clone().into_bytes();
        for _ in 0..1 + random(3) {
            let at = random(bytes.len());
            match random(3) {
                0 => bytes[at] = b"0129-{}[]\":,\n x"[random(15)],
                1 => drop(bytes.remove(at)),
                _ => bytes.insert(at, b"0129{}[]\""[random(9)]),
            }
        }
        if let Ok(program) = file::read(bytes.as_slice()) {
            // Who reads it can be checked as well.
            let _ = crate::checked(&program, crate::small());
        }
    }
}
