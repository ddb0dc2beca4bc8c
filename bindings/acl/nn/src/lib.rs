//! `libopapi.so`: the operators `aclnn*` of the CANN interface, on the devices of `libascendcl.so`. Programs know it under further names (`libnnopbase.so`,
//! `libopapi_nn.so`, ..); `pto compat cann run` has all of them.
//!
//! ```text
//! the program --aclnnXGetWorkspaceSize--> call: arguments, key --rule (once)--> plan --aclnnX--> libascendcl: a launch in the stream --> plan on a core
//!                                         table: a row for each operator        operators of the project, and functions of our own
//! ```
//! A launch is that of a kernel, so that streams order it, captures record it, timelines name it, and the validation layer sees the memory that it uses.

mod call;
mod device;
mod element;
mod graph;
mod objects;
mod plan;
mod refusal;
mod rules;
#[expect(non_snake_case, reason = "arguments have the names of the interface, which messages show")]
mod table;
mod value;

pub use table::OPERATORS;
