//! Closed sets on the wire: a newtype with constants, never an `enum` that a foreign byte could break.

use core::fmt;

/// A value that is not in its closed set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownValue {
    /// Name of the set.
    pub set: &'static str,
    /// What was found.
    pub value: u32,
}

impl fmt::Display for UnknownValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is not a {}", self.value, self.set)
    }
}

impl core::error::Error for UnknownValue {}

/// Declares a closed set: constants, `ALL`, `TryFrom`, names for people and for command lines.
#[macro_export]
macro_rules! closed_set {
    (
        $(#[$meta:meta])*
        pub struct $set:ident($repr:ty) {
            $( $(#[$vmeta:meta])* $variant:ident = $value:literal, $name:literal; )+
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $set($repr);

        impl $set {
            $( $(#[$vmeta])* pub const $variant: Self = Self($value); )+

            /// Every member, in the order of its value.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The value on the wire.
            #[must_use]
            pub const fn get(self) -> $repr {
                self.0
            }

            /// The name that people and command lines use.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self.0 {
                    $( $value => $name, )+
                    _ => "?",
                }
            }

            /// The member with this name.
            #[must_use]
            pub fn from_name(name: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|member| member.name() == name)
            }
        }

        impl TryFrom<$repr> for $set {
            type Error = $crate::closed_set::UnknownValue;
            fn try_from(value: $repr) -> Result<Self, Self::Error> {
                match value {
                    $( $value => Ok(Self::$variant), )+
                    _ => Err($crate::closed_set::UnknownValue {
                        set: stringify!($set),
                        value: u32::from(value),
                    }),
                }
            }
        }

        impl core::fmt::Debug for $set {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                f.write_str(self.name())
            }
        }

        impl core::fmt::Display for $set {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                f.pad(self.name())
            }
        }
    };
}
