//! Which words of a plan are which loop, kernel and argument: what a fault names.

/// Some words of a plan, and what they were compiled from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SourceSpan {
    /// The span's first word.
    start: usize,
    /// The loops around it, the kernel and the argument.
    pub(super) text: String,
    /// The loop variables in scope.
    pub(super) vars: Vec<String>,
}

/// The parts, in the order of their words. A part ends where the next one begins.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SourceMap {
    parts: Vec<SourceSpan>,
    around: Vec<String>,
}

impl SourceMap {
    /// A map from its parts: the first word, the loops with kernel and argument, and the loop variables in scope; in the order of the
    /// words.
    #[must_use]
    pub fn of_parts(parts: Vec<(usize, String, Vec<String>)>) -> Self {
        let part = |(start, text, vars)| SourceSpan { start, text, vars };
        Self { parts: parts.into_iter().map(part).collect(), around: Vec::new() }
    }

    /// The parts, as [`of_parts`](Self::of_parts) takes them.
    pub fn parts(&self) -> impl Iterator<Item = (usize, &str, &[String])> {
        self.parts.iter().map(|part| (part.start, part.text.as_str(), part.vars.as_slice()))
    }

    /// What is added from here on is inside of this, until [`leave`](Self::leave).
    pub(super) fn enter(&mut self, text: String) {
        self.around.push(text);
    }

    /// The end of what was entered last.
    pub(super) fn leave(&mut self) {
        self.around.pop();
    }

    /// The part that begins next is described by this text alone. Returns the texts around it, which [`put_back`](Self::put_back) wants.
    pub(super) fn set_aside(&mut self, text: String) -> Vec<String> {
        std::mem::replace(&mut self.around, vec![text])
    }

    /// Goes on inside of what was set aside.
    pub(super) fn put_back(&mut self, around: Vec<String>) {
        self.around = around;
    }

    /// A part begins.
    pub(super) fn begin(&mut self, start: usize, vars: &[String]) {
        let text = match self.around.as_slice() {
            [] => "the root".to_owned(),
            around => around.join(", "),
        };
        self.parts.push(SourceSpan { start, text, vars: vars.to_vec() });
    }

    /// The part of a word; `None`: it is one of the header, a tensor or a kernel.
    pub(super) fn of(&self, at: usize) -> Option<&SourceSpan> {
        let after = self.parts.partition_point(|part| part.start <= at);
        self.parts.get(after.checked_sub(1)?)
    }
}
