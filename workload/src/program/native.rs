//! Native kernels of a program: shared objects, one for each processor that the program can run on, and what their kernels are
//! called.
//!
//! A name is that of a native kernel or of one of the library, never of both. What an object holds is trusted when it is loaded,
//! as any code; reading a file loads nothing.

use pto_abi::CoreKind;

use super::bytes::{Reader, Writer};
use super::description::name_defect;
use super::error::ProgramError;

/// Kernels of a program's own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NativeKernels {
    kernels: Vec<NativeKernel>,
    objects: Vec<NativeObject>,
}

/// A kernel that the objects export (the array `pto_kernels` of `pto_kernels.h`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NativeKernel {
    /// What tasks call it.
    pub name: String,
    /// The cores that it is written for.
    pub kind: CoreKind,
}

/// The code of all kernels, for one processor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NativeObject {
    /// The processor, as `std::env::consts::ARCH` calls it: `x86_64`, `aarch64`.
    pub processor: String,
    /// A shared object.
    pub code: Vec<u8>,
}

const SECTION: &str = "native";

impl NativeKernels {
    /// These kernels, in these objects.
    ///
    /// # Errors
    /// `Section`: there is no kernel or no object; a name is no name, or there twice; a processor is there twice.
    pub fn new(
        kernels: Vec<NativeKernel>,
        objects: Vec<NativeObject>,
    ) -> Result<Self, ProgramError> {
        let native = Self { kernels, objects };
        match native.defect() {
            None => Ok(native),
            Some(what) => Err(ProgramError::Section { section: SECTION, at: 0, what }),
        }
    }

    fn defect(&self) -> Option<String> {
        if self.kernels.is_empty() || self.objects.is_empty() {
            return Some("native kernels need a kernel and an object at least".to_owned());
        }
        let names: Vec<_> = self.kernels.iter().map(|kernel| kernel.name.as_str()).collect();
        let processors: Vec<_> = self.objects.iter().map(|one| one.processor.as_str()).collect();
        let wrong = |name: &&str| name_defect(name).map(|what| format!("{name:?} {what}"));
        if let Some(wrong) = names.iter().chain(&processors).find_map(wrong) {
            return Some(wrong);
        }
        let twice = twice(&names).map(|name| format!("kernel {name} is there twice"));
        twice.or_else(|| {
            let processor = self::twice(&processors)?;
            Some(format!("there are two objects for the processor {processor}"))
        })
    }

    /// The kernels.
    #[must_use]
    pub fn kernels(&self) -> &[NativeKernel] {
        &self.kernels
    }

    /// The objects.
    #[must_use]
    pub fn objects(&self) -> &[NativeObject] {
        &self.objects
    }

    /// The kernel of this name.
    #[must_use]
    pub fn kernel(&self, name: &str) -> Option<&NativeKernel> {
        self.kernels.iter().find(|kernel| kernel.name == name)
    }

    /// The code for a processor.
    ///
    /// # Errors
    /// `Processor`, with those that there are.
    pub fn object(&self, program: &str, processor: &str) -> Result<&NativeObject, ProgramError> {
        let found = self.objects.iter().find(|object| object.processor == processor);
        found.ok_or_else(|| {
            let known: Vec<_> = self.objects.iter().map(|one| one.processor.as_str()).collect();
            ProgramError::Processor {
                program: program.to_owned(),
                wanted: processor.to_owned(),
                known: known.join(", "),
            }
        })
    }

    pub(super) fn write(&self) -> Vec<u8> {
        let mut writer = Writer::default();
        writer.count(self.kernels.len());
        for kernel in &self.kernels {
            writer.text(&kernel.name);
            writer.byte(u8::from(kernel.kind == CoreKind::AIV));
        }
        writer.count(self.objects.len());
        for object in &self.objects {
            writer.text(&object.processor);
            writer.bytes(&object.code);
        }
        writer.0
    }

    pub(super) fn read(content: &[u8]) -> Result<Self, ProgramError> {
        let mut reader = Reader::new(SECTION, content);
        let kernels =
            (0..reader.count()?).map(|_| kernel(&mut reader)).collect::<Result<_, _>>()?;
        let objects =
            (0..reader.count()?).map(|_| object(&mut reader)).collect::<Result<_, _>>()?;
        reader.end()?;
        Self::new(kernels, objects)
    }
}

fn kernel(reader: &mut Reader<'_>) -> Result<NativeKernel, ProgramError> {
    let name = reader.name()?;
    let kind = reader.one_of("a kind of core", &[CoreKind::AIC, CoreKind::AIV])?;
    Ok(NativeKernel { name, kind })
}

fn object(reader: &mut Reader<'_>) -> Result<NativeObject, ProgramError> {
    Ok(NativeObject { processor: reader.name()?, code: reader.bytes()?.to_vec() })
}

fn twice<'n>(names: &[&'n str]) -> Option<&'n str> {
    let is_again = |(at, name): (usize, &&str)| names[..at].contains(name);
    names.iter().enumerate().find(|(at, name)| is_again((*at, name))).map(|(_, name)| *name)
}

#[cfg(test)]
mod tests {
    use pto_abi::CoreKind;

    use super::{NativeKernel, NativeKernels, NativeObject};

    fn kernel(name: &str) -> NativeKernel {
        NativeKernel { name: name.to_owned(), kind: CoreKind::AIV }
    }

    fn object(processor: &str) -> NativeObject {
        NativeObject { processor: processor.to_owned(), code: vec![1, 2, 3] }
    }

    #[test]
    fn what_is_written_is_read() {
        let aic = NativeKernel { kind: CoreKind::AIC, ..kernel("b") };
        let objects = vec![object("x86_64"), object("aarch64")];
        let native = NativeKernels::new(vec![kernel("a"), aic], objects).unwrap();
        let content = native.write();
        assert_eq!(NativeKernels::read(&content).as_ref(), Ok(&native));
        for end in 0..content.len() {
            assert!(NativeKernels::read(&content[..end]).is_err(), "{end} bytes");
        }
    }

    #[test]
    fn what_nobody_could_call_is_refused() {
        let refused = |kernels: &[&str], objects: &[&str]| {
            let kernels = kernels.iter().map(|name| kernel(name)).collect();
            let objects = objects.iter().map(|name| object(name)).collect();
            NativeKernels::new(kernels, objects).unwrap_err().to_string()
        };
        assert!(refused(&[], &["x86_64"]).contains("at least"));
        assert!(refused(&["a"], &[]).contains("at least"));
        assert!(refused(&["a", "b", "a"], &["x86_64"]).contains("kernel a is there twice"));
        assert!(refused(&["a"], &["x86_64", "x86_64"]).contains("two objects"));
        assert!(refused(&["a\n"], &["x86_64"]).contains("control characters"));
    }

    #[test]
    fn a_processor_without_code_is_told_which_there_are() {
        let native = NativeKernels::new(vec![kernel("a")], vec![object("x86_64")]).unwrap();
        assert!(native.object("p", "x86_64").is_ok());
        let refused = native.object("p", "riscv64").unwrap_err().to_string();
        assert!(refused.contains("riscv64") && refused.contains("x86_64"), "{refused}");
    }
}
