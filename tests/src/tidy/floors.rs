//! The folders of a crate stand on floors: a folder stands above every folder of which it needs an item, and no import leads up.
//!
//! The rule has two parts. *Needs* has the meaning of [`circles`](super::circles): names that are handed on lead
//! to the file in which the item stands.
//!
//! - The rooms of a folder are its files and the folders in it. A folder and the file beside it that declares its modules (`x/` and
//!   `x.rs`) are one room. No two rooms need each other, directly or through others; then every room has a floor, which is one above the
//!   highest room that it needs. This holds for the rooms of each folder.
//! - A module that stands above a file (`crate`, or a `super` of it) hands names on to those who use the module from elsewhere.
//!   A file below it takes such a name from the file or the folder that has the item, or from the crate.

use std::collections::{BTreeMap, BTreeSet};

use super::Finding;
use super::circles::{Needs, components, needs, paths_of};
use super::modules::Crate;

/// The arrows that lead up in the crate whose root is this file. `read` gives the text of a file; `None`: there is none.
///
/// # Errors
/// A file that is missing, or that is not Rust.
pub fn of_crate(root: &str, read: impl Fn(&str) -> Option<String>) -> Result<Vec<Finding>, String> {
    let loaded = Crate::read(root, &read)?;
    let needs = needs(&loaded);
    let folders: BTreeSet<&str> = loaded.files.iter().flat_map(|file| folders_of(file)).collect();
    let mut findings: Vec<Finding> =
        folders.into_iter().flat_map(|folder| rooms_in_circles(folder, &loaded, &needs)).collect();
    findings.extend(taken_from_above(&loaded));
    Ok(findings)
}

/// The folders in which `file` stands, the innermost one first.
fn folders_of(file: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(parent(file), |folder| parent(folder))
}

fn parent(path: &str) -> Option<&str> {
    path.rsplit_once('/').map(|(folder, _)| folder)
}

/// The room of `folder` in which `file` stands; `None`: it stands elsewhere.
fn room<'a>(folder: &str, file: &'a str) -> Option<&'a str> {
    let inside = file.strip_prefix(folder)?.strip_prefix('/')?;
    let name = inside.split('/').next()?;
    Some(&file[..folder.len() + 1 + name.strip_suffix(".rs").unwrap_or(name).len()])
}

fn rooms_in_circles(folder: &str, loaded: &Crate, needs: &Needs) -> Vec<Finding> {
    let mut names: Vec<&str> = Vec::new();
    let mut number = |name| {
        let known = names.iter().position(|held| *held == name);
        known.unwrap_or_else(|| {
            names.push(name);
            names.len() - 1
        })
    };
    let mut between = Needs::new();
    for ((from, to), item) in needs {
        let (from, to) = (&loaded.files[*from], &loaded.files[*to]);
        let (Some(lower), Some(upper)) = (room(folder, from), room(folder, to)) else { continue };
        if lower != upper {
            let tie = || format!("{from} needs {to} for {item}");
            between.entry((number(lower), number(upper))).or_insert_with(tie);
        }
    }
    let told = |circle: BTreeSet<usize>| {
        let within =
            between.iter().filter(|((from, to), _)| circle.contains(from) && circle.contains(to));
        let ties: String = within.map(|(_, tie)| format!("\n    {tie}")).collect();
        let rooms: Vec<&str> = circle.iter().map(|room| names[*room]).collect();
        Finding {
            place: rooms.join(", "),
            message: format!(
                "these folders need each other, so that one import leads up: move what the lower one needs below it{ties}"
            ),
        }
    };
    components(names.len(), &between).into_iter().map(told).collect()
}

/// The names that a file takes from a module above it that only hands them on.
fn taken_from_above(loaded: &Crate) -> Vec<Finding> {
    let mut found: BTreeMap<(usize, Vec<String>), usize> = BTreeMap::new();
    for (number, module) in loaded.modules.iter().enumerate() {
        for path in paths_of(module) {
            let by = loaded.handed_on_by(number, &path);
            let is_above = |by: &usize| {
                loaded.is_above(*by, number) && loaded.modules[*by].file != module.file
            };
            if let Some(by) = by.filter(is_above) {
                found.entry((module.file, path)).or_insert(loaded.modules[by].file);
            }
        }
    }
    let finding = |((file, path), by): (&(usize, Vec<String>), &usize)| Finding {
        place: loaded.files[*file].clone(),
        message: format!(
            "{} leads up to {}, which only hands the name on: take it from where it stands",
            path.join("::"),
            loaded.files[*by]
        ),
    };
    found.iter().map(finding).collect()
}

#[cfg(test)]
mod tests {
    use super::of_crate;

    /// What is found in a crate of these files.
    fn found(files: &[(&str, &str)]) -> Vec<String> {
        let read = |path: &str| {
            files.iter().find(|(name, _)| *name == path).map(|(_, text)| (*text).to_owned())
        };
        of_crate("x/src/lib.rs", read).unwrap().iter().map(ToString::to_string).collect()
    }

    const ROOT: (&str, &str) = ("x/src/lib.rs", "mod a; mod b; pub use a::low::Low;");
    const A: (&str, &str) = ("x/src/a.rs", "pub mod low; pub mod high;");

    #[test]
    fn two_folders_whose_files_are_in_no_circle() {
        let low = ("x/src/a/low.rs", "pub struct Low;");
        let high = ("x/src/a/high.rs", "use crate::b::B; pub struct High(B);");
        let b = ("x/src/b.rs", "use crate::a::low::Low; pub struct B(Low);");
        let told = found(&[ROOT, A, low, high, b]);
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(told[0].starts_with("x/src/a, x/src/b: "), "{told:?}");
        assert!(told[0].contains("x/src/b.rs needs x/src/a/low.rs for Low"), "{told:?}");
        assert!(told[0].contains("x/src/a/high.rs needs x/src/b.rs for B"), "{told:?}");
        let straight = ("x/src/a/high.rs", "use super::low::Low; pub struct High(Low);");
        assert!(found(&[ROOT, A, low, straight, b]).is_empty());
    }

    #[test]
    fn the_folders_of_a_folder_have_floors_too() {
        let root = ("x/src/lib.rs", "mod m;");
        let m = ("x/src/m/mod.rs", "mod a; mod b;");
        let a = ("x/src/m/a/mod.rs", "mod one; mod two;");
        let one = ("x/src/m/a/one.rs", "pub fn one() { crate::m::b::b() }");
        let two = ("x/src/m/a/two.rs", "pub fn two() {}");
        let b = ("x/src/m/b.rs", "pub fn b() { super::a::two::two() }");
        let told = found(&[root, m, a, one, two, b]);
        assert!(told.len() == 1 && told[0].starts_with("x/src/m/a, x/src/m/b: "), "{told:?}");
    }

    #[test]
    fn a_name_that_the_root_hands_on_is_taken_from_its_file() {
        let low = ("x/src/a/low.rs", "pub struct Low;");
        let high = ("x/src/a/high.rs", "pub struct High;");
        for b in ["use crate::Low; pub struct B(Low);", "pub struct B(crate::Low);"] {
            let told = found(&[ROOT, A, low, high, ("x/src/b.rs", b)]);
            assert_eq!(told.len(), 1, "{told:?}");
            assert!(told[0].contains("crate::Low leads up to x/src/lib.rs"), "{told:?} for {b}");
        }
        let down = ("x/src/b.rs", "use crate::a::low::Low; pub struct B(Low);");
        assert!(found(&[ROOT, A, low, high, down]).is_empty());
    }

    #[test]
    fn a_folder_hands_names_on_to_those_outside() {
        let hands_on = ("x/src/a.rs", "pub mod low; pub mod high; pub use low::Low;");
        let low = ("x/src/a/low.rs", "pub struct Low;");
        let high = ("x/src/a/high.rs", "pub struct High;");
        let b = ("x/src/b.rs", "use crate::a::Low; pub struct B(Low);");
        assert!(found(&[ROOT, hands_on, low, high, b]).is_empty(), "`a` stands below `b`");
        let inside = ("x/src/a/high.rs", "use super::Low; pub struct High(Low);");
        let told = found(&[ROOT, hands_on, low, inside, b]);
        assert!(
            told.len() == 1 && told[0].contains("super::Low leads up to x/src/a.rs"),
            "{told:?}"
        );
    }

    #[test]
    fn what_the_root_defines_stands_below_and_macros_are_used_from_elsewhere() {
        let root = ("x/src/lib.rs", "#[macro_use] mod a; mod b; pub struct Own; pub use a::A;");
        let a = ("x/src/a.rs", "macro_rules! make { () => { $crate::A } } pub struct A;");
        let b = (
            "x/src/b.rs",
            "use crate::Own; pub struct B(Own); #[cfg(test)] mod tests { use crate::A; }",
        );
        assert!(found(&[root, a, b]).is_empty());
    }
}
