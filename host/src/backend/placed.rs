//! The images that are brought to a device, and the kernels of a blob, in the memory of a device that runs them there.

use std::collections::BTreeMap;

use pto_abi::fw_image::qemu::PAGE_BYTES;
use pto_abi::{CoreKind, FuncId, GmAddr};
use pto_aicore_kernels::LIBRARY;

use crate::allocator::Owner;
use crate::error::Error;
use crate::fw::{BlobKernel, FlashDevice, Image, ImageError, KernelBlob, Machine};
use crate::kernel::Kernel;
use crate::kernel::KernelCode;
use crate::memory::Memory;

/// A kernel in GM.
struct PlacedKernel {
    name: String,
    kind: CoreKind,
    address: GmAddr,
}

/// All kernels of a blob.
pub(crate) struct PlacedKernels {
    start: GmAddr,
    kernels: BTreeMap<u32, PlacedKernel>,
}

impl PlacedKernels {
    /// Copies the blob to a page of its own, for good: an emulator does not see writes of the host to code that it has
    /// translated.
    pub(crate) fn place(memory: &Memory, image: &Image) -> Result<Self, Error> {
        let blob = code_of(image)?;
        let room = blob.bytes.len() as u64 + PAGE_BYTES;
        let block = memory.alloc(room, Owner::Runtime)?;
        let start = GmAddr(block.0.next_multiple_of(PAGE_BYTES));
        memory.gm().write(start, &blob.bytes)?;
        let placed = |kernel: &BlobKernel| {
            let (name, kind) = (kernel.name.clone(), kernel.kind);
            (kernel.func_id, PlacedKernel { name, kind, address: start.offset(kernel.offset) })
        };
        Ok(Self { start, kernels: blob.kernels.iter().map(placed).collect() })
    }

    /// Copies the same blob to the same address, after the memory was lost.
    #[cfg(feature = "a2a3")]
    pub(crate) fn write_again(&self, memory: &Memory, image: &Image) -> Result<(), Error> {
        memory.gm().write(self.start, &code_of(image)?.bytes)
    }

    /// Where the code of `kernel` is, on the device of this name.
    pub(crate) fn address(&self, kernel: &Kernel, device: &'static str) -> Result<GmAddr, Error> {
        let name = kernel.name();
        let placed = match kernel.code() {
            KernelCode::Library(library) => {
                self.kernels.get(&library.func_id).filter(|placed| placed.name == library.name)
            }
            KernelCode::Flashed => self.kernels.values().find(|placed| placed.name == name),
            // `pto fw build --kernels` compiles kernels of one's own into the blob, under the names that they have here.
            KernelCode::Function(_) => {
                let is_it = |(func_id, placed): &(&u32, &PlacedKernel)| {
                    placed.name == name
                        && placed.kind == kernel.kind()
                        && !is_of_library(**func_id, name)
                };
                let cannot = || Error::KernelNotForDevice { name: name.to_owned(), device };
                let found = self.kernels.iter().find(is_it);
                return found.map(|(_, placed)| placed.address).ok_or_else(cannot);
            }
        };
        let missing = || Error::KernelNotFlashed { name: name.to_owned(), device };
        placed.map(|placed| placed.address).ok_or_else(missing)
    }

    /// The name of the kernel whose code begins there.
    #[cfg(feature = "a2a3")]
    pub(crate) fn name_at(&self, address: GmAddr) -> Option<String> {
        let mut all = self.kernels.values();
        all.find(|placed| placed.address == address).map(|placed| placed.name.clone())
    }

    /// Func id and kernel of each.
    pub(crate) fn all(&self) -> Vec<(FuncId, Kernel)> {
        let kernel = |(func_id, placed): (&u32, &PlacedKernel)| {
            // What an image says is checked when it is read: func ids are below the limit.
            let func_id = FuncId(u16::try_from(*func_id).unwrap_or(u16::MAX));
            (func_id, Kernel::flashed(placed.name.clone(), placed.kind))
        };
        self.kernels.iter().map(kernel).collect()
    }
}

/// Whether a kernel of a blob is the library's. A function of this process with the same name is another kernel.
fn is_of_library(func_id: u32, name: &str) -> bool {
    let known = usize::try_from(func_id).ok().and_then(|func_id| LIBRARY.get(func_id));
    known.is_some_and(|library| library.name == name)
}

fn code_of(image: &Image) -> Result<KernelBlob, Error> {
    let wrong = ImageError::WrongDevice { device: FlashDevice::of(image.kind), image: image.kind };
    image.blob().ok_or(Error::Image(wrong))
}

/// Refuses a pair that is not a firmware and a blob of kernels, whole, for `device`.
pub(crate) fn check_images(
    device: FlashDevice,
    firmware: &Image,
    blob: &Image,
) -> Result<(), Error> {
    for image in [firmware, blob] {
        image.verify()?;
        image.suits(device)?;
    }
    let wrong =
        |image: &Image| Err(Error::Image(ImageError::WrongDevice { device, image: image.kind }));
    match (firmware.blob(), blob.blob()) {
        (_, None) => wrong(blob),
        (Some(_), _) => wrong(firmware),
        // AICPUs are AArch64 processors on the same device as the AICores.
        (None, Some(_))
            if (firmware.machine, blob.machine) == (Machine::Aarch64, Machine::DavC220) =>
        {
            Ok(())
        }
        (None, Some(_)) if firmware.machine != blob.machine => {
            let (firmware, kernels) = (firmware.machine, blob.machine);
            Err(Error::Image(ImageError::Machines { firmware, kernels }))
        }
        (None, Some(_)) => Ok(()),
    }
}
