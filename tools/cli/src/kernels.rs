//! The kernels that tasks of a graph file name: those of the library, and of a shared object that `--kernels` names.

use std::path::{Path, PathBuf};

use pto_abi::{CoreKind, FuncId};
use pto_aicore_kernels::LIBRARY;
use pto_check::{Signature, Signatures};
use pto_host::Device;
use pto_host::workloads::program::Program;
use pto_native::kernel_table::{self, ListedKernel};

use crate::errors::Failure;

/// See the module. Of two kernels with one func id that of the object counts.
#[derive(Clone, Debug, Default)]
pub(crate) struct KernelSet {
    own: Vec<ListedKernel>,
    path: Option<PathBuf>,
}

impl KernelSet {
    /// Those of the library, and those of the object, if there is one.
    pub(crate) fn with(path: Option<&Path>) -> Result<Self, Failure> {
        let Some(path) = path else { return Ok(Self::default()) };
        let own = kernel_table::read(path).map_err(|failure| {
            if path.exists() {
                return Failure::usage(format!("--kernels: {}", failure.message));
            }
            Failure::internal(format!("--kernels: {}", failure.message))
        })?;
        Ok(Self { own, path: Some(path.to_owned()) })
    }

    /// Those of the library, and those of the object with this code, which was read from `path`.
    pub(crate) fn of_code(path: &Path, code: &[u8]) -> Result<Self, Failure> {
        let own = kernel_table::of_bytes(code, &path.display().to_string());
        let own =
            own.map_err(|failure| Failure::usage(format!("--kernels: {}", failure.message)))?;
        Ok(Self { own, path: Some(path.to_owned()) })
    }

    /// What is known of them.
    pub(crate) fn signatures(&self) -> Signatures {
        let of_library = LIBRARY.iter().filter_map(|kernel| {
            Some(Signature {
                func: u16::try_from(kernel.func_id).ok()?,
                name: kernel.name.to_owned(),
                kind: kernel.kind,
                args: kernel.args.iter().map(|arg| (*arg).to_owned()).collect(),
                takes_more: kernel.takes_more,
                footprint: Some(kernel.footprint),
            })
        });
        let of_object = self.own.iter().map(|listed| Signature {
            func: listed.func,
            name: listed.kernel.name().to_owned(),
            kind: listed.kernel.kind(),
            args: listed.args.clone(),
            takes_more: false,
            footprint: None,
        });
        Signatures::new(of_library.chain(of_object).collect())
    }

    /// Makes them those of a device. A device to which kernels were flashed has those instead of the library's: a user's own among them.
    pub(crate) fn register(&self, device: &mut Device) -> Result<(), Failure> {
        let flashed = device.flashed_kernels();
        match flashed.is_empty() {
            true => device.register_library()?,
            false => device.register_flashed()?,
        }
        for listed in &self.own {
            let func = FuncId(listed.func);
            let is_flashed = flashed.iter().any(|(flashed, _)| *flashed == func);
            if is_flashed || usize::from(listed.func) < LIBRARY.len() {
                device.unregister_kernel(func)?;
            }
            device.register_kernel(func, listed.kernel.clone())?;
        }
        Ok(())
    }

    /// The name and the kind of cores of a kernel, by its func id.
    pub(crate) fn named(&self, func: u16) -> Option<(&str, CoreKind)> {
        let own = self.own.iter().find(|listed| listed.func == func);
        let own = own.map(|listed| (listed.kernel.name(), listed.kernel.kind()));
        own.or_else(|| LIBRARY.get(usize::from(func)).map(|kernel| (kernel.name, kernel.kind)))
    }

    /// A program with those of the object; `objects` are the same kernels for several processors.
    pub(crate) fn put_into(
        &self,
        program: Program,
        objects: Vec<(String, Vec<u8>)>,
    ) -> Result<Program, Failure> {
        let built = pto_native::program::with_kernels(program, &self.own, objects);
        built.map_err(|failure| Failure::usage(format!("--kernels: {}", failure.message)))
    }

    /// Where a user finds what there is.
    pub(crate) fn listed_by(&self) -> String {
        match &self.path {
            None => {
                "pto info kernels shows the library; --kernels names a shared object with others"
                    .to_owned()
            }
            Some(path) => {
                let own: Vec<_> = self
                    .own
                    .iter()
                    .map(|one| format!("{} {}", one.func, one.kernel.name()))
                    .collect();
                format!(
                    "'{}' has {}; pto info kernels shows the library",
                    path.display(),
                    own.join(", ")
                )
            }
        }
    }

    /// What a report says of them; `None`: they are those of the library.
    pub(crate) fn text(&self) -> Option<String> {
        let path = self.path.as_ref()?;
        let one = |listed: &ListedKernel| format!("{} {}", listed.func, listed.kernel.name());
        let own: Vec<_> = self.own.iter().map(one).collect();
        Some(format!("{} of '{}', and the library", own.join(", "), path.display()))
    }
}
