//! Operators as words of 64 bits: how a program file and a task hold them.
//!
//! The macro [`words!`](words) declares a struct or an enum, and how it is written and read. Reading trusts nothing: a word that fits nowhere
//! gives `None`. Numbers of an enum are positions in its declaration, so that new members come last.

/// What can be written as words.
pub(crate) trait AttributeWords: Sized {
    /// Appends the words.
    fn write(&self, to: &mut Vec<u64>);
    /// Reads the words; `None`: they are none of this type.
    fn read(from: &mut Reader<'_>) -> Option<Self>;
}

/// Words that are read one after another.
pub(crate) struct Reader<'w>(pub(crate) &'w [u64]);

impl Reader<'_> {
    /// The next word.
    pub(crate) fn word(&mut self) -> Option<u64> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }
}

impl AttributeWords for u64 {
    fn write(&self, to: &mut Vec<u64>) {
        to.push(*self);
    }
    fn read(from: &mut Reader<'_>) -> Option<Self> {
        from.word()
    }
}

impl AttributeWords for usize {
    fn write(&self, to: &mut Vec<u64>) {
        to.push(*self as u64);
    }
    fn read(from: &mut Reader<'_>) -> Option<Self> {
        Self::try_from(from.word()?).ok()
    }
}

impl AttributeWords for i64 {
    fn write(&self, to: &mut Vec<u64>) {
        to.push(self.cast_unsigned());
    }
    fn read(from: &mut Reader<'_>) -> Option<Self> {
        Some(from.word()?.cast_signed())
    }
}

impl AttributeWords for f64 {
    fn write(&self, to: &mut Vec<u64>) {
        to.push(self.to_bits());
    }
    fn read(from: &mut Reader<'_>) -> Option<Self> {
        Some(Self::from_bits(from.word()?))
    }
}

impl AttributeWords for bool {
    fn write(&self, to: &mut Vec<u64>) {
        to.push(u64::from(*self));
    }
    fn read(from: &mut Reader<'_>) -> Option<Self> {
        match from.word()? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
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
}

impl<A: AttributeWords, B: AttributeWords> AttributeWords for (A, B) {
    fn write(&self, to: &mut Vec<u64>) {
        self.0.write(to);
        self.1.write(to);
    }
    fn read(from: &mut Reader<'_>) -> Option<Self> {
        Some((A::read(from)?, B::read(from)?))
    }
}

/// Declares structs and enums that can be written as words.
macro_rules! words {
    (@bind $value:ident $inner:ty) => { $value };
    ($(#[$meta:meta])* $vis:vis struct $Name:ident {
        $($(#[$about:meta])* pub $field:ident: $Type:ty,)*
    }) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq)]
        $vis struct $Name {
            $($(#[$about])* pub $field: $Type,)*
        }

        impl $crate::words::AttributeWords for $Name {
            fn write(&self, to: &mut Vec<u64>) {
                let Self { $($field),* } = self;
                $($field.write(to);)*
            }
            fn read(from: &mut $crate::words::Reader<'_>) -> Option<Self> {
                Some(Self { $($field: <$Type as $crate::words::AttributeWords>::read(from)?,)* })
            }
        }
    };
    ($(#[$meta:meta])* pub enum $Name:ident {
        $($(#[$about:meta])* $Variant:ident $({ $($(#[$inner_about:meta])* $field:ident: $Type:ty,)* })? $(($Inner:ty))?,)*
    }) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq)]
        pub enum $Name {
            $($(#[$about])* $Variant $({ $($(#[$inner_about])* $field: $Type,)* })? $(($Inner))?,)*
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
        }
    };
}

pub(crate) use words;
