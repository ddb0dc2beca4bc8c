//! How wide the graphs are.

/// Points in a row of stencils and Task Bench patterns; tasks between fork and join.
pub const WIDTH: u32 = 64;
