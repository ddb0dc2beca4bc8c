//! The rules: how each operator of the interface is put together of operators of the project, or computed here.

pub(crate) mod elementwise;
pub(crate) mod index;
pub(crate) mod linear;
pub(crate) mod random;
pub(crate) mod reduce;
pub(crate) mod search;
pub(crate) mod shape;
