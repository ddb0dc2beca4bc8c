//! From the nodes of a model to a graph of operators.
//!
//! ```text
//! node --Call--> a function of its type --Builder::add--> operators, folded where all inputs are known
//!                        |
//!                        +--Builder::ints--> values that decide shapes: constants, or inputs that a run is given
//! ```
//! A node that cannot be translated is noted, and what depends on it is passed over, so that one build tells all of them. Where a value that
//! decides a shape comes from inputs whose values are at hand, the build begins anew with these inputs as constants.

mod attention;
mod builder;
mod call;
mod control;
mod elementwise;
mod normalize;
mod quantize;
mod recurrent;
mod reduce;
mod sampling;
mod shapes;
mod signal;
mod table;
mod windows;

use std::collections::{BTreeMap, BTreeSet};

use pto_operators::{Tensor, TensorType};

use crate::error::ModelError;
use crate::model::{Extent, Model, shown};
use crate::tensor::has_large_extents;
use builder::Builder;

pub use builder::{Built, Given};

/// The types of nodes that become operators, in alphabetical order.
pub fn operator_types() -> impl Iterator<Item = &'static str> {
    table::names()
}

impl Model {
    /// The model for these inputs, as a graph of operators.
    ///
    /// # Errors
    /// `Input`: an extent is not known, or does not fit. `Nodes`: nodes cannot become operators; all of them are told.
    pub fn build(&self, given: &Given) -> Result<Built, ModelError> {
        let types = self.input_types(given)?;
        let mut decided = BTreeSet::new();
        loop {
            let mut builder = Builder::new(table::find, self, given, &decided);
            match builder.run(&types)? {
                None => return builder.finish(given),
                // Each attempt knows at least one more.
                Some(needed) => decided.extend(needed),
            }
        }
    }

    /// The type of each input.
    fn input_types(&self, given: &Given) -> Result<Vec<TensorType>, ModelError> {
        let is_known = |name: &String| self.inputs.iter().any(|input| input.name == *name);
        if let Some(unknown) =
            given.values.keys().chain(given.shapes.keys()).find(|name| !is_known(name))
        {
            let reason = match self.others.get(unknown) {
                Some(what) => what.clone(),
                None => {
                    let known: Vec<_> =
                        self.inputs.iter().map(|input| input.name.as_str()).collect();
                    format!("the model has no such input; its inputs are {}", known.join(", "))
                }
            };
            return Err(ModelError::Input { input: unknown.clone(), reason });
        }
        let mut symbols = given.symbols.clone();
        let mut found: Vec<Option<Vec<usize>>> = Vec::new();
        for input in &self.inputs {
            let refused = |reason: String| ModelError::Input { input: input.name.clone(), reason };
            let value = given.values.get(&input.name);
            if let Some(value) = value.filter(|value| value.dtype() != input.dtype) {
                return Err(refused(format!(
                    "it has elements of type {}, and {} is given",
                    input.dtype,
                    value.dtype()
                )));
            }
            let shape =
                value.map(Tensor::shape).or(given.shapes.get(&input.name).map(Vec::as_slice));
            let (Some(shape), Some(declared)) = (shape, &input.shape) else {
                found.push(shape.map(<[usize]>::to_vec));
                continue;
            };
            let misfit = || {
                refused(format!(
                    "the model has the extents {}, and {shape:?} is given",
                    shown(declared)
                ))
            };
            if shape.len() != declared.len() {
                return Err(misfit());
            }
            for (declared, extent) in declared.iter().zip(shape) {
                match declared {
                    Extent::Fixed(fixed) if fixed != extent => return Err(misfit()),
                    Extent::Named(name) => {
                        let before = *symbols.entry(name.clone()).or_insert(*extent);
                        if before != *extent {
                            return Err(refused(format!(
                                "{name} is {extent} here, and {before} elsewhere"
                            )));
                        }
                    }
                    Extent::Fixed(_) | Extent::Any => {}
                }
            }
            found.push(Some(shape.to_vec()));
        }
        let inputs = self.inputs.iter().zip(found);
        inputs
            .map(|(input, found)| {
                let shape = found.map_or_else(|| declared(input, &symbols), Ok)?;
                if has_large_extents(&shape) {
                    let reason = format!("its extents {shape:?} are too large");
                    return Err(ModelError::Input { input: input.name.clone(), reason });
                }
                Ok(TensorType::new(input.dtype, &shape))
            })
            .collect()
    }
}

/// The extents of an input that is not given.
fn declared(
    input: &crate::model::ModelInput,
    symbols: &BTreeMap<String, usize>,
) -> Result<Vec<usize>, ModelError> {
    let refused = |reason: String| ModelError::Input { input: input.name.clone(), reason };
    let how = format!("give them with --shape {}=.., or a file with --input", input.name);
    let Some(shape) = &input.shape else {
        return Err(refused(format!("the model does not say its extents; {how}")));
    };
    let extent = |extent: &Extent| match extent {
        Extent::Fixed(extent) => Some(*extent),
        Extent::Named(name) => symbols.get(name).copied(),
        Extent::Any => None,
    };
    let found: Option<Vec<_>> = shape.iter().map(extent).collect();
    found.ok_or_else(|| refused(format!("its extents {} are not all known; {how}", shown(shape))))
}
