//! `docs/pictures/structure.svg`: the crates of the workspace, each above those that it depends on.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

use cargo_metadata::{DependencyKind, MetadataCommand};

const BOX: (usize, usize) = (132, 26);
const GAP: (usize, usize) = (14, 62);
const MARGIN: usize = 20;

/// A crate: the folder at the top that it is in, and the crates of ours that it needs.
struct Crate {
    room: String,
    needs: BTreeSet<String>,
}

type Crates = BTreeMap<String, Crate>;

/// The picture.
pub(super) fn render(root: &Path) -> Result<String, String> {
    let crates = without_shortcuts(&read(root)?);
    let floors = floors(&crates);
    Ok(draw(&crates, &floors))
}

/// What cargo says of the workspace; tests and build scripts do not count.
fn read(root: &Path) -> Result<Crates, String> {
    let metadata = MetadataCommand::new().manifest_path(root.join("Cargo.toml")).no_deps().exec();
    let metadata = metadata.map_err(|why| format!("cargo metadata: {why}"))?;
    let packages = metadata.workspace_packages();
    let ours: BTreeSet<String> = packages.iter().map(|package| package.name.to_string()).collect();
    let mut crates = Crates::new();
    for package in packages {
        let folder = package.manifest_path.strip_prefix(root).unwrap_or(&package.manifest_path);
        let room = folder.components().next().map_or_else(String::new, |part| part.to_string());
        let product = package.dependencies.iter().filter(|one| one.kind == DependencyKind::Normal);
        let needs =
            product.map(|one| one.name.clone()).filter(|name| ours.contains(name)).collect();
        crates.insert(package.name.to_string(), Crate { room, needs });
    }
    Ok(crates)
}

/// Everything that `name` needs, through others as well.
fn reached(crates: &Crates, name: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut open: Vec<&String> = crates[name].needs.iter().collect();
    while let Some(next) = open.pop() {
        if found.insert(next.clone()) {
            open.extend(&crates[next].needs);
        }
    }
    found
}

/// The same crates without the arrows that lead where other arrows lead as well.
fn without_shortcuts(crates: &Crates) -> Crates {
    let through = |needs: &BTreeSet<String>| -> BTreeSet<String> {
        needs.iter().flat_map(|name| reached(crates, name)).collect()
    };
    let shorter = |one: &Crate| {
        let through = through(&one.needs);
        let needs = one.needs.iter().filter(|name| !through.contains(*name)).cloned().collect();
        Crate { room: one.room.clone(), needs }
    };
    crates.iter().map(|(name, one)| (name.clone(), shorter(one))).collect()
}

/// The crates by floor: a crate is one floor above the highest crate that it needs.
fn floors(crates: &Crates) -> Vec<Vec<&str>> {
    fn height(crates: &Crates, name: &str) -> usize {
        crates[name].needs.iter().map(|below| height(crates, below) + 1).max().unwrap_or(0)
    }
    let mut floors: Vec<Vec<&str>> = Vec::new();
    for name in crates.keys() {
        let floor = height(crates, name);
        floors.resize_with(floors.len().max(floor + 1), Vec::new);
        floors[floor].push(name);
    }
    for floor in &mut floors {
        floor.sort_by_key(|name| (&crates[*name].room, *name));
    }
    floors
}

/// A colour for each folder at the top.
fn colour(room: &str) -> &'static str {
    match room {
        "abi" | "graph" => "#dbe9f6",
        "aicpu-fw" | "aicore-kernels" => "#fde3c8",
        "linker" => "#f6d6d6",
        "sim-shim" | "host" => "#d9efd6",
        "bindings" => "#e6dcf2",
        _ => "#eeeeee",
    }
}

fn draw(crates: &Crates, floors: &[Vec<&str>]) -> String {
    let widest = floors.iter().map(Vec::len).max().unwrap_or(0);
    let (width, height) =
        (2 * MARGIN + widest * (BOX.0 + GAP.0), 2 * MARGIN + floors.len() * (BOX.1 + GAP.1));
    let mut places = BTreeMap::new();
    for (floor, names) in floors.iter().enumerate() {
        let left = (width - names.len() * (BOX.0 + GAP.0)) / 2;
        let top = height - MARGIN - BOX.1 - floor * (BOX.1 + GAP.1);
        for (index, name) in names.iter().enumerate() {
            places.insert(*name, (left + index * (BOX.0 + GAP.0), top));
        }
    }
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <!-- Generated from the manifests by `cargo xtask generate`; do not edit. -->\n\
         <rect width=\"{width}\" height=\"{height}\" fill=\"white\"/>\n"
    );
    // Writing to a String does not fail.
    for (name, one) in crates {
        let (x, y) = places[name.as_str()];
        for below in &one.needs {
            let (to_x, to_y) = places[below.as_str()];
            let (x, to_x) = (x + BOX.0 / 2, to_x + BOX.0 / 2);
            let y = y + BOX.1;
            let bend = (y + to_y) / 2;
            let _ = writeln!(
                text,
                "<path d=\"M{x} {y}C{x} {bend} {to_x} {bend} {to_x} {to_y}\" fill=\"none\" stroke=\"#999\"/>"
            );
        }
    }
    for (name, one) in crates {
        let (x, y) = places[name.as_str()];
        let label = name.strip_prefix("pto-").unwrap_or(name);
        let (middle, base) = (x + BOX.0 / 2, y + BOX.1 / 2 + 4);
        let _ = writeln!(
            text,
            "<rect x=\"{x}\" y=\"{y}\" width=\"{}\" height=\"{}\" rx=\"4\" fill=\"{}\" stroke=\"#666\"/>\
             <text x=\"{middle}\" y=\"{base}\" text-anchor=\"middle\">{label}</text>",
            BOX.0,
            BOX.1,
            colour(&one.room)
        );
    }
    text + "</svg>\n"
}

#[cfg(test)]
mod tests {
    use super::{Crate, Crates, floors, without_shortcuts};

    fn crates(list: &[(&str, &[&str])]) -> Crates {
        let one = |needs: &[&str]| Crate {
            room: String::new(),
            needs: needs.iter().map(|&name| name.to_owned()).collect(),
        };
        list.iter().map(|&(name, needs)| (name.to_owned(), one(needs))).collect()
    }

    #[test]
    fn a_crate_stands_above_what_it_needs_and_shortcuts_are_left_out() {
        let crates = without_shortcuts(&crates(&[("a", &[]), ("b", &["a"]), ("c", &["a", "b"])]));
        assert_eq!(crates["c"].needs.iter().collect::<Vec<_>>(), ["b"]);
        assert_eq!(floors(&crates), [["a"], ["b"], ["c"]]);
    }
}
