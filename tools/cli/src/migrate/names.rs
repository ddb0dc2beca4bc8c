//! Whether what a Python file imports from the field's packages is there in ours.

use super::python::{Import, imports};

/// Each module of our packages, and the names that it has; the build script reads them from the sources.
const MODULES: &[(&str, &[&str])] = include!(concat!(env!("OUT_DIR"), "/python_modules.rs"));

/// The lines at which a file cannot go on, and why.
pub(super) fn missing(text: &str) -> Vec<(usize, String)> {
    let imports = imports(text).into_iter().filter(|import| !import.is_guarded);
    imports.filter_map(|import| Some((import.line, why_not(&import)?))).collect()
}

/// Why an import fails; `None`: it does not, or the module is none of ours.
fn why_not(Import { module, names, .. }: &Import) -> Option<String> {
    let root = module.split('.').next().filter(|root| !root.is_empty())?;
    names_of(root)?;
    let Some(known) = names_of(module) else {
        return Some(format!(
            "Our package {root} has no module {module}: the program ends at this import."
        ));
    };
    let is_there = |name: &str| {
        name == "*" || known.contains(&name) || names_of(&format!("{module}.{name}")).is_some()
    };
    let lacking: Vec<&str> =
        names.iter().map(|(name, _)| name.as_str()).filter(|name| !is_there(name)).collect();
    (!lacking.is_empty()).then(|| {
        let lacking = lacking.join(", ");
        format!("Our module {module} has no {lacking}: the program ends at this import.")
    })
}

fn names_of(module: &str) -> Option<&'static [&'static str]> {
    let at = MODULES.binary_search_by(|(name, _)| (*name).cmp(module)).ok()?;
    MODULES.get(at).map(|(_, names)| *names)
}

#[cfg(test)]
mod tests {
    use super::missing;

    #[test]
    fn modules_and_names_are_looked_up() {
        let file = "\
from simpler.worker import Worker
from simpler.task_interface import (  # why
    ArgDirection as D,
    NoSuchDirection,
)
import simpler.no_such_module as x, os
import simpler_setup.scene_test
from simpler import worker, no_such_worker
from simpler_setup import scene_test, \\
    NoSuchTest
from . import sibling
from torch import no_such_tensor
\"\"\"
from simpler.worker import InText
\"\"\"
try:
    from simpler.worker import Perhaps
except ImportError:
    pass
if TYPE_CHECKING:
    from simpler.worker import ForTypes
def test_one():
    from simpler.worker import NoSuchOne
";
        let found = missing(file);
        let lines: Vec<usize> = found.iter().map(|(line, _)| *line).collect();
        assert_eq!(lines, [2, 6, 8, 9, 23], "{found:?}");
        assert_eq!(
            found[0].1,
            "Our module simpler.task_interface has no NoSuchDirection: the program ends at this import."
        );
        assert!(found[1].1.contains("Our package simpler has no module simpler.no_such_module"));
    }
}
