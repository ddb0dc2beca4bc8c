//! What words of attributes mean, and how a value that a caller gives by name becomes words: lists, choices, members.
//!
//! ```text
//! {"elu": {"alpha": 0.5}} --Schema::parse--> words of `Epilogue::Activation(Activation::Elu { alpha: 0.5 })` --Schema::value--> the same value
//! ```

use std::fmt;

/// Words that are read one after another.
pub(crate) struct Reader<'w>(pub(crate) &'w [u64]);

impl Reader<'_> {
    /// The next word.
    pub(crate) fn word(&mut self) -> Option<u64> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    /// The next word, as a truth value.
    pub(crate) fn flag(&mut self) -> Option<bool> {
        match self.word()? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }
}

/// A value of an attribute, as a caller gives it.
#[derive(Clone, Debug, PartialEq)]
pub enum AttributeValue {
    /// Nothing.
    Nothing,
    /// True or false.
    Flag(bool),
    /// An integer.
    Integer(i128),
    /// A number with a fraction.
    Number(f64),
    /// A name.
    Text(String),
    /// Several values.
    List(Vec<Self>),
    /// Values by name. A choice that has values of its own is its name with them.
    Named(Vec<(String, Self)>),
}

/// What words mean.
pub(crate) enum Schema {
    Flag,
    Unsigned,
    Signed,
    Number,
    Optional(fn() -> Schema),
    List(fn() -> Schema),
    Struct(Vec<Field>),
    Enum(Vec<Variant>),
}

/// A field of a struct.
pub(crate) struct Field {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    pub(crate) schema: fn() -> Schema,
    /// The words, where it may be left out.
    pub(crate) default: Option<Vec<u64>>,
}

/// A variant of an enum.
pub(crate) struct Variant {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    pub(crate) content: Content,
}

/// What a variant has.
pub(crate) enum Content {
    Fields(Vec<Field>),
    /// A value, and its words where it may be left out.
    One(fn() -> Schema, Option<Vec<u64>>),
}

/// `SameUpper` as `same_upper`; several capitals are one word.
pub(crate) fn snake(name: &str) -> String {
    let mut text = String::new();
    let mut was_small = false;
    for letter in name.chars() {
        if letter.is_ascii_uppercase() && was_small {
            text.push('_');
        }
        was_small = !letter.is_ascii_uppercase();
        text.push(letter.to_ascii_lowercase());
    }
    text
}

pub(crate) fn joined(names: impl Iterator<Item = String>) -> String {
    names.collect::<Vec<_>>().join(", ")
}

impl Field {
    /// The words of the field, of a list of values by name.
    pub(crate) fn parse(
        &self,
        given: &[(String, AttributeValue)],
        to: &mut Vec<u64>,
    ) -> Result<(), String> {
        let found = given.iter().find(|(name, _)| name == self.name);
        match (found, &self.default) {
            (Some((_, value)), _) => (self.schema)().parse(value, to),
            (None, Some(words)) => {
                to.extend(words);
                Ok(())
            }
            (None, None) => Err(format!("is missing; give {}", (self.schema)().form())),
        }
    }
}

fn parse_fields(
    fields: &[Field],
    given: &[(String, AttributeValue)],
    to: &mut Vec<u64>,
) -> Result<(), String> {
    if let Some((name, _)) =
        given.iter().find(|(name, _)| fields.iter().all(|field| field.name != name))
    {
        let known = joined(fields.iter().map(|field| field.name.to_owned()));
        return Err(format!("has the member {name}; give {known}"));
    }
    for field in fields {
        field.parse(given, to).map_err(|rule| format!("member {} {rule}", field.name))?;
    }
    Ok(())
}

fn values_of(fields: &[Field], from: &mut Reader<'_>) -> Option<Vec<(String, AttributeValue)>> {
    let value = |field: &Field| Some((field.name.to_owned(), (field.schema)().value(from)?));
    fields.iter().map(value).collect()
}

impl Schema {
    /// What a caller gives.
    pub(crate) fn form(&self) -> String {
        /// Names that are shown of a long list.
        const SHOWN: usize = 8;
        match self {
            Self::Flag => "True or False".to_owned(),
            Self::Unsigned => "an integer from 0 on".to_owned(),
            Self::Signed => "an integer".to_owned(),
            Self::Number => "a number".to_owned(),
            Self::Optional(of) => format!("{}, or None", of().form()),
            Self::List(of) => match of() {
                Self::Unsigned => "a list of integers from 0 on".to_owned(),
                Self::Signed => "a list of integers".to_owned(),
                Self::Number => "a list of numbers".to_owned(),
                other => format!("a list, each {}", other.form()),
            },
            Self::Struct(fields) => joined(fields.iter().map(|field| field.name.to_owned())),
            Self::Enum(variants) => {
                let mut names = self.names();
                let all = names.len();
                if all > SHOWN + 8 {
                    names.truncate(SHOWN);
                    names.push(format!("..; there are {all}"));
                }
                let value = variants.iter().find_map(|variant| match &variant.content {
                    Content::One(schema, None) if !matches!(schema(), Self::Enum(_)) => {
                        Some(schema().form())
                    }
                    _ => None,
                });
                let value = value.map_or_else(String::new, |form| format!(", or {form}"));
                format!("one of {}{value}", names.join(", "))
            }
        }
    }

    /// The names that a choice knows: its own, and those of the choices in it.
    fn names(&self) -> Vec<String> {
        let Self::Enum(variants) = self else { return Vec::new() };
        let name = |variant: &Variant| match &variant.content {
            Content::One(schema, None) if matches!(schema(), Self::Enum(_)) => schema().names(),
            _ => vec![snake(variant.name)],
        };
        variants.iter().flat_map(name).collect()
    }

    /// The words of a value.
    fn parse(&self, value: &AttributeValue, to: &mut Vec<u64>) -> Result<(), String> {
        use AttributeValue as Given;
        let refused = || format!("is {value}; give {}", self.form());
        match (self, value) {
            (Self::Flag, Given::Flag(flag)) => to.push(u64::from(*flag)),
            (Self::Unsigned, Given::Integer(number)) => {
                to.push(u64::try_from(*number).map_err(|_| refused())?);
            }
            (Self::Signed, Given::Integer(number)) => {
                to.push(i64::try_from(*number).map_err(|_| refused())?.cast_unsigned());
            }
            (Self::Number, Given::Number(number)) => to.push(number.to_bits()),
            #[expect(clippy::cast_precision_loss, reason = "the nearest number is meant")]
            (Self::Number, Given::Integer(number)) => to.push((*number as f64).to_bits()),
            (Self::Optional(_), Given::Nothing) => to.push(0),
            (Self::Optional(of), _) => {
                to.push(1);
                of().parse(value, to)?;
            }
            (Self::List(of), Given::List(values)) => {
                to.push(values.len() as u64);
                let of = of();
                for (at, one) in values.iter().enumerate() {
                    of.parse(one, to).map_err(|rule| format!("at {at} {rule}"))?;
                }
            }
            (Self::Struct(fields), Given::Named(given)) => parse_fields(fields, given, to)?,
            (Self::Enum(variants), _) => {
                if !self.parse_choice(variants, value, to)? {
                    return Err(refused());
                }
            }
            _ => return Err(refused()),
        }
        Ok(())
    }

    /// The words of a choice; `false`: none of the variants is meant.
    fn parse_choice(
        &self,
        variants: &[Variant],
        value: &AttributeValue,
        to: &mut Vec<u64>,
    ) -> Result<bool, String> {
        let (name, content) = match value {
            AttributeValue::Text(name) => (name, None),
            AttributeValue::Named(given) if given.len() == 1 => (&given[0].0, Some(&given[0].1)),
            other => {
                // A value without a name is that of the one variant that is a value.
                let mut plain = (0..).zip(variants).filter_map(|(code, variant)| {
                    let Content::One(schema, None) = variant.content else { return None };
                    (!matches!(schema(), Self::Enum(_))).then_some((code, schema))
                });
                let Some((code, schema)) = plain.next() else { return Ok(false) };
                to.push(code);
                return schema().parse(other, to).map(|()| true);
            }
        };
        let found = (0..).zip(variants).find(|(_, variant)| snake(variant.name) == *name);
        if let Some((code, variant)) = found {
            to.push(code);
            match (&variant.content, content) {
                (Content::Fields(fields), None) => parse_fields(fields, &[], to)?,
                (Content::Fields(fields), Some(AttributeValue::Named(given))) => {
                    parse_fields(fields, given, to)?;
                }
                (Content::One(schema, _), Some(value)) => schema().parse(value, to)?,
                (Content::One(_, Some(words)), None) => to.extend(words),
                (Content::One(schema, None), None) => {
                    return Err(format!("{name} needs {}", schema().form()));
                }
                (Content::Fields(_), Some(_)) => return Ok(false),
            }
            return Ok(true);
        }
        // A choice may be one of the choices in it.
        for (code, variant) in (0..).zip(variants) {
            let Content::One(schema, None) = variant.content else { continue };
            if schema().names().contains(name) {
                to.push(code);
                return schema().parse(value, to).map(|()| true);
            }
        }
        Ok(false)
    }

    /// The value that words stand for; [`parse`](Self::parse) gives the same words of it.
    pub(crate) fn value(&self, from: &mut Reader<'_>) -> Option<AttributeValue> {
        use AttributeValue as Given;
        Some(match self {
            Self::Flag => Given::Flag(from.flag()?),
            Self::Unsigned => Given::Integer(from.word()?.into()),
            Self::Signed => Given::Integer(from.word()?.cast_signed().into()),
            Self::Number => Given::Number(f64::from_bits(from.word()?)),
            Self::Optional(of) => {
                if from.flag()? {
                    of().value(from)?
                } else {
                    Given::Nothing
                }
            }
            Self::List(of) => {
                let (count, of) = (from.word()?, of());
                Given::List((0..count).map(|_| of.value(from)).collect::<Option<_>>()?)
            }
            Self::Struct(fields) => Given::Named(values_of(fields, from)?),
            Self::Enum(variants) => {
                let variant = variants.get(usize::try_from(from.word()?).ok()?)?;
                let name = snake(variant.name);
                match &variant.content {
                    Content::Fields(fields) if fields.is_empty() => Given::Text(name),
                    Content::Fields(fields) => {
                        let words = from.0;
                        let given = values_of(fields, from)?;
                        let read = &words[..words.len() - from.0.len()];
                        let usual: Option<Vec<&[u64]>> =
                            fields.iter().map(|field| field.default.as_deref()).collect();
                        match usual {
                            Some(usual) if usual.concat() == read => Given::Text(name),
                            _ => Given::Named(vec![(name, Given::Named(given))]),
                        }
                    }
                    Content::One(schema, default) => {
                        let words = from.0;
                        let value = schema().value(from)?;
                        let read = &words[..words.len() - from.0.len()];
                        match default {
                            Some(usual) if usual == read => Given::Text(name),
                            // A choice in it, or the one value that needs no name.
                            None => value,
                            Some(_) => Given::Named(vec![(name, value)]),
                        }
                    }
                }
            }
        })
    }
}

impl fmt::Display for AttributeValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing => f.write_str("None"),
            Self::Flag(true) => f.write_str("True"),
            Self::Flag(false) => f.write_str("False"),
            Self::Integer(number) => write!(f, "{number}"),
            Self::Number(number) => write!(f, "{number:?}"),
            Self::Text(text) => write!(f, "'{text}'"),
            Self::List(values) => {
                let shown = joined(values.iter().map(ToString::to_string));
                write!(f, "[{shown}]")
            }
            Self::Named(values) => {
                let shown = joined(values.iter().map(|(name, value)| format!("'{name}': {value}")));
                write!(f, "{{{shown}}}")
            }
        }
    }
}
