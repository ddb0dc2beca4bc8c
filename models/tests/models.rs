//! Models that this test writes itself: what they become, what they give, and what is refused with which words.
//!
//! Expected values are computed here, by loops over numbers, and not by operators.
#![expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "indices of small tensors"
)]

use std::collections::BTreeMap;

use prost::Message;
use pto_host::graph::NoBuilders;
use pto_host::{Device, DeviceOptions, RunOptions, SessionOptions};
use pto_models::proto::{
    AttributeProto, Dimension, DimensionValue, FunctionProto, GraphProto, ModelProto, NodeProto,
    OperatorSetIdProto, StringStringEntryProto, TensorProto, TensorShapeProto, TensorTypeProto,
    TypeProto, TypeValue, ValueInfoProto, attribute_type,
};
use pto_models::{Built, Extent, Given, Model, ModelError, Runner, operator_types, parse_shape};
use pto_operators::{LowerOptions, Tensor};

const FLOAT: i32 = 1;
const INT64: i32 = 7;
const STRING: i32 = 8;
const BOOL: i32 = 9;

fn info(name: &str, elem_type: i32, dims: &[&str]) -> ValueInfoProto {
    let dim = |text: &&str| {
        let value = match text.parse() {
            Ok(number) => DimensionValue::Value(number),
            Err(_) => DimensionValue::Param((*text).to_owned()),
        };
        Dimension { value: Some(value) }
    };
    let shape = TensorShapeProto { dim: dims.iter().map(dim).collect() };
    let tensor = TensorTypeProto { elem_type, shape: Some(shape) };
    ValueInfoProto {
        name: name.to_owned(),
        r#type: Some(TypeProto { value: Some(TypeValue::Tensor(tensor)) }),
    }
}

fn node(op_type: &str, inputs: &[&str], outputs: &[&str]) -> NodeProto {
    let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    NodeProto {
        op_type: op_type.to_owned(),
        input: owned(inputs),
        output: owned(outputs),
        ..NodeProto::default()
    }
}

fn with_ints(mut node: NodeProto, name: &str, ints: &[i64]) -> NodeProto {
    let attribute = AttributeProto {
        name: name.to_owned(),
        r#type: attribute_type::INTS,
        ints: ints.to_vec(),
        ..AttributeProto::default()
    };
    node.attribute.push(attribute);
    node
}

fn with_int(mut node: NodeProto, name: &str, i: i64) -> NodeProto {
    node.attribute.push(AttributeProto {
        name: name.to_owned(),
        r#type: attribute_type::INT,
        i,
        ..AttributeProto::default()
    });
    node
}

fn with_text(mut node: NodeProto, name: &str, text: &str) -> NodeProto {
    node.attribute.push(AttributeProto {
        name: name.to_owned(),
        r#type: attribute_type::STRING,
        s: text.as_bytes().to_vec(),
        ..AttributeProto::default()
    });
    node
}

fn with_graph(mut node: NodeProto, name: &str, graph: GraphProto) -> NodeProto {
    let attribute = AttributeProto {
        name: name.to_owned(),
        r#type: attribute_type::GRAPH,
        g: Some(graph),
        ..AttributeProto::default()
    };
    node.attribute.push(attribute);
    node
}

fn floats(name: &str, dims: &[i64], values: &[f32]) -> TensorProto {
    TensorProto {
        name: name.to_owned(),
        dims: dims.to_vec(),
        data_type: FLOAT,
        float_data: values.to_vec(),
        ..TensorProto::default()
    }
}

fn ints(name: &str, values: &[i64]) -> TensorProto {
    let dims = vec![values.len() as i64];
    TensorProto {
        name: name.to_owned(),
        dims,
        data_type: INT64,
        int64_data: values.to_vec(),
        ..TensorProto::default()
    }
}

fn graph(
    nodes: Vec<NodeProto>,
    constants: Vec<TensorProto>,
    inputs: Vec<ValueInfoProto>,
    outputs: &[&str],
) -> GraphProto {
    GraphProto {
        name: "tested".to_owned(),
        node: nodes,
        initializer: constants,
        input: inputs,
        output: outputs.iter().map(|name| info(name, FLOAT, &[])).collect(),
        ..GraphProto::default()
    }
}

fn model_of(graph: GraphProto) -> ModelProto {
    let opset = OperatorSetIdProto { domain: String::new(), version: 18 };
    ModelProto {
        ir_version: 9,
        graph: Some(graph),
        opset_import: vec![opset],
        ..ModelProto::default()
    }
}

fn read(proto: &ModelProto) -> Model {
    Model::from_bytes(&proto.encode_to_vec()).expect("the test has written a model")
}

fn refused(proto: &ModelProto, given: &Given) -> String {
    match Model::from_bytes(&proto.encode_to_vec()).and_then(|model| model.build(given)) {
        Ok(_) => panic!("it was not refused"),
        Err(error) => error.to_string(),
    }
}

fn values(all: &[(&str, Tensor)]) -> BTreeMap<String, Tensor> {
    all.iter().map(|(name, tensor)| ((*name).to_owned(), tensor.clone())).collect()
}

fn tensor(shape: &[usize], values: &[f32]) -> Tensor {
    Tensor::from_elements(shape, values).expect("as many as the shape says")
}

/// The first output of a model, computed on a simulated device.
fn on_device(built: &Built, values: &BTreeMap<String, Tensor>) -> Result<Tensor, ModelError> {
    let options = DeviceOptions { aic: 2, aiv: 4, gm_bytes: 64 << 20, ..DeviceOptions::default() };
    let mut device = Device::open_sim(options, NoBuilders).expect("a device");
    device.register_library().expect("there is room for the library");
    let run = RunOptions { aicpu_instances: 2, ..RunOptions::default() };
    let session =
        device.session(SessionOptions { run, ..SessionOptions::default() }).expect("a session");
    let runner = Runner::new(&session)?;
    let model = runner.load(built.lower(&LowerOptions::default())?)?;
    let first = runner.run(&model, values)?;
    let second = runner.run(&model, values)?;
    assert!(first == second, "a model gives the same each time");
    Ok(first.into_iter().next().expect("an output").1)
}

/// A convolution, its normalisation and a function, then a product with a bias.
fn network() -> ModelProto {
    let nodes = vec![
        with_ints(node("Conv", &["x", "w"], &["c"]), "pads", &[1, 1, 1, 1]),
        node("BatchNormalization", &["c", "scale", "bias", "mean", "variance"], &["n"]),
        node("Relu", &["n"], &["r"]),
        node("GlobalAveragePool", &["r"], &["p"]),
        node("Flatten", &["p"], &["f"]),
        node("MatMul", &["f", "m"], &["q"]),
        node("Add", &["q", "b"], &["y"]),
    ];
    let weights: Vec<f32> = (0..54).map(|at| (at % 7) as f32 / 7.0 - 0.4).collect();
    let constants = vec![
        floats("w", &[2, 3, 3, 3], &weights),
        floats("scale", &[2], &[1.5, -0.5]),
        floats("bias", &[2], &[0.1, 0.7]),
        floats("mean", &[2], &[0.2, -0.3]),
        floats("variance", &[2], &[0.5, 2.0]),
        floats("m", &[2, 4], &[1.0, 2.0, 3.0, 4.0, -1.0, 0.5, 0.25, -2.0]),
        floats("b", &[4], &[0.5, 0.0, -0.5, 1.0]),
    ];
    model_of(graph(nodes, constants, vec![info("x", FLOAT, &["N", "3", "4", "5"])], &["y"]))
}

/// The same network by loops, in `f64`.
fn network_by_loops(x: &[f32], batch: usize) -> Vec<f64> {
    let weight = |o: usize, c: usize, i: usize, j: usize| {
        f64::from(((o * 27 + c * 9 + i * 3 + j) % 7) as f32 / 7.0 - 0.4)
    };
    let (scale, bias, mean, variance) = ([1.5, -0.5], [0.1, 0.7], [0.2, -0.3], [0.5, 2.0]);
    let product = [[1.0, 2.0, 3.0, 4.0], [-1.0, 0.5, 0.25, -2.0]];
    let added = [0.5, 0.0, -0.5, 1.0];
    let mut result = Vec::new();
    for n in 0..batch {
        let mut pooled = [0.0; 2];
        for (o, pooled) in pooled.iter_mut().enumerate() {
            for row in 0..4_i64 {
                for column in 0..5_i64 {
                    let mut sum = 0.0;
                    for c in 0..3 {
                        for i in 0..3_i64 {
                            for j in 0..3_i64 {
                                let (y, x_at) = (row + i - 1, column + j - 1);
                                if (0..4).contains(&y) && (0..5).contains(&x_at) {
                                    let at = ((n * 3 + c) * 4 + y as usize) * 5 + x_at as usize;
                                    sum += f64::from(x[at]) * weight(o, c, i as usize, j as usize);
                                }
                            }
                        }
                    }
                    let normal =
                        (sum - mean[o]) / (variance[o] + 1e-5_f64).sqrt() * scale[o] + bias[o];
                    *pooled += normal.max(0.0) / 20.0;
                }
            }
        }
        result.extend(
            (0..4).map(|k| pooled[0] * product[0][k] + pooled[1] * product[1][k] + added[k]),
        );
    }
    result
}

fn near(found: &Tensor, wanted: &[f64]) {
    assert_eq!(found.ty().elements(), wanted.len());
    for (found, wanted) in found.to_doubles().into_iter().zip(wanted) {
        assert!(
            (found - wanted).abs() <= 1e-5 + 1e-5 * wanted.abs(),
            "{found} is not near {wanted}"
        );
    }
}

#[test]
fn a_network_runs_with_three_batches_and_its_layers_are_fused() {
    let model = read(&network());
    for batch in [1, 2, 5] {
        let numbers: Vec<f32> =
            (0..batch * 60).map(|at| ((at * 37) % 101) as f32 / 50.0 - 1.0).collect();
        let given = values(&[("x", tensor(&[batch, 3, 4, 5], &numbers))]);
        let built =
            model.build(&Given { values: given.clone(), ..Given::default() }).expect("it builds");
        let names: Vec<_> = built.graph.nodes().iter().map(|node| node.operator.name()).collect();
        assert_eq!(names, ["Conv", "GlobalPool", "Flatten", "MatMul"], "the others went along");
        assert!(built.decided.is_empty());
        let wanted = network_by_loops(&numbers, batch);
        near(&on_device(&built, &given).expect("it runs"), &wanted);
    }
}

#[test]
fn extents_with_names_are_bound_by_inputs_and_have_to_agree() {
    let two = graph(
        vec![node("Add", &["x", "y"], &["z"])],
        Vec::new(),
        vec![info("x", FLOAT, &["N", "3"]), info("y", FLOAT, &["N", "3"])],
        &["z"],
    );
    let proto = model_of(two);
    let text = refused(&proto, &Given::default());
    assert_eq!(
        text,
        "input x: its extents [N, 3] are not all known; give them with --shape x=.., or a file with --input"
    );
    let shapes = |x: &[usize], y: &[usize]| Given {
        shapes: [("x".to_owned(), x.to_vec()), ("y".to_owned(), y.to_vec())].into(),
        ..Given::default()
    };
    assert_eq!(refused(&proto, &shapes(&[2, 3], &[4, 3])), "input y: N is 4 here, and 2 elsewhere");
    assert_eq!(
        refused(&proto, &shapes(&[2, 4], &[2, 4])),
        "input x: the model has the extents [N, 3], and [2, 4] is given"
    );
    let symbols = Given { symbols: [("N".to_owned(), 7)].into(), ..Given::default() };
    let built = read(&proto).build(&symbols).expect("the name is known");
    assert_eq!(built.graph.value(built.graph.outputs()[0].1).ty.shape, [7, 3]);

    let mut model = read(&proto);
    let (name, shape) = parse_shape("x=batch,3").expect("a shape");
    assert_eq!(
        (name.as_str(), &shape[..]),
        ("x", &[Extent::Named("batch".to_owned()), Extent::Fixed(3)][..])
    );
    model.set_shape(&name, shape).expect("it fits");
    let error =
        model.set_shape("x", vec![Extent::Fixed(1), Extent::Fixed(4)]).expect_err("3 is not 4");
    assert_eq!(
        error.to_string(),
        "input x: the model has the extents [batch, 3], and [1, 4] do not fit them"
    );
    assert!(
        parse_shape("x").is_err() && parse_shape("x=1,,2").is_err() && parse_shape("x=-1").is_err()
    );
    assert_eq!(parse_shape("s="), Ok(("s".to_owned(), Vec::new())));
}

#[test]
fn values_that_decide_shapes_become_part_of_the_model() {
    let nodes = vec![node("Reshape", &["x", "s"], &["r"]), node("Relu", &["r"], &["y"])];
    let inputs = vec![info("x", FLOAT, &["6"]), info("s", INT64, &["2"])];
    let proto = model_of(graph(nodes, Vec::new(), inputs, &["y"]));
    let text = refused(&proto, &Given::default());
    assert!(
        text.contains("input 1 (shape) decides a shape, and depends on the values of s"),
        "{text}"
    );
    let given = values(&[
        ("x", tensor(&[6], &[-1.0, 2.0, -3.0, 4.0, 5.0, -6.0])),
        ("s", Tensor::vector(&[2_i64, -1])),
    ]);
    let built = read(&proto)
        .build(&Given { values: given.clone(), ..Given::default() })
        .expect("it builds");
    assert_eq!(built.decided.keys().collect::<Vec<_>>(), ["s"]);
    let y = on_device(&built, &given).expect("it runs");
    assert_eq!((y.shape(), y.to_doubles()), (&[2, 3][..], vec![0.0, 2.0, 0.0, 4.0, 5.0, 0.0]));
}

#[test]
fn shapes_are_folded_and_a_branch_that_is_known_is_inlined() {
    let branch = |output: &str, op: &str| {
        graph(vec![node(op, &["x"], &[output])], Vec::new(), Vec::new(), &[output])
    };
    let choice = with_graph(node("If", &["is_long"], &["y"]), "then_branch", branch("a", "Neg"));
    let nodes = vec![
        node("Shape", &["x"], &["s"]),
        node("Gather", &["s", "first"], &["extent"]),
        node("Greater", &["extent", "limit"], &["is_long"]),
        with_graph(choice, "else_branch", branch("b", "Abs")),
    ];
    let constants = vec![ints("first", &[0]), ints("limit", &[3])];
    let proto = model_of(graph(nodes, constants, vec![info("x", FLOAT, &["n"])], &["y"]));
    for (numbers, wanted) in [
        (vec![-1.0, 2.0], vec![1.0, 2.0]),
        (vec![-1.0, 2.0, 3.0, -4.0], vec![1.0, -2.0, -3.0, 4.0]),
    ] {
        let given = values(&[("x", tensor(&[numbers.len()], &numbers))]);
        let built = read(&proto)
            .build(&Given { values: given.clone(), ..Given::default() })
            .expect("it builds");
        assert_eq!(built.graph.nodes().len(), 1, "everything else is known before a run");
        assert!(built.decided.is_empty(), "extents decide, and no values");
        assert_eq!(on_device(&built, &given).expect("it runs").to_doubles(), wanted);
    }
}

#[test]
fn a_run_that_fails_names_operator_and_node() {
    let look_up =
        NodeProto { name: "look_up".to_owned(), ..node("Gather", &["x", "index"], &["y"]) };
    let inputs = vec![info("x", FLOAT, &["4"]), info("index", INT64, &["1"])];
    let proto = model_of(graph(vec![look_up], Vec::new(), inputs, &["y"]));
    let given =
        values(&[("x", tensor(&[4], &[1.0, 2.0, 3.0, 4.0])), ("index", Tensor::vector(&[9_i64]))]);
    let built = read(&proto).build(&Given::default()).expect("it builds");
    let why = on_device(&built, &given).expect_err("9 stands for no element").to_string();
    let wanted = "operator Gather of node look_up: the index is 9, and the axis has 4 elements";
    assert_eq!(why, wanted);
}

#[test]
fn a_loop_is_unrolled() {
    let body = GraphProto {
        node: vec![node("Identity", &["go"], &["go_on"]), node("Add", &["sum", "x"], &["next"])],
        input: vec![info("turn", INT64, &[]), info("go", BOOL, &[]), info("sum", FLOAT, &["2"])],
        output: vec![info("go_on", BOOL, &[]), info("next", FLOAT, &["2"])],
        ..GraphProto::default()
    };
    let mut most = ints("most", &[3]);
    most.dims.clear();
    let nodes = vec![with_graph(node("Loop", &["most", "", "x"], &["y"]), "body", body)];
    let proto = model_of(graph(nodes, vec![most], vec![info("x", FLOAT, &["2"])], &["y"]));
    let given = values(&[("x", tensor(&[2], &[1.0, -2.0]))]);
    let built = read(&proto)
        .build(&Given { values: given.clone(), ..Given::default() })
        .expect("it builds");
    assert_eq!(on_device(&built, &given).expect("it runs").to_doubles(), [4.0, -8.0]);
}

#[test]
fn every_node_that_cannot_be_translated_is_told_at_once() {
    let mut foreign = node("FusedThing", &["x"], &["b"]);
    foreign.domain = "com.example".to_owned();
    let mut own = node("MyFunction", &["x"], &["c"]);
    own.domain = "own".to_owned();
    let nodes = vec![
        node("NoSuchThing", &["x"], &["a"]),
        foreign,
        own,
        with_int(node("Relu", &["x"], &["d"]), "speed", 3),
        node("MatMul", &["x", "x"], &["e"]),
        node("Add", &["a", "e"], &["f"]),
        node("Neg", &["nowhere"], &["g"]),
    ];
    let mut proto =
        model_of(graph(nodes, Vec::new(), vec![info("x", FLOAT, &["2", "3"])], &["f", "g"]));
    proto.functions.push(FunctionProto { name: "MyFunction".to_owned(), domain: "own".to_owned() });
    let text = refused(&proto, &Given::default());
    let wanted = [
        "6 nodes cannot become operators; nothing has run",
        "  node a (NoSuchThing, version 18): there is no such operator here",
        "  node b (com.example.FusedThing, version 0): operators of the domain com.example are not supported",
        "  node c (own.MyFunction, version 0): it is a function of the model, and these are not supported",
        "  node d (Relu, version 18): attribute speed is not known for this version",
        "  node e (MatMul, version 18): operator MatMul, ",
        "  node g (Neg, version 18): input nowhere is neither a constant nor made by a node in front of this one",
    ];
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines.len(), wanted.len(), "{text}");
    for (line, wanted) in lines.iter().zip(wanted) {
        assert!(line.starts_with(wanted), "{line} does not begin with {wanted}");
    }
}

#[test]
fn inputs_of_types_that_are_not_here_are_named() {
    let proto = model_of(graph(
        vec![node("Identity", &["x"], &["y"])],
        Vec::new(),
        vec![info("x", STRING, &["2"])],
        &["y"],
    ));
    let text = refused(&proto, &Given::default());
    assert!(
        text.contains("node x (input, version 18): elements of type string are not supported"),
        "{text}"
    );
}

#[test]
fn bad_files_are_refused_with_what_is_wrong() {
    assert!(
        Model::from_bytes(&[0xFF; 9])
            .expect_err("noise")
            .to_string()
            .starts_with("this is no ONNX file: ")
    );
    assert_eq!(
        Model::from_bytes(&[]).expect_err("nothing").to_string(),
        "this ONNX file has no graph"
    );
    let mut newer = network();
    newer.opset_import[0].version = 99;
    assert!(refused(&newer, &Given::default()).contains("written for version 99 of the operators"));
    let mut nowhere = network();
    nowhere.opset_import.clear();
    let shapes = [("x".to_owned(), vec![1, 3, 4, 5])].into();
    let text = refused(&nowhere, &Given { shapes, ..Given::default() });
    assert!(text.contains("imports no version of the operators"), "{text}");

    let with = |change: fn(&mut TensorProto)| {
        let mut proto = network();
        let graph = proto.graph.as_mut().expect("a graph");
        change(&mut graph.initializer[6]);
        let shape = [("x".to_owned(), vec![1, 3, 4, 5])].into();
        refused(&proto, &Given { shapes: shape, ..Given::default() })
    };
    type Change = fn(&mut TensorProto);
    let cases: [(Change, &str); 7] = [
        (|b| b.float_data.truncate(3), "f32[4] takes 16 bytes, and the file has 12 of it"),
        (|b| b.dims[0] = -4, "it has an extent of -4"),
        (|b| b.data_type = 77, "there is no element type 77 in ONNX"),
        (|b| b.data_type = 17, "elements of type float8e4m3fn are not supported"),
        (|b| b.raw_data = Some(vec![0; 16]), "it has raw_data and elements in another field"),
        (|b| b.dims = vec![i64::MAX, i64::MAX], "has more bytes than the"),
        (|b| b.data_location = 1, "its elements stand in another file, which is not named"),
    ];
    for (change, wanted) in cases {
        let text = with(change);
        assert!(
            text.contains("node b (initializer, version 18): ") && text.contains(wanted),
            "{text}: {wanted}"
        );
    }
}

#[test]
fn elements_in_files_of_their_own_are_read_from_the_folder_of_the_model_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    let home = folder.path().join("model");
    std::fs::create_dir(&home).expect("a folder");
    let numbers: Vec<u8> =
        [7.0_f32, 1.0, 2.0, 3.0].iter().flat_map(|value| value.to_le_bytes()).collect();
    std::fs::write(home.join("weights.bin"), &numbers).expect("a file");
    std::fs::write(folder.path().join("secret.bin"), &numbers).expect("a file");
    let proto = |location: &str, offset: &str| {
        let entry = |key: &str, value: &str| StringStringEntryProto {
            key: key.to_owned(),
            value: value.to_owned(),
        };
        let w = TensorProto {
            name: "w".to_owned(),
            dims: vec![3],
            data_type: FLOAT,
            data_location: 1,
            external_data: vec![
                entry("location", location),
                entry("offset", offset),
                entry("length", "12"),
            ],
            ..TensorProto::default()
        };
        model_of(graph(
            vec![node("Add", &["x", "w"], &["y"])],
            vec![w],
            vec![info("x", FLOAT, &["3"])],
            &["y"],
        ))
    };
    let build = |proto: &ModelProto| {
        let path = home.join("model.onnx");
        std::fs::write(&path, proto.encode_to_vec()).expect("a file");
        Model::read(&path).expect("a model").build(&Given::default())
    };
    let built = build(&proto("weights.bin", "4")).expect("the file has them");
    let x = values(&[("x", tensor(&[3], &[0.5, 0.5, 0.5]))]);
    assert_eq!(on_device(&built, &x).expect("it runs").to_doubles(), [1.5, 2.5, 3.5]);
    for (location, offset, wanted) in [
        ("../secret.bin", "0", "which is not in the folder of the model"),
        ("weights.bin", "8", "its elements are bytes 8 to 20 of"),
        ("missing.bin", "0", "which cannot be read"),
    ] {
        let text = build(&proto(location, offset)).expect_err("it is not there").to_string();
        assert!(text.contains(wanted), "{text}");
    }
    let text = refused(&proto("weights.bin", "0"), &Given::default());
    assert!(text.contains("a model from memory has no folder to look in"), "{text}");
}

#[test]
fn every_way_to_write_elements_is_read() {
    let typed = |data_type: i32, fill: &dyn Fn(&mut TensorProto)| {
        let mut proto = TensorProto { data_type, dims: vec![2], ..TensorProto::default() };
        fill(&mut proto);
        pto_models::tensor_of(proto, None).expect("two elements").to_doubles()
    };
    for data_type in [2, 3, 4, 5, 6] {
        assert_eq!(
            typed(data_type, &|t| t.int32_data = vec![1, 100]),
            [1.0, 100.0],
            "type {data_type}"
        );
    }
    assert_eq!(typed(9, &|t| t.int32_data = vec![0, 1]), [0.0, 1.0]);
    assert_eq!(typed(10, &|t| t.int32_data = vec![0x3C00, 0xC000]), [1.0, -2.0]);
    assert_eq!(typed(16, &|t| t.int32_data = vec![0x3F80, 0xC000]), [1.0, -2.0]);
    assert_eq!(typed(7, &|t| t.int64_data = vec![-3, 4]), [-3.0, 4.0]);
    assert_eq!(typed(11, &|t| t.double_data = vec![0.25, -8.0]), [0.25, -8.0]);
    assert_eq!(typed(12, &|t| t.uint64_data = vec![5, 6]), [5.0, 6.0]);
    assert_eq!(typed(13, &|t| t.uint64_data = vec![7, 8]), [7.0, 8.0]);
    assert_eq!(typed(5, &|t| t.raw_data = Some(vec![0xFF, 0xFF, 2, 0])), [-1.0, 2.0]);
}

/// A grid that changes nothing reads every pixel as it is; one that is moved by half a pixel reads between them, and what is outside says `padding_mode`.
#[test]
fn a_picture_is_read_between_its_pixels() {
    let size = ints("size", &[1, 1, 2, 3]);
    let picture = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0];
    // Half a pixel to the right: a pixel is 2 / 3 wide.
    let shifted = |padding: &str| {
        let sample = with_text(node("GridSample", &["x", "grid"], &["y"]), "padding_mode", padding);
        let nodes = vec![node("AffineGrid", &["theta", "size"], &["grid"]), sample];
        let mut proto = model_of(graph(
            nodes,
            vec![size.clone()],
            vec![info("x", FLOAT, &["1", "1", "2", "3"]), info("theta", FLOAT, &["1", "2", "3"])],
            &["y"],
        ));
        proto.opset_import[0].version = 20;
        proto
    };
    let right = 1.0 / 3.0;
    for (padding, offset, wanted) in [
        ("zeros", 0.0, [1.0, 2.0, 4.0, 8.0, 16.0, 32.0]),
        ("zeros", right, [1.5, 3.0, 2.0, 12.0, 24.0, 16.0]),
        ("border", right, [1.5, 3.0, 4.0, 12.0, 24.0, 32.0]),
        ("reflection", 2.0 * right, [2.0, 4.0, 4.0, 16.0, 32.0, 32.0]),
    ] {
        let theta = tensor(&[1, 2, 3], &[1.0, 0.0, offset, 0.0, 1.0, 0.0]);
        let given = values(&[("x", tensor(&[1, 1, 2, 3], &picture)), ("theta", theta)]);
        let built = read(&shifted(padding))
            .build(&Given { values: given.clone(), ..Given::default() })
            .expect("it builds");
        near(&on_device(&built, &given).expect("it runs"), &wanted);
    }
}

/// The first output of a model whose inputs all decide its shapes: it is known when the model is built.
fn known(nodes: Vec<NodeProto>, constants: Vec<TensorProto>) -> Tensor {
    let built = read(&model_of(graph(nodes, constants, Vec::new(), &["y"])))
        .build(&Given::default())
        .expect("it builds");
    let output = built.graph.outputs()[0].1;
    built.graph.value(output).constant.clone().expect("it is known")
}

#[test]
fn boxes_that_overlap_a_better_one_are_left_out() {
    let boxes = [0.0, 0.0, 1.0, 1.0, 0.0, 0.1, 1.0, 1.1, 0.0, 5.0, 1.0, 6.0];
    let kept = |limit: f32, most: i64| {
        let constants = vec![
            floats("boxes", &[1, 3, 4], &boxes),
            floats("scores", &[1, 1, 3], &[0.7, 0.9, 0.5]),
            ints("most", &[most]),
            floats("limit", &[1], &[limit]),
        ];
        let nodes = vec![node("NonMaxSuppression", &["boxes", "scores", "most", "limit"], &["y"])];
        known(nodes, constants).to_doubles()
    };
    // The first two share 0.9 of 1.1.
    assert_eq!(kept(0.5, 3), [0.0, 0.0, 1.0, 0.0, 0.0, 2.0]);
    assert_eq!(kept(0.9, 3), [0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 2.0]);
    assert_eq!(kept(0.9, 1), [0.0, 0.0, 1.0]);
    assert_eq!(kept(0.9, 0), [] as [f64; 0]);
}

/// A plane has the value of its middle as the mean of a cell.
#[test]
fn regions_are_read_in_cells() {
    let plane: Vec<f32> = (0..8).flat_map(|y| (0..8).map(move |x| (10 * y + x) as f32)).collect();
    let constants = vec![
        floats("x", &[1, 1, 8, 8], &plane),
        floats("rois", &[1, 4], &[1.0, 2.0, 5.0, 6.0]),
        ints("batch", &[0]),
    ];
    let mut align = node("RoiAlign", &["x", "rois", "batch"], &["y"]);
    for (name, value) in [("output_height", 2), ("output_width", 2), ("sampling_ratio", 2)] {
        align = with_int(align, name, value);
    }
    // A cell is 2 x 2 pixels, and pixel 0 lies from -0.5 to 0.5: the first cell's middle is row 2.5, column 1.5.
    near(&known(vec![align], constants), &[26.5, 28.5, 46.5, 48.5]);
}

/// A convolution with ones adds four pixels; the first of them is read half a row further down.
#[test]
fn a_window_reads_its_points_at_places_of_their_own() {
    let mut offsets = [0.0; 32];
    offsets[..4].fill(0.5);
    let constants = vec![
        floats("x", &[1, 1, 3, 3], &[0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]),
        floats("w", &[1, 1, 2, 2], &[1.0; 4]),
        floats("offset", &[1, 8, 2, 2], &offsets),
    ];
    let found = known(vec![node("DeformConv", &["x", "w", "offset"], &["y"])], constants);
    near(&found, &[9.5, 13.5, 21.5, 25.5]);
}

#[test]
fn parts_of_a_signal_are_transformed() {
    let constants = vec![
        floats("x", &[1, 6, 1], &[1.0, 1.0, 1.0, 1.0, 0.0, 0.0]),
        ints("step", &[2]),
        floats("window", &[4], &[1.0, 2.0, 1.0, 2.0]),
    ];
    let nodes = vec![node("STFT", &["x", "step", "window"], &["y"])];
    let found = known(nodes, constants);
    assert_eq!(found.shape(), [1, 2, 3, 2]);
    // 1 2 1 2, and 1 2 0 0.
    near(&found, &[6.0, 0.0, 0.0, 0.0, -2.0, 0.0, 3.0, 0.0, 1.0, -2.0, -1.0, 0.0]);
}

/// The page lists the types of nodes: it cannot name one that is not here, or miss one that is.
#[test]
fn the_page_names_every_type_of_node() {
    let page =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/how-to/models.md"))
            .expect("the page");
    let (_, rest) = page.split_once("<!-- the types of nodes -->").expect("the list begins");
    let (list, _) = rest.split_once("<!-- end -->").expect("the list ends");
    let listed: Vec<_> = list
        .split(|letter: char| !letter.is_ascii_alphanumeric())
        .filter(|word| !word.is_empty())
        .collect();
    let known: Vec<_> = operator_types().collect();
    assert_eq!(listed, known, "write this into the page: {}", known.join(", "));
}
