//! The command `pto` as a user meets it: the real binary, its exit codes, its answers, its errors.

mod a2a3;
mod acl;
mod bad_files;
mod bad_requests;
mod budgets;
mod checks;
mod debian;
mod dumps;
mod examples;
mod files;
mod firmware;
mod graph_files;
mod host_dies;
mod manual;
mod own_kernels;
mod program_files;
mod pto;
mod round_trip;
mod runs;
mod saved_runs;
mod schema;
mod soak;
mod tables;
mod timelines;
mod transcripts;
mod virtual_time;
