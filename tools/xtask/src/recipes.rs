//! The recipes of `docs/how-to/hacking.md` for a kernel and an example, followed in a copy of the tree.
//!
//! The example is `tools/xtask/recipes/leaky_relu`, and calls a kernel that the library does not have. The copy gets the example's
//! folder, the kernel's arithmetic next to that of its family, and their rows in the two tables. Then it must build, and the
//! example must pass in every variant, build mode and fanout strategy, in modes `threads` and `pool`. This step fails if the
//! product needs a change anywhere else. `cargo xtask recipes --suite` runs the tests of the copy too, and asks whether its
//! generated files are stale; the suite leaves that out, because it takes as long as the suite itself.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use crate::cargo::cargo;
use crate::race::succeed;

/// The example, and the folder that it gets.
const EXAMPLE: &str = "leaky_relu";
/// The only files outside of the example's folder that a recipe changes: what the kernel computes, and the two tables.
const ARITHMETIC: &str = "aicore-kernels/src/elementwise.rs";
const KERNELS: &str = "aicore-kernels/src/library/table.rs";
const EXAMPLES: &str = "examples/src/lib.rs";

/// The kernel's arithmetic.
const FUNCTION: &str = "
/// `out = a` where it is not negative, `slope * a` elsewhere.
#[inline]
pub fn leaky_relu(a: Vector, slope: f32, out: Vector) {
    lanes::map(a, out, |a| if a < 0.0 { slope * a } else { a });
}
";

/// What is run in the copy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Extent {
    /// The new example.
    Example,
    /// The new example, the check of the generated files, and all tests of the workspace.
    Suite,
}

/// Follows the recipes in a copy below `target`.
pub(crate) fn run(root: &Path, target: &Path, extent: Extent) -> Result<(), String> {
    let folder = target.join("recipes");
    let copy = folder.join("tree");
    if copy.exists() {
        fs::remove_dir_all(&copy).map_err(io_error("cannot be removed", &copy))?;
    }
    let before = tree(root)?;
    write(&copy, &before)?;
    keep_permissions(root, &copy, &before)?;
    write(&copy, &followed(root, &before)?)?;
    let ran = run_in(&copy, &folder.join("build"), extent);
    let after = tree(&copy)?;
    fs::remove_dir_all(&copy).map_err(io_error("cannot be removed", &copy))?;
    ran?;
    only_own_files(&changed(&before, &after))
}

/// The files of a tree, by their path in it.
type Files = BTreeMap<PathBuf, Vec<u8>>;

/// The hidden files and folders that belong to the project.
const HIDDEN: [&str; 3] = [".cargo", ".ci", ".gitignore"];

/// All files but hidden ones and those that builds have made. A link is refused: the copy would lead back into the tree.
fn tree(root: &Path) -> Result<Files, String> {
    let (mut files, mut folders) = (Files::new(), vec![root.to_path_buf()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).map_err(io_error("cannot be read", &folder))? {
            let entry = entry.map_err(io_error("cannot be read", &folder))?;
            let path = entry.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let is_made =
                name == "target" || name == "__pycache__" || path.join("CACHEDIR.TAG").exists();
            if is_made || (name.starts_with('.') && !HIDDEN.contains(&name.as_ref())) {
                continue;
            }
            let kind = entry.file_type().map_err(io_error("cannot be read", &path))?;
            if kind.is_symlink() {
                return Err(format!(
                    "{} is a link, and cannot be copied: remove it, or put a file there",
                    path.display()
                ));
            }
            if kind.is_dir() {
                folders.push(path);
            } else {
                let bytes = fs::read(&path).map_err(io_error("cannot be read", &path))?;
                let relative = path.strip_prefix(root).unwrap_or(&path).to_path_buf();
                files.insert(relative, bytes);
            }
        }
    }
    Ok(files)
}

fn write(root: &Path, files: &Files) -> Result<(), String> {
    for (relative, bytes) in files {
        let path = root.join(relative);
        let folder = path.parent().unwrap_or(root);
        fs::create_dir_all(folder).map_err(io_error("cannot be made", folder))?;
        fs::write(&path, bytes).map_err(io_error("cannot be written", &path))?;
    }
    Ok(())
}

/// Gives the copied files the permissions of the originals.
fn keep_permissions(root: &Path, copy: &Path, files: &Files) -> Result<(), String> {
    for relative in files.keys() {
        let (from, to) = (root.join(relative), copy.join(relative));
        let permissions =
            fs::metadata(&from).map_err(io_error("cannot be read", &from))?.permissions();
        fs::set_permissions(&to, permissions).map_err(io_error("cannot be changed", &to))?;
    }
    Ok(())
}

/// What the recipes add and change.
fn followed(root: &Path, before: &Files) -> Result<Files, String> {
    let mut files = Files::new();
    for part in ["mod.rs", "graph.rs", "job.rs"] {
        let from = root.join("tools/xtask/recipes").join(EXAMPLE).join(part);
        let bytes = fs::read(&from).map_err(io_error("cannot be read", &from))?;
        files.insert(Path::new("examples/src").join(EXAMPLE).join(part), bytes);
    }
    let mut change = |relative: &str, edit: &dyn Fn(&str) -> Option<String>| {
        let text = before.get(Path::new(relative)).map(|bytes| String::from_utf8_lossy(bytes));
        let text =
            text.ok_or_else(|| format!("{relative} is gone: the recipes name another file now"))?;
        let edited = edit(&text)
            .ok_or_else(|| format!("{relative} has another form than the recipes know"))?;
        files.insert(relative.into(), edited.into_bytes());
        Ok::<(), String>(())
    };
    change(ARITHMETIC, &|text| Some(format!("{text}{FUNCTION}")))?;
    change(KERNELS, &|table| {
        let row = format!(
            "            {} LEAKY_RELU leaky_relu AIV \"out = a where it is not negative, slope * a elsewhere\"\n\
             \x20               (a: In [n], slope: F32, out: Out [n], n: Size)\n\
             \x20               => {{ elementwise::leaky_relu(a, slope, out) }};\n",
            next_func_id(table)?
        );
        behind_the_rows(table, &row)
    })?;
    change(EXAMPLES, &|table| {
        let row = format!("            \"{EXAMPLE}\" {EXAMPLE} LeakyRelu (graph) ();\n");
        let module = format!("pub mod {EXAMPLE};\npub mod matmul;\n");
        Some(behind_the_rows(table, &row)?.replacen("pub mod matmul;\n", &module, 1))
    })?;
    Ok(files)
}

/// The func id after the last one of the table of kernels.
fn next_func_id(table: &str) -> Option<u32> {
    let ids = table.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        let (id, constant, name) =
            (words.next()?.parse::<u32>().ok()?, words.next()?, words.next()?);
        (constant == name.to_uppercase()).then_some(id)
    });
    ids.max()?.checked_add(1)
}

/// `table` with a row after the last one of its first macro.
fn behind_the_rows(table: &str, row: &str) -> Option<String> {
    let end = table.find("\n        }\n    };\n}\n")? + 1;
    let (rows, rest) = table.split_at(end);
    Some(format!("{rows}{row}{rest}"))
}

/// Builds the copy, and runs the example there in every way, and with [`Extent::Suite`] everything that tests it.
fn run_in(copy: &Path, build: &Path, extent: Extent) -> Result<(), String> {
    let whole_runs =
        ["run", "--quiet", "-p", "pto-examples", "--example", "whole_runs", "--", EXAMPLE];
    run_cargo(copy, build, &whole_runs)?;
    if extent == Extent::Suite {
        run_cargo(copy, build, &["run", "--quiet", "-p", "xtask", "--", "generate", "--check"])?;
        run_cargo(copy, build, &["test", "--workspace", "--no-fail-fast"])?;
    }
    Ok(())
}

/// Runs cargo in the copy.
fn run_cargo(copy: &Path, build: &Path, arguments: &[&str]) -> Result<(), String> {
    let mut command = cargo(copy);
    command.args(arguments);
    command.env("CARGO_TARGET_DIR", build);
    let what = format!(
        "with a kernel and an example, added as docs/how-to/hacking.md says, `cargo {}`",
        arguments.join(" ")
    );
    succeed(&what, command.status())
}

/// What is in one of the trees alone, or different.
fn changed(before: &Files, after: &Files) -> BTreeSet<PathBuf> {
    let places = before.keys().chain(after.keys());
    places.filter(|relative| before.get(*relative) != after.get(*relative)).cloned().collect()
}

/// Refuses a change outside of the kernel's arithmetic, the example's folder and the tables.
fn only_own_files(changed: &BTreeSet<PathBuf>) -> Result<(), String> {
    let own = Path::new("examples/src").join(EXAMPLE);
    let is_own = |relative: &PathBuf| {
        relative.starts_with(&own)
            || [ARITHMETIC, KERNELS, EXAMPLES].iter().any(|one| relative == Path::new(one))
    };
    let others: Vec<String> = changed
        .iter()
        .filter(|relative| !is_own(relative))
        .map(|relative| relative.display().to_string())
        .collect();
    if others.is_empty() {
        return Ok(());
    }
    Err(format!("who adds a kernel and an example should not have to change {}", others.join(", ")))
}

fn io_error<'a>(what: &'a str, path: &'a Path) -> impl FnOnce(std::io::Error) -> String + 'a {
    move |error| format!("{} {what}: {error}", path.display())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::{Path, PathBuf};

    use super::{Files, behind_the_rows, changed, next_func_id, only_own_files, tree};

    #[test]
    fn a_row_stands_behind_the_others_with_the_next_number() {
        let table = "macro_rules! x {\n    () => {\n        y! {\n            7 A a AIV\n            10 B b AIV\n        }\n    };\n}\n";
        assert_eq!(next_func_id(table), Some(11));
        let more = behind_the_rows(table, "            11 C c AIV\n").unwrap();
        assert!(more.contains("10 B b AIV\n            11 C c AIV\n        }\n"), "{more}");
        assert_eq!(behind_the_rows("no table", "x"), None);
    }

    #[test]
    fn a_change_anywhere_else_is_refused() {
        let places = |names: &[&str]| names.iter().map(PathBuf::from).collect::<BTreeSet<_>>();
        assert!(
            only_own_files(&places(&["examples/src/leaky_relu/job.rs", "examples/src/lib.rs"]))
                .is_ok()
        );
        let error =
            only_own_files(&places(&["host/src/lib.rs", "examples/src/lib.rs"])).unwrap_err();
        assert!(error.ends_with("change host/src/lib.rs"), "{error}");
    }

    #[test]
    fn new_lost_and_different_files_are_changes() {
        let files = |of: &[(&str, &str)]| -> Files {
            of.iter().map(|(name, text)| (name.into(), text.as_bytes().to_vec())).collect()
        };
        let before = files(&[("same", "1"), ("lost", "1"), ("other", "1")]);
        let after = files(&[("same", "1"), ("new", "1"), ("other", "2")]);
        let names: Vec<_> = changed(&before, &after).into_iter().collect();
        assert_eq!(names, ["lost", "new", "other"].map(PathBuf::from));
    }

    #[test]
    fn what_builds_have_made_is_not_copied() {
        let files = tree(&crate::root::root()).unwrap();
        assert!(files.contains_key(Path::new("tools/xtask/recipes/leaky_relu/job.rs")));
        assert!(
            files
                .keys()
                .all(|relative| !relative.starts_with("target") && !relative.starts_with(".git"))
        );
    }
}
