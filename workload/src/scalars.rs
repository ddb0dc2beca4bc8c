//! Sizes and symbols that a run gets, by name: the same for a run on this machine and on a device.

use std::collections::BTreeMap;

/// Sizes of dynamic axes, and symbols: integers, or the bits of an `f32` in the lower half of one.
#[derive(Clone, Debug, Default)]
pub struct Scalars {
    /// Sizes of dynamic axes.
    pub sizes: BTreeMap<String, u64>,
    /// Symbols.
    pub symbols: BTreeMap<String, u64>,
}

/// The setters of a type that has [`Scalars`] in its field `scalars`.
#[doc(hidden)]
#[macro_export]
macro_rules! scalar_setters {
    () => {
        /// The size of a dynamic axis.
        #[must_use]
        pub fn size(mut self, name: &str, size: u64) -> Self {
            self.scalars.sizes.insert(name.to_owned(), size);
            self
        }

        /// An integer symbol.
        #[must_use]
        pub fn symbol(mut self, name: &str, value: u64) -> Self {
            self.scalars.symbols.insert(name.to_owned(), value);
            self
        }

        /// A symbol of type `f32`: its bits are the lower ones of an integer.
        #[must_use]
        pub fn symbol_f32(self, name: &str, value: f32) -> Self {
            self.symbol(name, value.to_bits().into())
        }
    };
}
