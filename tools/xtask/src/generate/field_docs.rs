//! Reads the doc comments of shared structs from the sources of `abi`: the layout tables hold everything
//! but the meaning of a field.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// Doc comments by struct and field; an empty field name represents the struct itself.
#[derive(Debug, Default)]
pub(crate) struct FieldDocs(BTreeMap<(String, String), String>);

impl FieldDocs {
    /// What is said of a field, or of a struct when `field` is empty.
    pub(crate) fn of(&self, name: &str, field: &str) -> Result<&str, String> {
        let key = (name.to_owned(), field.to_owned());
        let doc = self.0.get(&key).map(String::as_str).filter(|doc| !doc.is_empty());
        doc.ok_or_else(|| format!("abi/src: {name}.{field} has no doc comment that xtask finds"))
    }

    fn add_file(&mut self, text: &str) {
        let mut doc = Vec::new();
        let mut current: Option<String> = None;
        for line in text.lines().map(str::trim) {
            if let Some(said) = line.strip_prefix("///") {
                doc.push(said.trim());
            } else if let Some(name) = struct_name(line) {
                self.insert(name, "", &mut doc);
                current = Some(name.to_owned());
            } else if let (Some(name), Some(field)) = (&current, field_name(line)) {
                self.insert(name, field, &mut doc);
            } else if !line.starts_with("#[") {
                doc.clear();
                if line == "}" {
                    current = None;
                }
            }
        }
    }

    fn add_folder(&mut self, folder: &Path) -> Result<(), String> {
        let unreadable = |error| format!("{}: {error}", folder.display());
        for entry in fs::read_dir(folder).map_err(unreadable)? {
            let path = entry.map_err(unreadable)?.path();
            if path.is_dir() {
                self.add_folder(&path)?;
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                self.add_file(&fs::read_to_string(&path).map_err(unreadable)?);
            }
        }
        Ok(())
    }

    fn insert(&mut self, name: &str, field: &str, doc: &mut Vec<&str>) {
        let text = plain(&doc.join(" "));
        doc.clear();
        self.0.insert((name.to_owned(), field.to_owned()), text);
    }
}

/// Reads every source file in `folder` and below.
pub(crate) fn read(folder: &Path) -> Result<FieldDocs, String> {
    let mut docs = FieldDocs::default();
    docs.add_folder(folder)?;
    Ok(docs)
}

/// `Task` of `pub struct Task [size = 64, align = 64] {`.
fn struct_name(line: &str) -> Option<&str> {
    let (name, rest) = line.strip_prefix("pub struct ")?.split_once(' ')?;
    rest.starts_with("[size").then_some(name)
}

/// `fanin` of `0 => fanin: AtomicU32,`.
fn field_name(line: &str) -> Option<&str> {
    let (offset, rest) = line.split_once(" => ")?;
    let is_number = !offset.is_empty() && offset.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| rest.split_once(':').map(|(name, _)| name))?
}

/// The text without links: `[`MAX_ARGS`](crate::limits::MAX_ARGS)` becomes `` `MAX_ARGS` ``.
fn plain(doc: &str) -> String {
    let mut text = String::new();
    let mut rest = doc;
    while let Some((before, link)) = rest.split_once("[`") {
        let Some((name, after)) = link.split_once("`]") else { break };
        text.push_str(before);
        text.push('`');
        text.push_str(name);
        text.push('`');
        let target = after.strip_prefix('(').and_then(|target| target.split_once(')'));
        rest = target.map_or(after, |(_, after)| after);
    }
    text + rest
}

#[cfg(test)]
mod tests {
    use super::{FieldDocs, plain};

    const SOURCE: &str = "
        /// Not this one.
        pub struct Other { a: u32 }

        shared_struct! {
            /// A task: see [`CLOSED`].
            #[derive(Default)]
            pub struct Task [size = 64, align = 64] {
                /// Producers not yet
                /// complete.
                0 => fanin: AtomicU32,
                4 => silent: AtomicU32,
            }
        }
    ";

    #[test]
    fn docs_are_found_by_struct_and_field() {
        let mut docs = FieldDocs::default();
        docs.add_file(SOURCE);
        assert_eq!(docs.of("Task", "").unwrap(), "A task: see `CLOSED`.");
        assert_eq!(docs.of("Task", "fanin").unwrap(), "Producers not yet complete.");
        assert!(docs.of("Task", "silent").unwrap_err().contains("Task.silent has no doc"));
        assert!(docs.of("Other", "").is_err());
    }

    #[test]
    fn links_become_names() {
        assert_eq!(
            plain("at most [`A`](crate::A) and [`B`], not [c]"),
            "at most `A` and `B`, not [c]"
        );
        assert_eq!(plain("open [`end"), "open [`end");
    }
}
