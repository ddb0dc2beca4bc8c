//! The index of the decisions, `docs/decisions/index.md`: every page under its theme.

use std::fs;
use std::path::Path;

/// The themes, in the order of the index and of the book.
const THEMES: &[&str] = &[
    "Memory",
    "Tasks and edges",
    "Scheduling",
    "Traces and timelines",
    "Simulator and checks",
    "Sessions",
    "Programs",
    "Groups of devices",
    "Firmware images and devices",
    "Interfaces",
    "simpler",
    "Development",
];

const INTRODUCTION: &str = "# Decisions\n\n\
    Each page is for people who change the code that it binds. It states a decision that holds today, what was tried and rejected with the figure\n\
    that decided, and what would change it. [Measurements](../measurements) has the tables of figures. Older forms of a decision are in git.\n\n\
    `cargo xtask generate` writes this page. `cargo test --workspace --test tidy` checks that the code that a page binds exists.\n";

/// A page of `docs/decisions`.
pub(crate) struct Page {
    /// The name of its file.
    pub(crate) file: String,
    /// Its first heading.
    pub(crate) title: String,
    theme: usize,
}

/// The index.
pub(super) fn render(root: &Path) -> Result<String, String> {
    let mut text = INTRODUCTION.to_owned();
    let mut theme = None;
    for page in pages(root)? {
        if theme != Some(page.theme) {
            theme = Some(page.theme);
            text += &format!("\n## {}\n\n", THEMES[page.theme]);
        }
        text += &format!("- [{}]({})\n", page.title, page.file);
    }
    Ok(text)
}

/// The pages in the order of the index: by theme, then by name.
pub(crate) fn pages(root: &Path) -> Result<Vec<Page>, String> {
    let folder = root.join("docs/decisions");
    let entries = fs::read_dir(&folder).map_err(|why| format!("{}: {why}", folder.display()))?;
    let names = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
    let is_page = |name: &String| name.ends_with(".md") && name != "index.md";
    let mut pages =
        names.filter(is_page).map(|name| page(&folder, name)).collect::<Result<Vec<_>, _>>()?;
    pages.sort_by(|a, b| (a.theme, &a.file).cmp(&(b.theme, &b.file)));
    Ok(pages)
}

fn page(folder: &Path, file: String) -> Result<Page, String> {
    let text = fs::read_to_string(folder.join(&file)).map_err(|why| format!("{file}: {why}"))?;
    let after = |start: &str| text.lines().find_map(|line| line.split_once(start)).map(|it| it.1);
    let title = after("# ").ok_or_else(|| format!("docs/decisions/{file} has no title"))?;
    let theme = after("Theme: ").unwrap_or_default().trim_end_matches('.');
    let theme = THEMES.iter().position(|known| *known == theme).ok_or_else(|| {
        format!("docs/decisions/{file} has the theme '{theme}'; use one of: {}", THEMES.join(", "))
    })?;
    Ok(Page { title: title.to_owned(), file, theme })
}

#[cfg(test)]
mod tests {
    use super::page;

    #[test]
    fn a_page_has_a_title_and_a_known_theme() {
        let folder = tempfile::tempdir().unwrap();
        let read = |text: &str| {
            std::fs::write(folder.path().join("x.md"), text).unwrap();
            page(folder.path(), "x.md".to_owned())
        };
        let known = read("# A title\n\nStatus: in force. Decided: 2026-11-20. Theme: Memory.\n");
        let known = known.unwrap();
        assert_eq!((known.title.as_str(), known.theme), ("A title", 0));
        let unknown = read("# A title\n\nStatus: in force. Theme: Else.\n").err().unwrap();
        assert!(unknown.contains("x.md has the theme 'Else'; use one of: Memory"), "{unknown}");
        assert!(read("text\n").err().unwrap().ends_with("x.md has no title"));
    }
}
