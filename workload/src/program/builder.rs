//! A builder program that the device has: the file names it, and has the words that it reads.

use pto_abi::RuntimeVariant;
use pto_abi::limits::MAX_ARGS;

use super::bytes::{Reader, Writer};
use super::description::{TensorDescription, name_defect};
use super::error::ProgramError;
use super::graph::{self, GraphArgument};

/// A builder program that the device has, by its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BuilderReference {
    /// What the device calls it.
    pub name: String,
    /// What it builds for: `AICPU_BUILD_GRAPH` or `TENSORMAP_AND_RINGBUFFER`.
    pub variant: RuntimeVariant,
    /// The words that it reads; the word of a tensor is its address.
    pub words: Vec<GraphArgument>,
}

/// What a builder can build for.
const VARIANTS: [RuntimeVariant; 2] =
    [RuntimeVariant::AICPU_BUILD_GRAPH, RuntimeVariant::TENSORMAP_AND_RINGBUFFER];

/// The first thing that is wrong with it; `None`: nothing.
pub(super) fn defect(builder: &BuilderReference, tensors: &[TensorDescription]) -> Option<String> {
    let BuilderReference { name, variant, words } = builder;
    if let Some(what) = name_defect(name) {
        return Some(format!("the builder {what}"));
    }
    if !VARIANTS.contains(variant) {
        return Some(format!(
            "the builder {name} is for the variant {variant}, which has no builders"
        ));
    }
    if words.len() > MAX_ARGS {
        let found = words.len();
        return Some(format!("the builder {name} has {found} words, and {MAX_ARGS} are the limit"));
    }
    let what = words.iter().find_map(|word| word.defect(tensors))?;
    Some(format!("the builder {name} {what}"))
}

pub(super) fn write(builder: &BuilderReference) -> Vec<u8> {
    let mut writer = Writer::default();
    writer.text(&builder.name);
    writer.number(builder.variant.get().into());
    graph::write_arguments(&mut writer, &builder.words);
    writer.0
}

pub(super) fn read(content: &[u8]) -> Result<BuilderReference, ProgramError> {
    let mut reader = Reader::new("builder", content);
    let name = reader.name()?;
    let code = reader.number()?;
    let variant = VARIANTS.into_iter().find(|variant| u64::from(variant.get()) == code);
    let variant =
        variant.ok_or_else(|| reader.error(format!("variant {code}, which has no builders")))?;
    let words = graph::read_arguments(&mut reader)?;
    reader.end()?;
    Ok(BuilderReference { name, variant, words })
}

#[cfg(test)]
mod tests {
    use pto_abi::RuntimeVariant;

    use super::{BuilderReference, defect, read, write};
    use crate::program::{GraphArgument, Role, TensorDescription, TensorLayout};
    use pto_aicore_kernels::tile::DType;

    fn reference() -> BuilderReference {
        let words = vec![GraphArgument::Tensor { tensor: 0, offset: 4 }, GraphArgument::Word(7)];
        let variant = RuntimeVariant::TENSORMAP_AND_RINGBUFFER;
        BuilderReference { name: "sums".to_owned(), variant, words }
    }

    #[test]
    fn what_is_written_is_read() {
        let content = write(&reference());
        assert_eq!(read(&content), Ok(reference()));
        for end in 0..content.len() {
            assert!(read(&content[..end]).is_err(), "{end} bytes");
        }
        let mut other = content;
        other[12] = 0;
        assert!(read(&other).unwrap_err().to_string().contains("variant 0"), "{other:?}");
    }

    #[test]
    fn what_no_device_could_build_is_refused() {
        let x = TensorDescription {
            name: "x".to_owned(),
            role: Role::Input,
            dtype: DType::F32,
            shape: vec![1],
            layout: TensorLayout::device(),
            begins_with_zeros: false,
        };
        let of = |reference: &BuilderReference| defect(reference, std::slice::from_ref(&x));
        assert!(of(&reference()).unwrap().contains("byte 4 of tensor x, which has 4"));
        let first = GraphArgument::Tensor { tensor: 0, offset: 0 };
        let fitting = BuilderReference { words: vec![first], ..reference() };
        assert_eq!(of(&fitting), None);
        let none = BuilderReference { name: String::new(), ..fitting.clone() };
        assert!(of(&none).unwrap().contains("name of 0 bytes"));
        let host = RuntimeVariant::HOST_BUILD_GRAPH;
        let host = BuilderReference { variant: host, ..fitting.clone() };
        assert!(of(&host).unwrap().contains("has no builders"));
        let many = BuilderReference { words: vec![GraphArgument::Word(0); 129], ..fitting };
        assert!(of(&many).unwrap().contains("129 words, and 128 are the limit"));
    }
}
