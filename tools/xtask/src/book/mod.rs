//! `cargo xtask docs`: the pages of `docs/` as a book, with the documentation of the interface.
//!
//! The book is made by mdBook. The pages stay where they are: they are copied into a folder below `target` together with a
//! table of contents, because a page of the repository links to files that are no pages.

mod links;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::cargo::cargo;
use crate::generate::decisions;

/// The release of mdBook that the book is tried with.
const MDBOOK: &str = "0.5.4";

/// The page whose last section lists all pages in the order of reading: the table of contents is made of it.
const LIST: &str = "which-interface.md";
const SECTION: &str = "\n## All pages\n";
/// The page below which each decision is a page of its own.
const DECISIONS: &str = "decisions/index.md";

const INTERFACE: &str = "# The interface of the crates\n\n\
    What programs call is documented in the source; these are the pages that rustdoc makes of it.\n\n\
    - [pto_host](api/pto_host/index.html): devices, sessions, runs and their reports.\n\
    - [pto_graph](api/pto_graph/index.html): what a graph program is written against.\n\
    - [pto_workload](api/pto_workload/index.html): workloads, tile kernels, plans.\n\
    - [pto_host::timeline](api/pto_host/timeline/index.html): traces and their analysis.\n\
    - [pto_abi](api/pto_abi/index.html): the bytes that host, firmware and kernels share.\n";

/// Builds the book and the documentation of the interface into `target/book`.
pub(crate) fn build(root: &Path, target: &Path) -> Result<(), String> {
    let source = target.join("book-source");
    let book = target.join("book");
    write_source(root, &source)?;
    let mdbook = provide(root, target)?;
    run(Command::new(mdbook).arg("build").arg(&source).arg("--dest-dir").arg(&book))?;
    let mut interface = cargo(root);
    interface.args(["doc", "--workspace", "--no-deps", "--lib"]).arg("--target-dir").arg(target);
    run(&mut interface)?;
    copy_folder(&target.join("doc"), &book.join("api"))?;
    let broken = links::broken(&book)?;
    if !broken.is_empty() {
        return Err(format!("the book has links that lead nowhere:\n  {}", broken.join("\n  ")));
    }
    println!("the book is {}", book.join("index.html").display());
    Ok(())
}

/// The table of contents; every page of `docs` must be in it, or it would be missing from the book in silence.
fn summary(docs: &Path) -> Result<String, String> {
    let path = docs.join(LIST);
    let list = fs::read_to_string(&path).map_err(|why| format!("{}: {why}", path.display()))?;
    let (_, list) =
        list.split_once(SECTION).ok_or_else(|| format!("docs/{LIST} has no section{SECTION}"))?;
    let mut text =
        format!("# Summary\n\n[PTO Runtime](README.md)\n[{}]({LIST})\n", title_of(&path)?);
    for line in list.lines() {
        if let Some(part) = line.strip_prefix("### ") {
            text += &format!("\n# {part}\n\n");
        }
        let Some((title, page)) = entry(line) else { continue };
        text += &format!("- [{title}]({page})\n");
        if page == DECISIONS {
            for page in decisions::pages(docs.parent().unwrap_or(docs))? {
                text += &format!("  - [{}](decisions/{})\n", page.title, page.file);
            }
        }
    }
    text += "\n# The crates\n\n- [The interface of the crates](interface.md)\n- [Changes](CHANGELOG.md)\n";
    for page in names(docs)? {
        if !text.contains(&format!("({page})")) {
            return Err(format!("docs/{page} is in no part of the book: list it in docs/{LIST}"));
        }
    }
    Ok(text)
}

/// The title and the path of `- [TITLE](PATH): ..`.
fn entry(line: &str) -> Option<(&str, &str)> {
    let (title, rest) = line.strip_prefix("- [")?.split_once("](")?;
    Some((title, rest.split_once(')')?.0))
}

/// The Markdown files below a folder, as paths from there.
fn names(folder: &Path) -> Result<Vec<String>, String> {
    let pages = links::files(folder, "md")?;
    let name = |page: &PathBuf| page.strip_prefix(folder).unwrap_or(page).display().to_string();
    Ok(pages.iter().map(name).collect())
}

fn title_of(page: &Path) -> Result<String, String> {
    let text = fs::read_to_string(page).map_err(|why| format!("{}: {why}", page.display()))?;
    let title = text.lines().find_map(|line| line.strip_prefix("# "));
    title.map(str::to_owned).ok_or_else(|| format!("{} has no title", page.display()))
}

fn write_source(root: &Path, source: &Path) -> Result<(), String> {
    let failed = |why: std::io::Error| format!("{}: {why}", source.display());
    let pages = source.join("src");
    if source.exists() {
        fs::remove_dir_all(source).map_err(failed)?;
    }
    copy_folder(&root.join("docs"), &pages)?;
    let write = |name: &str, text: &str| fs::write(pages.join(name), text).map_err(failed);
    // Two pages are one folder higher in the repository than in the book.
    for name in ["README.md", "CHANGELOG.md"] {
        let text = fs::read_to_string(root.join(name)).map_err(failed)?;
        write(name, &text.replace("](docs/", "]("))?;
    }
    write("interface.md", INTERFACE)?;
    links::bring_files(root, &pages)?;
    write("SUMMARY.md", &summary(&root.join("docs"))?)?;
    let settings = "[book]\ntitle = \"PTO Runtime\"\nlanguage = \"en\"\n";
    fs::write(source.join("book.toml"), settings).map_err(failed)
}

fn copy_folder(from: &Path, to: &Path) -> Result<(), String> {
    let failed = |why: std::io::Error| format!("{} cannot be copied: {why}", from.display());
    fs::create_dir_all(to).map_err(failed)?;
    for entry in fs::read_dir(from).map_err(failed)?.flatten() {
        let copy = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy_folder(&entry.path(), &copy)?;
        } else {
            fs::copy(entry.path(), copy).map_err(failed)?;
        }
    }
    Ok(())
}

/// mdBook: the one that is installed, or one that cargo installs below `target`.
fn provide(root: &Path, target: &Path) -> Result<PathBuf, String> {
    let installed = Command::new("mdbook").arg("--version").output();
    if installed.is_ok_and(|output| output.status.success()) {
        return Ok(PathBuf::from("mdbook"));
    }
    let own = target.join("tools");
    let program = own.join("bin/mdbook");
    if !program.is_file() {
        println!("mdBook {MDBOOK} is not installed: cargo installs it below {}", own.display());
        let mut install = cargo(root);
        install.args(["install", "mdbook", "--version", MDBOOK, "--locked"]);
        install.args(["--no-default-features", "--features", "search", "--root"]).arg(&own);
        run(&mut install)
            .map_err(|why| format!("{why}; the book was not built: crates.io must be reachable"))?;
    }
    Ok(program)
}

fn run(command: &mut Command) -> Result<(), String> {
    println!("{command:?}");
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{command:?}: {status}")),
        Err(why) => Err(format!("{command:?} cannot be started: {why}")),
    }
}

#[cfg(test)]
mod tests {
    use super::{entry, summary};

    #[test]
    fn every_page_is_in_the_book_and_every_chapter_is_a_page() {
        let docs = crate::root::root().join("docs");
        let summary = summary(&docs).unwrap();
        assert!(summary.contains("(decisions/fan-out.md)"), "{summary}");
        let entries: Vec<_> = summary.lines().filter_map(|line| entry(line.trim())).collect();
        assert!(entries.len() > 100, "{summary}");
        for (_, page) in entries {
            let is_made = matches!(page, "interface.md" | "CHANGELOG.md");
            assert!(is_made || docs.join(page).is_file(), "{page} is no page of docs/");
        }
    }
}
