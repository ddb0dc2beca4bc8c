//! The loop variables of a position in a tree.

/// The loop variables in scope, outermost first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LoopScope {
    vars: Vec<(String, i64)>,
}

impl LoopScope {
    pub(super) fn len(&self) -> usize {
        self.vars.len()
    }

    pub(super) fn truncate(&mut self, length: usize) {
        self.vars.truncate(length);
    }

    pub(super) fn bind(&mut self, var: &str, value: i64) {
        self.vars.push((var.to_owned(), value));
    }

    pub(super) fn get(&self, var: &str) -> Option<i64> {
        self.vars.iter().rev().find(|(name, _)| name == var).map(|(_, value)| *value)
    }
}

impl std::fmt::Display for LoopScope {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.vars.is_empty() {
            return f.write_str("the root");
        }
        let parts: Vec<String> =
            self.vars.iter().map(|(name, value)| format!("{name} = {value}")).collect();
        f.write_str(&parts.join(", "))
    }
}
