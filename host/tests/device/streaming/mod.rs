//! The streaming runtime as a whole: random programs against a sequential execution, memory that stays flat, and every
//! fault of submission.

mod documented;
mod faults;
mod flat;
mod pieces;
mod program;
mod random;
mod support;
mod traced;
