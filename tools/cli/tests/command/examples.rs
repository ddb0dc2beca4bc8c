//! The examples of the table as the tests of the command line run them: small, under every runtime that takes them.

use pto_examples::host::{EXAMPLES, Example, Program};

/// An example of the table.
#[derive(Clone, Copy)]
pub(crate) struct ExampleCase(&'static dyn Example);

/// All of them.
pub(crate) fn all() -> impl Iterator<Item = ExampleCase> {
    assert!(EXAMPLES.len() >= 9, "the table was not found");
    EXAMPLES.iter().copied().map(ExampleCase)
}

impl ExampleCase {
    pub(crate) fn name(self) -> &'static str {
        self.0.name()
    }

    pub(crate) fn example(self) -> &'static dyn Example {
        self.0
    }

    /// The names of the runtimes that take it.
    pub(crate) fn runtimes(self) -> impl Iterator<Item = &'static str> {
        self.0.program().variants().iter().map(|variant| variant.name())
    }

    /// Whether its program waits for values of its tasks.
    pub(crate) fn waits(self) -> bool {
        self.0.program() == Program::TensorsAndValues
    }

    /// `COMMAND EXAMPLE --param=..`, with the sizes of its tests.
    pub(crate) fn small(self, command: &str) -> Vec<String> {
        let sizes = self.0.sizes().little.iter();
        let sizes = sizes.map(|(name, value)| format!("--param={name}={value}"));
        [command, self.name()].map(str::to_owned).into_iter().chain(sizes).collect()
    }
}

/// Arguments as the command takes them.
pub(crate) fn borrowed(arguments: &[String]) -> Vec<&str> {
    arguments.iter().map(String::as_str).collect()
}
