//! The builders of the default image of `qemu`: those of the examples, and the graphs of known shape.

#[cfg(not(feature = "without-examples"))]
use pto_examples::with_examples as image;

/// The builders of an image are those that it names.
#[cfg(feature = "without-examples")]
macro_rules! image {
    ($($firmware:ident)::+; $($builders:tt)*) => { $($firmware)::+! { $($builders)* } };
}

/// Declares the builders of the image: those that it always has, and more.
macro_rules! builders {
    ($($more:tt)*) => {
        image! {
            pto_firmware::firmware;
            /// The builders of the default image.
            struct Builders {
                "chain" => pto_firmware::qemu::builders::chain,
                "independent" => pto_firmware::qemu::builders::independent,
                "fork_join" => pto_firmware::qemu::builders::fork_join,
                "wavefront" => pto_firmware::qemu::builders::wavefront,
                $($more)*
            }
            stream {
                "tensors" => pto_firmware::qemu::builders::tensors,
                "workload" => pto_examples::expand,
            }
        }
    };
}

#[cfg(not(feature = "without-streaming"))]
builders! {
    "rows" => pto_firmware::qemu::builders::rows,
    "words" => pto_firmware::qemu::builders::words,
}

// What no program of an image calls is not linked: here these are the streaming runtime, and ranges.
#[cfg(feature = "without-streaming")]
builders! {}
