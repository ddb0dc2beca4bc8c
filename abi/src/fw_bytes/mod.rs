//! The shared structures of firmware images and of blobs of kernels; [`fw_image`](crate::fw_image) hands them on.

pub(crate) mod blob;
pub mod boot;
pub(crate) mod identity;
