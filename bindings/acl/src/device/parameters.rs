//! The words of a kernel's arguments, and the parameters that it declares: how many there are, and how many bytes each has. Launches with an array of pointers need them.
//!
//! An object declares those of its kernel `name` in the constant `pto_parameters_name`, an array of 32-bit sizes (`PTO_ACL_PARAMETERS` in `pto_acl.h`).

use std::sync::OnceLock;

use pto_native::constants;

use crate::common::codes;
use crate::common::refusal::{Answer, Refusal, require};

/// The most parameters of a kernel.
pub(crate) const MAX_PARAMETERS: usize = 128;

/// What the constant of a kernel's parameters begins with.
const PREFIX: &str = "pto_parameters_";
/// Bytes of a word of arguments; each parameter begins with one.
const WORD: usize = 8;

/// How many words so many bytes of arguments are.
pub(crate) fn words_in(bytes: usize) -> Answer<usize> {
    require(bytes <= WORD * MAX_PARAMETERS, || {
        Refusal::value(format!("{bytes} bytes of arguments; a kernel takes {MAX_PARAMETERS} words"))
    })?;
    Ok(bytes.div_ceil(WORD))
}

/// Bytes of arguments as the words that a kernel takes.
pub(crate) fn words(bytes: &[u8]) -> Answer<Vec<u64>> {
    words_in(bytes.len())?;
    let word = |part: &[u8]| {
        let mut whole = [0; WORD];
        whole[..part.len()].copy_from_slice(part);
        u64::from_ne_bytes(whole)
    };
    Ok(bytes.chunks(WORD).map(word).collect())
}

/// The parameters of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Parameters {
    sizes: Vec<usize>,
}

impl Parameters {
    /// Parameters of these sizes in bytes.
    pub(crate) fn of(kernel: &str, sizes: &[u32]) -> Answer<Self> {
        let sizes: Vec<usize> =
            sizes.iter().map(|bytes| usize::try_from(*bytes).unwrap_or(usize::MAX)).collect();
        if let Some(index) = sizes.iter().position(|bytes| *bytes == 0) {
            return Err(Refusal::value(format!(
                "parameter {index} of the kernel {kernel} is declared with 0 bytes; give its size"
            )));
        }
        let words =
            sizes.iter().fold(0, |sum: usize, bytes| sum.saturating_add(bytes.div_ceil(WORD)));
        require(words <= MAX_PARAMETERS, || {
            Refusal::value(format!(
                "the parameters of the kernel {kernel} are declared with {words} words; a kernel takes {MAX_PARAMETERS}"
            ))
        })?;
        Ok(Self { sizes })
    }

    /// What an object declares for its kernel; `None`: nothing.
    fn declared(object: &[u8], file: &str, kernel: &str) -> Answer<Option<Self>> {
        let words = constants::words(object, &format!("{PREFIX}{kernel}"));
        let words = words
            .map_err(|failure| Refusal::new(codes::INVALID_FILE, format!("{file}: {failure}")))?;
        // An array of C has one element at least: a single 0 declares no parameters.
        let sizes = words.map(|words| if words == [0] { Vec::new() } else { words });
        sizes.map(|sizes| Self::of(kernel, &sizes)).transpose()
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.sizes.len()
    }

    /// The offset of parameter `index` in the arguments, and its size in bytes.
    pub(crate) fn extent(&self, index: usize) -> Answer<(usize, usize)> {
        let size = self.sizes.get(index).ok_or_else(|| {
            Refusal::value(format!(
                "there is no parameter {index}; the kernel has {}, from 0 on",
                self.count()
            ))
        })?;
        let before = self.sizes.iter().take(index).map(|bytes| bytes.next_multiple_of(WORD));
        Ok((before.sum(), *size))
    }

    /// The words of arguments; `bytes_of` gives the bytes of a parameter, by its number and its size.
    pub(crate) fn gather(
        &self,
        mut bytes_of: impl FnMut(usize, usize) -> Answer<Vec<u8>>,
    ) -> Answer<Vec<u64>> {
        let mut gathered = Vec::new();
        for (index, size) in self.sizes.iter().enumerate() {
            gathered.extend(words(&bytes_of(index, *size)?)?);
        }
        Ok(gathered)
    }
}

/// What is known of a kernel's parameters.
#[derive(Debug, Default)]
pub(crate) struct Declaration {
    held: OnceLock<Parameters>,
}

impl From<Parameters> for Declaration {
    fn from(parameters: Parameters) -> Self {
        Self { held: OnceLock::from(parameters) }
    }
}

impl Declaration {
    /// That of a kernel in an object.
    pub(crate) fn of_object(object: &[u8], file: &str, kernel: &str) -> Answer<Self> {
        let declared = Parameters::declared(object, file, kernel)?;
        Ok(Self { held: declared.map_or_else(OnceLock::new, OnceLock::from) })
    }

    /// Declares the parameters. They cannot change: a launch may have been made with them.
    pub(crate) fn declare(&self, kernel: &str, parameters: Parameters) -> Answer {
        let held = self.held.get_or_init(|| parameters.clone());
        require(*held == parameters, || {
            Refusal::value(format!(
                "the kernel {kernel} has declared other parameters before: {} bytes each in turn",
                list(&held.sizes)
            ))
        })
    }

    /// The parameters of the kernel of this name.
    pub(crate) fn get(&self, kernel: &str) -> Answer<&Parameters> {
        self.held.get().ok_or_else(|| {
            Refusal::value(format!(
                "the kernel {kernel} does not declare its parameters; write PTO_ACL_PARAMETERS({kernel}, 8, 8) with the bytes of each parameter \
                 next to it (pto_acl.h), or call ptoAclKernelParameters"
            ))
        })
    }
}

fn list(sizes: &[usize]) -> String {
    let sizes: Vec<String> = sizes.iter().map(usize::to_string).collect();
    if sizes.is_empty() { "no".to_owned() } else { sizes.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::{Declaration, Parameters};

    #[test]
    fn each_parameter_begins_with_a_word() {
        let parameters = Parameters::of("k", &[8, 4, 20, 1]).expect("they are few");
        let extents: Vec<_> = (0..4).map(|index| parameters.extent(index).ok()).collect();
        assert_eq!(extents, [Some((0, 8)), Some((8, 4)), Some((16, 20)), Some((40, 1))]);
        assert!(parameters.extent(4).is_err());
        let words =
            parameters.gather(|index, size| Ok(vec![u8::try_from(index).unwrap_or(0) + 1; size]));
        let words = words.expect("the bytes are there");
        assert_eq!(words.len(), 6);
        assert_eq!((words[1], words[4], words[5]), (0x0202_0202, 0x0303_0303, 4));
    }

    #[test]
    fn sizes_that_cannot_be_are_refused() {
        assert!(Parameters::of("k", &[8, 0]).is_err_and(|why| why.text.contains("parameter 1")));
        assert!(Parameters::of("k", &[8; 128]).is_ok());
        assert!(Parameters::of("k", &[8; 129]).is_err());
        assert!(Parameters::of("k", &[u32::MAX; 64]).is_err());
    }

    #[test]
    fn a_declaration_stays() {
        let declaration = Declaration::default();
        assert!(declaration.get("k").is_err_and(|why| why.text.contains("PTO_ACL_PARAMETERS(k")));
        let [two, one] = [&[8, 8][..], &[8]].map(|sizes| Parameters::of("k", sizes).expect("few"));
        assert!(declaration.declare("k", two.clone()).is_ok());
        assert!(declaration.declare("k", two.clone()).is_ok());
        assert!(declaration.declare("k", one).is_err());
        assert_eq!(declaration.get("k").ok(), Some(&two));
    }
}
