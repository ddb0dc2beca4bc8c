//! Parameters of an example: whole numbers with a name, a default and a range.

use std::collections::BTreeMap;
use std::vec::Vec;

use core::num::NonZeroU64;

use crate::args::Size;
use crate::host::error::{Error, invalid};

/// A parameter.
#[derive(Clone, Copy, Debug)]
pub struct ParamSpec {
    /// Its name, as in `--param name=value`.
    pub name: &'static str,
    /// Its value unless the user gives one or an input implies one.
    pub default: u64,
    /// Least value.
    pub min: u64,
    /// Greatest value.
    pub max: u64,
    /// What it means, in one line.
    pub help: &'static str,
}

impl ParamSpec {
    /// An extent of a tensor.
    #[must_use]
    pub const fn extent(name: &'static str, default: u64, help: &'static str) -> Self {
        Self { name, default, min: 1, max: Size::MAX, help }
    }

    /// What is drawn at random.
    #[must_use]
    pub const fn seed(help: &'static str) -> Self {
        Self { name: "seed", default: 1, min: 0, max: u64::MAX, help }
    }
}

/// A number of type `f32`; `None`: the text is none, or one that is beyond the largest. Infinity is written as `inf`.
#[must_use]
pub fn f32_of(text: &str) -> Option<f32> {
    let value: f32 = text.parse().ok()?;
    let is_named = !text.contains(|letter: char| letter.is_ascii_digit());
    (value.is_finite() || is_named).then_some(value)
}

/// Where a value comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ParamSource {
    Default,
    /// The shape of this input.
    Input(&'static str),
    User,
}

/// The values of all parameters of one example.
#[derive(Clone, Debug)]
pub struct Params {
    specs: &'static [ParamSpec],
    values: Vec<(u64, ParamSource)>,
    /// By name: the numbers for which whole numbers stand.
    meant: BTreeMap<&'static str, f64>,
}

impl Params {
    /// The defaults.
    #[must_use]
    pub fn defaults(specs: &'static [ParamSpec]) -> Self {
        let values = specs.iter().map(|spec| (spec.default, ParamSource::Default)).collect();
        Self { specs, values, meant: BTreeMap::new() }
    }

    /// The parameter of this name.
    #[must_use]
    pub fn spec(&self, name: &str) -> Option<&'static ParamSpec> {
        self.specs.iter().find(|spec| spec.name == name)
    }

    /// The value of a parameter.
    ///
    /// # Panics
    /// The example has no such parameter: the names are in its source, next to each other.
    #[must_use]
    pub fn get(&self, name: &str) -> u64 {
        match self.index(name) {
            Some(index) => self.values[index].0,
            None => panic!("the example has no parameter '{name}'"),
        }
    }

    /// The value of a parameter as an extent.
    ///
    /// # Errors
    /// It is outside 1 to [`Size::MAX`].
    ///
    /// # Panics
    /// As [`Params::get`].
    pub fn extent(&self, name: &str) -> Result<Size, Error> {
        Size::new(self.get(name)).ok_or_else(|| self.refuse(name, Size::MAX))
    }

    /// The value of a parameter that is not zero, such as the extent of a tile.
    ///
    /// # Errors
    /// It is zero.
    ///
    /// # Panics
    /// As [`Params::get`].
    pub fn non_zero(&self, name: &str) -> Result<NonZeroU64, Error> {
        NonZeroU64::new(self.get(name)).ok_or_else(|| self.refuse(name, u64::MAX))
    }

    fn refuse(&self, name: &str, max: u64) -> Error {
        let value = self.get(name);
        invalid!("parameter '{name}' is {value}; it must be a whole number from 1 to {max}")
    }

    /// Names and values, in the order of the specification.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> {
        self.specs.iter().zip(&self.values).map(|(spec, (value, _))| (spec.name, *value))
    }

    /// The number that the value of a parameter encodes, where that is no whole number.
    #[must_use]
    pub fn meant(&self, name: &str) -> Option<f64> {
        self.meant.get(name).copied()
    }

    /// Takes a whole number that encodes another number.
    ///
    /// # Errors
    /// As [`Params::set`].
    pub fn set_meaning(&mut self, name: &str, text: &str, meant: f64) -> Result<(), Error> {
        self.set(name, text)?;
        self.meant.extend(self.spec(name).map(|spec| (spec.name, meant)));
        Ok(())
    }

    /// Takes a value from the user.
    ///
    /// # Errors
    /// There is no such parameter; the text is not a number in its range.
    pub fn set(&mut self, name: &str, text: &str) -> Result<(), Error> {
        let Some(index) = self.index(name) else {
            return Err(Error::unknown("parameter", name, self.specs.iter().map(|s| s.name)));
        };
        let spec = &self.specs[index];
        self.meant.remove(spec.name);
        let value = text.replace('_', "").parse().ok().filter(|value| spec.admits(*value));
        let value = value.ok_or_else(|| spec.refuse(text))?;
        self.values[index] = (value, ParamSource::User);
        Ok(())
    }

    /// Takes a value from the shape of `input`, unless the user gave one.
    ///
    /// # Errors
    /// The value is out of range, or another input implied another one.
    pub fn imply(
        &mut self,
        name: &'static str,
        value: u64,
        input: &'static str,
    ) -> Result<(), Error> {
        let Some(index) = self.index(name) else { return Ok(()) };
        let spec = &self.specs[index];
        match self.values[index] {
            (_, ParamSource::Default) if !spec.admits(value) => {
                let ParamSpec { name, min, max, .. } = *spec;
                return Err(Error::ParamFromInput { input, name, value, min, max });
            }
            (_, ParamSource::Default) => self.values[index] = (value, ParamSource::Input(input)),
            (first_value, ParamSource::Input(first)) if first_value != value => {
                let (second, second_value) = (input, value);
                let name = spec.name;
                return Err(Error::ParamConflict {
                    name,
                    first,
                    first_value,
                    second,
                    second_value,
                });
            }
            _ => {}
        }
        Ok(())
    }

    fn index(&self, name: &str) -> Option<usize> {
        self.specs.iter().position(|spec| spec.name == name)
    }
}

impl ParamSpec {
    const fn admits(&self, value: u64) -> bool {
        self.min <= value && value <= self.max
    }

    fn refuse(&self, found: &str) -> Error {
        Error::ParamValue { name: self.name, found: found.into(), min: self.min, max: self.max }
    }
}

#[cfg(test)]
mod tests {
    use super::{ParamSpec, Params, f32_of};
    use std::string::ToString;

    static SPECS: &[ParamSpec] =
        &[ParamSpec { name: "rows", default: 4, min: 1, max: 1000, help: "" }];

    #[test]
    fn a_float_that_does_not_fit_is_none_and_infinity_has_a_name() {
        for (text, value) in [
            ("0.5", Some(0.5)),
            ("-3.4028235e38", Some(f32::MIN)),
            ("inf", Some(f32::INFINITY)),
            ("-inf", Some(f32::NEG_INFINITY)),
            ("1e39", None),
            ("-1e300", None),
            ("one", None),
        ] {
            assert_eq!(f32_of(text), value, "{text}");
        }
        assert!(f32_of("nan").is_some_and(f32::is_nan));
    }

    #[test]
    fn the_user_wins_over_an_input_and_an_input_over_the_default() {
        let mut params = Params::defaults(SPECS);
        assert_eq!(params.get("rows"), 4);
        params.imply("rows", 5, "a").unwrap();
        assert_eq!(params.get("rows"), 5);
        params.set("rows", "1_000").unwrap();
        params.imply("rows", 6, "b").unwrap();
        assert_eq!(params.get("rows"), 1000);
    }

    #[test]
    fn a_bad_value_is_refused_with_the_range() {
        let mut params = Params::defaults(SPECS);
        for text in ["0", "1001", "-1", "", "four", "1.5", "99999999999999999999"] {
            let error = params.set("rows", text).unwrap_err().to_string();
            assert!(error.contains("'rows'") && error.contains("1 to 1000"), "{error}");
        }
        let error = params.imply("rows", 0, "a").unwrap_err().to_string();
        assert!(error.contains("input 'a'") && error.contains("1 to 1000"), "{error}");
        assert_eq!(params.get("rows"), 4);
    }

    #[test]
    fn two_inputs_that_disagree_are_both_named() {
        let mut params = Params::defaults(SPECS);
        params.imply("rows", 5, "a").unwrap();
        params.imply("rows", 5, "b").unwrap();
        let error = params.imply("rows", 6, "c").unwrap_err().to_string();
        assert!(error.contains("'a'") && error.contains("'c'"), "{error}");
    }
}
