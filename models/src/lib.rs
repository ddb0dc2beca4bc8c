//! Models in files of ONNX: read, translated to operators for certain extents, and run as programs.
//!
//! ```text
//! file --Model::read--> Model --build(Given)--> Built: OperatorGraph --lower--> Program
//! ```
//! Everything that cannot be translated is told at once, by node, type and version, before anything runs. `docs/how-to/models.md` has the limits.

mod build;
mod error;
mod fuse;
mod model;
pub mod proto;
mod run;
mod tensor;

pub use build::{Built, Given, operator_types};
pub use error::{ModelError, Problem};
pub use model::{Extent, Model, ModelInput, NEWEST_VERSION, parse_shape};
pub use run::{LoadedModel, Runner};
pub use tensor::{number_of, tensor_of};
