//! Unknown names, answered with the known ones and the nearest.

use std::format;
use std::string::{String, ToString};
use std::vec::Vec;

/// How alike two names must be (0 to 1) for one to be suggested for the other.
const ALIKE: f64 = 0.7;

/// A sentence on the names that there are, and on the one that was probably meant.
pub fn known<'a>(found: &str, names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<&str> = names.collect();
    if names.is_empty() {
        return "there are none".to_string();
    }
    let all = format!("choose one of {}", names.join(", "));
    match nearest(found, &names) {
        Some(name) => format!("did you mean '{name}'? ({all})"),
        None => all,
    }
}

fn nearest<'a>(found: &str, names: &[&'a str]) -> Option<&'a str> {
    let found = found.to_lowercase().replace('-', "_");
    let alike = |name: &str| {
        let name = name.to_lowercase().replace('-', "_");
        if name.starts_with(&found) && !found.is_empty() {
            1.0
        } else {
            strsim::jaro(&found, &name)
        }
    };
    let scored = names.iter().map(|name| (alike(name), *name));
    let best = scored.max_by(|a, b| a.0.total_cmp(&b.0))?;
    (best.0 >= ALIKE).then_some(best.1)
}

#[cfg(test)]
mod tests {
    use super::known;

    #[test]
    fn the_nearest_name_is_suggested_and_a_far_one_is_not() {
        let names = || ["vector_example", "matmul", "random_dag"].into_iter();
        assert!(known("matmull", names()).starts_with("did you mean 'matmul'?"));
        assert!(known("Random-DAG", names()).starts_with("did you mean 'random_dag'?"));
        assert!(known("vector", names()).starts_with("did you mean 'vector_example'?"));
        assert_eq!(known("q", names()), "choose one of vector_example, matmul, random_dag");
        assert_eq!(known("q", core::iter::empty()), "there are none");
    }
}
