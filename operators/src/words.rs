//! Operators as words of 64 bits: how a program file and a task hold them.
//!
//! The macro [`words!`](words) declares a struct or an enum, and how it is written and read. Reading trusts nothing: a word that fits nowhere
//! gives `None`. Numbers of an enum are positions in its declaration, so that new members come last. A field may have a default, which callers by name
//! (`OperatorSchema`) may leave out; the declaration with its comments is their documentation ([`Schema`]).

pub(crate) use crate::schema::Reader;
use crate::schema::Schema;

/// What can be written as words.
pub(crate) trait AttributeWords: Sized {
    /// Appends the words.
    fn write(&self, to: &mut Vec<u64>);
    /// Reads the words; `None`: they are none of this type.
    fn read(from: &mut Reader<'_>) -> Option<Self>;
    /// What the words mean.
    fn schema() -> Schema;
}

/// The words of a value.
pub(crate) fn words_of<T: AttributeWords>(value: &T) -> Vec<u64> {
    let mut words = Vec::new();
    value.write(&mut words);
    words
}

impl AttributeWords for u64 {
    fn write(&self, to: &mut Vec<u64>) {
        to.push(*self);
    }
    fn read(from: &mut Reader<'_>) -> Option<Self> {
        from.word()
    }
    fn schema() -> Schema {
        Schema::Unsigned
    }
}

impl AttributeWords for usize {
    fn write(&self, to: &mut Vec<u64>) {
        to.push(*self as u64);
    }
    fn read(from: &mut Reader<'_>) -> Option<Self> {
        Self::try_from(from.word()?).ok()
    }
    fn schema() -> Schema {
        Schema::Unsigned
    }
}

impl AttributeWords for i64 {
    fn write(&self, to: &mut Vec<u64>) {
        to.push(self.cast_unsigned());
    }
    fn read(from: &mut Reader<'_>) -> Option<Self> {
        Some(from.word()?.cast_signed())
    }
    fn schema() -> Schema {
        Schema::Signed
    }
}

impl AttributeWords for f64 {
    fn write(&self, to: &mut Vec<u64>) {
        to.push(self.to_bits());
    }
    fn read(from: &mut Reader<'_>) -> Option<Self> {
        Some(Self::from_bits(from.word()?))
    }
    fn schema() -> Schema {
        Schema::Number
    }
}

impl AttributeWords for bool {
    fn write(&self, to: &mut Vec<u64>) {
        to.push(u64::from(*self));
    }
    fn read(from: &mut Reader<'_>) -> Option<Self> {
        from.flag()
    }
    fn schema() -> Schema {
        Schema::Flag
    }
}

impl<T: AttributeWords> AttributeWords for Option<T> {
    fn write(&self, to: &mut Vec<u64>) {
        self.is_some().write(to);
        self.iter().for_each(|value| value.write(to));
    }
    fn read(from: &mut Reader<'_>) -> Option<Self> {
        Some(if bool::read(from)? { Some(T::read(from)?) } else { None })
    }
    fn schema() -> Schema {
        Schema::Optional(T::schema)
    }
}

impl<T: AttributeWords> AttributeWords for Vec<T> {
    fn write(&self, to: &mut Vec<u64>) {
        self.len().write(to);
        self.iter().for_each(|value| value.write(to));
    }
    fn read(from: &mut Reader<'_>) -> Option<Self> {
        let count = usize::read(from)?;
        // Each element has a word at least.
        if count > from.0.len() {
            return None;
        }
        (0..count).map(|_| T::read(from)).collect()
    }
    fn schema() -> Schema {
        Schema::List(T::schema)
    }
}

/// Declares structs and enums that can be written as words.
macro_rules! words {
    (@bind $value:ident $inner:ty) => { $value };
    (@field $field:ident: $Type:ty, [$($about:literal)*] $($default:expr)?) => {
        $crate::schema::Field {
            name: stringify!($field),
            about: concat!($($about, "\n"),*),
            schema: <$Type as $crate::words::AttributeWords>::schema,
            default: None$(.or(Some($crate::words::words_of::<$Type>(&$default))))?,
        }
    };
    (@content ($Inner:ty) $($default:expr)?) => {
        $crate::schema::Content::One(
            <$Inner as $crate::words::AttributeWords>::schema,
            None$(.or(Some($crate::words::words_of::<$Inner>(&$default))))?,
        )
    };
    (@content $($field:expr,)*) => { $crate::schema::Content::Fields(vec![$($field),*]) };
    ($(#[$meta:meta])* $vis:vis struct $Name:ident {
        $($(#[doc = $about:literal])* pub $field:ident: $Type:ty $(= $default:expr)?,)*
    }) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq)]
        $vis struct $Name {
            $($(#[doc = $about])* pub $field: $Type,)*
        }

        impl $crate::words::AttributeWords for $Name {
            fn write(&self, to: &mut Vec<u64>) {
                let Self { $($field),* } = self;
                $($field.write(to);)*
            }
            fn read(from: &mut $crate::words::Reader<'_>) -> Option<Self> {
                Some(Self { $($field: <$Type as $crate::words::AttributeWords>::read(from)?,)* })
            }
            fn schema() -> $crate::schema::Schema {
                $crate::schema::Schema::Struct(vec![
                    $(words!(@field $field: $Type, [$($about)*] $($default)?)),*
                ])
            }
        }
    };
    ($(#[$meta:meta])* pub enum $Name:ident {
        $($(#[doc = $about:literal])* $Variant:ident
            $({ $($(#[doc = $inner_about:literal])* $field:ident: $Type:ty $(= $default:expr)?,)* })?
            $(($Inner:ty $(= $inner_default:expr)?))?,)*
    }) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq)]
        pub enum $Name {
            $($(#[doc = $about])* $Variant $({ $($(#[doc = $inner_about])* $field: $Type,)* })? $(($Inner))?,)*
        }

        impl $Name {
            /// The name of the variant.
            #[must_use]
            pub const fn variant(&self) -> &'static str {
                match self {
                    $(Self::$Variant { .. } => stringify!($Variant),)*
                }
            }
        }

        impl $crate::words::AttributeWords for $Name {
            fn write(&self, to: &mut Vec<u64>) {
                enum Code { $($Variant),* }
                match self {
                    $(Self::$Variant $({ $($field),* })? $((words!(@bind inner $Inner)))? => {
                        to.push(Code::$Variant as u64);
                        $($($field.write(to);)*)?
                        $(<$Inner as $crate::words::AttributeWords>::write(inner, to);)?
                    })*
                }
            }
            fn read(from: &mut $crate::words::Reader<'_>) -> Option<Self> {
                enum Code { $($Variant),* }
                let code = from.word()?;
                $(if code == Code::$Variant as u64 {
                    return Some(Self::$Variant
                        $({ $($field: <$Type as $crate::words::AttributeWords>::read(from)?,)* })?
                        $((<$Inner as $crate::words::AttributeWords>::read(from)?))?);
                })*
                None
            }
            fn schema() -> $crate::schema::Schema {
                $crate::schema::Schema::Enum(vec![$($crate::schema::Variant {
                    name: stringify!($Variant),
                    about: concat!($($about, "\n"),*),
                    content: words!(@content
                        $(($Inner) $($inner_default)?)?
                        $($(words!(@field $field: $Type, [$($inner_about)*] $($default)?),)*)?
                    ),
                }),*])
            }
        }
    };
}

pub(crate) use words;
