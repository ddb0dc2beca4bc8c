//! Models in files of ONNX: the reader accepts or refuses any bytes, and what it accepts becomes operators, or is refused with a reason for
//! each node.

use std::collections::BTreeMap;

use pto_models::{Extent, Given, Model};

/// The largest extent that is tried: constants are computed while a model is built.
const MOST: usize = 64;

/// Reads the bytes, and builds the model with small extents where the file leaves them open.
pub(super) fn build(bytes: &[u8]) {
    let Ok(model) = Model::from_bytes(bytes) else { return };
    let mut shapes = BTreeMap::new();
    for input in model.inputs() {
        let extents = input.shape.as_deref().unwrap_or_default().iter();
        let extents: Vec<usize> = extents
            .map(|extent| match extent {
                Extent::Fixed(extent) => *extent,
                Extent::Named(name) => name.len(),
                Extent::Any => 2,
            })
            .collect();
        if extents.iter().any(|extent| *extent > MOST) {
            return;
        }
        shapes.insert(input.name.clone(), extents);
    }
    match model.build(&Given { shapes, ..Given::default() }) {
        Ok(built) => {
            assert!(built.graph.outputs().len() == model.outputs().count(), "an output is lost")
        }
        Err(error) => assert!(!error.to_string().is_empty(), "an error says nothing"),
    }
}
