//! A step of paged attention and of a decoder layer, written in tile kernels, compared with the same step with the kernels of the library: on one
//! thread, on the same memory and tiles, without a runtime. The results are compared before anything is timed.

use std::cell::{Cell, RefCell};

use pto_aicore_kernels::attention::{products, softmax, update};
use pto_aicore_kernels::view::{Matrix, Vector, vector};
use pto_aicore_kernels::{UpdateFlags, layer, matmul};
use pto_workload::TileKernel;
use pto_workload::tile::view::tensor_of;
use pto_workload::tile::{Call, Interpreter, TileView};

use super::timing::{Pair, paired_ns};

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// Times both models, and prints the ratios.
pub(crate) fn compare() -> Outcome<()> {
    let mut attention =
        Attention::new(AttentionSizes { rows: 4, dim: 64, tokens: 64, blocks: 16 })?;
    report("paged attention", &mut attention)?;
    report("decoder layer", &mut Decoder::new()?)
}

/// A model that is written both ways.
trait BenchModel {
    fn by_library(&mut self);
    fn by_tiles(&mut self) -> Outcome<()>;
    fn result(&self) -> &[f32];
}

fn report(name: &str, model: &mut impl BenchModel) -> Outcome<()> {
    model.by_library();
    let expected = model.result().to_vec();
    model.by_tiles()?;
    for (at, (found, expected)) in model.result().iter().zip(&expected).enumerate() {
        if (found - expected).abs() > 1e-4 + 1e-3 * expected.abs() {
            return Err(format!("{name}: element {at} is {found}, and must be {expected}").into());
        }
    }
    let model = RefCell::new(model);
    let by_tiles = || drop(std::hint::black_box(model.borrow_mut().by_tiles()));
    let Pair { fastest: [library, tiles], ratio } =
        paired_ns(|| model.borrow_mut().by_library(), by_tiles);
    // Runs that are short compared with time slices of other programs are judged by the fastest, long ones by the pairs.
    println!(
        "{name:>15}: in tile kernels {tiles:>10.0} ns, by the library {library:>10.0} ns, ratio {:.2}, median of pairs {ratio:.2} (aim 1)",
        tiles / library
    );
    Ok(())
}

/// Numbers between -1 and 1 that repeat after a while.
fn numbers(count: usize, salt: usize) -> Vec<f32> {
    let number = |at: usize| ((at * 37 + salt * 101) % 211) as f32 / 105.5 - 1.0;
    (0..count).map(number).collect()
}

fn matrix(cells: Vector<'_>, [rows, cols, ld]: [usize; 3]) -> Matrix<'_> {
    Matrix::new(cells, rows, cols, ld).unwrap_or(Matrix::EMPTY)
}

/// The tile machine with its memory.
struct Tiles {
    machine: Interpreter,
    scratch: Vec<u64>,
}

/// A tile of a tensor: its first element, the distance of its rows, its rows and columns.
#[derive(Clone, Copy)]
struct TileRegion {
    first: usize,
    strides: [usize; 2],
    extents: [usize; 2],
}

const fn part(first: usize, ld: usize, extents: [usize; 2]) -> TileRegion {
    TileRegion { first, strides: [ld, 1], extents }
}

impl TileRegion {
    /// The view of a tensor's memory.
    fn of<'a>(&self, memory: &'a [Cell<u8>]) -> TileView<'a> {
        let number = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
        let extents = self.extents.map(|extent| u16::try_from(extent).unwrap_or(u16::MAX));
        TileView::new(memory, number(self.first), self.strides.map(number), extents)
    }
}

impl Tiles {
    fn run(
        &mut self,
        kernel: &TileKernel,
        operands: &mut [(&mut [f32], TileRegion)],
    ) -> Outcome<()> {
        let views = operands.iter_mut().map(|(memory, part)| part.of(tensor_of(memory)));
        let views: Vec<TileView<'_>> = views.collect();
        self.run_views(kernel, &views)
    }

    fn run_views(&mut self, kernel: &TileKernel, views: &[TileView<'_>]) -> Outcome<()> {
        let needed = kernel.code().scratch_words();
        if self.scratch.len() < needed {
            self.scratch.resize(needed, 0);
        }
        let call = Call { tensors: views, scalars: &[] };
        self.machine.run(kernel.code(), &call, &mut self.scratch)?;
        Ok(())
    }
}

#[derive(Clone, Copy)]
struct AttentionSizes {
    /// Queries that share a head of the cache.
    rows: usize,
    dim: usize,
    /// Tokens of a block.
    tokens: usize,
    blocks: usize,
}

/// The online softmax over the blocks of one request and head. The blocks are in the cache in another order.
struct Attention {
    sizes: AttentionSizes,
    q: Vec<f32>,
    k: Vec<f32>,
    /// The keys by columns, as the product of a tile kernel wants them: a cache for tile kernels keeps them so.
    kt: Vec<f32>,
    v: Vec<f32>,
    scores: Vec<f32>,
    /// Maxima, sums and output of a block; and of all blocks so far.
    block: [Vec<f32>; 3],
    running: [Vec<f32>; 3],
    out: Vec<f32>,
    kernels: [TileKernel; 3],
    tiles: Tiles,
}

impl Attention {
    fn new(sizes: AttentionSizes) -> Outcome<Self> {
        let AttentionSizes { rows, dim, tokens, blocks } = sizes;
        let scale = 1.0 / (dim as f64).sqrt();
        let operands = format!(
            "q: in f32[{rows}, {dim}], kt: in f32[{dim}, {tokens}], v: in f32[{tokens}, {dim}]"
        );
        let load = format!(
            "%0 = load q : f32[{rows}, {dim}]
             %1 = load kt : f32[{dim}, {tokens}]
             %2 = load v : f32[{tokens}, {dim}]
             %3 = matmul %0, %1 : f32[{rows}, {tokens}]
             %4 = constant {scale} : f32
             %5 = mul %3, %4 by one : f32[{rows}, {tokens}]
             %6 = rowmax %5 : f32[{rows}, 1]"
        );
        let state = |role: &str| {
            format!(
                "m: {role} f32[{rows}, 1], l: {role} f32[{rows}, 1], acc: {role} f32[{rows}, {dim}]"
            )
        };
        let first = format!(
            "kernel first_block({operands}, {}) {{
             {load}
             %7 = sub %5, %6 by row : f32[{rows}, {tokens}]
             %8 = exp %7 : f32[{rows}, {tokens}]
             %9 = rowsum %8 : f32[{rows}, 1]
             %10 = matmul %8, %2 : f32[{rows}, {dim}]
             store m, %6
             store l, %9
             store acc, %10
             }}",
            state("out")
        );
        let next = format!(
            "kernel next_block({operands}, {}) {{
             {load}
             %7 = load m : f32[{rows}, 1]
             %8 = load l : f32[{rows}, 1]
             %9 = load acc : f32[{rows}, {dim}]
             %10 = max %7, %6 : f32[{rows}, 1]
             %11 = sub %7, %10 : f32[{rows}, 1]
             %12 = exp %11 : f32[{rows}, 1]
             %13 = sub %5, %10 by row : f32[{rows}, {tokens}]
             %14 = exp %13 : f32[{rows}, {tokens}]
             %15 = rowsum %14 : f32[{rows}, 1]
             %16 = mul %8, %12 : f32[{rows}, 1]
             %17 = add %16, %15 : f32[{rows}, 1]
             %18 = mul %9, %12 by row : f32[{rows}, {dim}]
             %19 = matmul %14, %2 acc %18 : f32[{rows}, {dim}]
             store m, %10
             store l, %17
             store acc, %19
             }}",
            state("inout")
        );
        let last = format!(
            "kernel normalize(acc: in f32[{rows}, {dim}], l: in f32[{rows}, 1], out: out f32[{rows}, {dim}]) {{
             %0 = load acc : f32[{rows}, {dim}]
             %1 = load l : f32[{rows}, 1]
             %2 = div %0, %1 by row : f32[{rows}, {dim}]
             store out, %2
             }}"
        );
        let parsed = |text: &str| TileKernel::parse(text);
        let k = numbers(blocks * tokens * dim, 2);
        let mut kt = vec![0.0; k.len()];
        for (at, x) in k.iter().enumerate() {
            let (block, within) = (at / (tokens * dim), at % (tokens * dim));
            let (token, element) = (within / dim, within % dim);
            kt[block * tokens * dim + element * tokens + token] = *x;
        }
        let zeros = || [rows, rows, rows * dim].map(|count| vec![0.0; count]);
        Ok(Self {
            sizes,
            q: numbers(rows * dim, 1),
            k,
            kt,
            v: numbers(blocks * tokens * dim, 3),
            scores: vec![0.0; rows * tokens],
            block: zeros(),
            running: zeros(),
            out: vec![0.0; rows * dim],
            kernels: [parsed(&first)?, parsed(&next)?, parsed(&last)?],
            tiles: Tiles { machine: Interpreter::new(), scratch: Vec::new() },
        })
    }

    /// The position of the block of this number in the cache.
    const fn slot(&self, block: usize) -> usize {
        block * 7 % self.sizes.blocks
    }
}

impl BenchModel for Attention {
    fn by_library(&mut self) {
        let AttentionSizes { rows, dim, tokens, blocks } = self.sizes;
        let scale = 1.0 / (dim as f32).sqrt();
        for block in 0..blocks {
            let at = self.slot(block) * tokens * dim;
            let cached = at..at + tokens * dim;
            let (k, v) = (vector(&mut self.k[cached.clone()]), vector(&mut self.v[cached]));
            let [k, v] = [k, v].map(|cells| matrix(cells, [tokens, dim, dim]));
            let q = matrix(vector(&mut self.q), [rows, dim, dim]);
            let s = matrix(vector(&mut self.scores), [rows, tokens, tokens]);
            let [m, l, o] = self.block.each_mut().map(|memory| vector(memory));
            let o = matrix(o, [rows, dim, dim]);
            let [m_all, l_all, o_all] = self.running.each_mut().map(|memory| vector(memory));
            let o_all = matrix(o_all, [rows, dim, dim]);
            products::product_transposed(q, k, s);
            softmax::softmax(s, s, m, l, scale);
            matmul::product(s, v, o);
            let mut flags = UpdateFlags::empty();
            flags.set(UpdateFlags::FIRST, block == 0);
            flags.set(UpdateFlags::LAST, block + 1 == blocks);
            let out = if block + 1 == blocks {
                matrix(vector(&mut self.out), [rows, dim, dim])
            } else {
                Matrix::EMPTY
            };
            update::update((m, l, o), (m_all, l_all, o_all), out, flags.bits());
        }
    }

    fn by_tiles(&mut self) -> Outcome<()> {
        let AttentionSizes { rows, dim, tokens, blocks } = self.sizes;
        let one = part(0, 1, [rows, 1]);
        let wide = part(0, dim, [rows, dim]);
        for block in 0..blocks {
            let at = self.slot(block) * tokens * dim;
            let kernel = &self.kernels[usize::from(block > 0)];
            let [m, l, acc] = &mut self.running;
            let mut operands = [
                (&mut self.q[..], wide),
                (&mut self.kt[..], part(at, tokens, [dim, tokens])),
                (&mut self.v[..], part(at, dim, [tokens, dim])),
                (&mut m[..], one),
                (&mut l[..], one),
                (&mut acc[..], wide),
            ];
            self.tiles.run(kernel, &mut operands)?;
        }
        let [_, l, acc] = &mut self.running;
        let mut operands = [(&mut acc[..], wide), (&mut l[..], one), (&mut self.out[..], wide)];
        self.tiles.run(&self.kernels[2], &mut operands)
    }

    fn result(&self) -> &[f32] {
        &self.out
    }
}

/// Requests, elements of a token, elements between the projections of the MLP.
const BATCH: usize = 8;
const HIDDEN: usize = 1024;
const INNER: usize = 2816;
/// Query heads, heads of the cache, elements of a head.
const HEADS: usize = 8;
const KV_HEADS: usize = 2;
const DIM: usize = 128;
const ALL: usize = (HEADS + 2 * KV_HEADS) * DIM;
/// Columns of a tile of a product, and elements of a sum that one call adds.
const TILE_N: usize = 128;
const TILE_K: usize = 256;
const EPSILON: f32 = 1e-5;

/// A product of `BATCH` rows: depth and columns.
type Product = [usize; 2];
const QKV: Product = [HIDDEN, ALL];
const OUTPUT: Product = [HEADS * DIM, HIDDEN];
const GATE: Product = [HIDDEN, INNER];
const DOWN: Product = [INNER, HIDDEN];

/// One decoding step of a layer, without the copies into the cache.
struct Decoder {
    x: Vec<f32>,
    weights: [Vec<f32>; 5],
    norms: [Vec<f32>; 2],
    angles: [Vec<f32>; 2],
    normed: Vec<f32>,
    qkv: Vec<f32>,
    attended: Vec<f32>,
    gate: Vec<f32>,
    up: Vec<f32>,
    out: Vec<f32>,
    attention: Attention,
    kernels: LayerKernels,
    tiles: Tiles,
}

struct LayerKernels {
    norm: TileKernel,
    first: TileKernel,
    next: TileKernel,
    rotate: TileKernel,
    gated: TileKernel,
}

impl LayerKernels {
    fn new() -> Outcome<Self> {
        let half = DIM / 2;
        let norm = format!(
            "kernel norm(x: in f32[{BATCH}, {HIDDEN}], w: in f32[1, {HIDDEN}], y: out f32[{BATCH}, {HIDDEN}]) {{
             %0 = load x : f32[{BATCH}, {HIDDEN}]
             %1 = load w : f32[1, {HIDDEN}]
             %2 = mul %0, %0 : f32[{BATCH}, {HIDDEN}]
             %3 = rowmean %2 : f32[{BATCH}, 1]
             %4 = constant {EPSILON} : f32
             %5 = add %3, %4 by one : f32[{BATCH}, 1]
             %6 = rsqrt %5 : f32[{BATCH}, 1]
             %7 = mul %0, %6 by row : f32[{BATCH}, {HIDDEN}]
             %8 = mul %7, %1 by col : f32[{BATCH}, {HIDDEN}]
             store y, %8
             }}"
        );
        let product = |name: &str, role: &str, body: &str| {
            format!(
                "kernel {name}(a: in f32[{BATCH}, {TILE_K}], b: in f32[{TILE_K}, {TILE_N}], c: {role} f32[{BATCH}, {TILE_N}]) {{
                 %0 = load a : f32[{BATCH}, {TILE_K}]
                 %1 = load b : f32[{TILE_K}, {TILE_N}]
                 {body}
                 }}"
            )
        };
        let c = format!("f32[{BATCH}, {TILE_N}]");
        let first = format!("%2 = matmul %0, %1 : {c}\n store c, %2");
        let first = product("first", "out", &first);
        let next = format!("%2 = load c : {c}\n %3 = matmul %0, %1 acc %2 : {c}\n store c, %3");
        let next = product("next", "inout", &next);
        let side = format!("f32[{BATCH}, {half}]");
        let angles = format!("f32[1, {half}]");
        let rotate = format!(
            "kernel rotate(low: inout {side}, high: inout {side}, cos: in {angles}, sin: in {angles}) {{
             %0 = load low : {side}
             %1 = load high : {side}
             %2 = load cos : {angles}
             %3 = load sin : {angles}
             %4 = mul %0, %2 by col : {side}
             %5 = mul %1, %3 by col : {side}
             %6 = sub %4, %5 : {side}
             %7 = mul %1, %2 by col : {side}
             %8 = mul %0, %3 by col : {side}
             %9 = add %7, %8 : {side}
             store low, %6
             store high, %9
             }}"
        );
        let row = format!("f32[1, {INNER}]");
        let gated = format!(
            "kernel gated(gate: in {row}, up: in {row}, out: out {row}) {{
             %0 = load gate : {row}
             %1 = load up : {row}
             %2 = silu %0 : {row}
             %3 = mul %2, %1 : {row}
             store out, %3
             }}"
        );
        let parsed = |text: &str| TileKernel::parse(text);
        Ok(Self {
            norm: parsed(&norm)?,
            first: parsed(&first)?,
            next: parsed(&next)?,
            rotate: parsed(&rotate)?,
            gated: parsed(&gated)?,
        })
    }
}

/// The tiles of a product: first column and how many, first element of the sum and how many, and whether that is the first piece.
fn tiles_of([depth, cols]: Product) -> impl Iterator<Item = ([usize; 2], [usize; 2], bool)> {
    (0..cols).step_by(TILE_N).flat_map(move |col| {
        (0..depth)
            .step_by(TILE_K)
            .map(move |k| ([col, TILE_N.min(cols - col)], [k, TILE_K.min(depth - k)], k == 0))
    })
}

impl Decoder {
    fn new() -> Outcome<Self> {
        let sizes = AttentionSizes { rows: HEADS / KV_HEADS, dim: DIM, tokens: 64, blocks: 8 };
        let weights = [QKV, OUTPUT, GATE, GATE, DOWN];
        let mut salt = 10;
        let mut scaled = |count: usize| {
            salt += 1;
            numbers(count, salt).into_iter().map(|x| x / 16.0).collect::<Vec<f32>>()
        };
        Ok(Self {
            x: numbers(BATCH * HIDDEN, 4),
            weights: weights.map(|[depth, cols]| scaled(depth * cols)),
            norms: [numbers(HIDDEN, 5), numbers(HIDDEN, 6)],
            angles: [numbers(DIM / 2, 7), numbers(DIM / 2, 8)],
            normed: vec![0.0; BATCH * HIDDEN],
            qkv: vec![0.0; BATCH * ALL],
            attended: vec![0.0; BATCH * HEADS * DIM],
            gate: vec![0.0; BATCH * INNER],
            up: vec![0.0; BATCH * INNER],
            out: vec![0.0; BATCH * HIDDEN],
            attention: Attention::new(sizes)?,
            kernels: LayerKernels::new()?,
            tiles: Tiles { machine: Interpreter::new(), scratch: Vec::new() },
        })
    }

    /// Attention of all requests and heads, in either way.
    fn attend(&mut self, mut step: impl FnMut(&mut Attention) -> Outcome<()>) -> Outcome<()> {
        let rows = HEADS / KV_HEADS;
        for request in 0..BATCH {
            for head in 0..KV_HEADS {
                let from = request * ALL + head * rows * DIM;
                self.attention.q.copy_from_slice(&self.qkv[from..from + rows * DIM]);
                step(&mut self.attention)?;
                let to = request * HEADS * DIM + head * rows * DIM;
                self.attended[to..to + rows * DIM].copy_from_slice(&self.attention.out);
            }
        }
        Ok(())
    }
}

fn product_by_library(a: &mut [f32], b: &mut [f32], c: &mut [f32], [depth, cols]: Product) {
    let (a, b, c) = (vector(a), vector(b), vector(c));
    for ([col, width], [k, length], is_first) in tiles_of([depth, cols]) {
        let a = matrix(&a[k..], [BATCH, length, depth]);
        let b = matrix(&b[k * cols + col..], [length, width, cols]);
        let c = matrix(&c[col..], [BATCH, width, cols]);
        if is_first { matmul::product(a, b, c) } else { matmul::product_plus(a, b, c, c) }
    }
}

impl BenchModel for Decoder {
    fn by_library(&mut self) {
        let whole = [BATCH, HIDDEN, HIDDEN];
        layer::rms_norm(
            matrix(vector(&mut self.x), whole),
            vector(&mut self.norms[0]),
            matrix(vector(&mut self.normed), whole),
            EPSILON,
        );
        product_by_library(&mut self.normed, &mut self.weights[0], &mut self.qkv, QKV);
        for head in 0..HEADS + KV_HEADS {
            let cells = &vector(&mut self.qkv)[head * DIM..];
            let x = matrix(cells, [BATCH, DIM, ALL]);
            let [cos, sin] = self.angles.each_mut().map(|angles| vector(angles));
            layer::rope(x, cos, sin, x);
        }
        let attended = self.attend(|attention| {
            attention.by_library();
            Ok(())
        });
        debug_assert!(attended.is_ok());
        let [_, output, gate, up, down] = &mut self.weights;
        product_by_library(&mut self.attended, output, &mut self.out, OUTPUT);
        layer::rms_norm(
            matrix(vector(&mut self.out), whole),
            vector(&mut self.norms[1]),
            matrix(vector(&mut self.normed), whole),
            EPSILON,
        );
        product_by_library(&mut self.normed, gate, &mut self.gate, GATE);
        product_by_library(&mut self.normed, up, &mut self.up, GATE);
        let inner = [BATCH, INNER, INNER];
        let gate = matrix(vector(&mut self.gate), inner);
        layer::gated(gate, matrix(vector(&mut self.up), inner), gate);
        product_by_library(&mut self.gate, down, &mut self.out, DOWN);
    }

    fn by_tiles(&mut self) -> Outcome<()> {
        let whole = part(0, HIDDEN, [BATCH, HIDDEN]);
        let row = part(0, HIDDEN, [1, HIDDEN]);
        let half = DIM / 2;
        let mut norm = [
            (&mut self.x[..], whole),
            (&mut self.norms[0][..], row),
            (&mut self.normed[..], whole),
        ];
        self.tiles.run(&self.kernels.norm, &mut norm)?;
        self.product(0, QKV)?;
        for head in 0..HEADS + KV_HEADS {
            let kernel = &self.kernels.rotate;
            let qkv = tensor_of(&mut self.qkv[..]);
            let side = |first| part(first, ALL, [BATCH, half]).of(qkv);
            let line = part(0, half, [1, half]);
            let [cos, sin] =
                self.angles.each_mut().map(|angles| line.of(tensor_of(&mut angles[..])));
            let views = [side(head * DIM), side(head * DIM + half), cos, sin];
            self.tiles.run_views(kernel, &views)?;
        }
        self.attend(Attention::by_tiles)?;
        self.product(1, OUTPUT)?;
        let mut norm = [
            (&mut self.out[..], whole),
            (&mut self.norms[1][..], row),
            (&mut self.normed[..], whole),
        ];
        self.tiles.run(&self.kernels.norm, &mut norm)?;
        self.product(2, GATE)?;
        self.product(3, GATE)?;
        for request in 0..BATCH {
            let inner = part(request * INNER, INNER, [1, INNER]);
            let gate = tensor_of(&mut self.gate[..]);
            let up = tensor_of(&mut self.up[..]);
            let views = [inner.of(gate), inner.of(up), inner.of(gate)];
            self.tiles.run_views(&self.kernels.gated, &views)?;
        }
        self.product(4, DOWN)
    }

    fn result(&self) -> &[f32] {
        &self.out
    }
}

impl Decoder {
    /// The product with these weights, in tiles.
    fn product(&mut self, number: usize, [depth, cols]: Product) -> Outcome<()> {
        let b = &mut self.weights[number][..];
        let (a, c) = match number {
            0 => (&mut self.normed[..], &mut self.qkv[..]),
            1 => (&mut self.attended[..], &mut self.out[..]),
            2 => (&mut self.normed[..], &mut self.gate[..]),
            3 => (&mut self.normed[..], &mut self.up[..]),
            _ => (&mut self.gate[..], &mut self.out[..]),
        };
        for ([col, width], [k, length], is_first) in tiles_of([depth, cols]) {
            let kernel = if is_first { &self.kernels.first } else { &self.kernels.next };
            let mut operands = [
                (&mut *a, part(k, depth, [BATCH, length])),
                (&mut *b, part(k * cols + col, cols, [length, width])),
                (&mut *c, part(col, cols, [BATCH, width])),
            ];
            self.tiles.run(kernel, &mut operands)?;
        }
        Ok(())
    }
}
