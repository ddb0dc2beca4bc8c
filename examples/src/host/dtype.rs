//! The elements that a tensor on the host side can have, and their types: those that NumPy files hold.

use std::fmt;
use std::string::{String, ToString};
use std::vec::Vec;

/// Declares the types of elements: variant, type, name, what it is.
macro_rules! dtypes {
    ($($variant:ident $type:ident $name:literal $what:literal;)*) => {
        /// The type of a tensor's elements.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum DType {
            $(#[doc = $what] $variant,)*
        }

        impl DType {
            /// Every type.
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// What it is called.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }

            /// Bytes of an element.
            #[must_use]
            pub const fn bytes(self) -> usize {
                match self {
                    $(Self::$variant => size_of::<$type>(),)*
                }
            }
        }

        /// The elements of a tensor.
        #[derive(Clone, Debug, PartialEq)]
        pub enum ElementVec {
            $(#[doc = $what] $variant(Vec<$type>),)*
        }

        impl ElementVec {
            /// Elements from memory, in which the byte of the lowest value comes first; what is left after the last whole
            /// element is not one.
            #[must_use]
            pub fn from_bytes(dtype: DType, bytes: &[u8]) -> Self {
                match dtype {
                    $(DType::$variant => {
                        let words = bytes.as_chunks::<{ size_of::<$type>() }>().0.iter();
                        Self::$variant(words.map(|word| $type::from_le_bytes(*word)).collect())
                    })*
                }
            }

            /// The elements as they are in memory.
            #[must_use]
            pub fn to_bytes(&self) -> Vec<u8> {
                match self {
                    $(Self::$variant(values) => values.iter().flat_map(|value| value.to_le_bytes()).collect(),)*
                }
            }

            /// The type of the elements.
            #[must_use]
            pub const fn dtype(&self) -> DType {
                match self {
                    $(Self::$variant(_) => DType::$variant,)*
                }
            }

            /// One of them, as people write it.
            #[must_use]
            pub fn text_of(&self, at: usize) -> Option<String> {
                match self {
                    $(Self::$variant(values) => values.get(at).map(ToString::to_string),)*
                }
            }

            /// How many there are.
            #[must_use]
            pub fn count(&self) -> usize {
                match self {
                    $(Self::$variant(values) => values.len(),)*
                }
            }
        }
    };
}

dtypes! {
    F32 f32 "f32" "32-bit float.";
    I32 i32 "i32" "32-bit signed integer.";
    U32 u32 "u32" "32-bit unsigned integer.";
    F64 f64 "f64" "64-bit float.";
    I64 i64 "i64" "64-bit signed integer.";
    U64 u64 "u64" "64-bit unsigned integer.";
    I16 i16 "i16" "16-bit signed integer.";
    U16 u16 "u16" "16-bit unsigned integer.";
    I8 i8 "i8" "8-bit signed integer.";
    U8 u8 "u8" "8-bit unsigned integer.";
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
