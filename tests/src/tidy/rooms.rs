//! Where crates stand: few folders at the top, and a folder has the name of its crate.

use super::Finding;

/// The folders at the top: the owner's seven, and the few that the rest stands in. `tests` is one of the seven.
const TOP: &[&str] = &[
    "abi",
    "aicore-kernels",
    "aicpu-fw",
    "bindings",
    "docs",
    "examples",
    "graph",
    "host",
    "linker",
    "sim-shim",
    "tests",
    "tools",
    "workload",
];

/// Folders at the top that are not named in `TOP`.
#[must_use]
pub fn strangers_at_the_top<'a>(folders: impl IntoIterator<Item = &'a str>) -> Vec<Finding> {
    let strangers = folders.into_iter().filter(|folder| !TOP.contains(folder));
    let finding = |folder: &str| Finding {
        place: folder.to_owned(),
        message: format!("move it into one of the folders at the top: {}", TOP.join(", ")),
    };
    strangers.map(finding).collect()
}

/// Is `folder`, from the workspace's folder, called like its crate? The crate's name without `pto-` is the end of
/// the folder's path, with `-` between its parts: `linker/virt/platform` holds `pto-virt-platform`.
#[must_use]
pub fn is_called_like(folder: &str, package: &str) -> bool {
    let name = package.strip_prefix("pto-").unwrap_or(package);
    let path = folder.replace('/', "-");
    path.strip_suffix(name).is_some_and(|rest| rest.is_empty() || rest.ends_with('-'))
}

#[cfg(test)]
mod tests {
    use super::{is_called_like, strangers_at_the_top};

    #[test]
    fn a_crate_gives_its_folder_its_name() {
        assert!(is_called_like("abi", "pto-abi"));
        assert!(is_called_like("tools/xtask", "xtask"));
        assert!(is_called_like("linker/virt/platform", "pto-virt-platform"));
        assert!(!is_called_like("linker/virt", "pto-fw-virt"));
        assert!(!is_called_like("tools/fw-build", "pto-image-build"));
        assert!(!is_called_like("bindings/mpic", "pto-c"), "a part of a name is not the name");
    }

    #[test]
    fn a_new_folder_at_the_top_is_found() {
        assert!(strangers_at_the_top(["abi", "docs"]).is_empty());
        let found = strangers_at_the_top(["abi", "more"]);
        assert_eq!(found[0].place, "more");
    }
}
