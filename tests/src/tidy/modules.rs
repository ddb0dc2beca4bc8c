//! The modules of a crate, and what a path in one of them names: enough of name resolution to say in which file an item
//! stands that another file uses.
//!
//! Left out, since they are no part of what is shipped: items under `#[cfg(test)]`. An item that a macro makes counts as one
//! of the module in which its path ends.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::TokenStream;
use quote::ToTokens;
use syn::{Item, UseTree, Visibility};

use super::cfg::is_for_tests_only;

/// The crate of a macro by example, in paths of the macro.
pub(crate) const CRATE_OF_MACRO: &str = "$crate";

/// A `use` of a module.
#[derive(Clone, Debug)]
pub(crate) struct Import {
    /// What it is called here; `None`: everything that is in the path's end.
    pub(crate) name: Option<String>,
    pub(crate) path: Vec<String>,
    /// It hands the name on: `pub use`, with any visibility.
    pub(crate) hands_on: bool,
}

/// A module.
#[derive(Debug)]
pub(crate) struct Module {
    /// Its file, in [`Crate::files`].
    pub(crate) file: usize,
    parent: Option<usize>,
    children: BTreeMap<String, usize>,
    items: BTreeSet<String>,
    pub(crate) imports: Vec<Import>,
    /// Everything but imports and modules.
    pub(crate) bodies: Vec<TokenStream>,
}

/// The modules of one crate; the first one is its root.
#[derive(Debug, Default)]
pub(crate) struct Crate {
    pub(crate) files: Vec<String>,
    pub(crate) modules: Vec<Module>,
    /// Macros by example with the file that each is in: they are named like items of the root.
    macros: BTreeMap<String, usize>,
}

/// What a name is.
enum Found {
    Module(usize),
    /// An item of this file.
    Item(usize),
}

impl Crate {
    /// Reads the crate whose root is this file. `read` gives the text of a file; `None`: there is none.
    ///
    /// # Errors
    /// A file that is missing, or that is not Rust.
    pub(crate) fn read(root: &str, read: &impl Fn(&str) -> Option<String>) -> Result<Self, String> {
        let mut loaded = Self::default();
        let folder = root.rsplit_once('/').map_or("", |(folder, _)| folder).to_owned();
        loaded.add_file(root, &folder, None, read)?;
        Ok(loaded)
    }

    fn add_file(
        &mut self,
        path: &str,
        folder: &str,
        parent: Option<usize>,
        read: &impl Fn(&str) -> Option<String>,
    ) -> Result<usize, String> {
        let text = read(path).ok_or_else(|| format!("{path} is missing"))?;
        let parsed = syn::parse_file(&text).map_err(|error| format!("{path}: {error}"))?;
        self.files.push(path.to_owned());
        self.add_module(self.files.len() - 1, parsed.items, folder, parent, read)
    }

    fn add_module(
        &mut self,
        file: usize,
        items: Vec<Item>,
        folder: &str,
        parent: Option<usize>,
        read: &impl Fn(&str) -> Option<String>,
    ) -> Result<usize, String> {
        let number = self.modules.len();
        let (children, items_, imports, bodies) = Default::default();
        let empty = Module { file, parent, children, items: items_, imports, bodies };
        self.modules.push(empty);
        for item in items {
            if is_for_tests_only(&item) {
                continue;
            }
            match item {
                Item::Mod(module) => {
                    let name = module.ident.to_string();
                    let child = match module.content {
                        Some((_, items)) => {
                            let folder = format!("{folder}/{name}");
                            self.add_module(file, items, &folder, Some(number), read)?
                        }
                        None => {
                            let here = self.files[file].clone();
                            let path = file_of(&module.attrs, &here, folder, &name, read)?;
                            let inner = folder_of(&path, &name);
                            self.add_file(&path, &inner, Some(number), read)?
                        }
                    };
                    self.modules[number].children.insert(name, child);
                }
                Item::Use(import) => {
                    let hands_on = !matches!(import.vis, Visibility::Inherited);
                    let to = &mut self.modules[number].imports;
                    flatten(&import.tree, &mut Vec::new(), hands_on, to);
                }
                other => {
                    if let Some(name) = name_of(&other) {
                        self.modules[number].items.insert(name.clone());
                        if matches!(other, Item::Macro(_)) {
                            self.macros.insert(name, file);
                        }
                    }
                    self.modules[number].bodies.push(other.to_token_stream());
                }
            }
        }
        Ok(number)
    }

    /// The file with the item that `path` names in `module`; `None`: it is a module, or not of this crate.
    pub(crate) fn file_of(&self, module: usize, path: &[String]) -> Option<usize> {
        match self.resolve(module, path, &mut BTreeSet::new())? {
            Found::Item(file) => Some(file),
            Found::Module(_) => None,
        }
    }

    fn resolve(
        &self,
        from: usize,
        path: &[String],
        seen: &mut BTreeSet<(usize, String)>,
    ) -> Option<Found> {
        let mut at = from;
        let mut rest = path.iter().peekable();
        let mut is_ours = false;
        while let Some(word) = rest.peek() {
            match word.as_str() {
                "crate" | CRATE_OF_MACRO => at = 0,
                "self" => {}
                "super" => at = self.modules[at].parent?,
                _ => break,
            }
            is_ours = true;
            rest.next();
        }
        for name in rest {
            match self.lookup(at, name, seen) {
                Some(Found::Module(module)) => at = module,
                Some(item) => return Some(item),
                // A macro has made it.
                None if is_ours => return Some(Found::Item(self.modules[at].file)),
                None => return None,
            }
            is_ours = true;
        }
        Some(Found::Module(at))
    }

    fn lookup(
        &self,
        module: usize,
        name: &str,
        seen: &mut BTreeSet<(usize, String)>,
    ) -> Option<Found> {
        let held = &self.modules[module];
        if let Some(child) = held.children.get(name) {
            return Some(Found::Module(*child));
        }
        if held.items.contains(name) {
            return Some(Found::Item(held.file));
        }
        if !seen.insert((module, name.to_owned())) {
            return None;
        }
        let named = held.imports.iter().find(|import| import.name.as_deref() == Some(name));
        if let Some(import) = named {
            return self.resolve(module, &import.path, seen);
        }
        for import in held.imports.iter().filter(|import| import.name.is_none()) {
            if let Some(Found::Module(target)) = self.resolve(module, &import.path, seen)
                && let Some(found) = self.lookup(target, name, seen)
            {
                return Some(found);
            }
        }
        (module == 0).then(|| self.macros.get(name).map(|file| Found::Item(*file)))?
    }
}

/// Where the file of `mod name;` is.
fn file_of(
    attributes: &[syn::Attribute],
    here: &str,
    folder: &str,
    name: &str,
    read: &impl Fn(&str) -> Option<String>,
) -> Result<String, String> {
    let folder_of_module = here.rsplit_once('/').map_or("", |(folder, _)| folder);
    let path_attribute = attributes.iter().find_map(|attribute| match &attribute.meta {
        syn::Meta::NameValue(pair) if pair.path.is_ident("path") => match &pair.value {
            syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(path), .. }) => Some(path.value()),
            _ => None,
        },
        _ => None,
    });
    let mut candidates = match path_attribute {
        Some(path_attribute) => vec![normal(&format!("{folder_of_module}/{path_attribute}"))],
        None => vec![format!("{folder}/{name}.rs"), format!("{folder}/{name}/mod.rs")],
    };
    candidates.retain(|path| read(path).is_some());
    candidates.pop().ok_or_else(|| format!("{here}: the file of mod {name} is missing"))
}

/// `a/../b` is `b`.
fn normal(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            ".." => drop(parts.pop()),
            "." => {}
            _ => parts.push(part),
        }
    }
    parts.join("/")
}

/// Where the children of a module of this file are.
fn folder_of(path: &str, name: &str) -> String {
    let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
    if path.ends_with("/mod.rs") { folder.to_owned() } else { format!("{folder}/{name}") }
}

fn flatten(tree: &UseTree, path: &mut Vec<String>, hands_on: bool, to: &mut Vec<Import>) {
    let before = path.len();
    match tree {
        UseTree::Path(step) => {
            path.push(step.ident.to_string());
            flatten(&step.tree, path, hands_on, to);
        }
        UseTree::Group(group) => {
            group.items.iter().for_each(|tree| flatten(tree, path, hands_on, to));
        }
        UseTree::Glob(_) => to.push(Import { name: None, path: path.clone(), hands_on }),
        UseTree::Name(end) => {
            let end = end.ident.to_string();
            if end != "self" {
                path.push(end);
            }
            let name = path.last().cloned();
            to.push(Import { name, path: path.clone(), hands_on });
        }
        UseTree::Rename(end) => {
            path.push(end.ident.to_string());
            let name = Some(end.rename.to_string());
            to.push(Import { name, path: path.clone(), hands_on });
        }
    }
    path.truncate(before);
}

fn name_of(item: &Item) -> Option<String> {
    let ident = match item {
        Item::Const(item) => &item.ident,
        Item::Enum(item) => &item.ident,
        Item::Fn(item) => &item.sig.ident,
        Item::Macro(item) => item.ident.as_ref()?,
        Item::Static(item) => &item.ident,
        Item::Struct(item) => &item.ident,
        Item::Trait(item) => &item.ident,
        Item::Type(item) => &item.ident,
        Item::Union(item) => &item.ident,
        _ => return None,
    };
    Some(ident.to_string())
}
