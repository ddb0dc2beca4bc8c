//! Builds the images with cargo, and reads them.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use bytemuck::pod_read_unaligned;
use object::{Object, ObjectSection, ObjectSegment};
use pto_abi::fw_image::{
    FW_NOTE_OWNER, FW_NOTE_SECTION, FW_NOTE_TYPE, FwIdentity, KERNEL_BLOB_MAGIC, KernelBlobEntry,
    KernelBlobHeader,
};
use pto_host::fw::{ImageKind, Tracing};
use pto_image_build::{Built, Platform, Profile, Request, packages};

/// The images, built once for all tests of this process, as they are shipped.
#[derive(Clone, Debug)]
pub(crate) struct Images {
    /// `pto-fw-qemu`.
    pub(crate) firmware: PathBuf,
    /// `pto-fw-qemu` without the streaming runtime.
    pub(crate) scheduler: PathBuf,
    /// `pto-fw-qemu` without everything that can be left out.
    pub(crate) smallest: PathBuf,
    /// `pto-kernels-blob`.
    pub(crate) kernels: PathBuf,
    /// The example crate's image with builders that misbehave.
    pub(crate) misbehaving: PathBuf,
}

impl Images {
    /// Builds what is not up to date.
    ///
    /// # Panics
    /// When something cannot be built: there is nothing to test then; what is missing is said.
    pub(crate) fn get() -> &'static Self {
        static IMAGES: OnceLock<Images> = OnceLock::new();
        IMAGES.get_or_init(|| {
            let of = |built: &[Built], kind| {
                let found = built.iter().find(|one| one.image.kind == kind);
                found.expect("it is built").path.clone()
            };
            let scheduler = without(&["without-streaming"]);
            let smallest = without(&LEFT_OUT);
            let default = build(&Request { profile: Profile::Release, ..Request::default() });
            Self {
                firmware: of(&default, ImageKind::Qemu),
                scheduler,
                smallest,
                kernels: of(&default, ImageKind::Kernels),
                misbehaving: misbehaving(),
            }
        })
    }
}

/// The default firmware of `qemu`, which records.
///
/// # Panics
/// As [`Images::get`].
#[must_use]
pub(crate) fn tracing() -> PathBuf {
    let (profile, tracing) = (Profile::Release, Tracing::On);
    firmware(&Request { profile, tracing, ..Request::default() })
}

/// The default image for the CANN driver stack.
///
/// # Panics
/// As [`Images::get`].
#[must_use]
pub(crate) fn cann() -> PathBuf {
    let (platform, profile) = (Platform::Cann, Profile::Release);
    let built = build(&Request { platform, profile, ..Request::default() });
    built.into_iter().next().expect("it is built").path
}

/// The features of the default crate that leave a part of the firmware out.
const LEFT_OUT: [&str; 4] =
    ["without-streaming", "without-examples", "without-sessions", "without-locked"];

/// The default crate's image with features, as small as it gets.
fn without(features: &[&str]) -> PathBuf {
    let features = features.iter().map(|&feature| feature.to_owned()).collect();
    firmware(&Request { features, profile: Profile::Small, ..Request::default() })
}

fn misbehaving() -> PathBuf {
    let crate_folder = Some(workspace().join("linker/example-firmware"));
    let features = vec!["misbehaving".to_owned()];
    let profile = Profile::Release;
    firmware(&Request { crate_folder, features, profile, ..Request::default() })
}

fn firmware(request: &Request) -> PathBuf {
    let firmware = build(request).into_iter().find(|built| built.image.kind == ImageKind::Qemu);
    firmware.expect("it is built").path
}

fn build(request: &Request) -> Vec<Built> {
    let say = |sentence: &str| println!("{sentence}");
    let programs = [packages::QEMU, packages::CROSS_C];
    packages::install(&programs, &say).unwrap_or_else(|why| panic!("{why}"));
    pto_image_build::build(request, &say).unwrap_or_else(|why| panic!("{why}"))
}

/// The workspace that these tests were built in.
pub(crate) fn workspace() -> PathBuf {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest.ancestors().nth(2).expect("linker/images is two folders down").to_path_buf()
}

/// What an image says of itself.
#[derive(Clone, Debug)]
pub(crate) struct Identity {
    /// The fixed part.
    pub(crate) fixed: FwIdentity,
    /// The builders.
    pub(crate) builders: Vec<String>,
    /// The linker's hash of the content.
    pub(crate) build_id: Vec<u8>,
}

/// Reads the image's note; `None`: there is none, or it is cut.
#[must_use]
pub(crate) fn identity(elf: &[u8]) -> Option<Identity> {
    let file = object::File::parse(elf).ok()?;
    let section = file.section_by_name(FW_NOTE_SECTION)?.data().ok()?;
    let word = |at: usize| Some(u32::from_le_bytes(*section.get(at..)?.first_chunk()?));
    let is_ours =
        word(0)? == 4 && word(8)? == FW_NOTE_TYPE && section.get(12..)?.starts_with(&FW_NOTE_OWNER);
    let note = section.get(16..)?.get(..word(4)? as usize).filter(|_| is_ours)?;
    let fixed: FwIdentity = pod_read_unaligned(note.get(..size_of::<FwIdentity>())?);
    let names = note.get(size_of::<FwIdentity>()..)?.get(..fixed.names_bytes as usize)?;
    let names = names.split(|byte| *byte == 0).filter(|name| !name.is_empty());
    let builders = names.map(|name| String::from_utf8_lossy(name).into_owned()).collect();
    Some(Identity { fixed, builders, build_id: file.build_id().ok()??.to_vec() })
}

/// The blob of kernels, as it is copied into GM.
#[derive(Clone, Debug)]
pub(crate) struct KernelBlob {
    /// Its bytes.
    pub(crate) bytes: Vec<u8>,
    /// Its kernels.
    pub(crate) kernels: Vec<BlobKernel>,
}

/// One kernel of a blob.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BlobKernel {
    /// Its name.
    pub(crate) name: String,
    /// Its func id.
    pub(crate) func_id: u32,
    /// Its `CoreKind`.
    pub(crate) kind: u32,
    /// Where its code is, from the start of the blob.
    pub(crate) offset: u64,
}

impl KernelBlob {
    /// Takes the blob out of its ELF file.
    ///
    /// # Errors
    /// What is wrong with the file.
    pub(crate) fn read(elf: &[u8]) -> Result<Self, String> {
        let file = object::File::parse(elf).map_err(|error| error.to_string())?;
        let mut bytes = Vec::new();
        for segment in file.segments() {
            let data = segment.data().map_err(|error| error.to_string())?;
            let start = usize::try_from(segment.address()).map_err(|error| error.to_string())?;
            bytes.resize(bytes.len().max(start + data.len()), 0);
            bytes[start..start + data.len()].copy_from_slice(data);
        }
        let header = bytes.get(..size_of::<KernelBlobHeader>()).ok_or("shorter than its header")?;
        let header: KernelBlobHeader = pod_read_unaligned(header);
        if header.magic != KERNEL_BLOB_MAGIC {
            return Err(format!("magic {:#x} is not that of a blob of kernels", header.magic));
        }
        let kernels = (0..header.kernel_count as usize)
            .map(|index| entry(&bytes, index).ok_or_else(|| format!("kernel {index} is cut")))
            .collect::<Result<_, _>>()?;
        Ok(Self { bytes, kernels })
    }
}

fn entry(bytes: &[u8], index: usize) -> Option<BlobKernel> {
    let at = size_of::<KernelBlobHeader>() + index * size_of::<KernelBlobEntry>();
    let entry: KernelBlobEntry = pod_read_unaligned(bytes.get(at..)?.get(..64)?);
    let name = entry.name.split(|byte| *byte == 0).next()?;
    Some(BlobKernel {
        name: String::from_utf8_lossy(name).into_owned(),
        func_id: entry.func_id,
        kind: entry.kind,
        offset: (at as u64).checked_add(entry.distance)?,
    })
}
