//! Builds the images with cargo, and reads them.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use bytemuck::pod_read_unaligned;
use cargo_metadata::Message;
use object::{Object, ObjectSection, ObjectSegment};
use pto_abi::fw_image::{
    FW_NOTE_OWNER, FW_NOTE_SECTION, FW_NOTE_TYPE, FwIdentity, KERNEL_BLOB_MAGIC, KernelBlobEntry,
    KernelBlobHeader,
};

/// The target of every image that is booted.
pub const TARGET: &str = "aarch64-unknown-none";

/// The images, built once for all tests of this process.
#[derive(Clone, Debug)]
pub struct Images {
    /// `pto-fw-virt`.
    pub firmware: PathBuf,
    /// `pto-kernels-blob`.
    pub kernels: PathBuf,
    /// `pto-example-virt` with builders that misbehave.
    pub misbehaving: PathBuf,
}

impl Images {
    /// Builds what is not up to date.
    ///
    /// # Panics
    /// When cargo fails: there is nothing to test then; cargo says why.
    pub fn get() -> &'static Self {
        static IMAGES: OnceLock<Images> = OnceLock::new();
        IMAGES.get_or_init(|| Self {
            firmware: build("pto-fw-virt"),
            kernels: build("pto-kernels-blob"),
            misbehaving: misbehaving(),
        })
    }
}

fn build(package: &str) -> PathBuf {
    build_binary(package, package, &[])
}

/// Not where cargo puts it: the crate's image without the feature has that place.
fn misbehaving() -> PathBuf {
    let features = ["--features", "misbehaving"];
    let built = build_binary("pto-example-firmware", "pto-example-virt", &features);
    let image = built.with_file_name("pto-example-virt-misbehaving");
    std::fs::copy(built, &image).expect("the target folder is writable");
    image
}

/// Builds an image of the workspace, with further arguments of cargo; returns the file.
fn build_binary(package: &str, binary: &str, extra: &[&str]) -> PathBuf {
    let mut command = Command::new(env!("CARGO"));
    command
        .args(["build", "--package", package, "--bin", binary])
        .args(["--profile", "firmware", "--target", TARGET])
        .args(["--message-format", "json-render-diagnostics"])
        .args(extra)
        // Flags for this process's own build (coverage, sanitizers) are not for an image.
        .env_remove("RUSTFLAGS")
        .env_remove("CARGO_ENCODED_RUSTFLAGS")
        .env_remove("CARGO_BUILD_TARGET")
        .current_dir(workspace())
        .stdin(Stdio::null())
        .stderr(Stdio::inherit());
    let output = command.output().expect("cargo starts");
    assert!(output.status.success(), "cargo build --package {package} failed: see above");
    let artifacts = Message::parse_stream(output.stdout.as_slice()).filter_map(|message| {
        match message.expect("cargo writes JSON") {
            Message::CompilerArtifact(artifact) if artifact.target.name == binary => {
                artifact.executable
            }
            _ => None,
        }
    });
    artifacts.last().expect("cargo names the executable").into_std_path_buf()
}

/// The workspace that these tests were built in.
fn workspace() -> PathBuf {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest.ancestors().nth(2).expect("linker/tests-host is two folders down").to_path_buf()
}

/// What an image says of itself.
#[derive(Clone, Debug)]
pub struct Identity {
    /// The fixed part.
    pub fixed: FwIdentity,
    /// The builders.
    pub builders: Vec<String>,
    /// The linker's hash of the content.
    pub build_id: Vec<u8>,
}

/// Reads the image's note; `None`: there is none, or it is cut.
#[must_use]
pub fn identity(elf: &[u8]) -> Option<Identity> {
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
pub struct KernelBlob {
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// Its kernels.
    pub kernels: Vec<BlobKernel>,
}

/// One kernel of a blob.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlobKernel {
    /// Its name.
    pub name: String,
    /// Its func id.
    pub func_id: u32,
    /// Its `CoreKind`.
    pub kind: u32,
    /// Where its code is, from the start of the blob.
    pub offset: u64,
}

impl KernelBlob {
    /// Takes the blob out of its ELF file.
    ///
    /// # Errors
    /// What is wrong with the file.
    pub fn read(elf: &[u8]) -> Result<Self, String> {
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
