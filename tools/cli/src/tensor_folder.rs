//! A folder of tensors: a NumPy file for each, and `index.json`, which says what they are. [`check`] asks before a run whether the
//! folder can be written, [`write()`] fills it.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use pto_abi::GmAddr;
use pto_check::program::Tensor as GraphTensor;
use pto_examples::host::{DType, ElementVec, Tensor};
use pto_graph::ElementType;
use pto_host::Device;
use serde_json::{Value, json};

use crate::errors::Failure;
use crate::{npy, output_file};

/// The file that says what the others are.
const INDEX: &str = "index.json";

/// What is in the index in addition to the tensors.
pub(crate) struct Heading<'a> {
    /// What the folder is for.
    pub(crate) format: &'a str,
    /// Whose tensors they are.
    pub(crate) name: &'a str,
}

/// A tensor, and where it is.
pub(crate) struct Located<'a> {
    pub(crate) tensor: &'a GraphTensor,
    pub(crate) address: GmAddr,
    /// `host`, or `heap`.
    pub(crate) origin: &'static str,
}

/// Makes the folder, where it is not there; nothing runs for one that cannot be filled in the end.
pub(crate) fn check(option: &str, folder: &Path) -> Result<(), Failure> {
    output_file::check_folder(option, folder)?;
    let shown = folder.display();
    if folder.exists() && !folder.is_dir() {
        return Err(Failure::usage(format!("{option} '{shown}' is a file; name a folder")));
    }
    let cannot = |error| Failure::internal(format!("cannot make the folder '{shown}': {error}"));
    fs::create_dir_all(folder).map_err(cannot)?;
    let cannot = |error| Failure::internal(format!("cannot read the folder '{shown}': {error}"));
    if fs::read_dir(folder).map_err(cannot)?.next().is_some() {
        return Err(Failure::usage(format!(
            "{option} '{shown}' is not empty; name a new folder, or empty it, so that no file in it is from another run"
        )));
    }
    output_file::check(&folder.join(INDEX))
}

/// Writes the tensors and the index.
pub(crate) fn write(
    folder: &Path,
    heading: &Heading<'_>,
    tensors: &[Located<'_>],
    left_out: Vec<Value>,
    device: &Device,
) -> Result<(), Failure> {
    let mut names = BTreeSet::from([INDEX.to_owned()]);
    let mut entries = Vec::new();
    for located in tensors {
        let name = file_name(located.tensor, &mut names);
        let array = read(located, device)?;
        npy::write(&folder.join(&name), &array)?;
        entries.push(entry(located, &name, &array));
    }
    let index = json!({
        "format": heading.format,
        "version": 1,
        "name": heading.name,
        "tensors": entries,
        "left_out": left_out,
    });
    output_file::write(&folder.join(INDEX), |to| {
        serde_json::to_writer_pretty(&mut *to, &index)?;
        std::io::Write::write_all(to, b"\n")
    })
}

fn entry(Located { tensor, origin, .. }: &Located<'_>, file: &str, array: &Tensor) -> Value {
    json!({
        "name": tensor.name,
        "id": tensor.id,
        "file": file,
        "element": tensor.element.name(),
        "dtype": array.dtype().name(),
        "shape": array.shape(),
        "place": origin,
    })
}

/// A name for the file, that no other one has: the tensor's, as far as a file can be called so, or its number.
fn file_name(tensor: &GraphTensor, taken: &mut BTreeSet<String>) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "_-+".contains(c) { c } else { '_' };
    let own = tensor.name.as_ref().filter(|name| !name.is_empty() && name.len() <= 100);
    let stem = match own {
        Some(name) => name.chars().map(plain).collect(),
        None => format!("tensor_{}", tensor.id),
    };
    let mut name = format!("{stem}.npy");
    let mut number = tensor.id;
    while !taken.insert(name.clone()) {
        name = format!("{stem}_{number}.npy");
        number = number.wrapping_add(1);
    }
    name
}

/// The tensor as it is in memory now.
fn read(Located { tensor, address, .. }: &Located<'_>, device: &Device) -> Result<Tensor, Failure> {
    let (dtype, shape) = array_of(tensor);
    let count: u64 = shape.iter().product();
    let too_large = || Failure::internal(format!("{tensor} is larger than memory"));
    let bytes = usize::try_from(count * dtype.bytes() as u64).map_err(|_| too_large())?;
    let mut held = vec![0; bytes];
    device.copy_from_device(*address, &mut held)?;
    Tensor::new(shape, ElementVec::from_bytes(dtype, &held)).ok_or_else(too_large)
}

/// The type and the extents of a tensor in a NumPy file: without a shape it is one row, and halves of floats are their bits.
pub(crate) fn array_of(tensor: &GraphTensor) -> (DType, Vec<u64>) {
    let dtype = dtype_of(tensor.element);
    match &tensor.shape {
        Some(shape) => (dtype, shape.iter().map(|extent| u64::from(*extent)).collect()),
        None if tensor.bytes.is_multiple_of(dtype.bytes() as u64) => {
            (dtype, vec![tensor.bytes / dtype.bytes() as u64])
        }
        None => (DType::U8, vec![tensor.bytes]),
    }
}

const fn dtype_of(element: ElementType) -> DType {
    match element {
        ElementType::F32 => DType::F32,
        ElementType::F64 => DType::F64,
        ElementType::I8 => DType::I8,
        ElementType::I16 => DType::I16,
        ElementType::I32 => DType::I32,
        ElementType::I64 => DType::I64,
        ElementType::U32 => DType::U32,
        ElementType::U64 => DType::U64,
        // NumPy has none of 16 bits that everybody reads: their bits.
        ElementType::F16 | ElementType::BF16 | ElementType::U16 => DType::U16,
        _ => DType::U8,
    }
}

/// Where the index of a folder is.
pub(crate) fn index_of(folder: &Path) -> PathBuf {
    folder.join(INDEX)
}

#[cfg(test)]
mod tests {
    use super::file_name;
    use pto_check::program::{Location, Tensor};
    use pto_graph::ElementType;
    use std::collections::BTreeSet;

    #[test]
    fn a_tensor_never_names_a_file_outside_of_the_folder() {
        let named = |name: Option<&str>, id| Tensor {
            id,
            name: name.map(str::to_owned),
            bytes: 4,
            element: ElementType::F32,
            shape: None,
            location: Location::Host(None),
        };
        let mut taken = BTreeSet::new();
        let mut name = |tensor: &Tensor| file_name(tensor, &mut taken);
        assert_eq!(name(&named(Some("../etc/passwd"), 1)), "___etc_passwd.npy");
        assert_eq!(name(&named(Some("a b"), 2)), "a_b.npy");
        assert_eq!(name(&named(Some("a_b"), 3)), "a_b_3.npy");
        assert_eq!(name(&named(None, 4)), "tensor_4.npy");
        assert_eq!(name(&named(Some(&"x".repeat(300)), 5)), "tensor_5.npy");
    }
}
