//! The libraries that are measured in addition to the runtime: where they come from, and how their programs are built.
//!
//! Sources are in `tools/bench/peers`; programs are built into a cache outside of the repository, when they are asked for
//! and the sources have changed. What is missing is named with the package that has it.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::runner::Class;

/// A library, as it is measured.
#[derive(Clone, Copy, Debug)]
pub struct Recipe {
    /// Its name.
    pub name: &'static str,
    /// What it is.
    pub class: Class,
    source: PeerSource,
}

#[derive(Clone, Copy, Debug)]
enum PeerSource {
    /// A C++ file, built with system packages.
    System {
        file: &'static str,
        compiler: &'static str,
        flags: &'static [&'static str],
        package: &'static str,
    },
    /// A mode of the Rust program.
    Rust { mode: &'static str },
    /// A C++ file, built with sources from a folder that the user names.
    Folder {
        file: &'static str,
        includes: &'static [&'static str],
        sources: &'static [&'static str],
    },
}

const GCC: &str = "g++";
const CLANG: &str = "clang++";

const fn system(
    name: &'static str,
    file: &'static str,
    compiler: &'static str,
    flags: &'static [&'static str],
    package: &'static str,
) -> Recipe {
    Recipe {
        name,
        class: Class::Library,
        source: PeerSource::System { file, compiler, flags, package },
    }
}

const fn by_hand(recipe: Recipe) -> Recipe {
    Recipe { class: Class::ByHand, ..recipe }
}

const fn rust(name: &'static str, mode: &'static str) -> Recipe {
    Recipe { name, class: Class::Library, source: PeerSource::Rust { mode } }
}

const fn folder(
    name: &'static str,
    file: &'static str,
    includes: &'static [&'static str],
    sources: &'static [&'static str],
) -> Recipe {
    Recipe { name, class: Class::Library, source: PeerSource::Folder { file, includes, sources } }
}

/// All of them.
pub const RECIPES: &[Recipe] = &[
    system("oneTBB flow graph", "tbb_flow.cpp", GCC, &["-ltbb"], "libtbb-dev"),
    system("oneTBB task group", "tbb_tasks.cpp", GCC, &["-ltbb"], "libtbb-dev"),
    system("OpenMP depend, GCC", "omp_depend.cpp", GCC, &["-fopenmp"], "g++"),
    system("OpenMP depend, LLVM", "omp_depend.cpp", CLANG, &["-fopenmp"], "libomp-dev"),
    system("StarPU", "starpu.cpp", GCC, &[], "libstarpu-dev"),
    rust("rayon", "rayon"),
    by_hand(rust("rayon with bypass", "rayon-bypass")),
    by_hand(rust("crossbeam-deque", "crossbeam")),
    by_hand(system("counters by hand", "counters.cpp", GCC, &[], "g++")),
    folder("taskflow", "taskflow.cpp", &["."], &[]),
    folder(
        "dispenso",
        "dispenso.cpp",
        &[".", "dispenso/third-party", "dispenso/ext"],
        &["dispenso", "dispenso/detail"],
    ),
    folder("enkits", "enkits.cpp", &["src"], &["src/TaskScheduler.cpp"]),
];

/// A program that can be started, and its first arguments.
#[derive(Clone, Debug)]
pub struct Program {
    /// The file.
    pub path: PathBuf,
    /// The option before the number of threads.
    pub arguments: Vec<&'static str>,
}

impl Recipe {
    /// The one of this name.
    #[must_use]
    pub fn by_name(name: &str) -> Option<&'static Self> {
        RECIPES.iter().find(|recipe| recipe.name == name)
    }

    /// Whether its sources are in a folder that the user names.
    #[must_use]
    pub const fn needs_folder(&self) -> bool {
        matches!(self.source, PeerSource::Folder { .. })
    }

    /// Builds it into `cache`, unless it is there. `folder`: where its sources are, if it needs some.
    ///
    /// # Errors
    /// What is missing, and what to install or to name.
    pub fn build(&self, cache: &Path, folder: Option<&Path>) -> Result<Program, String> {
        let sources = sources();
        std::fs::create_dir_all(cache).map_err(|error| format!("{}: {error}", cache.display()))?;
        match self.source {
            PeerSource::Rust { mode } => {
                Ok(Program { path: build_rust(&sources, cache)?, arguments: vec![mode] })
            }
            PeerSource::System { file, compiler, flags, package } => {
                let mut flags: Vec<String> = flags.iter().map(|flag| (*flag).to_owned()).collect();
                if file == "starpu.cpp" {
                    flags.extend(
                        starpu_flags()
                            .ok_or("StarPU is not installed: apt-get install libstarpu-dev")?,
                    );
                }
                let hint = match compiler {
                    CLANG => format!("apt-get install clang {package}"),
                    _ => format!("apt-get install g++ {package}"),
                };
                self.compile(&sources.join("cpp"), cache, file, compiler, &flags, &hint)
            }
            PeerSource::Folder { file, includes, sources: files } => {
                let named = || format!("name its source folder: --peer {}=DIR", self.name);
                let folder = folder.ok_or_else(named)?;
                let flags = folder_flags(folder, includes, files)?;
                let hint = format!("is {} its source folder?", folder.display());
                self.compile(&sources.join("cpp"), cache, file, GCC, &flags, &hint)
            }
        }
    }

    fn compile(
        &self,
        sources: &Path,
        cache: &Path,
        file: &str,
        compiler: &str,
        flags: &[String],
        hint: &str,
    ) -> Result<Program, String> {
        let version = output(Command::new(compiler).arg("--version"))
            .map_err(|why| format!("{compiler}: {why}; {hint}"))?;
        let mut hasher = DefaultHasher::new();
        (version, flags).hash(&mut hasher);
        for part in [file, "peer.h", "dataflow.h"] {
            let part = sources.join(part);
            std::fs::read(&part)
                .map_err(|error| format!("{}: {error}", part.display()))?
                .hash(&mut hasher);
        }
        let path =
            cache.join(format!("{}-{:016x}", self.name.replace([' ', ','], "-"), hasher.finish()));
        if !path.exists() {
            let unfinished = path.with_extension("new");
            let mut command = Command::new(compiler);
            command.args(["-std=c++20", "-O3", "-DNDEBUG", "-pthread"]).arg(sources.join(file));
            // The libraries follow what needs them.
            command.args(flags).arg("-o").arg(&unfinished);
            output(&mut command).map_err(|why| format!("{compiler} {file}: {why}; {hint}"))?;
            std::fs::rename(&unfinished, &path)
                .map_err(|error| format!("{}: {error}", path.display()))?;
        }
        Ok(Program { path, arguments: Vec::new() })
    }
}

/// Where the sources of peers are: those that this program was built from.
fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("peers")
}

/// The cache of built peers: `$XDG_CACHE_HOME/pto/peers`, else `~/.cache/pto/peers`.
///
/// # Errors
/// When neither variable is set.
pub fn cache() -> Result<PathBuf, String> {
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let cache = set("XDG_CACHE_HOME").or_else(|| Some(set("HOME")?.join(".cache")));
    Ok(cache.ok_or("neither XDG_CACHE_HOME nor HOME is set")?.join("pto/peers"))
}

fn build_rust(sources: &Path, cache: &Path) -> Result<PathBuf, String> {
    let target = cache.join("rust");
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(["build", "--profile", "dist", "--quiet", "--locked", "--bin", "pto-peers"]);
    command.args(["--no-default-features", "--features", "peers", "--manifest-path"]);
    command.arg(sources.join("../Cargo.toml")).env("CARGO_TARGET_DIR", &target);
    output(&mut command).map_err(|why| format!("cargo: {why}"))?;
    Ok(target.join("dist/pto-peers"))
}

/// The include folder and the library of the installed version.
fn starpu_flags() -> Option<[String; 2]> {
    let versions = std::fs::read_dir("/usr/include/starpu").ok()?.flatten();
    let folder = versions.map(|entry| entry.path()).find(|path| path.join("starpu.h").exists())?;
    let version = folder.file_name()?.to_str()?.to_owned();
    Some([format!("-I{}", folder.display()), format!("-lstarpu-{version}")])
}

/// Include folders, and every C++ file of the source folders.
fn folder_flags(folder: &Path, includes: &[&str], sources: &[&str]) -> Result<Vec<String>, String> {
    let mut flags: Vec<String> =
        includes.iter().map(|include| format!("-I{}", folder.join(include).display())).collect();
    for source in sources {
        let source = folder.join(source);
        if source.is_dir() {
            let entries = std::fs::read_dir(&source)
                .map_err(|error| format!("{}: {error}", source.display()))?;
            let files = entries.flatten().map(|entry| entry.path());
            let files = files.filter(|file| file.extension().is_some_and(|it| it == "cpp"));
            let mut files: Vec<_> = files.map(|file| file.display().to_string()).collect();
            files.sort();
            flags.extend(files);
        } else if source.extension().is_some() {
            flags.push(source.display().to_string());
        }
    }
    Ok(flags)
}

/// Runs a program; its output, or the last lines of what it complains of.
fn output(command: &mut Command) -> Result<String, String> {
    let done = command.output().map_err(|error| format!("it cannot be started: {error}"))?;
    if done.status.success() {
        return Ok(String::from_utf8_lossy(&done.stdout).into_owned());
    }
    let complaint = String::from_utf8_lossy(&done.stderr);
    let first = complaint.lines().find(|line| line.contains("error")).unwrap_or("it failed");
    Err(first.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::{RECIPES, Recipe, sources};
    use crate::family::Family;
    use crate::runner::peer::Peer;
    use crate::runner::{LoadedGraph, Runner};
    use std::sync::Arc;

    /// Runs every family on a program, with one OS thread and with two.
    fn runs_in_order(recipe: &Recipe, stub: Option<&str>) {
        let folder = tempfile::tempdir().unwrap();
        let stub = stub.map(|stub| sources().join("stubs").join(stub));
        let program = recipe.build(folder.path(), stub.as_deref()).unwrap();
        let file = folder.path().join("graph");
        for threads in [1, 2] {
            let (class, path) = (recipe.class, &program.path);
            let mut peer =
                Peer::start(recipe.name, class, path, &program.arguments, threads, folder.path())
                    .unwrap();
            for family in Family::all() {
                let graph = Arc::new(family.graph(1_000));
                graph.write(&file).unwrap();
                peer.load(LoadedGraph { graph: &graph, file: Some(&file) }).unwrap();
                assert_eq!(peer.check().unwrap(), graph.checksum(), "{} {family}", peer.name());
                assert!(!peer.sample(0).unwrap().total.is_zero());
            }
            assert!(peer.ns_per_iteration().unwrap() > 0.1);
            let refused =
                peer.load(LoadedGraph { graph: &Arc::default(), file: Some(folder.path()) });
            assert!(refused.unwrap_err().to_string().contains("is not a graph file"));
        }
    }

    #[test]
    fn counters_by_hand_run_every_shape_in_order() {
        runs_in_order(Recipe::by_name("counters by hand").unwrap(), None);
    }

    /// The libraries that no registry has are not on this machine: their adapters are compiled against headers of
    /// our own with the same names, which run tasks one after the other.
    #[test]
    fn adapters_of_named_folders_compile_and_run_every_shape_in_order() {
        let folders: Vec<_> = RECIPES.iter().filter(|recipe| recipe.needs_folder()).collect();
        assert_eq!(folders.len(), 3);
        for recipe in folders {
            runs_in_order(recipe, Some(recipe.name));
        }
    }

    #[test]
    fn what_is_missing_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let taskflow = Recipe::by_name("taskflow").unwrap();
        assert!(taskflow.build(folder.path(), None).unwrap_err().contains("--peer taskflow=DIR"));
        let wrong = taskflow.build(folder.path(), Some(folder.path())).unwrap_err();
        assert!(wrong.contains("taskflow.hpp") && wrong.contains("its source folder?"), "{wrong}");
    }
}
