//! The session of a stitcher: lent to it, or shared with others.

use std::ops::Deref;
use std::sync::Arc;

use crate::session::Session;

/// A session that somebody has lent, or that is shared.
#[derive(Clone)]
pub(super) enum Held<'s> {
    /// The compiler sees that the session lives.
    Lent(&'s Session),
    /// For owners whose life the compiler does not see: other languages.
    Shared(Arc<Session>),
}

impl Deref for Held<'_> {
    type Target = Session;

    fn deref(&self) -> &Session {
        match self {
            Self::Lent(session) => session,
            Self::Shared(session) => session,
        }
    }
}
