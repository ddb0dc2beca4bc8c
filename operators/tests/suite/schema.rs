//! The table of operators by name: an operator goes through its attributes, and what is no attribute is refused by name.

use std::collections::BTreeSet;

use pto_operators::{AttributeValue, Operator, OperatorSchema};

use crate::random::case;

fn row(function: &str) -> &'static OperatorSchema {
    OperatorSchema::all().iter().find(|row| row.function == function).unwrap()
}

fn refusal(function: &str, given: &[(&str, AttributeValue)]) -> String {
    let given: Vec<_> =
        given.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
    row(function).operator(&given).unwrap_err().to_string()
}

fn text(text: &str) -> AttributeValue {
    AttributeValue::Text(text.to_owned())
}

#[test]
fn operators_are_made_of_their_attributes() {
    let mut seen = BTreeSet::new();
    for seed in 0..2000 {
        let (operator, inputs) = case(seed);
        // A fused operator is made of others, and the larger or smaller one of two is that of several.
        let Some(row) = OperatorSchema::of(&operator) else { continue };
        let values = row.values(&operator).unwrap();
        assert_eq!(row.operator(&values).unwrap(), operator, "seed {seed}: {values:?}");
        assert_eq!(row.name, operator.name());
        let given = inputs.iter().rposition(Option::is_some).map_or(0, |last| last + 1);
        assert!(row.takes_more || given <= row.inputs.len(), "seed {seed}: {operator:?}");
        seen.insert(row.function.as_str());
    }
    assert!(seen.len() > 100, "{} functions: {seen:?}", seen.len());
}

#[test]
fn names_are_unique_and_can_be_those_of_functions() {
    let mut names = BTreeSet::new();
    for row in OperatorSchema::all() {
        assert!(names.insert(row.function.clone()), "{} is there twice", row.function);
        let is_name = |name: &str| {
            name.starts_with(|first: char| first.is_ascii_lowercase())
                && name
                    .chars()
                    .all(|one| one.is_ascii_lowercase() || one.is_ascii_digit() || one == '_')
        };
        let attributes = row.attributes.iter().map(|one| one.name);
        let arguments: Vec<_> = row.inputs.iter().copied().chain(attributes).collect();
        assert!(
            is_name(&row.function) && arguments.iter().all(|name| is_name(name)),
            "{}",
            row.name
        );
        let different: BTreeSet<_> = arguments.iter().collect();
        assert_eq!(different.len(), arguments.len(), "{}: {arguments:?}", row.name);
        assert!(!row.about.is_empty() && row.attributes.iter().all(|one| !one.about.is_empty()));
    }
    for name in
        ["add", "matmul", "reduce_log_sum_exp", "argmax", "layer_normalization", "logical_and"]
    {
        assert!(names.contains(name), "{name}");
    }
}

#[test]
fn what_is_no_attribute_is_refused_by_name() {
    let number = AttributeValue::Integer;
    assert_eq!(
        refusal("softmax", &[("axes", number(1))]),
        "operator Softmax: there is no attribute axes; it has axis"
    );
    assert_eq!(
        refusal("softmax", &[("axis", number(1)), ("axis", number(1))]),
        "operator Softmax: attribute axis is there twice; give it once"
    );
    assert_eq!(
        refusal("split", &[]),
        "operator Split, attribute sizes: is missing; give a list of integers from 0 on"
    );
    assert_eq!(
        refusal("split", &[("sizes", AttributeValue::List(vec![number(2), number(-1)]))]),
        "operator Split, attribute sizes: at 1 is -1; give an integer from 0 on"
    );
    assert_eq!(
        refusal("pad", &[("pads", AttributeValue::List(vec![])), ("mode", text("mirror"))]),
        "operator Pad, attribute mode: is 'mirror'; give one of constant, reflect, edge, wrap"
    );
    let named = |name: &str, value| AttributeValue::Named(vec![(name.to_owned(), value)]);
    assert_eq!(
        refusal("matmul", &[("epilogue", named("elu", named("beta", number(1))))]),
        "operator MatMul, attribute epilogue: has the member beta; give alpha"
    );
    assert_eq!(
        refusal("resize", &[("target", text("scales"))]),
        "operator Resize, attribute target: scales needs a list of numbers"
    );
}

#[test]
fn a_choice_may_be_a_name_a_value_or_a_name_with_values() {
    let padded = |value| {
        let given = [("padding".to_owned(), value)];
        match row("conv").operator(&given).unwrap() {
            Operator::Conv { window, .. } => window.padding.clone(),
            other => panic!("{other:?}"),
        }
    };
    let list = AttributeValue::List(vec![AttributeValue::Integer(1); 4]);
    assert_eq!(padded(list.clone()), pto_operators::Padding::Explicit(vec![1; 4]));
    assert_eq!(
        padded(AttributeValue::Named(vec![("explicit".to_owned(), list)])),
        pto_operators::Padding::Explicit(vec![1; 4])
    );
    assert_eq!(padded(text("same_lower")), pto_operators::Padding::SameLower);
    let product = row("matmul").operator(&[("epilogue".to_owned(), text("leaky_relu"))]).unwrap();
    let activation = pto_operators::Activation::LeakyRelu { alpha: 0.01 };
    assert_eq!(
        product,
        Operator::MatMul { epilogue: pto_operators::Epilogue::Activation(activation) }
    );
}
