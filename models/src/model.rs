//! A model as a file has it: its inputs, whose extents may be names, and its graph.

use std::collections::BTreeMap;
use std::path::Path;

use prost::Message;
use pto_operators::DType;

use crate::error::ModelError;
use crate::proto::{DimensionValue, GraphProto, ModelProto, TypeValue, ValueInfoProto};
use crate::tensor::dtype_of;

/// An extent of an input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Extent {
    /// A number.
    Fixed(usize),
    /// The same number wherever this name stands; who runs the model gives it.
    Named(String),
    /// Any number.
    Any,
}

impl std::fmt::Display for Extent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Fixed(extent) => write!(f, "{extent}"),
            Self::Named(name) => f.write_str(name),
            Self::Any => f.write_str("?"),
        }
    }
}

/// An input of a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelInput {
    /// The name.
    pub name: String,
    /// The element type.
    pub dtype: DType,
    /// The extents; `None`: any number of any extents.
    pub shape: Option<Vec<Extent>>,
}

/// A model as a file has it.
#[derive(Clone, Debug)]
pub struct Model {
    pub(crate) name: String,
    pub(crate) graph: GraphProto,
    /// The version of each set of operators; the usual one has the name "".
    pub(crate) versions: BTreeMap<String, i64>,
    pub(crate) inputs: Vec<ModelInput>,
    /// Inputs that are no tensors: their types are not here.
    pub(crate) others: BTreeMap<String, String>,
    pub(crate) functions: Vec<(String, String)>,
    pub(crate) folder: Option<std::path::PathBuf>,
}

/// The newest version of the usual set of operators that this crate knows.
pub const NEWEST_VERSION: i64 = 28;

impl Model {
    /// Reads a file. Elements in files of their own are looked for in its folder.
    ///
    /// # Errors
    /// [`ModelError::File`].
    pub fn read(path: &Path) -> Result<Self, ModelError> {
        let shown = path.display();
        let bytes = std::fs::read(path);
        let bytes =
            bytes.map_err(|error| ModelError::File(format!("cannot read '{shown}': {error}")))?;
        let folder = path
            .parent()
            .map(|parent| if parent.as_os_str().is_empty() { Path::new(".") } else { parent });
        let mut model = Self::decode(&bytes, folder).map_err(|error| match error {
            ModelError::File(what) => ModelError::File(format!("'{shown}': {what}")),
            other => other,
        })?;
        if let Some(stem) = path.file_stem() {
            model.name = stem.to_string_lossy().into_owned();
        }
        Ok(model)
    }

    /// Reads a model from memory; it may not have elements in files of their own.
    ///
    /// # Errors
    /// [`ModelError::File`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, ModelError> {
        Self::decode(bytes, None)
    }

    fn decode(bytes: &[u8], folder: Option<&Path>) -> Result<Self, ModelError> {
        let proto = ModelProto::decode(bytes)
            .map_err(|error| ModelError::File(format!("this is no ONNX file: {error}")))?;
        Self::of_proto(proto, folder)
    }

    /// A model that was made in memory.
    ///
    /// # Errors
    /// [`ModelError::File`].
    pub fn from_proto(proto: ModelProto) -> Result<Self, ModelError> {
        Self::of_proto(proto, None)
    }

    fn of_proto(proto: ModelProto, folder: Option<&Path>) -> Result<Self, ModelError> {
        let file = |what: String| ModelError::File(what);
        let graph = proto.graph.ok_or_else(|| file("this ONNX file has no graph".to_owned()))?;
        let versions = versions(&proto.opset_import)?;
        let functions =
            proto.functions.into_iter().map(|function| (function.domain, function.name));
        let mut model = Self {
            name: if graph.name.is_empty() { "model".to_owned() } else { graph.name.clone() },
            versions,
            inputs: Vec::new(),
            others: BTreeMap::new(),
            functions: functions.collect(),
            folder: folder.map(Path::to_path_buf),
            graph,
        };
        for input in &model.graph.input {
            let is_constant =
                model.graph.initializer.iter().any(|tensor| tensor.name == input.name);
            if is_constant {
                continue;
            }
            match input_of(input) {
                Ok(input) => model.inputs.push(input),
                Err(what) => {
                    model.others.insert(input.name.clone(), what);
                }
            }
        }
        Ok(model)
    }

    /// The name: that of the file, or of its graph.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What a run is given.
    #[must_use]
    pub fn inputs(&self) -> &[ModelInput] {
        &self.inputs
    }

    /// The names of what a run gives.
    pub fn outputs(&self) -> impl Iterator<Item = &str> {
        self.graph.output.iter().map(|output| output.name.as_str())
    }

    /// How many nodes the file has, without those of branches.
    #[must_use]
    pub const fn node_count(&self) -> usize {
        self.graph.node.len()
    }

    /// Gives an input other extents than the file does.
    ///
    /// # Errors
    /// There is no such input, or the file has another number of extents, or another number in one of them.
    pub fn set_shape(&mut self, name: &str, shape: Vec<Extent>) -> Result<(), ModelError> {
        let known: Vec<_> = self.inputs.iter().map(|input| input.name.clone()).collect();
        let refused = |reason: String| ModelError::Input { input: name.to_owned(), reason };
        let Some(input) = self.inputs.iter_mut().find(|input| input.name == name) else {
            return Err(refused(format!(
                "the model has no such input; its inputs are {}",
                known.join(", ")
            )));
        };
        if let Some(declared) = &input.shape {
            let fits = |(declared, given): (&Extent, &Extent)| match (declared, given) {
                (Extent::Fixed(declared), Extent::Fixed(given)) => declared == given,
                (Extent::Fixed(_), _) => false,
                _ => true,
            };
            if declared.len() != shape.len() || !declared.iter().zip(&shape).all(fits) {
                let (declared, given) = (shown(declared), shown(&shape));
                return Err(refused(format!(
                    "the model has the extents {declared}, and {given} do not fit them"
                )));
            }
        }
        input.shape = Some(shape);
        Ok(())
    }
}

/// Reads `x=N,3,48,192`: a name, and for each dimension a number, a name, or `?`. A scalar has nothing after `=`.
///
/// # Errors
/// A sentence that says what is wrong.
pub fn parse_shape(text: &str) -> Result<(String, Vec<Extent>), String> {
    let (name, extents) = text.rsplit_once('=').ok_or_else(|| {
        format!("'{text}' has no '='; write an input and its extents, as in x=N,3,48,192")
    })?;
    let extent = |word: &str| match word.trim() {
        "" => Err(format!("'{text}' has an empty extent; write a number, a name or ?")),
        "?" => Ok(Extent::Any),
        word if word.starts_with(|first: char| first.is_ascii_digit() || first == '-') => {
            let number = word
                .parse()
                .map_err(|_| format!("'{word}' in '{text}' is not a whole number from 0 on"));
            number.map(Extent::Fixed)
        }
        word => Ok(Extent::Named(word.to_owned())),
    };
    let extents = extents.trim();
    let shape = if extents.is_empty() {
        Vec::new()
    } else {
        extents.split(',').map(extent).collect::<Result<_, _>>()?
    };
    Ok((name.to_owned(), shape))
}

/// Extents in a sentence.
pub(crate) fn shown(shape: &[Extent]) -> String {
    let shape: Vec<_> = shape.iter().map(Extent::to_string).collect();
    format!("[{}]", shape.join(", "))
}

/// The version of each set of operators. The names `ai.onnx` and "" are the same.
fn versions(
    imports: &[crate::proto::OperatorSetIdProto],
) -> Result<BTreeMap<String, i64>, ModelError> {
    let mut versions = BTreeMap::new();
    for import in imports {
        let domain = usual(&import.domain).to_owned();
        if versions.insert(domain, import.version).is_some_and(|other| other != import.version) {
            return Err(ModelError::File(format!(
                "this ONNX file imports two versions of the operator set '{}'",
                import.domain
            )));
        }
    }
    if let Some(version) =
        versions.get("").filter(|version| **version > NEWEST_VERSION || **version < 1)
    {
        return Err(ModelError::File(format!(
            "this ONNX file is written for version {version} of the operators, and versions 1 to {NEWEST_VERSION} are known here"
        )));
    }
    Ok(versions)
}

/// The domain, by its short name.
pub(crate) fn usual(domain: &str) -> &str {
    if domain == "ai.onnx" { "" } else { domain }
}

/// The input that a file describes.
fn input_of(info: &ValueInfoProto) -> Result<ModelInput, String> {
    let value = info.r#type.as_ref().and_then(|ty| ty.value.as_ref());
    let tensor = match value {
        Some(TypeValue::Tensor(tensor)) => tensor,
        Some(TypeValue::Sequence(_)) => {
            return Err("a sequence is not supported as an input".to_owned());
        }
        Some(TypeValue::Optional(_)) => {
            return Err("an optional value is not supported as an input".to_owned());
        }
        Some(TypeValue::Map(_)) => return Err("a map is not supported".to_owned()),
        Some(TypeValue::SparseTensor(_)) => {
            return Err("a sparse tensor is not supported".to_owned());
        }
        Some(TypeValue::Opaque(_)) => {
            return Err("a value of an opaque type is not supported".to_owned());
        }
        None => return Err("the file does not say what type it has".to_owned()),
    };
    let dtype = dtype_of(i64::from(tensor.elem_type))?;
    let extent = |dimension: &crate::proto::Dimension| match &dimension.value {
        Some(DimensionValue::Value(extent)) => {
            usize::try_from(*extent).map_or(Extent::Any, Extent::Fixed)
        }
        // Some writers call every extent that they do not know "?".
        Some(DimensionValue::Param(name)) if !matches!(name.as_str(), "" | "?") => {
            Extent::Named(name.clone())
        }
        _ => Extent::Any,
    };
    let shape = tensor.shape.as_ref().map(|shape| shape.dim.iter().map(extent).collect());
    Ok(ModelInput { name: info.name.clone(), dtype, shape })
}
