//! The shared structures of firmware images and of blobs of kernels; [`fw_image`](crate::fw_image) re-exports them.

pub(crate) mod blob;
pub mod boot;
pub(crate) mod identity;
