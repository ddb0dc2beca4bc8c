//! Links of the book: files of the repository that a page leads to come with it, and none leads nowhere.

use std::fs;
use std::path::{Component, Path, PathBuf};

/// Copies each file of the repository that a page below `pages` leads to into the folder of the pages, and changes the link.
pub(super) fn bring_files(root: &Path, pages: &Path) -> Result<(), String> {
    for page in files(pages, "md")? {
        let folder = page.strip_prefix(pages).ok().and_then(Path::parent).unwrap_or(Path::new(""));
        let text = read(&page)?;
        let mut found = Vec::new();
        let changed = with_links(&text, "](", ")", |link| {
            let file = outside(root, pages, folder, link)?;
            let up = "../".repeat(folder.components().count());
            // README and the changelog are pages of the book.
            if pages.join(&file).is_file() {
                return Some(format!("{up}{file}"));
            }
            let to = format!("{up}files/{file}");
            found.push(file);
            Some(to)
        });
        for file in &found {
            copy(&root.join(file), &pages.join("files").join(file))?;
        }
        fs::write(&page, changed).map_err(|why| format!("{}: {why}", page.display()))?;
    }
    Ok(())
}

/// The file of the repository that a link of a page in `folder` means; `None`: it is no file, or a page of the book.
fn outside(root: &Path, pages: &Path, folder: &Path, link: &str) -> Option<String> {
    let link = link.split('#').next().filter(|link| !link.is_empty())?;
    if pages.join(folder).join(link).exists() {
        return None;
    }
    // A page of `docs`, or one that was next to it.
    [root.join("docs").join(folder).join(link), root.join(link)].into_iter().find_map(|path| {
        let plain = normal(&path);
        let inside = plain.strip_prefix(root).ok()?.to_str()?.to_owned();
        plain.is_file().then_some(inside)
    })
}

/// A path without `..`.
fn normal(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(plain.pop()),
            _ => plain.push(part),
        }
    }
    plain
}

/// The links of the book's pages that lead to no file, each with its page.
pub(super) fn broken(book: &Path) -> Result<Vec<String>, String> {
    let mut broken = Vec::new();
    let pages = files(book, "html")?;
    for page in pages.iter().filter(|page| !page.starts_with(book.join("api"))) {
        let folder = page.parent().unwrap_or(book);
        with_links(&read(page)?, "href=\"", "\"", |link| {
            let path = link.split(['#', '?']).next().filter(|path| !path.is_empty())?;
            let is_here = !path.contains(':') && !path.starts_with("//");
            if is_here && !folder.join(path).exists() {
                broken.push(format!("{}: {link}", page.display()));
            }
            None
        });
    }
    Ok(broken)
}

/// The text with other links: `change` replaces the text between `open` and `close` where it returns one.
fn with_links(
    text: &str,
    open: &str,
    close: &str,
    mut change: impl FnMut(&str) -> Option<String>,
) -> String {
    let mut pieces = text.split(open);
    let mut changed = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        changed += open;
        match piece.split_once(close) {
            Some((link, rest)) => {
                changed += &change(link).unwrap_or_else(|| link.to_owned());
                changed += close;
                changed += rest;
            }
            None => changed += piece,
        }
    }
    changed
}

/// The files below a folder with this ending.
pub(super) fn files(folder: &Path, ending: &str) -> Result<Vec<PathBuf>, String> {
    let entries = fs::read_dir(folder).map_err(|why| format!("{}: {why}", folder.display()))?;
    let mut found = Vec::new();
    for path in entries.flatten().map(|entry| entry.path()) {
        if path.is_dir() {
            found.extend(files(&path, ending)?);
        } else if path.extension().is_some_and(|own| own == ending) {
            found.push(path);
        }
    }
    Ok(found)
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|why| format!("{}: {why}", path.display()))
}

fn copy(from: &Path, to: &Path) -> Result<(), String> {
    let failed = |why: std::io::Error| format!("{} cannot be copied: {why}", from.display());
    fs::create_dir_all(to.parent().unwrap_or(to)).map_err(failed)?;
    fs::copy(from, to).map(drop).map_err(failed)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::{bring_files, broken, with_links};

    #[test]
    fn links_are_changed_where_they_stand() {
        let text = "[a](x.c), [b](y.md) and (not this)";
        let changed = with_links(text, "](", ")", |link| (link == "x.c").then(|| "z".to_owned()));
        assert_eq!(changed, "[a](z), [b](y.md) and (not this)");
    }

    #[test]
    fn a_file_that_a_page_leads_to_comes_with_it() {
        let folder = tempfile::tempdir().unwrap();
        let (root, pages) = (folder.path().join("root"), folder.path().join("pages"));
        for path in ["root/docs/sub", "root/src", "pages/sub"] {
            fs::create_dir_all(folder.path().join(path)).unwrap();
        }
        fs::write(root.join("src/x.c"), "x").unwrap();
        fs::write(pages.join("y.md"), "").unwrap();
        fs::write(pages.join("sub/p.md"), "[x](../../src/x.c) [y](../y.md#a) [z](#here)").unwrap();
        bring_files(&root, &pages).unwrap();
        let text = fs::read_to_string(pages.join("sub/p.md")).unwrap();
        assert_eq!(text, "[x](../files/src/x.c) [y](../y.md#a) [z](#here)");
        assert_eq!(fs::read_to_string(pages.join("files/src/x.c")).unwrap(), "x");
    }

    #[test]
    fn a_link_that_leads_nowhere_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let page = folder.path().join("p.html");
        fs::write(
            &page,
            "<a href=\"p.html#x\"></a><a href=\"q.html\"></a><a href=\"https://x\"></a>",
        )
        .unwrap();
        let found = broken(folder.path()).unwrap();
        assert_eq!(found, [format!("{}: q.html", page.display())]);
    }
}
