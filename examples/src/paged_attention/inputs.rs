//! The inputs of `paged_attention`: what the user gave, checked; what they did not, drawn from the seed.

use std::vec;
use std::vec::Vec;

use crate::args::Size;
use crate::host::error::invalid;
use crate::host::job::index;
use crate::host::random::Rng;
use crate::host::tensor::count;
use crate::host::{Error, Inputs, Params};

/// The parameters, checked against each other.
#[derive(Clone, Copy, Debug)]
pub struct AttentionShape {
    /// Requests.
    pub batch: Size,
    /// Heads of the cache.
    pub kv_heads: Size,
    /// Query heads that share one head of the cache.
    pub rows: Size,
    /// Elements of a key, of a value and of a query.
    pub head_dim: Size,
    /// Tokens of a block.
    pub block_size: Size,
    /// Entries of a row of the block table.
    pub max_blocks: Size,
    /// The longest context.
    pub max_context: u64,
}

impl AttentionShape {
    /// The shape that the parameters describe.
    ///
    /// # Errors
    /// A parameter out of range; heads that the heads of the cache do not divide.
    pub fn new(params: &Params) -> Result<Self, Error> {
        let (heads, kv_heads) = (params.get("heads"), params.extent("kv_heads")?);
        let rows = Size::new(heads / kv_heads.get()).filter(|_| heads % kv_heads.get() == 0);
        let rows = rows.ok_or_else(|| {
            let kv_heads = kv_heads.get();
            invalid!(
                "heads = {heads} is not a multiple of kv_heads = {kv_heads}; \
                 the same number of query heads must share each head of the cache"
            )
        })?;
        let (block_size, max_context) = (params.extent("block_size")?, params.get("max_context"));
        let max_blocks = Size::new(max_context.div_ceil(block_size.get()));
        let max_blocks = max_blocks.ok_or_else(|| {
            invalid!(
                "max_context = {max_context} takes more than {} blocks; make blocks larger",
                Size::MAX
            )
        })?;
        let (batch, head_dim) = (params.extent("batch")?, params.extent("head_dim")?);
        Ok(Self { batch, kv_heads, rows, head_dim, block_size, max_blocks, max_context })
    }

    /// Query heads.
    #[must_use]
    pub const fn heads(&self) -> u64 {
        self.rows.get() * self.kv_heads.get()
    }

    /// Extents of `q` and `out`.
    #[must_use]
    pub fn q(&self) -> Vec<u64> {
        vec![self.batch.get(), self.heads(), self.head_dim.get()]
    }

    /// Elements of a cache of `num_blocks` blocks.
    #[must_use]
    pub fn cache(&self, num_blocks: u64) -> u64 {
        let [size, heads, dim] = [self.block_size, self.kv_heads, self.head_dim].map(Size::get);
        count(&[num_blocks, size, heads, dim])
    }

    /// Blocks of a context.
    #[must_use]
    pub const fn blocks_of(&self, tokens: u64) -> u64 {
        tokens.div_ceil(self.block_size.get())
    }
}

/// Everything that the graph and the reference work on.
#[derive(Clone, Debug)]
pub struct AttentionTensors {
    /// Queries: batch, heads, `head_dim`.
    pub q: Vec<f32>,
    /// Keys: `num_blocks`, `block_size`, `kv_heads`, `head_dim`.
    pub k: Vec<f32>,
    /// Values, as the keys.
    pub v: Vec<f32>,
    /// Blocks of each request; -1 where there is none.
    pub block_table: Vec<i32>,
    /// Tokens of each request.
    pub context_lens: Vec<i32>,
    /// Blocks of the cache.
    pub num_blocks: u64,
}

/// The contexts of a job: they decide how large the graph is and how much memory it takes.
#[derive(Debug)]
pub(crate) struct Contexts {
    /// Tokens of each request.
    pub(crate) lens: Vec<i32>,
    /// Blocks of all contexts.
    pub(crate) blocks: u64,
    /// Blocks of the cache.
    pub(crate) num_blocks: u64,
}

impl Contexts {
    /// Checks or draws the context lengths.
    pub(crate) fn new(
        shape: &AttentionShape,
        params: &Params,
        inputs: &Inputs,
    ) -> Result<Self, Error> {
        let lens = context_lens(shape, params, inputs)?;
        let blocks = lens.iter().map(|len| shape.blocks_of(tokens(*len))).sum();
        let num_blocks = num_blocks(params, inputs, blocks)?;
        Ok(Self { lens, blocks, num_blocks })
    }

    /// Units of the graph: one for each block and head of the cache.
    pub(crate) const fn units(&self, shape: &AttentionShape) -> u64 {
        self.blocks.saturating_mul(shape.kv_heads.get())
    }

    /// The elements of everything in the memory of the device: tensors, tables and the scratch of all units.
    pub(crate) fn elements(&self, shape: &AttentionShape) -> [u64; 9] {
        let (units, rows, batch) = (self.units(shape), shape.rows.get(), shape.batch.get());
        let (q, cache) = (count(&shape.q()), shape.cache(self.num_blocks));
        let scores = count(&[units, rows, shape.block_size.get()]);
        let block_out = count(&[units, rows, shape.head_dim.get()]);
        let stats = count(&[units, 2, rows]);
        let running = count(&[batch, shape.heads(), 2]);
        let tables = count(&[batch, shape.max_blocks.get()]).saturating_add(2 * batch);
        [q, q, cache, cache, scores, block_out, stats, running, tables]
    }

    /// The requests, those with long contexts first.
    pub(crate) fn longest_first(&self) -> Vec<i32> {
        let mut order: Vec<i32> = (0..).take(self.lens.len()).collect();
        let len = |request: &i32| self.lens.get(index(u64::from(request.unsigned_abs())));
        order.sort_by_key(|request| core::cmp::Reverse(len(request)));
        order
    }

    /// Checks or draws the block table. Only when there is room for it.
    pub(crate) fn block_table(
        &self,
        shape: &AttentionShape,
        params: &Params,
        inputs: &Inputs,
    ) -> Result<Vec<i32>, Error> {
        match inputs.i32("block_table") {
            Some(table) => self.check_table(shape, table).map(|()| table.to_vec()),
            None => self.draw_table(shape, params),
        }
    }
}

impl AttentionTensors {
    /// Adds queries, keys, values and the block table to the contexts. Only when there is room for them.
    pub(crate) fn new(
        shape: &AttentionShape,
        contexts: Contexts,
        params: &Params,
        inputs: &Inputs,
    ) -> Result<Self, Error> {
        let given = |name: &str, count: u64| match inputs.f32(name) {
            Some(values) => values.to_vec(),
            None => Rng::new(params.get("seed"), name).units(index(count)),
        };
        let block_table = contexts.block_table(shape, params, inputs)?;
        let cache = shape.cache(contexts.num_blocks);
        Ok(Self {
            q: given("q", count(&shape.q())),
            k: given("k", cache),
            v: given("v", cache),
            block_table,
            context_lens: contexts.lens,
            num_blocks: contexts.num_blocks,
        })
    }
}

fn context_lens(
    shape: &AttentionShape,
    params: &Params,
    inputs: &Inputs,
) -> Result<Vec<i32>, Error> {
    let longest = shape.max_context;
    if let Some(lens) = inputs.i32("context_lens") {
        for (request, len) in lens.iter().enumerate() {
            if !u64::try_from(*len).is_ok_and(|len| 1 <= len && len <= longest) {
                return Err(invalid!(
                    "context_lens[{request}] is {len}; it must be from 1 to max_context = {longest} \
                     (a parameter)"
                ));
            }
        }
        return Ok(lens.to_vec());
    }
    let mut random = Rng::new(params.get("seed"), "context_lens");
    let draw = |_| i32::try_from(1 + random.below(longest));
    let lens: Result<_, _> = (0..shape.batch.get()).map(draw).collect();
    lens.map_err(|_| invalid!("max_context = {longest} is more than an i32 can say; lower it"))
}

/// The parameter; or, where that is zero, as many blocks as the given cache has; or as many as are needed.
fn num_blocks(params: &Params, inputs: &Inputs, needed: u64) -> Result<u64, Error> {
    let of = |name: &str| inputs.get(name).and_then(|tensor| tensor.shape().first().copied());
    let (k, v) = (of("k"), of("v"));
    if let (Some(k), Some(v)) = (k, v)
        && k != v
    {
        return Err(invalid!(
            "input 'k' has {k} blocks and input 'v' has {v}; give caches of one size"
        ));
    }
    let blocks = match params.get("num_blocks") {
        0 => k.or(v).unwrap_or(needed),
        blocks => blocks,
    };
    if i32::try_from(blocks).is_err() {
        return Err(invalid!(
            "a cache of {blocks} blocks has more than a block table of i32 can name"
        ));
    }
    Ok(blocks)
}

/// A context length that has been checked, as a number of tokens.
fn tokens(len: i32) -> u64 {
    u64::from(len.unsigned_abs())
}

impl Contexts {
    /// Every block that a context uses must be in the cache. Entries after the context are not looked at.
    fn check_table(&self, shape: &AttentionShape, table: &[i32]) -> Result<(), Error> {
        let rows = table.chunks(index(shape.max_blocks.get()));
        for (request, (row, len)) in rows.zip(&self.lens).enumerate() {
            let used = index(shape.blocks_of(tokens(*len)));
            for (entry, block) in row.iter().take(used).enumerate() {
                if !u64::try_from(*block).is_ok_and(|block| block < self.num_blocks) {
                    return Err(invalid!(
                        "block_table[{request}, {entry}] is {block}; the context of {len} tokens uses it, \
                         and the cache has blocks 0 to {}",
                        self.num_blocks.saturating_sub(1)
                    ));
                }
            }
        }
        Ok(())
    }

    /// Gives each request blocks of its own, all over the cache.
    fn draw_table(&self, shape: &AttentionShape, params: &Params) -> Result<Vec<i32>, Error> {
        let Self { blocks: needed, num_blocks, .. } = self;
        if needed > num_blocks {
            return Err(invalid!(
                "the contexts need {needed} blocks, and the cache has {num_blocks}; \
                 raise num_blocks, or give a block_table in which requests share blocks"
            ));
        }
        let mut blocks: Vec<i32> = (0..).take(index(*num_blocks)).collect();
        Rng::new(params.get("seed"), "block_table").shuffle(&mut blocks);
        let width = index(shape.max_blocks.get());
        let mut table = vec![-1; index(shape.batch.get()) * width];
        let mut next = blocks.into_iter();
        for (row, len) in table.chunks_mut(width).zip(&self.lens) {
            let used = index(shape.blocks_of(tokens(*len)));
            for (entry, block) in row.iter_mut().take(used).zip(&mut next) {
                *entry = block;
            }
        }
        Ok(table)
    }
}
