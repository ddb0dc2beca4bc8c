//! Where crates stand: a folder has the name of its crate, and no arrow between the folders at the top leads up.

use std::collections::BTreeSet;

use super::Finding;

/// Is `folder`, from the workspace's folder, called like its crate? The crate's name without `pto-` is the end of
/// the folder's path, with `-` between its parts: `bindings/acl/entry` holds `pto-acl-entry`.
#[must_use]
pub fn is_called_like(folder: &str, package: &str) -> bool {
    let name = package.strip_prefix("pto-").unwrap_or(package);
    let path = folder.replace('/', "-");
    path.strip_suffix(name).is_some_and(|rest| rest.is_empty() || rest.ends_with('-'))
}

/// The files that are next to the folder of their parts. A module with parts is the `mod.rs` of its folder.
#[must_use]
pub fn beside_their_folder<'a>(paths: impl IntoIterator<Item = &'a str> + Clone) -> Vec<Finding> {
    let folders: BTreeSet<&str> = paths
        .clone()
        .into_iter()
        .filter_map(|path| path.rsplit_once('/'))
        .map(|(folder, _)| folder)
        .collect();
    let is_beside =
        |path: &&str| path.strip_suffix(".rs").is_some_and(|stem| folders.contains(stem));
    let finding = |path: &str| Finding {
        location: path.to_owned(),
        message: format!("move it to {}/mod.rs, beside its parts", path.trim_end_matches(".rs")),
    };
    paths.into_iter().filter(is_beside).map(finding).collect()
}

/// The arrows between rooms that lead up: the room at the head needs the one at the tail as well, directly or through others.
#[must_use]
pub fn arrows_that_lead_up(arrows: &BTreeSet<(String, String)>) -> Vec<Finding> {
    let up = arrows
        .iter()
        .filter(|(from, to)| from != to && needed_by(to, arrows).contains(from.as_str()));
    let finding = |(from, to): &(String, String)| Finding {
        location: format!("{from} -> {to}"),
        message: format!(
            "{to} needs {from} as well: move the crate that is needed to where it belongs"
        ),
    };
    up.map(finding).collect()
}

/// The rooms that `room` needs, itself among them.
fn needed_by<'a>(room: &'a str, arrows: &'a BTreeSet<(String, String)>) -> BTreeSet<&'a str> {
    let mut found = BTreeSet::from([room]);
    loop {
        let next = arrows.iter().filter(|(from, _)| found.contains(from.as_str()));
        let more: BTreeSet<&str> = next.map(|(_, to)| to.as_str()).collect();
        if more.is_subset(&found) {
            return found;
        }
        found.extend(more);
    }
}

/// The room of a folder: its first part.
#[must_use]
pub fn room_of(folder: &str) -> String {
    folder.split('/').next().unwrap_or(folder).to_owned()
}

#[cfg(test)]
mod tests {
    use super::{arrows_that_lead_up, beside_their_folder, is_called_like, room_of};
    use std::collections::BTreeSet;

    #[test]
    fn a_crate_gives_its_folder_its_name() {
        assert!(is_called_like("abi", "pto-abi"));
        assert!(is_called_like("tools/xtask", "xtask"));
        assert!(is_called_like("bindings/acl/entry", "pto-acl-entry"));
        assert!(!is_called_like("linker/images", "pto-fw-qemu"));
        assert!(!is_called_like("tools/fw-build", "pto-image-build"));
        assert!(!is_called_like("bindings/mpic", "pto-c"), "a part of a name is not the name");
    }

    #[test]
    fn an_arrow_that_leads_up_is_found() {
        let arrows = |list: &[(&str, &str)]| -> BTreeSet<(String, String)> {
            list.iter().map(|(from, to)| (room_of(from), room_of(to))).collect()
        };
        let down = [
            ("tools/cli", "host"),
            ("bindings/acl/entry", "abi"),
            ("bindings/acl", "bindings/acl/entry"),
        ];
        assert!(arrows_that_lead_up(&arrows(&down)).is_empty());
        let found =
            arrows_that_lead_up(&arrows(&[("a", "b/x"), ("b", "c"), ("c", "a/y"), ("c", "d")]));
        let locations: Vec<_> = found.into_iter().map(|finding| finding.location).collect();
        assert_eq!(locations, ["a -> b", "b -> c", "c -> a"]);
    }

    #[test]
    fn a_module_stands_in_the_folder_of_its_parts() {
        let good = ["a/src/lib.rs", "a/src/x/mod.rs", "a/src/x/y.rs", "a/src/z.rs"];
        assert!(beside_their_folder(good).is_empty());
        let bad = beside_their_folder(["a/src/x.rs", "a/src/x/y.rs"]);
        assert_eq!(bad.len(), 1);
        assert_eq!(bad[0].location, "a/src/x.rs");
        assert!(bad[0].message.contains("a/src/x/mod.rs"));
    }
}
