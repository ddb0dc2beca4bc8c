//! The program of `decoder_layer`. The tensors between the stages live on the heap of one scope.
//!
//! ```text
//! rms_norm (AIV, a request)  normed = norm(x)
//! matmul   (AIC, tiles)      q, k   = normed @ wqkv
//! decode   (MIX, a kv head)  AIC: v = normed @ wqkv; at the same time AIV: q rotated; AIV: k rotated
//! copy     (AIV, a request)  k, v   to their places in the cache
//! attention                  see `paged_attention`: a chain of blocks for each request and head of the cache
//! matmul   (AIC, tiles)      middle = x + attended @ wo
//! rms_norm (AIV, a request)  normed = norm(middle)
//! matmul   (AIC, tiles)      gate   = normed @ wg, up = normed @ wu
//! silu_mul (AIV, tiles)      gate   = silu(gate) * up
//! matmul   (AIC, tiles)      out    = middle + gate @ wd
//! ```
//! Kernels are short here, so that the program states what waits for what (`DependencyMode::MANUAL`), and gives a core several of
//! them in one dispatch. A product is cut in columns, and its sum in pieces: the first piece overwrites a tile, the others add to
//! it. The pieces of a tile are a chain, those of `gate` and `up` one chain together; so are the norms of some requests, and the blocks of
//! a request and head.

use core::num::NonZeroU64;

use pto_abi::{GmAddr, TaskId};
use pto_aicore_kernels::{func, library};
use pto_graph::{
    BuildError, DependencyMode, ElementType, Link, Scope, StreamBuilder, TensorView, Variation,
};

use super::product::{Product, RowOfTiles};
use crate::args::{Size, tiles};
use crate::paged_attention::graph::{BAD_BLOCK, BAD_CONTEXT_LEN, F32, I32};
use crate::paged_attention::row::{Cache, Cut, RequestHeads, Scratch};
use crate::streaming::{StageTasks, dense, extent, floats, part, tile};

/// Into how many chains the norms of a batch are cut, at least; with long kernels more.
const NORMS: u64 = 3;
/// Tiles that one core activates, at most.
const ACTIVATED: u64 = 4;

crate::orch_args! {
    /// The words of `decoder_layer`.
    pub struct Args {
        /// `f32 [batch, hidden]`.
        x: GmAddr,
        /// As `x`.
        out: GmAddr,
        /// `f32 [2, hidden]`: the weights of the norms.
        norms: GmAddr,
        /// `f32 [hidden, heads + 2 * kv_heads, head_dim]`: heads of queries, then of keys, then of values.
        wqkv: GmAddr,
        /// `f32 [heads * head_dim, hidden]`.
        wo: GmAddr,
        /// `f32 [hidden, intermediate]`.
        wg: GmAddr,
        /// As `wg`.
        wu: GmAddr,
        /// `f32 [intermediate, hidden]`.
        wd: GmAddr,
        /// `f32 [max_blocks * block_size, 2, head_dim / 2]`: cosines and sines of the angles of each position.
        angles: GmAddr,
        /// `f32 [num_blocks, block_size, kv_heads, head_dim]`; the last token of each context is written.
        k: GmAddr,
        /// As `k`.
        v: GmAddr,
        /// `i32 [batch, max_blocks]`.
        block_table: GmAddr,
        /// `i32 [batch]`: with the token that is decoded.
        context_lens: GmAddr,
        /// Requests.
        batch: Size,
        /// Elements of a token.
        hidden: Size,
        /// Elements between the two projections of the MLP.
        intermediate: Size,
        /// Heads of the cache.
        kv_heads: Size,
        /// Query heads that share one head of the cache.
        rows: Size,
        /// Elements of a head.
        head_dim: Size,
        /// Tokens of a block.
        block_size: Size,
        /// Entries of a row of the block table.
        max_blocks: Size,
        /// Blocks of the cache.
        num_blocks: u64,
        /// Columns of a tile of a product; of heads as many as fit, at least one.
        tile_n: Size,
        /// Elements of a sum that a task adds; of heads as many as fit, at least one.
        tile_k: Size,
        /// What scores are multiplied by.
        scale: f32,
        /// What the norms add to the mean of the squares.
        epsilon: f32,
        /// Kernels of neighbouring tiles that one core runs in one dispatch, about.
        chained: Size,
    }
}

impl Args {
    /// Query heads.
    pub(crate) const fn heads(&self) -> u64 {
        self.kv_heads.get() * self.rows.get()
    }

    /// Heads of `wqkv`.
    pub(crate) const fn all_heads(&self) -> u64 {
        self.heads() + 2 * self.kv_heads.get()
    }

    /// So many heads as a tile of `width` elements holds, at least one.
    pub(crate) fn heads_of(&self, width: Size) -> core::num::NonZeroU64 {
        let heads = width.get() / self.head_dim.get();
        core::num::NonZeroU64::new(heads).unwrap_or(core::num::NonZeroU64::MIN)
    }

    /// Tokens of a request; a number that its row of the block table has room for.
    pub(crate) fn tokens<G: StreamBuilder>(
        &self,
        stream: &G,
        request: u64,
    ) -> Result<u64, BuildError> {
        let tokens = stream.read_u32(self.context_lens.offset(request * I32))?.into();
        if tokens == 0 || tokens > self.positions() {
            return Err(BuildError::Failed(BAD_CONTEXT_LEN));
        }
        Ok(tokens)
    }

    /// Tokens that a row of the block table has room for.
    pub(crate) const fn positions(&self) -> u64 {
        self.max_blocks.get() * self.block_size.get()
    }

    /// Where the last token of a request is in the cache: its block, and its slot there. `table` is the request's row of the block
    /// table.
    pub(crate) fn last_place<G: StreamBuilder>(
        &self,
        stream: &G,
        tokens: u64,
        table: GmAddr,
    ) -> Result<(u64, u64), BuildError> {
        let size = self.block_size.non_zero();
        let block = stream.read_u32(table.offset((tokens - 1) / size * I32))?.into();
        if block >= self.num_blocks {
            return Err(BuildError::Failed(BAD_BLOCK));
        }
        Ok((block, (tokens - 1) % size))
    }

    /// The blocks of one of the two caches.
    pub(crate) fn blocks(&self, cache: GmAddr) -> Result<TensorView<'static>, BuildError> {
        let [size, heads, dim] = [self.block_size, self.kv_heads, self.head_dim].map(Size::get);
        Ok(floats(cache, &[self.num_blocks, size, heads, dim])?)
    }

    /// Tasks in addition to those of attention.
    #[must_use]
    pub fn tasks(&self) -> u64 {
        let cut = |extent: u64, tile: core::num::NonZeroU64| extent.div_ceil(tile.get());
        let [hidden, inner] = [self.hidden, self.intermediate].map(Size::get);
        let (n, k) = (self.tile_n.non_zero(), self.tile_k.non_zero());
        let kv_heads = self.kv_heads.get();
        let qk = cut(self.heads() + kv_heads, self.heads_of(self.tile_n)) * cut(hidden, k);
        let attended = cut(hidden, n) * cut(self.heads(), self.heads_of(self.tile_k));
        let gated = cut(inner, n) * (2 * cut(hidden, k) + 1);
        let down = cut(hidden, n) * cut(inner, k);
        4 * self.batch.get() + qk + kv_heads + attended + gated + down
    }
}

/// Submits the tasks.
///
/// # Errors
/// `BUILD_ORCH_ARGS`, [`BAD_CONTEXT_LEN`], [`BAD_BLOCK`], and those of [`StreamBuilder`].
pub fn build<G: StreamBuilder>(stream: &mut G) -> Result<(), BuildError> {
    let args = Args::from_words(stream.orch_args())?;
    stream.scope::<(), BuildError>(DependencyMode::MANUAL, |scope| {
        let layer = DecoderStream { args: &args, tensors: LayerTensors::new(scope, &args)? };
        let stream = &mut **scope;
        for request in 0..args.batch.get() {
            args.tokens(stream, request)?;
        }
        let normed = layer.norm(stream, layer.tensors.x, (0, &[]))?;
        let projected = layer.project_heads(stream, normed.tasks())?;
        let decoded = layer.decode_heads(stream, projected.tasks())?;
        let mut attended = StageTasks::new();
        for request in 0..args.batch.get() {
            layer.attend(stream, request, (decoded.tasks(), &mut attended))?;
        }
        let middle = layer.project_attended(stream, attended.tasks())?;
        let normed = layer.norm(stream, layer.tensors.middle, (1, middle.tasks()))?;
        let gated = layer.gated(stream, normed.tasks())?;
        layer.down(stream, gated.tasks())
    })
}

/// The tensors of the layer: those between its stages are on the heap of a scope.
pub(crate) struct LayerTensors<'s> {
    /// `[batch, hidden]`, all four.
    pub(crate) x: TensorView<'s>,
    pub(crate) out: TensorView<'s>,
    pub(crate) normed: TensorView<'s>,
    pub(crate) middle: TensorView<'s>,
    /// `[batch, heads + 2 * kv_heads, head_dim]`.
    pub(crate) qkv: TensorView<'s>,
    /// `[batch, heads, head_dim]`.
    pub(crate) attended: TensorView<'s>,
    /// `[batch, intermediate]`, both.
    pub(crate) gate: TensorView<'s>,
    pub(crate) up: TensorView<'s>,
}

impl<'s> LayerTensors<'s> {
    pub(crate) fn new<G: StreamBuilder>(
        scope: &mut Scope<'s, '_, G>,
        args: &Args,
    ) -> Result<Self, BuildError> {
        let (batch, hidden) = (args.batch.get(), args.hidden.get());
        let whole = |at: GmAddr| floats(at, &[batch, hidden]);
        let mut tensor = |cols: u64| -> Result<_, BuildError> {
            Ok(scope.tensor(ElementType::F32, &[extent(batch)?, extent(cols)?])?)
        };
        let (normed, middle) = (tensor(hidden)?, tensor(hidden)?);
        let (gate, up) = (tensor(args.intermediate.get())?, tensor(args.intermediate.get())?);
        let mut heads = |heads: u64| -> Result<_, BuildError> {
            let shape = [extent(batch)?, extent(heads)?, extent(args.head_dim.get())?];
            Ok(scope.tensor(ElementType::F32, &shape)?)
        };
        let (qkv, attended) = (heads(args.all_heads())?, heads(args.heads())?);
        let (x, out) = (whole(args.x)?, whole(args.out)?);
        Ok(Self { x, out, normed, middle, qkv, attended, gate, up })
    }
}

/// The layer with stated edges, in chains.
struct DecoderStream<'a, 's> {
    args: &'a Args,
    tensors: LayerTensors<'s>,
}

impl DecoderStream<'_, '_> {
    /// `normed = norm(x)`, a kernel for each request.
    fn norm<G: StreamBuilder>(
        &self,
        stream: &mut G,
        x: TensorView<'_>,
        (number, after): (u64, &[TaskId]),
    ) -> Result<StageTasks, BuildError> {
        let (hidden, batch) = (self.args.hidden.get(), self.args.batch.get());
        let weight = part(floats(self.args.norms, &[2, hidden])?, 0, (number, 1))?.address();
        let of_one = batch.div_ceil(NORMS).min(self.args.chained.get());
        let of_one = NonZeroU64::new(of_one).unwrap_or(NonZeroU64::MIN);
        let mut stage = StageTasks::new();
        for (request, count) in tiles(batch, of_one) {
            let (x, out) = (part(x, 0, (request, 1))?, part(self.tensors.normed, 0, (request, 1))?);
            let epsilon = self.args.epsilon;
            let (x, out) = (x.address(), out.address());
            let norm = library::rms_norm(x, weight, out, 1, hidden, hidden, hidden, epsilon);
            let varies = [step(0, hidden), step(2, hidden)];
            let links = [Link::new(norm.task()).times(extent(count)?).varying(&varies)];
            stage.chain(stream, &links, after)?;
        }
        Ok(stage)
    }

    /// Queries and keys: `normed @ wqkv`, in tiles of whole heads.
    fn project_heads<G: StreamBuilder>(
        &self,
        stream: &mut G,
        after: &[TaskId],
    ) -> Result<StageTasks, BuildError> {
        let args = self.args;
        let (all, dim, hidden) = (args.all_heads(), args.head_dim.get(), args.hidden.get());
        let (mut stage, mut row) = (StageTasks::new(), RowOfTiles::new());
        for (head, heads) in tiles(args.heads() + args.kv_heads.get(), args.heads_of(args.tile_n)) {
            let product = Product {
                a: self.tensors.normed.address(),
                b: args.wqkv.offset(head * dim * F32),
                c: self.tensors.qkv.address().offset(head * dim * F32),
                d: None,
                size: [args.batch.get(), heads * dim, hidden],
                ld: [hidden, all * dim, all * dim],
                piece: args.tile_k.non_zero(),
            };
            row.submit(stream, (head * dim, heads * dim), [product], (&mut stage, after))?;
        }
        Ok(stage)
    }

    /// Of each head of the cache: its values on a cube core, and meanwhile the rotary embedding of its queries and of its keys
    /// on the vector cores of its cluster.
    fn decode_heads<G: StreamBuilder>(
        &self,
        stream: &mut G,
        after: &[TaskId],
    ) -> Result<StageTasks, BuildError> {
        let args = self.args;
        let (all, dim, hidden) = (args.all_heads(), args.head_dim.get(), args.hidden.get());
        let (batch, group, kv_heads) = (args.batch.get(), args.rows.get(), args.kv_heads.get());
        let weights = floats(args.wqkv, &[hidden, all, dim])?;
        let positions = dense(args.context_lens, ElementType::I32, &[batch])?;
        let angles = floats(args.angles, &[args.positions(), 2, dim / 2])?;
        let mut stage = StageTasks::new();
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
            let task = value.task().mix(&[func::DECODE_ROTATE; 2]).after(after);
            let id = stream.add_tensor_task(&task)?;
            if let Some(before) = stage.before() {
                stream.add_edge(before, id)?;
            }
            stream.publish(id)?;
            stage.push(id);
        }
        Ok(stage)
    }

    /// The cache, and attention, of one request: its last updates come to the stage `attended`.
    fn attend<G: StreamBuilder>(
        &self,
        stream: &mut G,
        request: u64,
        (after, attended): (&[TaskId], &mut StageTasks),
    ) -> Result<(), BuildError> {
        let args = self.args;
        let tokens = args.tokens(stream, request)?;
        let table = args.block_table.offset(request * args.max_blocks.get() * I32);
        let mut copied = StageTasks::new();
        self.extend_cache(stream, request, tokens, table, after, &mut copied)?;
        let cache = args.cache(Cut::of_one_head(args.chained).run);
        for kv_head in 0..args.kv_heads.get() {
            let heads = (kv_head * args.rows.get(), args.rows.get());
            let q = tile(self.tensors.qkv, (request, 1), heads)?.address();
            let out = tile(self.tensors.attended, (request, 1), heads)?.address();
            let before = attended.before();
            let after =
                [copied.tasks().first().copied(), before].map(|id| id.unwrap_or(TaskId::NONE));
            let after = &after[..1 + usize::from(before.is_some())];
            let last = stream.scope::<_, BuildError>(DependencyMode::MANUAL, |scope| {
                let scratch = args.scratch(scope, tokens)?;
                let row = RequestHeads {
                    cache: &cache,
                    q,
                    out,
                    kv_head,
                    heads: 1,
                    tokens,
                    table,
                    scratch,
                };
                row.submit(&mut **scope, after)
            })?;
            last.into_iter().for_each(|id| attended.push(id));
        }
        Ok(())
    }

    /// The key and the value of a request's last token go to the cache.
    fn extend_cache<G: StreamBuilder>(
        &self,
        stream: &mut G,
        request: u64,
        tokens: u64,
        table: GmAddr,
        after: &[TaskId],
        copied: &mut StageTasks,
    ) -> Result<(), BuildError> {
        let args = self.args;
        let (block, slot) = args.last_place(stream, tokens, table)?;
        let (kv_heads, dim) = (args.kv_heads.get(), args.head_dim.get());
        let copy = |cache: GmAddr, first: u64| -> Result<_, BuildError> {
            let new = tile(self.tensors.qkv, (request, 1), (first, kv_heads))?;
            let to = tile(args.blocks(cache)?, (block, 1), (slot, 1))?;
            Ok(library::copy(new.address(), to.address(), kv_heads, dim, dim, dim))
        };
        let (k, v) = (copy(args.k, args.heads())?, copy(args.v, args.heads() + kv_heads)?);
        copied.chain(stream, &[Link::new(k.task()), Link::new(v.task())], after)
    }

    /// `middle = x + attended @ wo`.
    fn project_attended<G: StreamBuilder>(
        &self,
        stream: &mut G,
        after: &[TaskId],
    ) -> Result<StageTasks, BuildError> {
        let args = self.args;
        let (all, dim, hidden) = (args.heads(), args.head_dim.get(), args.hidden.get());
        let heads = args.heads_of(args.tile_k).get();
        let piece = NonZeroU64::new(heads * dim).unwrap_or(NonZeroU64::MIN);
        let (mut stage, mut row) = (StageTasks::new(), RowOfTiles::new());
        for (col, cols) in tiles(hidden, args.tile_n.non_zero()) {
            let at = |matrix: GmAddr| matrix.offset(col * F32);
            let product = Product {
                a: self.tensors.attended.address(),
                b: at(args.wo),
                c: at(self.tensors.middle.address()),
                d: Some(at(args.x)),
                size: [args.batch.get(), cols, all * dim],
                ld: [all * dim, hidden, hidden],
                piece,
            };
            row.submit(stream, (col, cols), [product], (&mut stage, after))?;
        }
        Ok(stage)
    }

    /// `gate = silu(normed @ wg) * (normed @ wu)`.
    fn gated<G: StreamBuilder>(
        &self,
        stream: &mut G,
        after: &[TaskId],
    ) -> Result<StageTasks, BuildError> {
        let (inner, width) = (self.args.intermediate.get(), self.args.tile_n.get());
        let tiles_of_one = ACTIVATED.min(self.args.chained.get());
        let group = NonZeroU64::new(tiles_of_one * width).unwrap_or(NonZeroU64::MIN);
        let (mut products, mut stage) = (StageTasks::new(), StageTasks::new());
        let mut row = RowOfTiles::new();
        for (first, cols) in tiles(inner, group) {
            let mut own = StageTasks::new();
            for (col, cols) in tiles(cols, self.args.tile_n.non_zero()) {
                let columns = (first + col, cols);
                let both = [(self.args.wg, self.tensors.gate), (self.args.wu, self.tensors.up)]
                    .map(|(weights, to)| self.up(weights, to.address(), columns));
                row.submit(stream, columns, both, (&mut products, after))?;
                products.newest().into_iter().for_each(|id| own.push(id));
            }
            self.activate(stream, (first, cols), (own.tasks(), &mut stage))?;
        }
        Ok(stage)
    }

    /// One of the two products of a tile.
    fn up(&self, weights: GmAddr, to: GmAddr, (col, cols): (u64, u64)) -> Product {
        let args = self.args;
        let (hidden, inner) = (args.hidden.get(), args.intermediate.get());
        Product {
            a: self.tensors.normed.address(),
            b: weights.offset(col * F32),
            c: to.offset(col * F32),
            d: None,
            size: [args.batch.get(), cols, hidden],
            ld: [hidden, inner, inner],
            piece: args.tile_k.non_zero(),
        }
    }

    /// `gate = silu(gate) * up`, in so many columns: whole tiles, and a last one that may be narrower.
    fn activate<G: StreamBuilder>(
        &self,
        stream: &mut G,
        (first, cols): (u64, u64),
        (after, stage): (&[TaskId], &mut StageTasks),
    ) -> Result<(), BuildError> {
        let (rows, inner) = (self.args.batch.get(), self.args.intermediate.get());
        let width = self.args.tile_n.get();
        let silu = |col: u64, cols: u64| {
            let [gate, up] =
                [self.tensors.gate, self.tensors.up].map(|it| it.address().offset(col * F32));
            library::silu_mul(gate, up, gate, rows, cols, inner, inner, inner)
        };
        let (whole, rest) = (cols / width, cols % width);
        let (tiles, last) = (silu(first, width), silu(first + whole * width, rest));
        let varies = [step(0, width), step(1, width), step(2, width)];
        let tiles = Link::new(tiles.task()).times(extent(whole)?).varying(&varies);
        let last = Link::new(last.task());
        match (whole, rest) {
            (0, _) => stage.chain(stream, &[last], after),
            (_, 0) => stage.chain(stream, &[tiles], after),
            _ => stage.chain(stream, &[tiles, last], after),
        }
    }

    /// `out = middle + gate @ wd`.
    fn down<G: StreamBuilder>(&self, stream: &mut G, after: &[TaskId]) -> Result<(), BuildError> {
        let args = self.args;
        let (hidden, inner) = (args.hidden.get(), args.intermediate.get());
        let (mut stage, mut row) = (StageTasks::new(), RowOfTiles::new());
        for (col, cols) in tiles(hidden, args.tile_n.non_zero()) {
            let at = |matrix: GmAddr| matrix.offset(col * F32);
            let product = Product {
                a: self.tensors.gate.address(),
                b: at(args.wd),
                c: at(self.tensors.out.address()),
                d: Some(at(self.tensors.middle.address())),
                size: [args.batch.get(), cols, inner],
                ld: [inner, hidden, hidden],
                piece: args.tile_k.non_zero(),
            };
            row.submit(stream, (col, cols), [product], (&mut stage, after))?;
        }
        Ok(())
    }
}

impl Args {
    fn cache(&self, run: usize) -> Cache {
        let &Self { k, v, kv_heads, rows, head_dim, block_size, num_blocks, scale, .. } = self;
        Cache { k, v, kv_heads, rows, head_dim, block_size, num_blocks, scale, run }
    }

    /// Memory for the units of one row, on the heap of a scope.
    fn scratch<G: StreamBuilder>(
        &self,
        scope: &mut Scope<'_, '_, G>,
        tokens: u64,
    ) -> Result<Scratch, BuildError> {
        let (rows, dim, size) = (self.rows.get(), self.head_dim.get(), self.block_size.get());
        let units = tokens.div_ceil(size);
        let mut tensor = |elements: u64| -> Result<GmAddr, BuildError> {
            Ok(scope.tensor(ElementType::F32, &[extent(elements)?])?.address())
        };
        Ok(Scratch {
            scores: tensor(units * rows * size)?,
            stats: tensor(units * 2 * rows)?,
            new: tensor(units * rows * dim)?,
            running: tensor(2 * rows)?,
        })
    }
}

/// An address that grows by so many elements.
const fn step(arg: usize, elements: u64) -> Variation<'static> {
    Variation::by(arg, (elements * F32).cast_signed())
}
