//! The [`BuilderSet`] of a device to which other languages add builder programs, and from which they remove them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pto_host::abi::symbol::symbol;
use pto_host::graph::{BuildError, BuilderSet, HostedBuilder, StreamBuilder};

/// A builder program.
pub type Program =
    Arc<dyn for<'g> Fn(&mut (dyn HostedBuilder + 'g)) -> Result<(), BuildError> + Send + Sync>;

/// The builders of one device; clones are the same set.
#[derive(Clone, Default)]
pub struct HostedBuilders(Arc<Mutex<BuilderTable>>);

#[derive(Default)]
struct BuilderTable {
    programs: BTreeMap<u64, Program>,
    names: BTreeSet<&'static str>,
}

impl HostedBuilders {
    /// Gives a program to the device; one of the same name before it is replaced.
    pub fn insert(&self, name: &str, program: Program) {
        let mut table = self.table();
        table.names.insert(interned(name));
        table.programs.insert(symbol(name), program);
    }

    /// Takes a program away. `false`: there is none of this name.
    #[must_use]
    pub fn remove(&self, name: &str) -> bool {
        let mut table = self.table();
        table.names.remove(name);
        table.programs.remove(&symbol(name)).is_some()
    }

    fn table(&self) -> MutexGuard<'_, BuilderTable> {
        // Programs run without the lock; what a panic leaves is a valid table.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl BuilderSet for HostedBuilders {
    fn names(&self) -> &[&str] {
        let names: Vec<_> = self.table().names.iter().copied().collect();
        interned_list(&names)
    }

    fn build<G: HostedBuilder>(
        &self,
        symbol: u64,
        graph: &mut G,
    ) -> Option<Result<(), BuildError>> {
        let program = self.table().programs.get(&symbol).cloned()?;
        Some(program(graph))
    }

    fn build_stream<G: StreamBuilder + HostedBuilder>(
        &self,
        symbol: u64,
        stream: &mut G,
    ) -> Option<Result<(), BuildError>> {
        self.build(symbol, stream)
    }
}

/// The name for as long as the process lives; each different one is kept once.
fn interned(name: &str) -> &'static str {
    static NAMES: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    match names.get(name) {
        Some(held) => held,
        None => {
            let held: &'static str = String::leak(name.to_owned());
            names.insert(held);
            held
        }
    }
}

/// The list for as long as the process lives; each different one is kept once.
fn interned_list(names: &[&'static str]) -> &'static [&'static str] {
    static LISTS: Mutex<BTreeSet<&'static [&'static str]>> = Mutex::new(BTreeSet::new());
    let mut lists = LISTS.lock().unwrap_or_else(PoisonError::into_inner);
    match lists.get(names) {
        Some(held) => held,
        None => {
            let held: &'static [&'static str] = Vec::leak(names.to_vec());
            lists.insert(held);
            held
        }
    }
}

#[cfg(test)]
mod tests {
    use super::HostedBuilders;
    use pto_host::graph::BuilderSet;
    use std::sync::Arc;

    #[test]
    fn builders_come_and_go() {
        let builders = HostedBuilders::default();
        builders.insert("b", Arc::new(|_| Ok(())));
        builders.insert("a", Arc::new(|_| Ok(())));
        assert_eq!(builders.names(), ["a", "b"]);
        assert!(std::ptr::eq(builders.names(), builders.names()));
        assert!(builders.remove("a") && !builders.remove("a"));
        assert_eq!(builders.names(), ["b"]);
    }
}
