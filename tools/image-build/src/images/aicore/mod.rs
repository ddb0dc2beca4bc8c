//! The program of AICores: a source tree, what the vendor's compiler makes of it, and the image.
//!
//! ```text
//! tree.rs      the sources of worker and kernels, CMakeLists.txt, aicore.json
//! limits.rs    looks for what no core can run, in a user's kernels
//! steps.rs     which tool is called for which file, with which flags: for the build here and for CMakeLists.txt
//! compiler.rs  finds `ccec` and `ld.lld`, and makes the steps
//! manifest.rs  aicore.json: what the tree is of, and which files an image is made of
//!
//! tree --compiler there: steps--> out/*.elf --seal--> DIR/aicore.img
//!      --no compiler--> the tree as it is; cmake makes the steps elsewhere, and `pto fw seal DIR` the image
//! ```

mod compiler;
mod limits;
mod manifest;
mod steps;
mod tree;

use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::thread;

use pto_host::fw::{AicoreKernel, AicoreWorker, Image, pack_aicore, text_bytes};

use super::error::BuildError;
use super::request::{AicoreRequest, KernelSource, PTO_ISA_HEADER, Request};
use super::{Built, cargo, check_kernel_names, turn};
use compiler::Compiler;
use limits::{Finding, Limited};
use manifest::Manifest;

/// What came of it.
#[derive(Clone, Debug)]
pub enum AicoreBuilt {
    /// A sealed image, and the bytes of code of each object, the worker's first.
    Image(Box<Built>, Vec<CodeSize>),
    /// No compiler was found: the source tree is complete, and is built elsewhere.
    Tree {
        /// The folder.
        folder: PathBuf,
        /// Where the compiler was looked for.
        looked: Vec<PathBuf>,
    },
}

/// The code of one object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CodeSize {
    /// The kernel, or `worker`.
    pub name: String,
    /// The kind of core: `aic`, `aiv`, or both for the worker.
    pub kind: &'static str,
    /// Bytes in `.text`.
    pub text_bytes: u64,
}

/// Writes the source tree, and where the vendor's compiler is, builds it and seals what comes out. Tells `say` what it does.
///
/// # Errors
/// `NoSources`, `Kernel`, `PtoIsa`; `Compiler` with its messages; `Image` for an object that no core can run; `File`.
pub fn build_aicore(
    request: &AicoreRequest,
    say: &dyn Fn(&str),
) -> Result<AicoreBuilt, BuildError> {
    check_kernel_names(&request.kernels)?;
    if let Some(rust) = request.kernels.iter().find(|one| one.is_rust()) {
        let path = rust.path.display();
        let why = format!("'{path}' is Rust, and AICores take kernels in C++");
        return Err(BuildError::Kernel(why));
    }
    if let Some(other) = request.kernels.iter().find(|one| one.function != KernelSource::FUNCTION) {
        return Err(BuildError::Kernel(format!(
            "'{}': a core begins at kernel_entry, and not at {}: write the kernel with PTO_KERNEL of kernel.h, and put PTO_FIELD_KERNEL of field_kernel.h behind one of the field",
            other.path.display(),
            other.function
        )));
    }
    let folder = match &request.folder {
        Some(folder) => folder.clone(),
        None => cargo::target_folder(&Request::default())?.join("aicore-dav-c220"),
    };
    let _turn = turn::of_tree(&folder, say)?;
    let manifest = tree::write(request, &folder)?;
    say(&format!("the sources for AICores are in {}", folder.display()));
    if !request.kernels.is_empty() {
        check_kernels(request, &manifest, &folder, say)?;
    }
    match Compiler::find(request.home.as_deref()) {
        Err(looked) => Ok(AicoreBuilt::Tree { folder, looked }),
        Ok(compiler) => {
            let pto_isa = pto_isa_of(request)?;
            say(&format!("compiling them with {}", compiler.name()));
            compiler.make(&folder, &steps::all(&manifest), pto_isa.as_deref())?;
            let (built, sizes) = seal_aicore(&folder)?;
            Ok(AicoreBuilt::Image(Box::new(built), sizes))
        }
    }
}

/// Refuses kernels that no core can run. Says which of them this machine's compiler cannot check, and which may expect other arguments.
fn check_kernels(
    request: &AicoreRequest,
    manifest: &Manifest,
    tree: &Path,
    say: &dyn Fn(&str),
) -> Result<(), BuildError> {
    let own = cargo::sources().join("aicore-kernels/aicore/this_machine");
    let of_tree = manifest.includes.iter().map(String::as_str).chain(["kernels"]);
    let folders: Vec<PathBuf> = of_tree.map(|folder| tree.join(folder)).chain([own]).collect();
    let look = |kernel: &manifest::Kernel| {
        let (name, path) = (kernel.name.as_str(), tree.join(&kernel.source));
        let (kind, entry, stack) = (kernel.kind, KernelSource::FUNCTION, limits::OF_KERNEL);
        let limited = Limited { name, path: &path, kind, entry, stack, folders: &folders };
        limits::check(&limited).err()
    };
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let parts = manifest.kernels.chunks(manifest.kernels.len().div_ceil(threads).max(1));
    let found: Vec<_> = thread::scope(|scope| {
        let look_at = |part: &[manifest::Kernel]| part.iter().map(look).collect::<Vec<_>>();
        let threads: Vec<_> = parts.map(|part| scope.spawn(move || look_at(part))).collect();
        threads
            .into_iter()
            .flat_map(|part| part.join().unwrap_or_else(|panic| resume_unwind(panic)))
            .collect()
    });
    for (kernel, given) in manifest.kernels.iter().zip(&request.kernels) {
        let path = tree.join(&kernel.source);
        let text = std::fs::read_to_string(&path)
            .map_err(|source| BuildError::File { path: path.clone(), source })?;
        if !["PTO_KERNEL", "PTO_FIELD_KERNEL"].iter().any(|word| text.contains(word)) {
            say(&format!(
                "kernel `{}` in '{}' gets the words of its task, because it has neither PTO_KERNEL nor PTO_FIELD_KERNEL. A kernel of the field needs the \
                 latter (field_kernel.h)",
                kernel.name,
                given.path.display()
            ));
        }
    }
    for (kernel, finding) in manifest.kernels.iter().zip(found) {
        match finding {
            None => {}
            Some(Finding::Refused(what)) => return Err(BuildError::Kernel(what)),
            Some(Finding::Unknown(why)) => say(&format!(
                "kernel `{}` was not checked for recursion, stack and variables, because this machine's compiler does not take it: {why}",
                kernel.name
            )),
        }
    }
    Ok(())
}

/// The folder of PTO-ISA's headers, whole; `None`: no kernel needs it.
fn pto_isa_of(request: &AicoreRequest) -> Result<Option<PathBuf>, BuildError> {
    match &request.pto_isa {
        None if request.kernels.is_empty() => Err(BuildError::PtoIsa { folder: None }),
        None => Ok(None),
        Some(folder) if folder.join(PTO_ISA_HEADER).is_file() => {
            let io = |source| BuildError::File { path: folder.clone(), source };
            folder.canonicalize().map(Some).map_err(io)
        }
        Some(folder) => Err(BuildError::PtoIsa { folder: Some(folder.clone()) }),
    }
}

/// Seals what a build of a source tree has made: checks worker and kernels, and writes `aicore.img` into the tree.
///
/// # Errors
/// `Manifest`: it is no source tree, or one of another release. `File`: a file of the build is missing. `Image`: which object no core can run, and why.
pub fn seal_aicore(folder: &Path) -> Result<(Built, Vec<CodeSize>), BuildError> {
    let manifest = Manifest::read(folder)?;
    let read = |name: &str| {
        let path = folder.join(name);
        std::fs::read(&path).map_err(|source| BuildError::File { path, source })
    };
    let worker = read(&manifest.worker)?;
    let objects =
        manifest.kernels.iter().map(|kernel| read(&kernel.file)).collect::<Result<Vec<_>, _>>()?;
    let kernels: Vec<_> = manifest
        .kernels
        .iter()
        .zip(&objects)
        .map(|(kernel, object)| AicoreKernel {
            name: &kernel.name,
            func_id: kernel.func_id,
            kind: kernel.kind,
            file: &kernel.file,
            object,
        })
        .collect();
    let of_worker = AicoreWorker { file: &manifest.worker, object: &worker };
    let path = folder.join("aicore.img");
    let refused = |error| BuildError::Image { path: folder.to_path_buf(), error };
    let file = pack_aicore(&of_worker, &kernels).map_err(refused)?;
    super::write_whole(&path, &file)?;
    let image =
        Image::read(&path).map_err(|error| BuildError::Image { path: path.clone(), error })?;
    let size = |object: &[u8]| text_bytes(object).unwrap_or(0);
    let mut sizes =
        vec![CodeSize { name: "worker".to_owned(), kind: "aic, aiv", text_bytes: size(&worker) }];
    sizes.extend(manifest.kernels.iter().zip(&objects).map(|(kernel, object)| CodeSize {
        name: kernel.name.clone(),
        kind: kernel.kind.name(),
        text_bytes: size(object),
    }));
    Ok((Built { path, image }, sizes))
}
