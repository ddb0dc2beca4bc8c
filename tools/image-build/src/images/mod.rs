//! Builds firmware images: finds or installs a compiler for AArch64, runs cargo, and writes a checksum into each image.
//!
//! ```text
//! Request --Toolchain::provide--> rustup's target, or Debian's packages in a cache   toolchain
//!         --cargo--> ELF files --seal--> Built, in turns                             cargo.rs, turn.rs
//! ```
//! The program of AICores takes another compiler: [`aicore`].

pub(crate) mod aicore;
mod cargo;
mod error;
mod kernel_table;
mod request;
mod turn;

use std::path::{Path, PathBuf};

use cargo::Job;
use pto_host::abi::fw_image::KERNEL_NAME_BYTES;
use pto_host::abi::limits::MAX_FUNC_ID;
use pto_host::fw::{Image, ImageKind, seal};

use crate::toolchain::{Toolchain, packages};

pub use error::BuildError;
pub use request::{
    AicoreRequest, BuilderSource, CoreCode, KernelSource, Platform, Profile, Request,
};

/// The func ids of kernels are below: the last one of all is that of tasks without a kernel.
const FUNC_IDS: usize = MAX_FUNC_ID - 1;

/// An image that was built and sealed.
#[derive(Clone, Debug)]
pub struct Built {
    /// The file.
    pub path: PathBuf,
    /// The image.
    pub image: Image,
}

/// Builds what `request` asks for; tells `say` what it does, in sentences.
///
/// # Errors
/// See [`BuildError`].
pub fn build(request: &Request, say: &dyn Fn(&str)) -> Result<Vec<Built>, BuildError> {
    check_builders(request)?;
    let request = &with_own_kernels(request)?;
    check_kernels(request)?;
    let toolchain = Toolchain::provide(request.triple(), request.source, say)?;
    let jobs = Job::of(request)?;
    let target = cargo::target_folder(request)?;
    let mut built = Vec::new();
    for job in jobs {
        let _turn = turn::take(&job, (request, &target), say)?;
        say(&format!("building {} for {}", job.what(), request.triple()));
        for artifact in cargo::run(request, &toolchain, &job)? {
            built.push(finish(&artifact, &job.variant())?);
        }
    }
    match built.iter().find(|built| is_wanted(request.platform, built.image.kind)) {
        Some(_) => Ok(built),
        None => Err(BuildError::NoImage { platform: request.platform, triple: request.triple() }),
    }
}

fn check_builders(request: &Request) -> Result<(), BuildError> {
    let builders = &request.builders;
    let wrong = |what: String| Err(BuildError::Builder(what));
    if request.crate_folder.is_some() && !builders.is_empty() {
        return wrong(
            "a firmware crate names its builders itself: see linker/example-firmware".to_owned(),
        );
    }
    for (index, builder) in builders.iter().enumerate() {
        if builder.name.is_empty() || builder.name.contains(['\t', '\n']) {
            return wrong(format!("'{}' cannot be a builder's name", builder.name));
        }
        if builders[..index].iter().any(|earlier| earlier.name == builder.name) {
            return wrong(format!(
                "two builders are called \"{}\": name them, as NAME=FILE",
                builder.name
            ));
        }
        if !builder.path.is_file() {
            return wrong(format!("there is no file '{}'", builder.path.display()));
        }
        let compiler = if builder.is_cpp() { packages::CROSS_CXX } else { packages::CROSS_C };
        compiler.need()?;
    }
    Ok(())
}

/// The request with the kernels that its files list.
fn with_own_kernels(request: &Request) -> Result<Request, BuildError> {
    let mut request = request.clone();
    if request.adds_to_library() && !request.kernels.iter().all(KernelSource::is_rust) {
        let why = "kernels for simpler replace those of the library, and a table of kernels or a file in Rust adds to them: build two images";
        return Err(BuildError::Kernel(why.to_owned()));
    }
    if request.own_kernels.is_empty() {
        return Ok(request);
    }
    packages::CROSS_C.need()?;
    packages::CROSS_CXX.need()?;
    for path in &request.own_kernels {
        if !path.is_file() {
            return Err(BuildError::Kernel(format!("there is no file '{}'", path.display())));
        }
        request.kernels.extend(kernel_table::of_file(path, &request.kernel_includes)?);
    }
    Ok(request)
}

fn check_kernels(request: &Request) -> Result<(), BuildError> {
    if request.kernels.is_empty() {
        return Ok(());
    }
    if request.crate_folder.is_some() || request.platform != Platform::Qemu {
        return Err(BuildError::Kernel(
            "kernels of one's own are for the default image of qemu; those in C++ may be for AICores (--image cann --aicore)".to_owned(),
        ));
    }
    check_kernel_names(&request.kernels)?;
    if !request.kernels.iter().all(KernelSource::is_rust) {
        packages::CROSS_CXX.need()?;
    }
    Ok(())
}

/// Refuses kernels that a blob cannot hold: func ids, names and files.
fn check_kernel_names(kernels: &[KernelSource]) -> Result<(), BuildError> {
    let wrong = |what: String| Err(BuildError::Kernel(what));
    for (index, kernel) in kernels.iter().enumerate() {
        let KernelSource { func_id, name, path, function, .. } = kernel;
        if usize::try_from(*func_id).map_or(true, |func_id| func_id >= FUNC_IDS) {
            let most = FUNC_IDS - 1;
            return wrong(format!("kernel {func_id} ({name}): a func id is 0 to {most}"));
        }
        // The table in a blob has so much room, and a zero after it.
        if name.is_empty()
            || name.len() >= KERNEL_NAME_BYTES
            || name.contains(['\t', '\n', '"', '\\'])
        {
            let most = KERNEL_NAME_BYTES - 1;
            return wrong(format!(
                "'{name}' cannot be a kernel's name: 1 to {most} bytes, on one line"
            ));
        }
        if function.contains(['\t', '\n']) || !path.is_file() {
            return wrong(format!("there is no file '{}'", path.display()));
        }
        if let Some(other) =
            kernels[..index].iter().find(|other| other.func_id == *func_id || other.name == *name)
        {
            let (first, second) = (&other.path, path);
            return wrong(format!(
                "'{}' and '{}' have the same func id or name: {} ({}), {func_id} ({name})",
                first.display(),
                second.display(),
                other.func_id,
                other.name
            ));
        }
    }
    Ok(())
}

/// A crate may make firmware, kernels or both.
const fn is_wanted(platform: Platform, kind: ImageKind) -> bool {
    match platform {
        Platform::Qemu => matches!(kind, ImageKind::Qemu | ImageKind::Kernels),
        Platform::Cann => matches!(kind, ImageKind::Cann),
    }
}

/// Seals a copy of what cargo has built, and reads it as a device would.
fn finish(artifact: &Path, variant: &[String]) -> Result<Built, BuildError> {
    let io = |path: &Path| {
        let path = path.to_path_buf();
        move |source| BuildError::File { path, source }
    };
    let refused = |error| BuildError::Image { path: artifact.to_path_buf(), error };
    let mut file = std::fs::read(artifact).map_err(io(artifact))?;
    seal(&mut file).map_err(refused)?;
    let extension = extension(variant);
    let path = artifact.with_extension(&extension);
    write_whole(&path, &file)?;
    let image = Image::read(&path).map_err(refused)?;
    Ok(Built { path, image })
}

/// Writes a file next to its path, and renames it: the file there may be running.
fn write_whole(path: &Path, file: &[u8]) -> Result<(), BuildError> {
    let extension = path.extension().unwrap_or_default().to_string_lossy();
    let temporary = path.with_extension(format!("{extension}.{}.new", std::process::id()));
    let io = |path: &Path| {
        let path = path.to_path_buf();
        move |source| BuildError::File { path, source }
    };
    std::fs::write(&temporary, file).map_err(io(&temporary))?;
    std::fs::rename(&temporary, path).map_err(io(path))
}

/// What the name of an image ends with: its variant and `img`. cargo puts what it builds with a feature where it puts what it builds without; an image
/// must not replace one that is running.
fn extension(variant: &[String]) -> String {
    let mut parts: Vec<String> = variant.iter().map(|name| name.replace('/', "-")).collect();
    parts.sort();
    parts.dedup();
    parts.push("img".to_owned());
    parts.join(".")
}

#[cfg(test)]
mod tests {
    use super::{BuilderSource, Job, KernelSource, Profile, Request, extension};
    use pto_host::abi::CoreKind;

    #[test]
    fn an_image_is_called_by_its_variant() {
        let of =
            |names: &[&str]| extension(&names.iter().map(ToString::to_string).collect::<Vec<_>>());
        assert_eq!(of(&[]), "img");
        assert_eq!(of(&["small", "other/tracing", "small"]), "other-tracing.small.img");
    }

    #[test]
    fn firmware_that_is_built_for_size_says_so_in_its_name() {
        let variants = |profile| {
            let jobs = Job::of(&Request { profile, ..Request::default() }).unwrap();
            jobs.iter().map(Job::variant).collect::<Vec<_>>()
        };
        let nothing: Vec<String> = Vec::new();
        assert_eq!(variants(Profile::Release), [nothing.clone(), nothing.clone()]);
        assert_eq!(variants(Profile::Small), [vec!["small".to_owned()], nothing]);
    }

    #[test]
    fn images_of_sources_take_no_place_of_others() {
        let builders = vec![BuilderSource::parse("dag=b.cpp")];
        let kernels = vec![KernelSource::parse("3:aiv=k/add.cpp").unwrap()];
        let jobs = Job::of(&Request { builders, kernels, ..Request::default() }).unwrap();
        assert_eq!(jobs.iter().map(Job::variant).collect::<Vec<_>>(), [vec!["plugins"], vec![]]);
        let what: Vec<_> = jobs.iter().map(Job::what).collect();
        assert_eq!(what, ["pto-images", "pto-field-kernels"]);
    }

    #[test]
    fn a_builder_is_named_by_a_command_line() {
        let parse = |text| {
            let BuilderSource { name, function, path } = BuilderSource::parse(text);
            [name, function, path.display().to_string()]
        };
        assert_eq!(parse("a/b.cpp"), ["build_graph_aicpu", "build_graph_aicpu", "a/b.cpp"]);
        assert_eq!(parse("dag=b.cpp"), ["dag", "build_graph_aicpu", "b.cpp"]);
        assert_eq!(parse("dag=c/b.c:my_graph"), ["dag", "my_graph", "c/b.c"]);
    }

    #[test]
    fn a_kernel_is_named_by_a_command_line() {
        let parse = |text| {
            let KernelSource { func_id, kind, name, function, path } = KernelSource::parse(text)?;
            Some((func_id, kind, [name, function, path.display().to_string()]))
        };
        let parts = |parts: [&str; 3]| parts.map(str::to_owned);
        let plain = (3, CoreKind::AIV, parts(["3_add", "kernel_entry", "k/add.cpp"]));
        assert_eq!(parse("3:aiv=k/add.cpp"), Some(plain));
        let named = (0, CoreKind::AIC, parts(["product", "mul", "k.cpp"]));
        assert_eq!(parse("0:aic:product=k.cpp:mul"), Some(named));
        for wrong in ["k.cpp", "x:aiv=k.cpp", "3:cube=k.cpp", "3=k.cpp"] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }
}
