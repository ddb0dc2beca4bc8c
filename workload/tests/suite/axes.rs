//! axes
