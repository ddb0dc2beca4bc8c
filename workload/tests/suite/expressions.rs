//! expressions
