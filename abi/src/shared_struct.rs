//! A struct of shared memory with its layout: `shared_struct!` declares both, and the compile-time
//! checks that they agree. Nothing here knows which structs there are.

/// One field of a shared struct.
#[derive(Clone, Copy, Debug)]
pub struct FieldLayout {
    /// The field's name.
    pub name: &'static str,
    /// The field's Rust type, as written.
    pub type_name: &'static str,
    /// Bytes from the start of the struct.
    pub offset: usize,
    /// Size in bytes.
    pub size: usize,
}

/// A shared struct.
#[derive(Clone, Copy, Debug)]
pub struct StructLayout {
    /// The struct's name.
    pub name: &'static str,
    /// Size in bytes.
    pub size: usize,
    /// Alignment in bytes.
    pub align: usize,
    /// The fields, in order of their offsets.
    pub fields: &'static [FieldLayout],
}

/// A type with a stated layout.
pub trait SharedLayout {
    /// The statement.
    const LAYOUT: StructLayout;
}

/// Declares a `repr(C)` struct of shared memory with its layout and the compile-time checks of it.
macro_rules! shared_struct {
    (
        $(#[$meta:meta])*
        pub struct $name:ident [size = $size:expr, align = $align:literal] {
            $( $(#[$fmeta:meta])* $offset:literal => $field:ident : $ty:ty ),+ $(,)?
        }
    ) => {
        $(#[$meta])*
        #[repr(C, align($align))]
        pub struct $name {
            $( $(#[$fmeta])* pub $field: $ty ),+
        }

        impl crate::shared_struct::SharedLayout for $name {
            const LAYOUT: crate::shared_struct::StructLayout = crate::shared_struct::StructLayout {
                name: stringify!($name),
                size: $size,
                align: $align,
                fields: &[$( crate::shared_struct::FieldLayout {
                    name: stringify!($field),
                    type_name: stringify!($ty),
                    offset: $offset,
                    size: size_of::<$ty>(),
                } ),+],
            };
        }

        // Under the model checkers the atomics are larger; nothing is shared with another image there.
        #[cfg(not(any(loom, shuttle)))]
        const _: () = {
            assert!(size_of::<$name>() == $size, concat!("size of ", stringify!($name)));
            assert!(align_of::<$name>() == $align, concat!("alignment of ", stringify!($name)));
            $( assert!(
                core::mem::offset_of!($name, $field) == $offset,
                concat!("offset of ", stringify!($name), ".", stringify!($field))
            ); )+
            assert!(0 $( + size_of::<$ty>() )+ == $size, concat!("padding in ", stringify!($name)));
        };
    };
}
pub(crate) use shared_struct;
