//! Functions and programs that the whole-system tests share.

pub mod tidy;
