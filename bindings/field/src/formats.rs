//! The files of the field's diagnostics, made of a [`RunLog`]: `deps.json`, `scope_stats.jsonl`, `args_dump.json` with `args.bin`.
//! Those about time are in `timed_formats.rs`.
//!
//! Numbers of 64 bits are written as texts where the field writes them so. What we do not measure is left out, and never zero.
//!
//! Why it is so: `docs/decisions/simpler-reports.md`.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::dump::{Content, DumpEntry};
use crate::run_log::{EdgeCause, EdgeEntry, RingCount, RunLog};
use crate::wire::{ChipTensor, element_of, tag};

/// Their data types, by number.
const TYPES: [&str; 15] = [
    "FLOAT32",
    "FLOAT16",
    "INT32",
    "INT16",
    "INT8",
    "UINT8",
    "BFLOAT16",
    "INT64",
    "UINT64",
    "UINT16",
    "UINT32",
    "BOOL",
    "FP8E4M3FN",
    "FP8E8M0",
    "FP4E2M1",
];
const TAGS: [&str; 5] = ["INPUT", "OUTPUT", "INOUT", "OUTPUT_EXISTING", "NO_DEP"];

fn type_name(dtype: u8) -> &'static str {
    TYPES.get(usize::from(dtype)).copied().unwrap_or("UNKNOWN")
}

/// What a tensor of one buffer and version is known by: a number of 64 bits, as readers of the file expect. Two tensors have the same one in a chance of 2^-64.
fn tensor_id(tensor: &ChipTensor) -> u64 {
    let words = [tensor.address.to_le_bytes().as_slice(), &tensor.version.to_le_bytes()].concat();
    words.iter().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3)
    })
}

fn sides(tensor: &ChipTensor) -> (&[u32], &[u32]) {
    let shape = tensor.shape().unwrap_or(&[]);
    (shape, tensor.strides.get(..shape.len()).unwrap_or(&[]))
}

impl RunLog {
    /// `deps.json`: tasks, tensors, and why which task waits for which under the field's rule.
    #[must_use]
    pub fn deps_json(&self) -> String {
        let tasks: Vec<Value> = self.tasks().iter().map(task_value).collect();
        let edges: Vec<Value> = self.edges().iter().map(|edge| self.edge_value(edge)).collect();
        json!({ "tasks": tasks, "tensors": self.tensor_values(), "edges": edges }).to_string()
    }

    fn tensor_values(&self) -> Vec<Value> {
        let mut seen = std::collections::HashSet::new();
        let all = self.tasks().iter().flat_map(|task| &task.tensors).map(|(_, tensor)| tensor);
        let first = all.filter(|tensor| seen.insert((tensor.address, tensor.version)));
        first
            .map(|tensor| {
                let element =
                    element_of(tensor.dtype).map_or(1, pto_host::graph::ElementType::bytes);
                json!({
                    "tensor_id": tensor_id(tensor).to_string(),
                    "buffer_addr": tensor.address.to_string(),
                    "version": tensor.version,
                    "dtype": type_name(tensor.dtype),
                    "buffer_numel": (tensor.bytes / element).to_string(),
                })
            })
            .collect()
    }

    fn edge_value(&self, edge: &EdgeEntry) -> Value {
        let id = |at: usize| self.tasks().get(at).map_or(u64::MAX, |task| task.id).to_string();
        let mut value = json!({
            "pred": id(edge.producer),
            "succ": id(edge.consumer),
            "arg": edge.argument,
            "source": source_of(&edge.cause),
            "flags": if matches!(edge.cause, EdgeCause::Overlap { .. }) { &["wait"][..] } else { &["wait", "retain"] },
        });
        let consumer = self.tasks().get(edge.consumer);
        let at = usize::try_from(edge.argument).ok();
        let read = consumer.zip(at).and_then(|(task, at)| task.tensors.get(at));
        if let (Some((_, tensor)), false) = (read, edge.cause == EdgeCause::Named) {
            let (shape, strides) = sides(tensor);
            value["tensor_id"] = tensor_id(tensor).to_string().into();
            value["consumer_dtype"] = type_name(tensor.dtype).into();
            value["consumer_shape"] = shape.into();
            value["consumer_start_offset"] = tensor.start_offset.to_string().into();
            value["consumer_strides"] = strides.into();
        }
        if let EdgeCause::Overlap { is_covered, start, shape, strides } = &edge.cause {
            value["overlap"] = if *is_covered { "covered" } else { "other" }.into();
            value["producer_shape"] = shape.as_slice().into();
            value["producer_start_offset"] = start.to_string().into();
            value["producer_strides"] = strides.as_slice().into();
        }
        value
    }

    /// `scope_stats.jsonl`: what each ring held when a scope began and ended, as if ended scopes had given back everything.
    #[must_use]
    pub fn scope_stats_jsonl(&self, is_fatal: bool) -> String {
        let (total, rings) = (self.scopes().len(), self.rings());
        let (window, heap, pool) = ([rings.window; 4], [rings.heap_bytes; 4], [rings.edges; 4]);
        let first = json!({
            "version": 6, "fatal": is_fatal, "dropped": 0, "total": total,
            "task_window_max": window, "heap_max": heap, "dep_pool_max": pool,
            "tensormap_max": 65_536,
        });
        let mut lines = format!("{first}\n");
        for scope in self.scopes() {
            let (RingCount { tasks, heap, edges }, taken) = (scope.released, scope.taken);
            let line = json!({
                "site": scope.site, "phase": if scope.is_end { "end" } else { "begin" },
                "depth": scope.depth, "ring": scope.ring,
                "task_window_start": tasks, "task_window_end": taken.tasks,
                "heap_start": heap, "heap_end": taken.heap,
                "dep_pool_start": edges, "dep_pool_end": taken.edges,
                "tensormap": scope.writers,
            });
            // Writing to a text does not fail.
            let _ = writeln!(lines, "{line}");
        }
        lines
    }

    /// `args_dump.json`, which names `args.bin`; the bytes of that are [`Dumped::bytes`](crate::Dumped::bytes).
    #[must_use]
    pub fn args_dump_json(&self) -> String {
        let dumped = self.dumped();
        let entries: Vec<Value> =
            dumped.entries.iter().map(|entry| self.argument_value(entry)).collect();
        let count = |is: &dyn Fn(&DumpEntry) -> bool| {
            dumped.entries.iter().filter(|entry| is(entry)).count()
        };
        let truncated =
            count(&|entry| matches!(entry.content, Content::Tensor { is_truncated: true, .. }));
        let level = self.keeps().arguments;
        let has_file = level != 3 || !dumped.bytes.is_empty();
        json!({
            "run_dir": "args_dump",
            "bin_format": { "type": "logical_contiguous", "byte_order": "little_endian" },
            "dump_args_level": level,
            "total_args": entries.len(),
            "before_dispatch": count(&|entry| !entry.is_after),
            "after_completion": count(&|entry| entry.is_after),
            "input_args": count(&|entry| role_of(entry.tag) == "input"),
            "output_args": count(&|entry| role_of(entry.tag) == "output"),
            "inout_args": count(&|entry| role_of(entry.tag) == "inout"),
            "truncated_args": truncated,
            "dropped_records": 0,
            "dropped_overwrite": 0,
            "bin_file": has_file.then_some("args.bin"),
            "args": entries,
        })
        .to_string()
    }

    fn argument_value(&self, entry: &DumpEntry) -> Value {
        let task = self.task(entry.own);
        let kernels = task.map_or([-1; 3], |task| task.kernels);
        let ids: Vec<i32> = kernels.into_iter().filter(|kernel| *kernel >= 0).collect();
        let mut value = json!({
            "task_id": format!("0x{:016x}", task.map_or(u64::MAX, |task| task.id)),
            "func_id": ids,
            "role": role_of(entry.tag),
            "stage": if entry.is_after { "after_completion" } else { "before_dispatch" },
            "arg_index": entry.argument,
            "overwritten": false,
        });
        let more = match &entry.content {
            Content::Tensor { tensor, offset, bytes, is_truncated } => {
                let (shape, strides) = sides(tensor);
                json!({
                    "kind": "tensor", "dtype": type_name(tensor.dtype).to_ascii_lowercase(), "shape": shape,
                    "strides": strides, "start_offset": tensor.start_offset,
                    "is_contiguous": tensor.is_contiguous != 0, "truncated": is_truncated,
                    "bin_offset": offset, "bin_size": bytes,
                })
            }
            // The program gives the bits, and not their type.
            Content::Scalar { value, is_ambiguous } => json!({
                "kind": "scalar", "dtype": "uint64", "shape": [], "strides": [], "start_offset": 0,
                "is_contiguous": true, "truncated": false, "bin_offset": 0, "bin_size": 0, "value": value,
                "arg_index_ambiguous": is_ambiguous,
            }),
        };
        if let (Value::Object(all), Value::Object(more)) = (&mut value, more) {
            all.extend(more);
        }
        value
    }
}

fn task_value(task: &crate::entry::TaskEntry) -> Value {
    let arguments: Vec<Value> = task
        .tensors
        .iter()
        .enumerate()
        .map(|(at, (tag, tensor))| {
            let (shape, strides) = sides(tensor);
            json!({
                "idx": at,
                "type": usize::try_from(*tag).ok().and_then(|tag| TAGS.get(tag)),
                "tensor_id": tensor_id(tensor).to_string(),
                "dtype": type_name(tensor.dtype),
                "shape": shape,
                "start_offset": tensor.start_offset.to_string(),
                "strides": strides,
            })
        })
        .collect();
    json!({
        "task_id": task.id.to_string(),
        "scope": if task.is_manual { "manual" } else { "auto" },
        "kernel_ids": task.kernels,
        "block_num": task.blocks,
        "args": arguments,
        "place": task.location,
    })
}

fn source_of(cause: &EdgeCause) -> &'static str {
    match cause {
        EdgeCause::Named => "explicit",
        EdgeCause::Creator => "creator",
        EdgeCause::Overlap { .. } => "tensormap",
    }
}

fn role_of(tag: u64) -> &'static str {
    match tag {
        tag::INPUT => "input",
        tag::OUTPUT | tag::OUTPUT_EXISTING => "output",
        _ => "inout",
    }
}
