//! What a launch passes to its program, as the program and the host see it. In memory it is `OrchArgs`.

/// What a launch passes to its program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LaunchArgs<'a> {
    /// The program's own words.
    pub program: &'a [u64],
    /// The words that describe the group of the run (`pto_graph::group::GroupWords`); empty: it has none.
    pub group: &'a [u64],
}

impl<'a> LaunchArgs<'a> {
    /// A program without a group.
    #[must_use]
    pub const fn of(program: &'a [u64]) -> Self {
        Self { program, group: &[] }
    }

    /// How many words it has, of `MAX_ORCH_ARGS` at most.
    #[must_use]
    pub const fn word_count(&self) -> usize {
        self.program.len() + self.group.len()
    }
}
