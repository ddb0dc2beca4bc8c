//! `Debug` of the errors that a program sees.

/// A program whose `main` returns an error, and `unwrap`, print it as `Debug`: people read the sentences that `Display` has.
macro_rules! debug_as_display {
    ($error:ty) => {
        impl std::fmt::Debug for $error {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                std::fmt::Display::fmt(self, f)
            }
        }
    };
}
pub(crate) use debug_as_display;
