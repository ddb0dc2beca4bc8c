//! Shaped tasks on every hosting mode: MIX, blocks, blocks that start at once, predicates, priorities, and their faults.

mod documented;
mod faults;
mod kernels;
mod predicates;
mod programs;
mod replays;
mod support;
mod timeline;
mod together;
