//! The two forms in which a command answers: a text for people, or one JSON value for programs.

/// In which form a command answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// For people.
    Text,
    /// One JSON value, for programs.
    Json,
}

impl From<bool> for Form {
    /// From the flag `--json`.
    fn from(json: bool) -> Self {
        if json { Self::Json } else { Self::Text }
    }
}
