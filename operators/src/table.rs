//! Operators by name, for callers that have no types of Rust: the table of all of them, made of their declarations ([`crate::Operator`]). A row gives the
//! name of the function, its inputs, its attributes with defaults and comments, and makes an operator of values by name.
//!
//! ```text
//! "conv", {"groups": 2, "padding": [1, 1, 1, 1]} --OperatorSchema::operator--> Operator::Conv { window, groups, epilogue }
//! ```
//! An operator is words ([`crate::words`]): first the numbers of its row, then those of its attributes in the order of their declaration. The fields of a
//! struct (`Window`) are attributes of the operator.

use std::sync::OnceLock;

use crate::error::{Argument, OperatorError};
use crate::operator::Operator;
use crate::schema::{AttributeValue, Content, Field, Reader, Schema, joined, snake};
use crate::words::AttributeWords as _;

/// An attribute of an operator.
pub struct AttributeSchema {
    /// Its name.
    pub name: &'static str,
    /// What it is for.
    pub about: &'static str,
    /// What a caller gives.
    pub form: String,
    /// What it is where it is left out; `None`: it has to be given.
    pub default: Option<AttributeValue>,
    field: Field,
}

/// An operator, or a family of them that differ in their attributes.
pub struct OperatorSchema {
    /// The name in errors and timelines: [`Operator::name`].
    pub name: &'static str,
    /// The name of a function in the field's manner: `matmul`, `layer_normalization`.
    pub function: String,
    /// What it computes.
    pub about: String,
    /// The names of the inputs. The last name stands for all that follow, where any number may.
    pub inputs: &'static [&'static str],
    /// How many inputs there have to be.
    pub required: usize,
    /// Whether any number of inputs may follow.
    pub takes_more: bool,
    /// The attributes.
    pub attributes: Vec<AttributeSchema>,
    /// The words in front of those of the attributes.
    prefix: Vec<u64>,
}

impl OperatorSchema {
    /// All of them. A fused operator, which is made of others, is not among them.
    #[must_use]
    pub fn all() -> &'static [Self] {
        static ALL: OnceLock<Vec<OperatorSchema>> = OnceLock::new();
        ALL.get_or_init(rows)
    }

    /// The row of an operator; `None`: it is a fused one.
    #[must_use]
    pub fn of(operator: &Operator) -> Option<&'static Self> {
        let words = operator.words();
        let rows = Self::all().iter().filter(|row| words.starts_with(&row.prefix));
        rows.max_by_key(|row| row.prefix.len())
    }

    /// The operator with these attributes; those that are left out have their defaults.
    ///
    /// # Errors
    /// An attribute is not known, is missing, is there twice, or has another form.
    pub fn operator(&self, given: &[(String, AttributeValue)]) -> Result<Operator, OperatorError> {
        let refused = |argument, rule| OperatorError { operator: self.name, argument, rule };
        for (at, (name, _)) in given.iter().enumerate() {
            if !self.attributes.iter().any(|known| known.name == name) {
                let known = joined(self.attributes.iter().map(|known| known.name.to_owned()));
                let has = if known.is_empty() { "none".to_owned() } else { known };
                let rule = format!("there is no attribute {name}; it has {has}");
                return Err(refused(Argument::Operator, rule));
            }
            if given[..at].iter().any(|(other, _)| other == name) {
                let rule = format!("attribute {name} is there twice; give it once");
                return Err(refused(Argument::Operator, rule));
            }
        }
        let mut words = self.prefix.clone();
        for attribute in &self.attributes {
            let rule = attribute.field.parse(given, &mut words);
            rule.map_err(|rule| refused(Argument::Attribute(attribute.name), rule))?;
        }
        let read = Operator::read(&mut Reader(&words));
        read.ok_or_else(|| {
            refused(Argument::Operator, "its attributes make no operator".to_owned())
        })
    }

    /// The attributes of an operator of this row.
    #[must_use]
    pub fn values(&self, operator: &Operator) -> Option<Vec<(String, AttributeValue)>> {
        let words = operator.words();
        let mut reader = Reader(words.strip_prefix(&*self.prefix)?);
        let attributes = self.attributes.iter();
        attributes
            .map(|one| Some((one.name.to_owned(), (one.field.schema)().value(&mut reader)?)))
            .collect()
    }
}

/// The rows of all operators.
fn rows() -> Vec<OperatorSchema> {
    let Schema::Enum(variants) = Operator::schema() else { return Vec::new() };
    let mut rows = Vec::new();
    for (number, variant) in (0..).zip(variants) {
        match (variant.name, variant.content) {
            ("Fused", _) => {}
            (_, Content::One(schema, _)) => match schema() {
                // A family of functions.
                Schema::Enum(functions) => {
                    for (function, one) in (0..).zip(functions) {
                        let Content::Fields(fields) = one.content else { continue };
                        rows.extend(row(vec![number, function], one.about, fields));
                    }
                }
                Schema::Struct(fields) => rows.extend(row(vec![number], variant.about, fields)),
                _ => {}
            },
            (name, Content::Fields(mut fields)) => {
                // Reductions, and arg max and arg min, are told apart by their first attribute.
                if !matches!(name, "Reduce" | "ArgReduce") {
                    rows.extend(row(vec![number], variant.about, fields));
                    continue;
                }
                let first = fields.remove(0);
                let choices = match (first.schema)() {
                    Schema::Enum(choices) => choices.iter().map(|choice| choice.about).collect(),
                    _ => vec![" The position of the smallest.", " The position of the largest."],
                };
                for (choice, about) in (0..).zip(choices) {
                    let about = format!("{} {}", about.trim(), variant.about.trim());
                    // Fields are made anew for each choice.
                    let fields = own_fields(name);
                    rows.extend(row(vec![number, choice], &about, fields));
                }
            }
        }
    }
    // Of two with one name the one that takes any number of inputs, which two are.
    let names: Vec<_> = rows.iter().filter(|row| row.takes_more).map(|row| row.name).collect();
    rows.retain(|row| row.takes_more || !names.contains(&row.name));
    rows
}

/// The fields of a variant of operators but the first one.
fn own_fields(name: &str) -> Vec<Field> {
    let Schema::Enum(variants) = Operator::schema() else { return Vec::new() };
    let found = variants.into_iter().find(|variant| variant.name == name);
    match found.map(|variant| variant.content) {
        Some(Content::Fields(fields)) => fields.into_iter().skip(1).collect(),
        _ => Vec::new(),
    }
}

fn row(prefix: Vec<u64>, about: &str, fields: Vec<Field>) -> Option<OperatorSchema> {
    // Zeros are attributes of every type.
    let mut words = prefix.clone();
    words.resize(64, 0);
    let sample = Operator::read(&mut Reader(&words))?;
    let (inputs, required) = sample.signature();
    let takes_more = sample.takes_more();
    let fields = fields.into_iter().flat_map(|field| match (field.schema)() {
        Schema::Struct(own) => own,
        _ => vec![field],
    });
    let attribute = |field: Field| AttributeSchema {
        name: field.name,
        about: field.about.trim(),
        form: (field.schema)().form(),
        default: field
            .default
            .as_ref()
            .and_then(|words| (field.schema)().value(&mut Reader(words))),
        field,
    };
    Some(OperatorSchema {
        name: sample.name(),
        function: function_name(sample.name()),
        about: lines(about),
        inputs,
        // One of a list is that one: who means a reduction gets an error.
        required: if takes_more && matches!(sample, Operator::Nary(_)) { 2 } else { required },
        takes_more,
        attributes: fields.map(attribute).collect(),
        prefix,
    })
}

fn lines(text: &str) -> String {
    text.lines().map(str::trim).collect::<Vec<_>>().join("\n").trim().to_owned()
}

/// The name of a function: that of the operator in small letters, as NumPy and PyTorch write it where they have it.
fn function_name(operator: &str) -> String {
    let known = match operator {
        "MatMul" => "matmul",
        "TopK" => "topk",
        "IsNaN" => "isnan",
        "IsInf" => "isinf",
        "ArgMax" => "argmax",
        "ArgMin" => "argmin",
        "CumSum" => "cumsum",
        "CumProd" => "cumprod",
        "PRelu" => "prelu",
        "NonZero" => "nonzero",
        // Words of Python.
        "And" => "logical_and",
        "Or" => "logical_or",
        "Xor" => "logical_xor",
        "Not" => "logical_not",
        _ => return snake(operator),
    };
    known.to_owned()
}
