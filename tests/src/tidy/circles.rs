//! No two files of a crate need each other, directly or through others: a file can be read, tested and replaced with what
//! is below it, and nothing else.
//!
//! The rule. File A *needs* file B of its crate when A names an item that is in B: in a `use`, or by a path
//! (`crate::b::f()`). A name that another module hands on (`pub use`) leads to the file in which the item stands, so that
//! children of a module that only declares and hands on may use each other through it. `mod b;` needs nothing, and `pub use
//! b::X` only where the same file also uses `X`. A method is called without naming its file, so that the `impl` blocks of a
//! type may stand in several files: each needs the file of the type. Tests, benches and what is under `#[cfg(test)]` do not count.
//!
//! A circle is a set of files of which each needs each other one, perhaps through further ones of the set. Where two files
//! need each other they are one thing, or a third thing is missing that both need.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use proc_macro2::{Delimiter, TokenStream, TokenTree};

use super::Finding;
use super::modules::{Crate, Import, Module};

/// Who needs whom, with a name that says why.
pub(crate) type Needs = BTreeMap<(usize, usize), String>;

/// The circles of the crate whose root is this file. `read` gives the text of a file; `None`: there is none.
///
/// # Errors
/// A file that is missing, or that is not Rust.
pub fn of_crate(root: &str, read: impl Fn(&str) -> Option<String>) -> Result<Vec<Circle>, String> {
    let loaded = Crate::read(root, &read)?;
    let needs = needs(&loaded);
    let name = |file: usize| loaded.files[file].clone();
    let circles = components(loaded.files.len(), &needs).into_iter().map(|files| {
        let within =
            needs.iter().filter(|((from, to), _)| files.contains(from) && files.contains(to));
        let arrow = |((from, to), item): (&(usize, usize), &String)| Need {
            from: name(*from),
            to: name(*to),
            item: item.clone(),
        };
        Circle {
            files: files.iter().map(|file| name(*file)).collect(),
            needs: within.map(arrow).collect(),
        }
    });
    Ok(circles.collect())
}

/// One file needs another one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Need {
    /// Who.
    pub from: String,
    /// Whom.
    pub to: String,
    /// An item that it needs.
    pub item: String,
}

/// Files that need each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Circle {
    /// The files, in the order of their paths.
    pub files: BTreeSet<String>,
    /// Everything that ties them.
    pub needs: Vec<Need>,
}

impl Circle {
    /// What to tell about it.
    #[must_use]
    pub fn finding(&self) -> Finding {
        let tie = |need: &Need| format!("\n    {} needs {} for {}", need.from, need.to, need.item);
        let ties: String = self.needs.iter().map(tie).collect();
        Finding {
            location: self.files.first().cloned().unwrap_or_default(),
            message: format!(
                "{} files need each other: make them one, or give both a third one{ties}",
                self.files.len()
            ),
        }
    }
}

/// Who needs whom in this crate.
fn needs(loaded: &Crate) -> Needs {
    let mut needs = Needs::new();
    for (number, module) in loaded.modules.iter().enumerate() {
        for path in paths_of(module) {
            let to = loaded.file_of(number, &path).filter(|to| *to != module.file);
            if let (Some(to), Some(item)) = (to, path.last()) {
                needs.entry((module.file, to)).or_insert_with(|| item.clone());
            }
        }
    }
    needs
}

/// The paths by which a module uses items: of its imports, without those that it only hands on, and of its bodies.
fn paths_of(module: &Module) -> Vec<Vec<String>> {
    let mut paths = Vec::new();
    module.bodies.iter().for_each(|body| scan(body, &[], &mut paths));
    let words: BTreeSet<&String> = paths.iter().filter_map(|path| path.first()).collect();
    let is_used = |import: &&Import| {
        !import.hands_on || import.name.as_ref().is_some_and(|name| words.contains(name))
    };
    let imported = module.imports.iter().filter(is_used).map(|import| import.path.clone());
    let mut used: Vec<_> = imported.collect();
    used.extend(paths.into_iter().filter(|path| path.len() > 1));
    used
}

/// Every path in `tokens`, of one word or more, after `prefix`; a name after a dot is a method or a field, and no path.
/// The path of a macro that begins with the macro's own crate begins with `$crate`.
fn scan(tokens: &TokenStream, prefix: &[String], paths: &mut Vec<Vec<String>>) {
    let mut path: Vec<String> = Vec::new();
    let (mut colons, mut is_member, mut is_variable) = (0, false, false);
    for token in tokens.clone() {
        match &token {
            TokenTree::Ident(word) => {
                if colons != 2 {
                    finish(&mut path, prefix, paths);
                }
                if !is_member {
                    let dollar = if is_variable { "$" } else { "" };
                    path.push(format!("{dollar}{word}"));
                }
                (colons, is_member, is_variable) = (0, false, false);
            }
            TokenTree::Punct(mark) if mark.as_char() == ':' => colons += 1,
            TokenTree::Group(group) => {
                let is_list = colons == 2 && group.delimiter() == Delimiter::Brace;
                let before = if is_list { [prefix, &path].concat() } else { Vec::new() };
                finish(&mut path, prefix, paths);
                scan(&group.stream(), &before, paths);
                (colons, is_member, is_variable) = (0, false, false);
            }
            TokenTree::Punct(mark) => {
                finish(&mut path, prefix, paths);
                (colons, is_member) = (0, mark.as_char() == '.');
                is_variable = mark.as_char() == '$';
            }
            TokenTree::Literal(_) => {
                finish(&mut path, prefix, paths);
                (colons, is_member) = (0, false);
            }
        }
    }
    finish(&mut path, prefix, paths);
}

fn finish(path: &mut Vec<String>, prefix: &[String], paths: &mut Vec<Vec<String>>) {
    if !path.is_empty() {
        paths.push([prefix, path].concat());
        path.clear();
    }
}

/// Sets of files that reach each other.
pub(crate) fn components(files: usize, needs: &Needs) -> Vec<BTreeSet<usize>> {
    let reached: Vec<BTreeSet<usize>> = (0..files).map(|from| reach(from, needs)).collect();
    let mut circles: Vec<BTreeSet<usize>> = Vec::new();
    for file in 0..files {
        if circles.iter().any(|circle| circle.contains(&file)) {
            continue;
        }
        let others = reached[file].iter().copied().filter(|other| reached[*other].contains(&file));
        let circle: BTreeSet<usize> = others.collect();
        if circle.len() > 1 {
            circles.push(circle);
        }
    }
    circles
}

fn reach(from: usize, needs: &Needs) -> BTreeSet<usize> {
    let (mut reached, mut open) = (BTreeSet::new(), vec![from]);
    while let Some(file) = open.pop() {
        let next = needs.range((file, 0)..(file + 1, 0)).map(|((_, to), _)| *to);
        open.extend(next.filter(|to| reached.insert(*to)));
    }
    reached
}

#[cfg(test)]
mod tests {
    use super::{Circle, of_crate};

    /// The circles of a crate of these files.
    fn found(files: &[(&str, &str)]) -> Vec<Circle> {
        let read = |path: &str| {
            files.iter().find(|(name, _)| *name == path).map(|(_, text)| (*text).to_owned())
        };
        of_crate("x/src/lib.rs", read).unwrap()
    }

    /// The files of the only circle, without their folder.
    fn files(of: &[(&str, &str)]) -> Vec<String> {
        let circles = found(of);
        assert_eq!(circles.len(), 1, "{circles:?}");
        circles[0].files.iter().map(|file| file.replace("x/src/", "")).collect()
    }

    const AB: (&str, &str) = ("x/src/lib.rs", "mod a; mod b;");

    #[test]
    fn two_files_that_import_each_other() {
        let a = ("x/src/a.rs", "use crate::b::B; pub struct A(B);");
        let b = ("x/src/b.rs", "use super::a::A; pub struct B(Vec<A>);");
        assert_eq!(files(&[AB, a, b]), ["a.rs", "b.rs"]);
        assert!(found(&[AB, a, ("x/src/b.rs", "pub struct B;")]).is_empty());
    }

    #[test]
    fn a_path_is_as_good_as_an_import() {
        let a = ("x/src/a.rs", "pub fn a() { crate::b::b() }");
        let b = ("x/src/b.rs", "use crate::a; pub fn b() { println!(\"{}\", a::a()) }");
        assert_eq!(files(&[AB, a, b]), ["a.rs", "b.rs"]);
        let list = ("x/src/b.rs", "pub fn b() { use super::{a::{a}, c}; }");
        assert_eq!(files(&[AB, a, list]), ["a.rs", "b.rs"]);
    }

    #[test]
    fn a_circle_of_three_through_what_a_module_hands_on() {
        let root = ("x/src/lib.rs", "mod m; pub use m::{A, B};");
        let parent =
            ("x/src/m.rs", "mod a; mod b; mod c; pub use a::A; pub use self::b::B; pub use c::*;");
        let a = ("x/src/m/a.rs", "use super::B; pub struct A(B);");
        let b = ("x/src/m/b.rs", "use crate::m::C as Other; pub struct B(Other);");
        let c = ("x/src/m/c.rs", "pub struct C(Vec<crate::A>);");
        assert_eq!(files(&[root, parent, a, b, c]), ["m/a.rs", "m/b.rs", "m/c.rs"]);
        let straight = ("x/src/m/c.rs", "pub struct C;");
        assert!(found(&[root, parent, a, b, straight]).is_empty(), "the parent is in no circle");
    }

    #[test]
    fn a_parent_and_a_child_that_use_each_other() {
        let root = ("x/src/lib.rs", "mod a;");
        let child = ("x/src/a/b.rs", "use super::A; impl A { pub fn b(&self) {} }");
        let uses = ("x/src/a/mod.rs", "mod b; pub struct A; fn f() { b::g() }");
        let grown = ("x/src/a/b.rs", "use super::A; pub fn g() {}");
        assert_eq!(files(&[root, uses, grown]), ["a/b.rs", "a/mod.rs"]);
        let declares = ("x/src/a/mod.rs", "mod b; pub struct A; fn f(a: &A) { a.b() }");
        assert!(found(&[root, declares, child]).is_empty(), "a method names no file");
    }

    #[test]
    fn a_name_that_is_handed_on_counts_where_it_is_used() {
        let b = ("x/src/b.rs", "use crate::a::Own; pub struct B(Own);");
        let hands_on = ("x/src/a.rs", "pub use crate::b::B; pub struct Own;");
        assert!(found(&[AB, hands_on, b]).is_empty());
        let uses = ("x/src/a.rs", "pub use crate::b::B; pub struct Own; fn f(b: B) {}");
        assert_eq!(files(&[AB, uses, b]), ["a.rs", "b.rs"]);
    }

    #[test]
    fn tests_and_other_crates_do_not_count() {
        let a = ("x/src/a.rs", "use crate::b::B; use std::a; pub struct A(B);");
        let test = "#[cfg(test)] mod tests { use crate::a::A; } #[cfg(test)] mod gone; pub struct B; fn f(x: A) {}";
        assert!(found(&[AB, a, ("x/src/b.rs", test)]).is_empty());
    }

    #[test]
    fn macros_and_inline_modules_are_read() {
        let root = ("x/src/lib.rs", "#[macro_use] mod a; mod b;");
        let a =
            ("x/src/a.rs", "macro_rules! m { () => { $crate::b::inner::f() } }\npub(crate) use m;");
        let b = ("x/src/b.rs", "pub mod inner { pub fn f() { crate::a::m!() } }");
        assert_eq!(files(&[root, a, b]), ["a.rs", "b.rs"]);
        let made = ("x/src/b.rs", "make! { pub struct Made } fn f(x: crate::a::A) {}");
        let uses = ("x/src/a.rs", "use crate::b::Made; pub struct A(Made);");
        assert_eq!(files(&[AB, uses, made]), ["a.rs", "b.rs"]);
    }

    #[test]
    fn what_ties_the_files_is_told() {
        let a = ("x/src/a.rs", "use crate::b::B; pub struct A(B);");
        let b = ("x/src/b.rs", "use super::a::A; pub struct B(Vec<A>);");
        let text = found(&[AB, a, b])[0].finding().to_string();
        assert!(text.contains("x/src/b.rs needs x/src/a.rs for A"), "{text}");
    }

    #[test]
    fn a_file_that_is_missing_is_an_error() {
        let missing = of_crate("x/src/lib.rs", |path| {
            (path == "x/src/lib.rs").then(|| "mod gone;".to_owned())
        });
        assert!(missing.unwrap_err().contains("mod gone"));
    }
}
