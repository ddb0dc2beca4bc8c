//! `aicore.json`: what a source tree is of, and which files of its build an image is made of.

use std::path::Path;

use pto_host::abi::CoreKind;
use pto_host::abi::layout::LAYOUT_HASH;
use pto_host::abi::runtime::{ABI_MAJOR, ABI_MINOR};
use serde_json::{Value, json};

use crate::images::error::BuildError;

/// The file.
const NAME: &str = "aicore.json";
/// The form of the file.
const FORMAT: u64 = 1;
/// The cores that the tree is for.
const ARCHITECTURE: &str = "dav-c220";
/// The folder of what is built, in the tree.
pub(super) const OUT: &str = "out";

/// A kernel of a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Kernel {
    pub(super) name: String,
    pub(super) func_id: u32,
    pub(super) kind: CoreKind,
    /// Its source, in the tree.
    pub(super) source: String,
    /// What the linker makes of it, in the tree.
    pub(super) file: String,
}

/// What a tree is of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Manifest {
    /// What the linker makes of the worker, in the tree.
    pub(super) worker: String,
    pub(super) kernels: Vec<Kernel>,
    /// Folders of headers for the kernels, in the tree.
    pub(super) includes: Vec<String>,
}

impl Manifest {
    pub(super) fn new(kernels: Vec<Kernel>, includes: Vec<String>) -> Self {
        Self { worker: format!("{OUT}/worker.elf"), kernels, includes }
    }

    pub(super) fn text(&self) -> String {
        let kernel = |kernel: &Kernel| {
            json!({
                "name": kernel.name,
                "func_id": kernel.func_id,
                "kind": kernel.kind.name(),
                "source": kernel.source,
                "file": kernel.file,
            })
        };
        let value = json!({
            "format": FORMAT,
            "architecture": ARCHITECTURE,
            "abi": [ABI_MAJOR, ABI_MINOR],
            "layout_hash": format!("{LAYOUT_HASH:#018x}"),
            "worker": self.worker,
            "includes": self.includes,
            "kernels": self.kernels.iter().map(kernel).collect::<Vec<_>>(),
        });
        format!("{value:#}\n")
    }

    /// That of the tree in `folder`.
    pub(super) fn read(folder: &Path) -> Result<Self, BuildError> {
        let path = folder.join(NAME);
        let wrong = |what: String| BuildError::Manifest { path: path.clone(), what };
        let text = std::fs::read_to_string(&path).map_err(|error| {
            wrong(format!(
                "{error}. Give the folder that `pto fw build --image cann --aicore` has written"
            ))
        })?;
        let value: Value = serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))?;
        let own = format!("{LAYOUT_HASH:#018x}");
        let hash = value["layout_hash"].as_str().unwrap_or("none");
        if value["format"] != FORMAT || value["architecture"] != ARCHITECTURE || hash != own {
            return Err(wrong(format!(
                "the tree is of another release (layout hash {hash}, this host's is {own}): write it again with `pto fw build --image cann --aicore`"
            )));
        }
        let manifest = Self::of(&value);
        manifest.ok_or_else(|| wrong("a field of it is missing, or not what it must be".to_owned()))
    }

    fn of(value: &Value) -> Option<Self> {
        let kernel = |value: &Value| {
            let text = |name: &str| in_tree(&value[name]);
            Some(Kernel {
                name: value["name"].as_str()?.to_owned(),
                func_id: value["func_id"].as_u64()?.try_into().ok()?,
                kind: *CoreKind::ALL.iter().find(|kind| value["kind"] == kind.name())?,
                source: text("source")?,
                file: text("file")?,
            })
        };
        let kernels = value["kernels"].as_array()?.iter().map(kernel).collect::<Option<_>>()?;
        let includes = value["includes"].as_array()?.iter().map(in_tree).collect::<Option<_>>()?;
        Some(Self { worker: in_tree(&value["worker"])?, kernels, includes })
    }
}

/// A path within the tree.
fn in_tree(value: &Value) -> Option<String> {
    let path = Path::new(value.as_str()?);
    let stays = path.components().all(|part| matches!(part, std::path::Component::Normal(_)));
    stays.then(|| path.display().to_string())
}

/// The path of the file in a tree.
pub(super) fn path_in(folder: &Path) -> std::path::PathBuf {
    folder.join(NAME)
}
