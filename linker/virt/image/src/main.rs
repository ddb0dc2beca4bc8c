//! The default firmware image of the device `virt`: the examples' builders, and the graphs of known shape.
//!
//! `cargo build -p pto-virt-image --profile firmware --target aarch64-unknown-none`
#![cfg_attr(target_os = "none", no_std, no_main)]

#[cfg(all(target_os = "none", not(feature = "without-examples")))]
use pto_examples::with_examples as image;

/// The builders of an image are those that it names.
#[cfg(all(target_os = "none", feature = "without-examples"))]
macro_rules! image {
    ($($firmware:ident)::+; $($builders:tt)*) => { $($firmware)::+! { $($builders)* } };
}

/// Declares the builders of the image: those that it always has, and more.
#[cfg(target_os = "none")]
macro_rules! builders {
    ($($more:tt)*) => {
        image! {
            pto_virt_platform::firmware;
            /// The builders of the default image.
            struct Builders {
                "chain" => pto_virt_platform::builders::chain,
                "independent" => pto_virt_platform::builders::independent,
                "fork_join" => pto_virt_platform::builders::fork_join,
                "wavefront" => pto_virt_platform::builders::wavefront,
                $($more)*
            }
            stream {
                "tensors" => pto_virt_platform::builders::tensors,
                "workload" => pto_examples::expand,
            }
        }
    };
}

#[cfg(all(target_os = "none", not(feature = "without-streaming")))]
builders! {
    "rows" => pto_virt_platform::builders::rows,
    "words" => pto_virt_platform::builders::words,
}

// What no program of an image calls is not linked: here these are the streaming runtime, and ranges.
#[cfg(all(target_os = "none", feature = "without-streaming"))]
builders! {}

/// On a development machine there is nothing to boot.
#[cfg(not(target_os = "none"))]
fn main() {
    eprintln!("pto-fw-virt is a firmware image: build it with --target aarch64-unknown-none");
    std::process::exit(2);
}
