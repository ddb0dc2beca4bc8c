//! Graph files: one JSON object a line, the first one says what it is. The fields are in `docs/reference/graph-files.md`.
//!
//! The structs here are the lines, for writing and for reading; what a line means where it appears is checked by [`read()`].

mod args;
mod links;
mod read;
mod write;

use serde::{Deserialize, Serialize};

pub use read::{ReadError, read};
pub use write::write;

/// What the first line says.
pub const FORMAT: &str = "pto-graph";
/// The version that is written, and the newest that is read.
pub const VERSION: u32 = 1;

/// The first line.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct HeaderLine {
    format: String,
    version: u32,
    #[serde(default)]
    name: String,
    variant: String,
}

/// A tensor of the host's.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct TensorLine {
    tensor: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    base: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    bytes: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    element: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    shape: Option<Vec<u32>>,
}

/// A scope is opened.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ScopeLine {
    scope: String,
}

/// A scope or a record ends.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct EndLine {
    end: String,
}

/// A tensor of the heap.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct AllocLine {
    alloc: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    element: String,
    shape: Vec<u32>,
}

/// A task; `A` are its arguments, `V` views.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct TaskLine<A, V> {
    task: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    func: Option<u16>,
    kind: String,
    #[serde(default = "Vec::new")]
    args: Vec<A>,
    #[serde(default = "Vec::new", skip_serializing_if = "Vec::is_empty")]
    chain: Vec<LinkLine<A>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    after: Vec<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    publish: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    mix: Vec<u16>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    blocks: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    start: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    priority: Option<String>,
    #[serde(default = "none", skip_serializing_if = "Option::is_none")]
    when: Option<WhenLine<V>>,
}

/// A kernel of a chain, so many times.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct LinkLine<A> {
    func: u16,
    #[serde(default = "Vec::new")]
    args: Vec<A>,
    #[serde(default = "once", skip_serializing_if = "is_once")]
    times: u32,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    with_next: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    vary: Vec<VaryLine>,
    #[serde(default = "Vec::new", skip_serializing_if = "Vec::is_empty")]
    uses: Vec<Vec<A>>,
}

/// How one argument of a kernel differs from time to time.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct VaryLine {
    arg: usize,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    by: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    of: Option<Vec<u64>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    at: Option<Vec<ByteLine>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    every: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    within: Option<u32>,
}

impl VaryLine {
    /// An argument of which nothing is said yet.
    const fn of(arg: usize) -> Self {
        Self { arg, by: None, of: None, at: None, every: None, within: None }
    }
}

/// A byte of a tensor.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ByteLine {
    tensor: u32,
    #[serde(default)]
    byte: u64,
}

const fn once() -> u32 {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
const fn is_once(times: &u32) -> bool {
    *times == 1
}

const fn none<T>() -> Option<T> {
    None
}

/// A predicate.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct WhenLine<V> {
    element: V,
    is: String,
    value: u64,
}

/// An edge.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct EdgeLine {
    edge: [u32; 2],
}

/// A publish.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct PublishLine {
    publish: u32,
}

/// The program reads an element.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct GetLine<V> {
    get: V,
}

/// The program writes an element.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SetLine<V> {
    set: V,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    value: Option<u64>,
}

/// A record begins.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RecordingLine {
    record: u32,
    #[serde(default)]
    tensors: Vec<BoundLine>,
}

/// A tensor that a record leaves open.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct BoundLine {
    tensor: u32,
    element: String,
    shape: Vec<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    strides: Option<Vec<u64>>,
}

/// A replay.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ReplayLine<V> {
    replay: u32,
    #[serde(default = "Vec::new")]
    tensors: Vec<V>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    scalars: Vec<u64>,
}

/// A view: a whole tensor, or a part of one.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum ViewLine {
    Whole(u32),
    Part(PartLine),
}

/// A part of a tensor.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct PartLine {
    tensor: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    element: Option<String>,
    #[serde(default, skip_serializing_if = "is_zero")]
    offset: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    shape: Option<Vec<u32>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    strides: Option<Vec<u64>>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
const fn is_zero(offset: &u64) -> bool {
    *offset == 0
}

/// An argument: a word, or an object with one of these fields.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum ArgLine {
    Word(u64),
    In {
        #[serde(rename = "in")]
        view: ViewLine,
    },
    Out {
        out: ViewLine,
    },
    InOut {
        inout: ViewLine,
    },
    NoDep {
        nodep: ViewLine,
        #[serde(rename = "use", skip_serializing_if = "Option::is_none")]
        used: Option<&'static str>,
    },
    Bound {
        bound: u32,
    },
}
