//! The vendor's compiler and linker: where they are, and the calls of a build.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use pto_host::a2a3::HOME_VARIABLE;

use super::manifest::OUT;
use super::steps::{Step, Tool, Word};
use crate::images::error::BuildError;

/// Where the programs are in the vendor's folder: of newer toolkits, of older ones.
pub(super) const FOLDERS: [&str; 2] = ["bin", "compiler/ccec_compiler/bin"];

/// Both programs.
pub(super) struct Compiler {
    ccec: PathBuf,
    linker: PathBuf,
}

impl Compiler {
    /// Finds them in `home`, else in `$ASCEND_HOME_PATH`; else the places that were looked at.
    pub(super) fn find(home: Option<&Path>) -> Result<Self, Vec<PathBuf>> {
        let of_environment = || env::var_os(HOME_VARIABLE).filter(|home| !home.is_empty());
        let home = home.map(Path::to_path_buf).or_else(|| of_environment().map(PathBuf::from));
        let Some(home) = home else { return Err(Vec::new()) };
        let places = |program: &str| FOLDERS.map(|folder| home.join(folder).join(program));
        let found = |program: &str| places(program).into_iter().find(|path| path.is_file());
        match (found("ccec"), found("ld.lld")) {
            (Some(ccec), Some(linker)) => Ok(Self { ccec, linker }),
            (ccec, linker) => {
                let missing = [("ccec", ccec), ("ld.lld", linker)];
                let missing = missing.into_iter().filter(|(_, found)| found.is_none());
                Err(missing.flat_map(|(program, _)| places(program)).collect())
            }
        }
    }

    pub(super) fn name(&self) -> String {
        self.ccec.display().to_string()
    }

    /// Makes the steps: what is compiled in any order, on all processors, and then what is linked.
    pub(super) fn make(
        &self,
        tree: &Path,
        steps: &[Step],
        pto_isa: Option<&Path>,
    ) -> Result<(), BuildError> {
        let out = tree.join(OUT).join("kernels");
        fs::create_dir_all(&out).map_err(|source| BuildError::File { path: out, source })?;
        let tree = &tree
            .canonicalize()
            .map_err(|source| BuildError::File { path: tree.to_path_buf(), source })?;
        for tool in [Tool::Compiler, Tool::Linker] {
            let of_tool: Vec<&Step> = steps.iter().filter(|step| step.tool == tool).collect();
            self.make_all(tree, &of_tool, pto_isa)?;
        }
        Ok(())
    }

    fn make_all(
        &self,
        tree: &Path,
        steps: &[&Step],
        pto_isa: Option<&Path>,
    ) -> Result<(), BuildError> {
        let (next, has_failed) = (AtomicUsize::new(0), AtomicBool::new(false));
        let failure = Mutex::new(None);
        let work = || {
            while !has_failed.load(Ordering::Relaxed) {
                let Some(step) = steps.get(next.fetch_add(1, Ordering::Relaxed)) else { return };
                if let Err(error) = self.call(tree, step, pto_isa) {
                    has_failed.store(true, Ordering::Relaxed);
                    failure
                        .lock()
                        .unwrap_or_else(std::sync::PoisonError::into_inner)
                        .get_or_insert(error);
                }
            }
        };
        let threads = thread::available_parallelism().map_or(1, usize::from).min(steps.len());
        thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(work))));
        let failure = failure.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        failure.map_or(Ok(()), Err)
    }

    fn call(&self, tree: &Path, step: &Step, pto_isa: Option<&Path>) -> Result<(), BuildError> {
        let mut command = match step.tool {
            Tool::Compiler => Command::new(&self.ccec),
            Tool::Linker => Command::new(&self.linker),
        };
        for word in &step.words {
            match word {
                Word::Plain(text) => command.arg(text),
                Word::InTree(path) => command.arg(tree.join(path)),
                Word::PtoIsa => match pto_isa {
                    Some(folder) => command.arg("-I").arg(folder),
                    None => &mut command,
                },
            };
        }
        let failed = |how: String| BuildError::Compiler { file: step.inputs.join(", "), how };
        let output = command.output().map_err(|error| failed(error.to_string()))?;
        if output.status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&output.stderr);
        Err(failed(format!("{}\nThe command was: {command:?}", said.trim_end())))
    }
}
