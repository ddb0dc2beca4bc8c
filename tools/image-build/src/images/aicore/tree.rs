//! The source tree: everything that the vendor's compiler needs, and a CMakeLists.txt that calls it.

use std::fs;
use std::path::{Path, PathBuf};

use pto_host::LIBRARY;
use pto_host::abi::CoreKind;
use pto_host::abi::limits::MAX_FUNC_ID;

use super::manifest::{self, Kernel, Manifest, OUT};
use super::steps::{self, Step, Tool, Word};
use crate::images::cargo::sources;
use crate::images::error::BuildError;
use crate::images::request::{AicoreRequest, PTO_ISA_HEADER, is_func_id};

/// The folders and files of a tree, which writing it again replaces.
const FOLDERS: [&str; 3] = ["include", "kernels", OUT];

/// The func id of tasks without a kernel, behind those of kernels.
const NO_KERNEL: u32 = 1023;
const _: () = assert!(NO_KERNEL as usize + 1 == MAX_FUNC_ID);

/// Writes the tree of a request.
pub(super) fn write(request: &AicoreRequest, folder: &Path) -> Result<Manifest, BuildError> {
    let root = sources();
    let own = root.join("aicore-kernels/aicore");
    if !own.is_dir() {
        return Err(BuildError::NoSources(root));
    }
    make_room(folder)?;
    copy(&own.join("machine.h"), &folder.join("include/machine.h"))?;
    copy(&root.join("bindings/include/pto_abi.h"), &folder.join("include/pto_abi.h"))?;
    copy(&own.join("worker.cpp"), &folder.join("worker.cpp"))?;
    let of_library = own.join("kernels");
    copy_headers(&of_library, &folder.join("kernels"))?;
    let manifest = match request.kernels.as_slice() {
        [] => library(&of_library, folder)?,
        _ => own_kernels(request, &of_library, folder)?,
    };
    put(&folder.join("CMakeLists.txt"), cmake(&manifest))?;
    put(&manifest::path_in(folder), manifest.text())?;
    Ok(manifest)
}

/// An empty folder; a tree that is there is replaced, and anything else is not touched.
fn make_room(folder: &Path) -> Result<(), BuildError> {
    let is_there = fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_some());
    if is_there && !manifest::path_in(folder).is_file() {
        return Err(BuildError::Occupied(folder.to_path_buf()));
    }
    for part in FOLDERS {
        let path = folder.join(part);
        if path.is_dir() {
            fs::remove_dir_all(&path).map_err(io(&path))?;
        }
    }
    Ok(())
}

/// The kernels of the library that are written in C++.
fn library(of_library: &Path, folder: &Path) -> Result<Manifest, BuildError> {
    let mut kernels = Vec::new();
    for kernel in LIBRARY {
        let source = format!("kernels/{}.cpp", kernel.name);
        let from = of_library.join(format!("{}.cpp", kernel.name));
        if from.is_file() {
            copy(&from, &folder.join(&source))?;
            let (name, func_id) = (kernel.name.to_owned(), kernel.func_id);
            let file = format!("{OUT}/kernels/{name}.elf");
            kernels.push(Kernel { name, func_id, kind: kernel.kind, source, file });
        }
    }
    Ok(Manifest::new(kernels, Vec::new()))
}

/// The kernels of a user, with the headers that are next to them and in the folders that were named.
fn own_kernels(
    request: &AicoreRequest,
    of_library: &Path,
    tree: &Path,
) -> Result<Manifest, BuildError> {
    let mut folders: Vec<PathBuf> = request.kernel_includes.clone();
    let mut kernels = Vec::new();
    for (index, kernel) in request.kernels.iter().enumerate() {
        if !is_func_id(kernel.func_id) {
            return Err(BuildError::Kernel(format!("{} is no func id", kernel.func_id)));
        }
        let source = format!("kernels/own_{index}.cpp");
        copy(&kernel.path, &tree.join(&source))?;
        let folder = kernel.path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = folder.unwrap_or(Path::new(".")).to_path_buf();
        if !folders.contains(&folder) {
            folders.push(folder);
        }
        let (name, func_id) = (kernel.name.clone(), kernel.func_id);
        let file = format!("{OUT}/kernels/own_{index}.elf");
        kernels.push(Kernel { name, func_id, kind: kernel.kind, source, file });
    }
    kernels.push(none(of_library, tree)?);
    let mut includes = Vec::new();
    for (index, folder) in folders.iter().enumerate() {
        let name = format!("kernels/include_{index}");
        let to = tree.join(&name);
        fs::create_dir_all(&to).map_err(io(&to))?;
        copy_headers(folder, &to)?;
        includes.push(name);
    }
    Ok(Manifest::new(kernels, includes))
}

/// What tasks without a kernel run: programs of the field have such tasks, and the blob for the emulated machine has a kernel of this id and name as well.
fn none(of_library: &Path, tree: &Path) -> Result<Kernel, BuildError> {
    let source = "kernels/no_kernel.cpp".to_owned();
    copy(&of_library.join("empty_aiv.cpp"), &tree.join(&source))?;
    let file = format!("{OUT}/kernels/no_kernel.elf");
    let func_id = NO_KERNEL;
    Ok(Kernel { name: "(no kernel)".to_owned(), func_id, kind: CoreKind::AIV, source, file })
}

/// Copies the headers of a folder, and of the folders in it.
fn copy_headers(from: &Path, to: &Path) -> Result<(), BuildError> {
    const HEADERS: [&str; 4] = ["h", "hpp", "hh", "inc"];
    for entry in fs::read_dir(from).map_err(io(from))? {
        let path = entry.map_err(io(from))?.path();
        let Some(name) = path.file_name() else { continue };
        if path.is_dir() {
            copy_headers(&path, &to.join(name))?;
        } else if path.extension().is_some_and(|one| HEADERS.iter().any(|header| one == *header)) {
            copy(&path, &to.join(name))?;
        }
    }
    Ok(())
}

fn copy(from: &Path, to: &Path) -> Result<(), BuildError> {
    let bytes = fs::read(from).map_err(io(from))?;
    put(to, bytes)
}

fn put(to: &Path, bytes: impl AsRef<[u8]>) -> Result<(), BuildError> {
    if let Some(folder) = to.parent() {
        fs::create_dir_all(folder).map_err(io(folder))?;
    }
    fs::write(to, bytes).map_err(io(to))
}

fn io(path: &Path) -> impl Fn(std::io::Error) -> BuildError {
    let path = path.to_path_buf();
    move |source| BuildError::File { path: path.clone(), source }
}

/// The file that has cmake make the same steps.
fn cmake(manifest: &Manifest) -> String {
    let steps = steps::all(manifest);
    let finals: String = steps
        .iter()
        .filter(|step| step.tool == Tool::Linker)
        .map(|step| format!("\n    \"${{TREE}}/{}\"", step.output))
        .collect();
    let commands: String = steps.iter().map(command).collect();
    let places =
        super::compiler::FOLDERS.map(|folder| format!("\"$ENV{{ASCEND_HOME_PATH}}/{folder}\""));
    let places = places.join(" ");
    format!(
        r#"# The program of AICores of an Ascend 910B or 910C. Written by `pto fw build --image cann --aicore`.
#
#   source $ASCEND_HOME_PATH/set_env.sh       # or wherever CANN is: ASCEND_HOME_PATH is what counts
#   cmake -S . -B build -DPTO_ISA=FOLDER      # the folder with {PTO_ISA_HEADER}
#   cmake --build build --parallel
#   pto fw seal .                             # where pto is: it needs this folder with {OUT}/ in it
cmake_minimum_required(VERSION 3.18)
project(pto_aicore LANGUAGES NONE)
set(TREE "${{CMAKE_CURRENT_SOURCE_DIR}}")
set(PTO_ISA "" CACHE PATH "The folder with {PTO_ISA_HEADER}")
if(NOT EXISTS "${{PTO_ISA}}/{PTO_ISA_HEADER}")
    message(FATAL_ERROR "There is no {PTO_ISA_HEADER} in PTO_ISA='${{PTO_ISA}}'. Give the folder of PTO-ISA's headers: -DPTO_ISA=FOLDER")
endif()
set(PLACES {places})
find_program(CCEC ccec PATHS ${{PLACES}} NO_DEFAULT_PATH REQUIRED)
find_program(LINKER ld.lld PATHS ${{PLACES}} NO_DEFAULT_PATH REQUIRED)
file(MAKE_DIRECTORY "${{TREE}}/{OUT}/kernels")
file(GLOB_RECURSE HEADERS CONFIGURE_DEPENDS "${{TREE}}/include/*.h" "${{TREE}}/kernels/*.h")
{commands}
add_custom_target(aicore ALL DEPENDS{finals})
"#
    )
}

fn command(step: &Step) -> String {
    let tool = match step.tool {
        Tool::Compiler => "${CCEC}",
        Tool::Linker => "${LINKER}",
    };
    let word = |word: &Word| match word {
        Word::Plain(text) => format!(" {text}"),
        Word::InTree(path) => format!(" \"${{TREE}}/{path}\""),
        Word::PtoIsa => " -I \"${PTO_ISA}\"".to_owned(),
    };
    let words: String = step.words.iter().map(word).collect();
    let inputs: String = step.inputs.iter().map(|path| format!(" \"${{TREE}}/{path}\"")).collect();
    format!(
        "add_custom_command(OUTPUT \"${{TREE}}/{}\"\n    COMMAND \"{tool}\"{words}\n    DEPENDS{inputs} ${{HEADERS}} VERBATIM)\n",
        step.output
    )
}
