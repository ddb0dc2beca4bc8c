//! The inputs of `decoder_layer`: what the user gave, checked; what they did not, drawn from the seed.

use std::vec::Vec;

use crate::args::Size;
use crate::host::error::invalid;
use crate::host::job::index;
use crate::host::random::Rng;
use crate::host::tensor::count;
use crate::host::{Error, Inputs, Params};
use crate::paged_attention::inputs::{AttentionShape as Attention, Contexts};

/// The parameters, checked against each other.
#[derive(Clone, Copy, Debug)]
pub struct DecoderShape {
    /// Requests, heads, blocks.
    pub attention: Attention,
    /// Elements of a token.
    pub hidden: Size,
    /// Elements between the projections of the MLP.
    pub intermediate: Size,
    /// Columns of a tile of a product.
    pub tile_n: Size,
    /// Elements of a sum that a task adds.
    pub tile_k: Size,
}

impl DecoderShape {
    /// The shape that the parameters describe.
    ///
    /// # Errors
    /// Those of [`Attention::new`]; an odd `head_dim`.
    pub fn new(params: &Params) -> Result<Self, Error> {
        let dim = params.get("head_dim");
        if dim % 2 == 1 {
            return Err(invalid!("head_dim = {dim} is odd; the rotary embedding rotates pairs"));
        }
        Ok(Self {
            attention: Attention::new(params)?,
            hidden: params.extent("hidden")?,
            intermediate: params.extent("intermediate")?,
            tile_n: params.extent("tile_n")?,
            tile_k: params.extent("tile_k")?,
        })
    }

    /// Elements of `x`, and of the output.
    #[must_use]
    pub fn x(&self) -> [u64; 2] {
        [self.attention.batch.get(), self.hidden.get()]
    }

    /// Heads of queries, keys and values.
    #[must_use]
    pub const fn all_heads(&self) -> u64 {
        self.attention.heads() + 2 * self.attention.kv_heads.get()
    }

    /// Name and extents of each weight; the last but one is what its products sum over.
    #[must_use]
    pub fn weights(&self) -> [(&'static str, Vec<u64>); 5] {
        let (hidden, inner) = (self.hidden.get(), self.intermediate.get());
        let dim = self.attention.head_dim.get();
        let attended = self.attention.heads() * dim;
        [
            ("wqkv", [hidden, self.all_heads() * dim].to_vec()),
            ("wo", [attended, hidden].to_vec()),
            ("wg", [hidden, inner].to_vec()),
            ("wu", [hidden, inner].to_vec()),
            ("wd", [inner, hidden].to_vec()),
        ]
    }

    /// Extents of the table of angles.
    #[must_use]
    pub const fn angles(&self) -> [u64; 3] {
        let positions = self.attention.max_blocks.get() * self.attention.block_size.get();
        [positions, 2, self.attention.head_dim.get() / 2]
    }

    /// The elements of everything that the host puts into the memory of the device.
    pub(crate) fn elements(&self, contexts: &Contexts) -> Vec<u64> {
        let weights = self.weights().map(|(_, extents)| count(&extents));
        let cache = self.attention.cache(contexts.num_blocks);
        let (x, norms) = (count(&self.x()), 2 * self.hidden.get());
        let batch = self.attention.batch.get();
        let tables = count(&[batch, self.attention.max_blocks.get()]).saturating_add(batch);
        let others = [x, x, norms, cache, cache, count(&self.angles()), tables];
        weights.into_iter().chain(others).collect()
    }
}

/// Everything that the program and the reference work on.
#[derive(Clone, Debug)]
pub struct DecoderTensors {
    /// batch, hidden.
    pub x: Vec<f32>,
    /// 2, hidden.
    pub norms: Vec<f32>,
    /// In the order of [`DecoderShape::weights`].
    pub weights: [Vec<f32>; 5],
    /// `num_blocks`, `block_size`, `kv_heads`, `head_dim`; NaN where the layer writes.
    pub k: Vec<f32>,
    /// As `k`.
    pub v: Vec<f32>,
    /// Blocks of each request; -1 where there is none.
    pub block_table: Vec<i32>,
    /// Tokens of each request, with the one that is decoded.
    pub context_lens: Vec<i32>,
    /// Blocks of the cache.
    pub num_blocks: u64,
}

impl DecoderTensors {
    /// All of them. Only when there is room for them.
    pub(crate) fn new(
        shape: &DecoderShape,
        contexts: Contexts,
        params: &Params,
        inputs: &Inputs,
    ) -> Result<Self, Error> {
        let seed = params.get("seed");
        let given = |name: &str, count: u64, draw: &dyn Fn(f32) -> f32| match inputs.f32(name) {
            Some(values) => values.to_vec(),
            None => {
                let units = Rng::new(seed, name).units(index(count));
                units.into_iter().map(draw).collect()
            }
        };
        let attention = &shape.attention;
        let cache = attention.cache(contexts.num_blocks);
        let weights = shape.weights().map(|(name, extents)| {
            // Products of such weights have the variance of what they are taken of.
            let scale = (3.0 / extents[0] as f32).sqrt();
            given(name, count(&extents), &|unit| unit * scale)
        });
        let mut tensors = Self {
            x: given("x", count(&shape.x()), &|unit| unit),
            norms: given("norms", 2 * shape.hidden.get(), &|unit| 1.0 + 0.25 * unit),
            weights,
            k: given("k", cache, &|unit| unit),
            v: given("v", cache, &|unit| unit),
            block_table: contexts.block_table(attention, params, inputs)?,
            context_lens: contexts.lens,
            num_blocks: contexts.num_blocks,
        };
        for request in 0..index(attention.batch.get()) {
            let tokens = tensors.tokens(request);
            let token_range = tensors.token_range(attention, request, tokens - 1);
            tensors.k[token_range.clone()].fill(f32::NAN);
            tensors.v[token_range].fill(f32::NAN);
        }
        Ok(tensors)
    }

    /// Tokens of a request.
    #[must_use]
    pub fn tokens(&self, request: usize) -> usize {
        self.context_lens[request].unsigned_abs() as usize
    }

    /// Where in the cache a token of a request is: its heads, side by side.
    #[must_use]
    pub fn token_range(
        &self,
        shape: &Attention,
        request: usize,
        token: usize,
    ) -> core::ops::Range<usize> {
        let [width, size, heads, dim] =
            [shape.max_blocks, shape.block_size, shape.kv_heads, shape.head_dim]
                .map(|size| index(size.get()));
        let block = self.block_table[request * width + token / size].unsigned_abs() as usize;
        let start = (block * size + token % size) * heads * dim;
        start..start + heads * dim
    }
}
