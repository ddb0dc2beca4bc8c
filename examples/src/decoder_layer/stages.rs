//! The stages of a decoder layer with derived edges, for programs that put transfers between them (`tp_decoder`, `pp_decoder`): what a
//! stage waits for follows from its tensors, and so does what a transfer waits for. The kernels are those of `stream.rs`, one task each.
//!
//! A product is cut in columns, and its sum in pieces: the first piece overwrites a tile, the others add to it (`InOut`), so that
//! they are in order.

use pto_aicore_kernels::{func, library};
use pto_graph::call::InPlace;
use pto_graph::{BuildError, DependencyMode, ElementType, Scope, StreamBuilder, TensorView};

use super::stream::{Args, LayerTensors};
use crate::args::tiles;
use crate::paged_attention::graph::I32;
use crate::paged_attention::stream::RequestHead;
use crate::streaming::{dense, floats, part, submit, tile};

/// Submits the tasks of one layer.
///
/// # Errors
/// Those of [`build`](super::stream::build).
pub(crate) fn layer<G: StreamBuilder>(stream: &mut G, args: &Args) -> Result<(), BuildError> {
    stream.scope::<(), BuildError>(DependencyMode::DERIVED, |scope| {
        let layer = DecoderStages::new(scope, args)?;
        let stream = &mut **scope;
        layer.attention(stream)?;
        layer.project_attended(stream)?;
        layer.norm(stream, layer.tensors.middle, 1)?;
        layer.gated(stream)?;
        layer.down(stream)
    })
}

/// The layer with derived edges, one task a kernel.
pub(crate) struct DecoderStages<'a, 's> {
    pub(crate) args: &'a Args,
    pub(crate) tensors: LayerTensors<'s>,
}

/// A product `c = a @ b + d`, or without `d`, of which `c` is a tile and the sum is cut in pieces.
struct Product<'t> {
    /// Rows of `a` and `c`.
    rows: u64,
    /// Columns of the tile.
    cols: u64,
    /// Distances between the rows of `b`, `d` and `c`, of `a`.
    b_ld: u64,
    c_ld: u64,
    a_ld: u64,
    c: TensorView<'t>,
    d: Option<TensorView<'t>>,
}

impl Product<'_> {
    /// Adds one piece, of `k` elements: `number` 0 overwrites.
    fn piece<G: StreamBuilder>(
        &self,
        stream: &mut G,
        number: usize,
        k: u64,
        (a, b): (TensorView<'_>, TensorView<'_>),
    ) -> Result<(), BuildError> {
        let &Self { rows, cols, b_ld, c_ld, a_ld, ref c, ref d } = self;
        match (number, d) {
            (0, Some(d)) => {
                let first =
                    library::matmul_add(&a, &b, d, c, rows, cols, k, a_ld, b_ld, c_ld, c_ld);
                submit(stream, &first.task())
            }
            (0, None) => {
                let first = library::matmul(&a, &b, c, rows, cols, k, a_ld, b_ld, c_ld);
                submit(stream, &first.task())
            }
            _ => {
                let next = library::matmul_acc(&a, &b, c, rows, cols, k, a_ld, b_ld, c_ld);
                submit(stream, &next.task())
            }
        }
    }
}

impl<'a, 's> DecoderStages<'a, 's> {
    pub(crate) fn new<G: StreamBuilder>(
        scope: &mut Scope<'s, '_, G>,
        args: &'a Args,
    ) -> Result<Self, BuildError> {
        Ok(Self { args, tensors: LayerTensors::new(scope, args)? })
    }

    /// From the tokens to what their attention gives.
    pub(crate) fn attention<G: StreamBuilder>(&self, stream: &mut G) -> Result<(), BuildError> {
        for request in 0..self.args.batch.get() {
            self.args.tokens(stream, request)?;
        }
        self.norm(stream, self.tensors.x, 0)?;
        self.project_heads(stream)?;
        self.decode_heads(stream)?;
        for request in 0..self.args.batch.get() {
            self.attend(stream, request)?;
        }
        Ok(())
    }

    /// `normed = norm(x)`, a task for each request.
    pub(crate) fn norm<G: StreamBuilder>(
        &self,
        stream: &mut G,
        x: TensorView<'_>,
        number: u64,
    ) -> Result<(), BuildError> {
        let hidden = self.args.hidden.get();
        let weight = part(floats(self.args.norms, &[2, hidden])?, 0, (number, 1))?;
        for request in 0..self.args.batch.get() {
            let (x, out) = (part(x, 0, (request, 1))?, part(self.tensors.normed, 0, (request, 1))?);
            let epsilon = self.args.epsilon;
            let norm = library::rms_norm(&x, &weight, &out, 1, hidden, hidden, hidden, epsilon);
            submit(stream, &norm.task())?;
        }
        Ok(())
    }

    /// Queries and keys: `normed @ wqkv`, in tiles of whole heads.
    fn project_heads<G: StreamBuilder>(&self, stream: &mut G) -> Result<(), BuildError> {
        let args = self.args;
        let (all, dim, hidden) = (args.all_heads(), args.head_dim.get(), args.hidden.get());
        let weights = floats(args.wqkv, &[hidden, all, dim])?;
        for heads in tiles(args.heads() + args.kv_heads.get(), args.heads_of(args.tile_n)) {
            let c = part(self.tensors.qkv, 1, heads)?;
            let (rows, cols, ld) = (args.batch.get(), heads.1 * dim, all * dim);
            let product = Product { rows, cols, a_ld: hidden, b_ld: ld, c_ld: ld, c, d: None };
            for (number, k) in tiles(hidden, args.tile_k.non_zero()).enumerate() {
                let operands = (part(self.tensors.normed, 1, k)?, tile(weights, k, heads)?);
                product.piece(stream, number, k.1, operands)?;
            }
        }
        Ok(())
    }

    /// Of each head of the cache: its values on a cube core, and meanwhile the rotary embedding of its queries and of its keys
    /// on the vector cores of its cluster.
    fn decode_heads<G: StreamBuilder>(&self, stream: &mut G) -> Result<(), BuildError> {
        let args = self.args;
        let (all, dim, hidden) = (args.all_heads(), args.head_dim.get(), args.hidden.get());
        let (batch, group, kv_heads) = (args.batch.get(), args.rows.get(), args.kv_heads.get());
        let weights = floats(args.wqkv, &[hidden, all, dim])?;
        let positions = dense(args.context_lens, ElementType::I32, &[batch])?;
        let angles = floats(args.angles, &[args.positions(), 2, dim / 2])?;
        for kv_head in 0..kv_heads {
            let value = (args.heads() + kv_heads + kv_head, 1);
            let weights = part(weights, 1, value)?;
            let [v, q, k] = [value, (kv_head * group, group), (args.heads() + kv_head, 1)]
                .map(|heads| part(self.tensors.qkv, 1, heads));
            let (v, q, k) = (v?, q?, k?);
            let (normed, ld) = (&self.tensors.normed, all * dim);
            let value = library::decode_value(
                normed, &weights, &v, &q, &k, &positions, &angles, batch, dim, hidden, group,
                hidden, ld, ld,
            );
            submit(stream, &value.task().mix(&[func::DECODE_ROTATE; 2]))?;
        }
        Ok(())
    }

    /// The cache, and attention, of one request.
    fn attend<G: StreamBuilder>(&self, stream: &mut G, request: u64) -> Result<(), BuildError> {
        let args = self.args;
        let tokens = args.tokens(stream, request)?;
        let table = args.block_table.offset(request * args.max_blocks.get() * I32);
        let (k, v) = (args.blocks(args.k)?, args.blocks(args.v)?);
        let (block, slot) = args.last_place(stream, tokens, table)?;
        let (kv_heads, dim) = (args.kv_heads.get(), args.head_dim.get());
        for (cache, first) in [(k, args.heads()), (v, args.heads() + kv_heads)] {
            let new = tile(self.tensors.qkv, (request, 1), (first, kv_heads))?;
            let to = tile(cache, (block, 1), (slot, 1))?;
            let copy = library::copy(&new, &to, kv_heads, dim, dim, dim);
            submit(stream, &copy.task())?;
        }
        for kv_head in 0..kv_heads {
            let heads = (kv_head * args.rows.get(), args.rows.get());
            let q = tile(self.tensors.qkv, (request, 1), heads)?;
            let out = tile(self.tensors.attended, (request, 1), heads)?;
            let row = RequestHead { q, out, k, v, kv_head, tokens, table, scale: args.scale };
            row.submit(stream)?;
        }
        Ok(())
    }

    /// `middle = x + attended @ wo`.
    fn project_attended<G: StreamBuilder>(&self, stream: &mut G) -> Result<(), BuildError> {
        let args = self.args;
        let (all, dim, hidden) = (args.heads(), args.head_dim.get(), args.hidden.get());
        let weights = floats(args.wo, &[all, dim, hidden])?;
        for cols in tiles(hidden, args.tile_n.non_zero()) {
            let (c, d) =
                (part(self.tensors.middle, 1, cols)?, Some(part(self.tensors.x, 1, cols)?));
            let (rows, a_ld) = (args.batch.get(), all * dim);
            let product = Product { rows, cols: cols.1, a_ld, b_ld: hidden, c_ld: hidden, c, d };
            for (number, heads) in tiles(all, args.heads_of(args.tile_k)).enumerate() {
                let b = part(part(weights, 0, heads)?, 2, cols)?;
                let operands = (part(self.tensors.attended, 1, heads)?, b);
                product.piece(stream, number, heads.1 * dim, operands)?;
            }
        }
        Ok(())
    }

    /// `gate = silu(normed @ wg) * (normed @ wu)`.
    pub(crate) fn gated<G: StreamBuilder>(&self, stream: &mut G) -> Result<(), BuildError> {
        let args = self.args;
        let (rows, hidden, inner) = (args.batch.get(), args.hidden.get(), args.intermediate.get());
        for cols in tiles(inner, args.tile_n.non_zero()) {
            for (weights, to) in [(args.wg, self.tensors.gate), (args.wu, self.tensors.up)] {
                let weights = floats(weights, &[hidden, inner])?;
                let c = part(to, 1, cols)?;
                let product = Product {
                    rows,
                    cols: cols.1,
                    a_ld: hidden,
                    b_ld: inner,
                    c_ld: inner,
                    c,
                    d: None,
                };
                for (number, k) in tiles(hidden, args.tile_k.non_zero()).enumerate() {
                    let operands = (part(self.tensors.normed, 1, k)?, tile(weights, k, cols)?);
                    product.piece(stream, number, k.1, operands)?;
                }
            }
            let (gate, up) = (part(self.tensors.gate, 1, cols)?, part(self.tensors.up, 1, cols)?);
            let gate = InPlace(&gate);
            let gated = library::silu_mul(gate, &up, gate, rows, cols.1, inner, inner, inner);
            submit(stream, &gated.task())?;
        }
        Ok(())
    }

    /// `out = middle + gate @ wd`.
    fn down<G: StreamBuilder>(&self, stream: &mut G) -> Result<(), BuildError> {
        let args = self.args;
        let (rows, hidden, inner) = (args.batch.get(), args.hidden.get(), args.intermediate.get());
        let weights = floats(args.wd, &[inner, hidden])?;
        for cols in tiles(hidden, args.tile_n.non_zero()) {
            let (c, d) =
                (part(self.tensors.out, 1, cols)?, Some(part(self.tensors.middle, 1, cols)?));
            let product =
                Product { rows, cols: cols.1, a_ld: inner, b_ld: hidden, c_ld: hidden, c, d };
            for (number, k) in tiles(inner, args.tile_k.non_zero()).enumerate() {
                let operands = (part(self.tensors.gate, 1, k)?, tile(weights, k, cols)?);
                product.piece(stream, number, k.1, operands)?;
            }
        }
        Ok(())
    }
}
