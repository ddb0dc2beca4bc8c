//! Tests of `paged_attention`: the graph in a dry run, and what the inputs refuse.

use super::job::{INPUTS, PARAMS, graph_size, scale};
use crate::args::Size;
use crate::dry_run::{DryRun, SubmittedTask};
use crate::host::{Error, Inputs, Params, Tensor};
use crate::paged_attention::graph::{Args, BAD_BLOCK, BAD_CONTEXT_LEN, BAD_ORDER, build};
use crate::paged_attention::inputs::{AttentionShape, Contexts};
use pto_abi::{CoreKind, Fault, GmAddr};
use pto_aicore_kernels::{UpdateFlags, func};
use pto_graph::BuildError;
use std::string::{String, ToString};
use std::vec;
use std::vec::Vec;

/// The contexts of a job, and its block table.
struct ContextTables {
    contexts: Contexts,
    block_table: Vec<i32>,
}

impl ContextTables {
    fn new(shape: &AttentionShape, params: &Params, inputs: &Inputs) -> Result<Self, Error> {
        let contexts = Contexts::new(shape, params, inputs)?;
        let block_table = contexts.block_table(shape, params, inputs)?;
        Ok(Self { contexts, block_table })
    }
}

fn params(given: &[(&str, &str)]) -> Params {
    let mut params = Params::defaults(PARAMS);
    for (name, value) in given {
        params.set(name, value).unwrap();
    }
    params
}

const SMALL: &[(&str, &str)] = &[
    ("batch", "3"),
    ("heads", "6"),
    ("kv_heads", "2"),
    ("head_dim", "8"),
    ("block_size", "4"),
    ("max_context", "21"),
];

/// Some kernels more than there are heads.
fn chained(shape: &AttentionShape, tables: &ContextTables) -> Size {
    Size::new((tables.contexts.units(shape) / 5).max(1)).unwrap()
}

fn dry_run(shape: &AttentionShape, tables: &ContextTables) -> (DryRun, Args) {
    let at = |index: u64| GmAddr(0x1000_0000 * (index + 1));
    let args = Args {
        q: at(0),
        k: at(1),
        v: at(2),
        out: at(3),
        block_table: at(4),
        context_lens: at(5),
        order: at(10),
        scores: at(6),
        block_stats: at(7),
        block_out: at(8),
        stats: at(9),
        batch: shape.batch,
        kv_heads: shape.kv_heads,
        rows: shape.rows,
        head_dim: shape.head_dim,
        block_size: shape.block_size,
        max_blocks: shape.max_blocks,
        num_blocks: tables.contexts.num_blocks,
        scale: scale(shape.head_dim),
        chained: chained(shape, tables),
    };
    let mut graph = DryRun::new(&args.words());
    graph.put(args.block_table, tables.block_table.iter().map(|block| block.cast_unsigned()));
    graph.put(args.context_lens, tables.contexts.lens.iter().map(|len| len.cast_unsigned()));
    graph.put(args.order, tables.contexts.longest_first().into_iter().map(i32::cast_unsigned));
    (graph, args)
}

fn small() -> (AttentionShape, ContextTables) {
    let params = params(SMALL);
    let shape = AttentionShape::new(&params).unwrap();
    let tables = ContextTables::new(&shape, &params, &Inputs::default()).unwrap();
    (shape, tables)
}

#[test]
fn the_size_of_the_graph_is_exact() {
    for given in [&[][..], SMALL, &[("max_context", "1")], &[("kv_heads", "16"), ("batch", "1")]] {
        let params = params(given);
        let shape = AttentionShape::new(&params).unwrap();
        let tables = ContextTables::new(&shape, &params, &Inputs::default()).unwrap();
        let graph = dry_run(&shape, &tables).0.of(build).unwrap();
        assert_eq!(
            graph.size(),
            graph_size(&shape, &tables.contexts, chained(&shape, &tables)),
            "{given:?}"
        );
        assert_eq!(graph.tasks_of(CoreKind::AIC), graph.tasks_of(CoreKind::AIV));
    }
}

#[test]
fn the_default_graph_has_some_thousand_tasks() {
    let params = params(&[]);
    let shape = AttentionShape::new(&params).unwrap();
    let tables = ContextTables::new(&shape, &params, &Inputs::default()).unwrap();
    assert!((2_000..10_000).contains(&graph_size(&shape, &tables.contexts, Size::ONE).tasks));
}

#[test]
fn every_chain_begins_once_and_ends_once_and_covers_its_context() {
    let (shape, tables) = small();
    let graph = dry_run(&shape, &tables).0.of(build).unwrap();
    let updates = || graph.tasks.iter().filter(|task| task.func_id == func::ATTENTION_UPDATE);
    let with = |flag: UpdateFlags| updates().filter(|t| t.args[11] & flag.bits() != 0).count();
    assert_eq!((with(UpdateFlags::FIRST), with(UpdateFlags::LAST)), (6, 6));
    // One core updates both heads of a request; the chain of a run waits for its products once, and for the run before.
    let waits = |task: &&SubmittedTask| {
        let is_product = |at: &usize| graph.tasks[*at].func_id == func::ATTENTION_PV;
        task.producers.iter().any(is_product)
    };
    let runs = updates().filter(waits).count();
    assert_eq!(updates().filter(|task| task.producers.len() == 2).count(), runs - 3);
    assert!(updates().all(|task| !task.producers.is_empty()), "each after the one before");
    let scored = graph.tasks.iter().filter(|task| task.func_id == func::ATTENTION_QK);
    let tokens: u64 = scored.map(|task| task.args[4]).sum();
    let lens: u64 = tables.contexts.lens.iter().map(|len| u64::from(len.unsigned_abs())).sum();
    assert_eq!(tokens, lens * shape.kv_heads.get());
}

#[test]
fn no_two_units_share_scratch() {
    let (shape, tables) = small();
    let graph = dry_run(&shape, &tables).0.of(build).unwrap();
    let mut scores: Vec<_> = graph
        .tasks
        .iter()
        .filter(|task| task.func_id == func::ATTENTION_QK)
        .map(|task| task.args[2])
        .collect();
    scores.sort_unstable();
    let bytes = 4 * shape.rows.get() * shape.block_size.get();
    assert!(scores.windows(2).all(|pair| pair[1] - pair[0] == bytes));
}

#[test]
fn tables_that_lie_stop_the_program() {
    let stop = |change: fn(&mut DryRun, &Args)| {
        let (shape, tables) = small();
        let (mut graph, args) = dry_run(&shape, &tables);
        change(&mut graph, &args);
        graph.of(build).err().unwrap()
    };
    let bad_len = BuildError::Failed(BAD_CONTEXT_LEN);
    assert_eq!(stop(|graph, args| graph.put(args.context_lens, [0])), bad_len);
    assert_eq!(stop(|graph, args| graph.put(args.context_lens, [25])), bad_len);
    assert_eq!(stop(|graph, args| graph.put(args.context_lens, [u32::MAX])), bad_len);
    let bad_order = BuildError::Failed(BAD_ORDER);
    assert_eq!(stop(|graph, args| graph.put(args.order, [3])), bad_order);
    let bad_block = BuildError::Failed(BAD_BLOCK);
    assert_eq!(stop(|graph, args| graph.put(args.block_table, [u32::MAX])), bad_block);
    assert_eq!(stop(|graph, _| graph.memory.clear()), Fault::BUILD_GM_RANGE.into());
}

#[test]
fn words_whose_tensors_are_larger_than_memory_are_refused() {
    let (shape, tables) = small();
    let (_, args) = dry_run(&shape, &tables);
    let args = Args { num_blocks: u64::MAX / 2, ..args };
    let error = DryRun::new(&args.words()).of(build).err().unwrap();
    assert_eq!(error, Fault::BUILD_ORCH_ARGS.into());
}

fn refused(given: &[(&str, &str)], name: &str, tensor: Tensor) -> String {
    let params = params(given);
    let mut inputs = Inputs::default();
    inputs.insert(name, tensor);
    let shape = AttentionShape::new(&params);
    let tables = shape.and_then(|shape| ContextTables::new(&shape, &params, &inputs));
    tables.err().unwrap().to_string()
}

#[test]
fn bad_context_lengths_are_named() {
    for len in [0, -1, 22] {
        let error = refused(SMALL, "context_lens", Tensor::i32(vec![3], vec![5, len, 5]));
        assert!(
            error.contains("context_lens[1]") && error.contains("1 to max_context = 21"),
            "{error}"
        );
    }
}

#[test]
fn a_block_outside_the_cache_is_named_and_an_unused_one_ignored() {
    let mut table = vec![0; 18];
    table[6] = 7;
    let given: Vec<_> = SMALL.iter().copied().chain([("num_blocks", "7")]).collect();
    let error = refused(&given, "block_table", Tensor::i32(vec![3, 6], table));
    assert!(error.contains("block_table[1, 0] is 7") && error.contains("0 to 6"), "{error}");

    let mut inputs = Inputs::default();
    inputs.insert("context_lens", Tensor::i32(vec![3], vec![4, 4, 4]));
    inputs.insert("block_table", Tensor::i32(vec![3, 6], [0, -1, 99, 99, 99, 99].repeat(3)));
    let params = params(SMALL);
    let tables =
        ContextTables::new(&AttentionShape::new(&params).unwrap(), &params, &inputs).unwrap();
    assert_eq!(tables.contexts.blocks, 3);
}

#[test]
fn parameters_that_do_not_fit_together_are_named() {
    let shape =
        |given: &[(&str, &str)]| AttentionShape::new(&params(given)).unwrap_err().to_string();
    let error = shape(&[("heads", "10")]);
    assert!(error.contains("heads = 10") && error.contains("kv_heads = 4"), "{error}");
    assert!(shape(&[("heads", "2")]).contains("heads = 2"));
    assert!(shape(&[("max_context", "2147483647"), ("block_size", "1")]).contains("max_context"));
    let params = params(&[("num_blocks", "3")]);
    let shape = AttentionShape::new(&params).unwrap();
    let error = ContextTables::new(&shape, &params, &Inputs::default()).err().unwrap().to_string();
    assert!(error.contains("num_blocks"), "{error}");
}

#[test]
fn every_request_has_blocks_of_its_own() {
    let (_, tables) = small();
    let mut used: Vec<_> = tables.block_table.iter().filter(|block| **block >= 0).collect();
    used.sort_unstable();
    assert_eq!(used.len() as u64, tables.contexts.blocks);
    assert!(used.windows(2).all(|pair| pair[0] < pair[1]));
    assert_eq!(INPUTS.len(), 5);
}
