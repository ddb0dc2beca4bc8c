//! Boots the firmware images on an emulated machine and runs graphs on them.
//!
//! ```text
//! boot.rs     graphs of both variants, in every mode            built.rs    builds and reads the images: ELF, kernel blob
//! counts.rs   instructions of a task                            session.rs  kernels, tables, arena, runs
//! faults.rs   what goes wrong becomes a fault                   graphs.rs   graphs of known shape
//! images.rs   what the images are, and what is in them          code.rs     what code there is in an image
//! goldens.rs  tables of numbers that are kept
//! ```
//! The machine itself (memory, QEMU, boot block, launch) is `pto_host::qemu`.

mod boot;
mod built;
mod code;
mod counts;
mod faults;
mod goldens;
mod graphs;
mod images;
mod session;
