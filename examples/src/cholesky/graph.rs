//! The graph of `cholesky`. For each column of tiles, from the left:
//!
//! ```text
//! potrf (AIV)   the tile on the diagonal: its factor, in place
//! trsm  (AIV)   each tile below it, with that factor
//! syrk  (AIC)   each tile on the diagonal further right, less the product of the tile of its row with itself
//! gemm  (AIC)   each tile below those, less the product of the tiles of its row and of its column
//! ```
//! Columns of tiles are cut in *parts* of so many, and the products of a row in one part are a chain, which one core runs in one dispatch. The last chain of
//! a row ends on the diagonal. The host says how wide a part is, because it knows what a product costs.
//!
//! A solution (`trsm`) waits for the factor of its column, and for the chain that has changed its tile. A chain waits for the solution of its row, for those
//! of the rows whose numbers its columns have, and for the chain of the previous column whose slot it takes.

use core::iter::once;
use core::num::NonZeroU64;

use heapless::Vec;
use pto_abi::{Fault, GmAddr, TaskId};
use pto_aicore_kernels::library;
use pto_graph::call::Call;
use pto_graph::{BuildError, Chain, ChainTemplate, GraphBuilder, Link};

use crate::args::Size;
use crate::streaming::{F32, LINE, StageTasks, extent, moves};

crate::orch_args! {
    /// The words of `cholesky`.
    pub struct Args {
        /// `f32 [n, n]`: A, of which the lower triangle is read; then L overwrites it.
        matrix: GmAddr,
        /// `u32 [column of tiles, LINE]`: what each `potrf` reports, in the first element of a line.
        status: GmAddr,
        /// Rows of the matrix.
        n: Size,
        /// Rows of a tile.
        tile: Size,
        /// Tiles of a row that one core changes in one dispatch; with 1, each product is a task.
        chained: Size,
    }
}

impl Args {
    /// Columns of tiles, and rows of tiles.
    pub(super) fn columns(&self) -> u64 {
        let (n, size) = (self.n.get(), self.tile.non_zero());
        n / size + u64::from(n % size != 0)
    }

    /// Columns of a part.
    pub(super) fn part(&self) -> NonZeroU64 {
        self.chained.non_zero().min(NonZeroU64::MIN.saturating_add(CHAINED as u64 - 1))
    }

    /// Where a row or a column of tiles begins, and how wide it is.
    pub(super) fn tile_at(&self, number: u64) -> (u64, u64) {
        let (n, size) = (self.n.get(), self.tile.get());
        (number * size, size.min(n - number * size))
    }
}

/// Columns of a part, at most.
pub(super) const CHAINED: usize = 16;

/// What a chain waits for: the solutions of its columns, that of its row, and a chain.
const WAITS: usize = CHAINED + 2;

/// Slots for the chains that others wait for. With no more rows and parts than slots, each row and part has a slot of its own.
pub(super) const CHANGED: usize = 1024;

/// Submits the tasks.
///
/// # Errors
/// `BUILD_ORCH_ARGS`, and those of [`GraphBuilder`].
pub fn build<G: GraphBuilder>(graph: &mut G) -> Result<(), BuildError> {
    let args = Args::from_words(graph.orch_args())?;
    submit(graph, &args)
}

// Not inlined: what the program remembers has 30 KB, and is in a frame of its own.
#[inline(never)]
fn submit<G: GraphBuilder>(graph: &mut G, args: &Args) -> Result<(), BuildError> {
    let mut program = Factorisation::new(args);
    program.factor(graph, 0)?;
    for column in 0..args.columns() {
        program.begin(column);
        for row in column + 1..args.columns() {
            program.row(graph, row)?;
        }
    }
    Ok(())
}

/// The matrix, and the tasks that others wait for.
struct Factorisation<'a> {
    args: &'a Args,
    /// The column under way.
    column: u64,
    /// Its factor, and that of the next column, once that is submitted.
    factors: [Option<TaskId>; 2],
    /// Its solutions. Number 0 is in the row below the diagonal.
    solved: StageTasks,
    /// The chain that has changed the tiles of a row in a part last. Where there are more rows and parts than slots, a chain waits for the one whose slot
    /// it takes, so that waiting for the last one is enough.
    changed: [Option<TaskId>; CHANGED],
    /// Chains of whole tiles that end on the diagonal, by how many products they have: those of one length differ in their tensors only. The first one is
    /// filled anew for each other chain.
    chains: [ChainTemplate; CHAINED],
    /// What the next task waits for.
    waits: Vec<TaskId, WAITS>,
}

impl<'a> Factorisation<'a> {
    const fn new(args: &'a Args) -> Self {
        Self {
            args,
            column: 0,
            factors: [None; 2],
            solved: StageTasks::new(),
            changed: [None; CHANGED],
            chains: [const { ChainTemplate::new() }; CHAINED],
            waits: Vec::new(),
        }
    }

    /// Goes to a column, whose factor is submitted.
    const fn begin(&mut self, column: u64) {
        self.column = column;
        self.factors = [self.factors[1], None];
        self.solved = StageTasks::new();
    }

    /// The factor of the tile on the diagonal.
    fn factor<G: GraphBuilder>(&mut self, graph: &mut G, number: u64) -> Result<(), BuildError> {
        let (first, rows) = self.args.tile_at(number);
        let status = self.args.status.offset(number * LINE * F32);
        let (diagonal, n) = (self.tile(number, number), self.args.n.get());
        let potrf = library::cholesky_potrf(diagonal, status, rows, n, first);
        self.waits.clear();
        let changed = *self.changed(number, number)?;
        self.wait_for(changed)?;
        self.factors[1] = Some(graph.submit(potrf.task(), &self.waits)?);
        Ok(())
    }

    /// Solves the tile in this row, and changes what is right of it. After the first row comes the next factor, which needs no more than that.
    fn row<G: GraphBuilder>(&mut self, graph: &mut G, row: u64) -> Result<(), BuildError> {
        let waited = *self.changed(row, self.column)?;
        let trsm = self.solution(row, waited)?;
        self.solved.push(graph.submit(trsm.task(), &self.waits)?);
        let mut at = self.column + 1;
        while at <= row {
            let products = self.products(row, at, waited)?;
            let id = self.submit(graph, &products)?;
            *self.changed(row, at)? = Some(id);
            at = products.end;
        }
        if row == self.column + 1 { self.factor(graph, row) } else { Ok(()) }
    }

    /// Submits the chain of some products.
    fn submit<G: GraphBuilder>(
        &mut self,
        graph: &mut G,
        products: &Products,
    ) -> Result<TaskId, Fault> {
        let (n, size, rows) = (self.args.n.get(), self.args.tile.get(), products.rows);
        let [left, right, changed] = products.tensors;
        let syrk =
            library::cholesky_syrk(left, products.diagonal.unwrap_or(left), rows, size, n, n);
        if products.count == 0 {
            return graph.submit(syrk.task(), &self.waits);
        }
        let chain = &mut self.chains[products.template % CHAINED];
        if products.template == 0 || !chain.is_filled() {
            let gemm = library::cholesky_gemm(left, right, changed, rows, size, size, n, n, n);
            let varies = [moves(1, size * n), moves(2, size)];
            let gemms = Link::new(gemm.task()).times(products.count).varying(&varies);
            let links = [gemms, Link::new(syrk.task())];
            let links = &links[..1 + usize::from(products.diagonal.is_some())];
            graph.fill_template(chain, &Chain::new(links))?;
        }
        products.move_to(chain)?;
        graph.submit_template(chain, &self.waits)
    }

    /// The solution of the tile in this row, which was changed by `changed`.
    // Not inlined: programs are called with each kind of builder.
    #[inline(never)]
    fn solution(&mut self, row: u64, changed: Option<TaskId>) -> Result<Call<u64, 6>, Fault> {
        self.waits.clear();
        for id in [self.factors[0], changed, self.solved.before()] {
            self.wait_for(id)?;
        }
        let (n, size) = (self.args.n.get(), self.args.tile.get());
        let (factor, tile) = (self.tile(self.column, self.column), self.tile(row, self.column));
        Ok(library::cholesky_trsm(factor, tile, self.args.tile_at(row).1, size, n, n))
    }

    /// The products of a row from column `from` on that are in one part, up to the diagonal. The solution of the row has waited for `waited`.
    #[inline(never)]
    fn products(&mut self, row: u64, from: u64, waited: Option<TaskId>) -> Result<Products, Fault> {
        let (part, rows) = (self.args.part(), self.args.tile_at(row).1);
        let end = (from / part + 1) * part.get();
        let until = row.min(end);
        self.waits.clear();
        for row in once(row).chain(from..until) {
            let number = index(row - self.column - 1)?;
            self.wait_for(Some(self.solved.at(number)?))?;
        }
        let changed = *self.changed(row, from)?;
        self.wait_for(changed.filter(|id| waited != Some(*id)))?;
        let is_alike = rows == self.args.tile.get() && row < end;
        Ok(Products {
            tensors: [(row, self.column), (from, self.column), (row, from)]
                .map(|(row, column)| self.tile(row, column)),
            diagonal: (row < end).then(|| self.tile(row, row)),
            count: extent(until - from)?,
            rows,
            template: if is_alike { index(until - from)? } else { 0 },
            end,
        })
    }

    /// The next task waits for this one as well.
    fn wait_for(&mut self, id: Option<TaskId>) -> Result<(), Fault> {
        id.map_or(Ok(()), |id| self.waits.push(id).map_err(|_| Fault::BUILD_ORCH_ARGS))
    }

    /// The chain that has changed a tile, or one that waits for it.
    fn changed(&mut self, row: u64, column: u64) -> Result<&mut Option<TaskId>, Fault> {
        let part = self.args.part();
        let parts = 1 + (self.args.columns() - 1) / part;
        Ok(&mut self.changed[index(row * parts + column / part)? % CHANGED])
    }

    /// The first element of a tile.
    const fn tile(&self, row: u64, column: u64) -> GmAddr {
        let (n, size) = (self.args.n.get(), self.args.tile.get());
        self.args.matrix.offset((row * n + column) * size * F32)
    }
}

fn index(number: u64) -> Result<usize, Fault> {
    usize::try_from(number).map_err(|_| Fault::BUILD_ORCH_ARGS)
}

/// Products of a row in one part.
struct Products {
    /// The solution of the row, the first of the solutions that it is multiplied by, and the first tile that is changed. The others are below, and right
    /// of these.
    tensors: [GmAddr; 3],
    /// The tile on the diagonal, if it is in the part.
    diagonal: Option<GmAddr>,
    /// How many there are, without that with itself.
    count: u32,
    /// Rows of the tiles.
    rows: u64,
    /// The index of their template.
    template: usize,
    /// Where the next part begins.
    end: u64,
}

impl Products {
    /// A template of as many products becomes the chain of these.
    fn move_to(&self, chain: &mut ChainTemplate) -> Result<(), Fault> {
        for (arg, tensor) in self.tensors.into_iter().enumerate() {
            chain.set(0, arg, tensor.0)?;
        }
        if let Some(diagonal) = self.diagonal {
            chain.set(1, 0, self.tensors[0].0)?;
            chain.set(1, 1, diagonal.0)?;
        }
        Ok(())
    }
}
