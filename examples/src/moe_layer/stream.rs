//! The program of `moe_layer`.
//!
//! ```text
//! matmul       (AIC)          logits = x @ router
//! moe_route    (AIV, tokens)  the experts of each token, and their weights
//! copy         (AIV, tiles)   out = x
//! moe_list     (AIV, experts) the entries of each expert, and how many
//! for each expert:
//!   moe_gather   (AIV)         rows = their tokens
//!   moe_matmul   (AIC, tiles)  gate = rows @ wg, up = rows @ wu
//!   moe_silu_mul (AIV, tiles)  gate = silu(gate) * up
//!   moe_matmul   (AIC, tiles)  rows = gate @ wd
//! for some experts, in order:
//!   moe_scatter  (AIV, tiles)  out += weight * rows
//! ```
//! The program does not wait for the router: it submits the tasks of all experts. Those between `moe_list` and `moe_scatter` have a
//! predicate, that the expert has an entry: without one they complete without running. How many rows a task has is in memory.
//! The scatters of a tile of `out` are in order, so that its sums are the same in every run. One chain has those of some experts,
//! because each dispatch in this order takes its time; for an expert without an entry a scatter adds nothing. Experts are submitted in
//! waves: first what begins the experts of a wave, and then the rest, so that cores have work while the program is submitted.
//!
//! Kernels are short, so that the program states what waits for what, and gives a core those of some tiles in one dispatch.

use core::num::NonZeroU64;

use pto_abi::{Fault, GmAddr, TaskId};
use pto_aicore_kernels::library;
use pto_graph::call::Call;
use pto_graph::{
    BuildError, Chain, ChainTemplate, Comparison, DependencyMode, ElementType, Link, Predicate,
    Scope, StreamBuilder, TensorView, Variation,
};

use crate::args::{Size, tiles};
use crate::streaming::{F32, LINE, StageTasks, dense, extent, floats, moves, tile};

/// Experts whose entries one core lists in one dispatch.
const LISTED: NonZeroU64 = NonZeroU64::MIN.saturating_add(7);
/// Experts that are submitted together, and whose results one core adds in one dispatch: the results of a tile are added in order, and each dispatch takes
/// its time.
const WAVE: usize = 16;
const WAVE_OF_EXPERTS: NonZeroU64 = NonZeroU64::MIN.saturating_add(WAVE as u64 - 1);
/// Tokens that one task routes.
pub(super) const ROUTED: core::num::NonZeroU64 = core::num::NonZeroU64::MIN.saturating_add(15);

crate::orch_args! {
    /// The words of `moe_layer`.
    pub struct Args {
        /// `f32 [tokens, hidden]`.
        x: GmAddr,
        /// As `x`.
        out: GmAddr,
        /// `f32 [hidden, experts]`.
        router: GmAddr,
        /// `f32 [experts, hidden, intermediate]`.
        wg: GmAddr,
        /// As `wg`.
        wu: GmAddr,
        /// `f32 [experts, intermediate, hidden]`.
        wd: GmAddr,
        /// `u32 [tokens, top_k]`: the experts of each token.
        choices: GmAddr,
        /// `f32 [tokens, top_k]`: their weights.
        weights: GmAddr,
        /// `u32 [experts, LINE]`: how many tokens each expert got, in the first element of a line.
        counts: GmAddr,
        /// `u32 [experts, LINE]`: how often each expert ran, in the first element of a line.
        ran: GmAddr,
        /// Tokens.
        tokens: Size,
        /// Elements of a token.
        hidden: Size,
        /// Elements between the projections of an expert.
        intermediate: Size,
        /// Experts.
        experts: Size,
        /// Experts of a token: at most as many as there are.
        top_k: Size,
        /// Columns of a tile of a product.
        tile_n: Size,
        /// Tiles of a product that one core computes in one dispatch: of both first products of an expert, or of its results.
        chained: Size,
    }
}

impl Args {
    /// Tasks that the program submits.
    #[must_use]
    pub fn tasks(&self) -> u64 {
        let cut = |extent: Size| extent.get().div_ceil(self.tile_n.get());
        let (hidden, inner) = (cut(self.hidden), cut(self.intermediate));
        let routes = self.tokens.get().div_ceil(ROUTED.get());
        1 + routes + hidden + self.experts.get() * (2 + 3 * inner + 2 * hidden)
    }
}

/// Submits the tasks.
///
/// # Errors
/// `BUILD_ORCH_ARGS`, and those of [`StreamBuilder`].
pub fn build<G: StreamBuilder>(stream: &mut G) -> Result<(), BuildError> {
    let args = Args::from_words(stream.orch_args())?;
    args.check()?;
    stream.scope::<(), BuildError>(DependencyMode::MANUAL, |scope| {
        let layer = MoeStream::new(scope, &args)?;
        let stream = &mut **scope;
        let begun = layer.begin(stream)?;
        let routed = layer.route(stream)?;
        let mut listed = StageTasks::new();
        for experts in tiles(args.experts.get(), LISTED) {
            layer.list(stream, experts, (routed.tasks(), &mut listed))?;
        }
        let (mut last, mut steps) = (StageTasks::new(), Steps::default());
        for experts in tiles(args.experts.get(), WAVE_OF_EXPERTS) {
            last = layer.experts(stream, experts, (&listed, begun), (last, &mut steps))?;
        }
        Ok(())
    })
}

/// The tensors of the layer.
struct MoeStream<'a> {
    args: &'a Args,
    /// `[tokens, experts]`.
    logits: GmAddr,
    /// `u32 [experts, tokens]`: the entries of each expert, each list in lines of its own.
    lists: GmAddr,
}

/// The tensors of one expert.
struct Expert<'a> {
    args: &'a Args,
    number: u64,
    /// `u32 [1, 1]`: how many entries it has.
    count: TensorView<'static>,
    /// Its entries.
    list: GmAddr,
    /// `[tokens, hidden]`: its tokens.
    rows: GmAddr,
    /// `[tokens, hidden]`.
    results: GmAddr,
    /// `[tokens, intermediate]`.
    gate: GmAddr,
    /// `[tokens, intermediate]`.
    up: GmAddr,
}

/// The steps of an expert. The chains of all experts are alike: they differ in their tensors, and in the element of their predicate.
#[derive(Default)]
struct Steps {
    gather: Step,
    gated: Step,
    activate: Step,
    down: Step,
}

/// A step of an expert.
#[derive(Default)]
struct Step {
    /// Its chain on so many columns, once there was one.
    chain: ChainTemplate,
    cols: u64,
}

impl Step {
    /// Whether its template is that of a chain on so many columns.
    const fn is_on(&self, cols: u64) -> bool {
        self.chain.is_filled() && self.cols == cols
    }
}

/// Products of one expert that run side by side, at most.
const PRODUCTS: usize = 8;

/// An expert, and the products that were submitted for it last.
type Computed<'a> = Option<(Expert<'a>, StageTasks<PRODUCTS>)>;

impl Args {
    /// Every tensor can be addressed.
    fn check(&self) -> Result<(), BuildError> {
        let [tokens, hidden, inner] = [self.tokens, self.hidden, self.intermediate].map(Size::get);
        let (experts, top_k) = (self.experts.get(), self.top_k.get());
        floats(self.x, &[tokens, hidden])?;
        floats(self.router, &[hidden, experts])?;
        floats(self.wg, &[experts * hidden, inner])?;
        floats(self.wd, &[experts * inner, hidden])?;
        dense(self.choices, ElementType::U32, &[tokens, top_k])?;
        dense(self.counts, ElementType::U32, &[experts, LINE])?;
        Ok(())
    }

    /// Elements of an expert's results, in whole lines.
    const fn results(&self) -> u64 {
        (self.tokens.get() * self.hidden.get()).next_multiple_of(LINE)
    }

    /// Columns of the tiles of a chain.
    const fn group(&self) -> NonZeroU64 {
        self.tile_n.non_zero().saturating_mul(self.chained.non_zero())
    }

    /// Elements of an expert's list, in whole lines.
    const fn listed(&self) -> u64 {
        self.tokens.get().next_multiple_of(LINE)
    }
}

impl<'a> MoeStream<'a> {
    fn new<G: StreamBuilder>(
        scope: &mut Scope<'_, '_, G>,
        args: &'a Args,
    ) -> Result<Self, BuildError> {
        let logits = [extent(args.tokens.get())?, extent(args.experts.get())?];
        let lists = [extent(args.experts.get())?, extent(args.listed())?];
        Ok(Self {
            args,
            logits: scope.tensor(ElementType::F32, &logits)?.address(),
            lists: scope.tensor(ElementType::U32, &lists)?.address(),
        })
    }

    fn route<G: StreamBuilder>(&self, stream: &mut G) -> Result<StageTasks, BuildError> {
        let args = self.args;
        let [tokens, hidden, experts, top_k] =
            [args.tokens, args.hidden, args.experts, args.top_k].map(Size::get);
        let (x, router, logits) = (args.x, args.router, self.logits);
        let product =
            library::matmul(x, router, logits, tokens, experts, hidden, hidden, experts, experts);
        let product = stream.submit(product.task(), &[])?;
        let mut stage = StageTasks::new();
        for (token, tokens) in tiles(tokens, ROUTED) {
            let logits = logits.offset(token * experts * F32);
            let [choices, weights] =
                [args.choices, args.weights].map(|at| at.offset(token * top_k * F32));
            let route =
                library::moe_route(logits, choices, weights, tokens, experts, top_k, experts);
            stage.task(stream, route.task(), &[Some(product)])?;
        }
        Ok(stage)
    }

    /// What the experts add to: the tokens themselves.
    fn begin<G: StreamBuilder>(&self, stream: &mut G) -> Result<TaskId, BuildError> {
        let (tokens, hidden) = (self.args.tokens.get(), self.args.hidden.get());
        let copy = |col: u64, cols: u64| {
            let [x, out] = [self.args.x, self.args.out].map(|at| at.offset(col * F32));
            library::copy(x, out, tokens, cols, hidden, hidden)
        };
        let cut = Cut::of(hidden, self.args.tile_n);
        let (calls, varies) = (cut.calls(copy), [0, 1].map(|arg| moves(arg, cut.width)));
        let links = cut.links(&calls, &varies)?;
        Ok(stream.submit_chain(&Chain::new(links.whole()), &[])?)
    }

    /// The entries of some experts.
    fn list<G: StreamBuilder>(
        &self,
        stream: &mut G,
        (first, count): (u64, u64),
        (after, listed): (&[TaskId], &mut StageTasks),
    ) -> Result<(), BuildError> {
        let args = self.args;
        let entries = args.tokens.get() * args.top_k.get();
        let list = self.lists.offset(first * args.listed() * F32);
        let counts = args.counts.offset(first * LINE * F32);
        let list = library::moe_list(args.choices, list, counts, entries, first);
        let varies = [moves(1, args.listed()), moves(2, LINE), Variation::by(4, 1)];
        let links = [Link::new(list.task()).times(extent(count)?).varying(&varies)];
        listed.chain(stream, &links, after)
    }

    /// Submits some experts, after their lists: the first products of all of them, so that all cores have work soon, and then the others, and what
    /// adds the results, after the scatters of the experts before, or the copy of all tokens. Returns their own scatters.
    fn experts<G: StreamBuilder>(
        &self,
        stream: &mut G,
        (first, count): (u64, u64),
        (listed, begun): (&StageTasks, TaskId),
        (last, steps): (StageTasks, &mut Steps),
    ) -> Result<StageTasks, BuildError> {
        stream.scope(DependencyMode::MANUAL, |scope| {
            let mut computed: [Computed<'_>; WAVE] = [const { None }; WAVE];
            // The results of all in one tensor, so that one link of a chain adds those of several experts.
            let all =
                scope.tensor(ElementType::F32, &[extent(count)?, extent(self.args.results())?])?;
            for (number, entry) in (first..first + count).zip(&mut computed) {
                let results = all.address().offset((number - first) * self.args.results() * F32);
                let expert = self.expert(scope, number, results)?;
                let stream = &mut **scope;
                let list = usize::try_from(number / LISTED).map_err(|_| Fault::BUILD_ORCH_ARGS)?;
                let gathered = expert.gather(stream, listed.at(list)?, &mut steps.gather)?;
                let gated = expert.gated(stream, gathered, &mut steps.gated)?;
                *entry = Some((expert, gated));
            }
            let stream = &mut **scope;
            for (expert, products) in computed.iter_mut().flatten() {
                let activated = expert.activate(stream, products.tasks(), &mut steps.activate)?;
                *products = expert.down(stream, activated, &mut steps.down)?;
            }
            self.scatter(stream, &computed, (begun, &last))
        })
    }

    /// An expert, with tensors on the heap of the scope.
    fn expert<G: StreamBuilder>(
        &self,
        scope: &mut Scope<'_, '_, G>,
        number: u64,
        results: GmAddr,
    ) -> Result<Expert<'a>, BuildError> {
        let args = self.args;
        let (tokens, hidden, inner) = (args.tokens, args.hidden, args.intermediate);
        let counts = dense(args.counts, ElementType::U32, &[args.experts.get(), LINE])?;
        let mut tensor = |cols: Size| -> Result<GmAddr, BuildError> {
            let shape = [extent(tokens.get())?, extent(cols.get())?];
            Ok(scope.tensor(ElementType::F32, &shape)?.address())
        };
        Ok(Expert {
            args,
            number,
            count: tile(counts, (number, 1), (0, 1))?,
            list: self.lists.offset(number * args.listed() * F32),
            rows: tensor(hidden)?,
            results,
            gate: tensor(inner)?,
            up: tensor(inner)?,
        })
    }

    /// `out += weight * results`: a chain for each tile, in the order of the experts, after that of the experts before.
    #[inline(never)]
    fn scatter<G: StreamBuilder>(
        &self,
        stream: &mut G,
        computed: &[Computed<'_>],
        (begun, last): (TaskId, &StageTasks),
    ) -> Result<StageTasks, BuildError> {
        let width = self.args.tile_n.non_zero();
        let mut scattered = StageTasks::new();
        for (index, tile) in tiles(self.args.hidden.get(), width).enumerate() {
            let before = if last.tasks().is_empty() { begun } else { last.at(index)? };
            let product =
                usize::try_from(tile.0 / self.args.group()).map_err(|_| Fault::BUILD_ORCH_ARGS)?;
            let mut after = [before; 1 + WAVE];
            let mut count = 0;
            for ((_, products), id) in computed.iter().flatten().zip(&mut after[1..]) {
                *id = products.at(product)?;
                count += 1;
            }
            let Some((first, _)) = computed.iter().flatten().next() else { continue };
            let scatter = first.scatter(tile);
            // Results, lists and counts of experts are one after the other.
            let varies =
                [moves(0, self.args.results()), moves(1, self.args.listed()), moves(2, LINE)];
            let links = [Link::new(scatter.task()).times(extent(count as u64)?).varying(&varies)];
            scattered.chain(stream, &links, after.get(..=count).unwrap_or(&after))?;
        }
        Ok(scattered)
    }
}

impl Expert<'_> {
    /// That the expert has an entry: its chains run then.
    fn has_entries(&self) -> Predicate<'_> {
        Predicate::new(&self.count, &[0, 0], Comparison::NOT_EQUAL, 0)
    }

    /// Submits a chain of a step on so many columns. The first one becomes the template of the step.
    fn submit<G: StreamBuilder>(
        &self,
        stream: &mut G,
        links: &[Link<'_>],
        (step, cols): (&mut Step, u64),
        after: &[TaskId],
    ) -> Result<TaskId, BuildError> {
        let chain = Chain::new(links);
        if step.chain.is_filled() {
            return Ok(stream.submit_chain_when(&chain, after, &self.has_entries())?);
        }
        stream.fill_template(&mut step.chain, &chain)?;
        step.cols = cols;
        Ok(stream.submit_template_when(&step.chain, after, &self.has_entries())?)
    }

    /// Submits a chain of a step that its template is for. These are the first arguments of each link.
    fn submit_again<G: StreamBuilder, const N: usize>(
        &self,
        stream: &mut G,
        step: &mut Step,
        arguments: impl Iterator<Item = [GmAddr; N]>,
        after: &[TaskId],
    ) -> Result<TaskId, BuildError> {
        for (link, arguments) in arguments.enumerate() {
            for (arg, word) in arguments.into_iter().enumerate() {
                step.chain.set(link, arg, word.0)?;
            }
        }
        Ok(stream.submit_template_when(&step.chain, after, &self.has_entries())?)
    }

    /// The expert's tokens.
    fn gather<G: StreamBuilder>(
        &self,
        stream: &mut G,
        listed: TaskId,
        step: &mut Step,
    ) -> Result<TaskId, BuildError> {
        let [tokens, hidden, top_k] =
            [self.args.tokens, self.args.hidden, self.args.top_k].map(Size::get);
        let (x, ran) = (self.args.x, self.args.ran.offset(self.number * LINE * F32));
        let (list, count, rows) = (self.list, self.count.address(), self.rows);
        if step.is_on(hidden) {
            let arguments = [[x, list, count, ran, rows]].into_iter();
            return self.submit_again(stream, step, arguments, &[listed]);
        }
        let gather =
            library::moe_gather(x, list, count, ran, rows, tokens, hidden, top_k, hidden, hidden);
        self.submit(stream, &[Link::new(gather.task())], (step, hidden), &[listed])
    }

    /// `gate = rows @ wg`, `up = rows @ wu`: some tiles of both at a time.
    fn gated<G: StreamBuilder>(
        &self,
        stream: &mut G,
        gathered: TaskId,
        step: &mut Step,
    ) -> Result<StageTasks<PRODUCTS>, BuildError> {
        let (hidden, inner) = (self.args.hidden.get(), self.args.intermediate.get());
        let mut last = StageTasks::narrow();
        for (col, cols) in tiles(inner, self.args.group()) {
            let cut = Cut::of(cols, self.args.tile_n);
            let both = [(self.args.wg, self.gate), (self.args.wu, self.up)].map(|(weights, to)| {
                let weights = weights.offset((self.number * hidden * inner + col) * F32);
                Multiplied { expert: self, rows: self.rows, weights, to: to.offset(col * F32) }
            });
            let after = [gathered, last.before().unwrap_or(gathered)];
            let after = &after[..1 + usize::from(last.before().is_some())];
            let id = if step.is_on(cols) {
                let arguments = both.iter().flat_map(|it| cut.starts().map(|at| it.arguments(at)));
                self.submit_again(stream, step, arguments, after)?
            } else {
                let [gate, up] = both.map(|it| it.calls(&cut, [hidden, inner]));
                let varies = [1, 2].map(|arg| moves(arg, cut.width));
                let links = cut.links(&gate, &varies)?.and(&cut.links(&up, &varies)?);
                self.submit(stream, links.whole(), (step, cols), after)?
            };
            last.push(id);
        }
        Ok(last)
    }

    /// `gate = silu(gate) * up`.
    fn activate<G: StreamBuilder>(
        &self,
        stream: &mut G,
        after: &[TaskId],
        step: &mut Step,
    ) -> Result<TaskId, BuildError> {
        let (inner, count) = (self.args.intermediate.get(), self.count.address());
        let cut = Cut::of(inner, self.args.tile_n);
        let tensors = |at: u64| {
            let [gate, up] = [self.gate, self.up].map(|it| it.offset(at * F32));
            [gate, up, gate, count]
        };
        if step.is_on(inner) {
            return self.submit_again(stream, step, cut.starts().map(tensors), after);
        }
        let calls = cut.calls(|at, cols| {
            let [gate, up, out, count] = tensors(at);
            library::moe_silu_mul(gate, up, out, count, cols, inner, inner, inner)
        });
        let varies = [0, 1, 2].map(|arg| moves(arg, cut.width));
        let links = cut.links(&calls, &varies)?;
        self.submit(stream, links.whole(), (step, inner), after)
    }

    /// `results = gate @ wd`: some tiles at a time.
    fn down<G: StreamBuilder>(
        &self,
        stream: &mut G,
        gated: TaskId,
        step: &mut Step,
    ) -> Result<StageTasks<PRODUCTS>, BuildError> {
        let (hidden, inner) = (self.args.hidden.get(), self.args.intermediate.get());
        let mut products = StageTasks::narrow();
        for (col, cols) in tiles(hidden, self.args.group()) {
            let cut = Cut::of(cols, self.args.tile_n);
            let weights = self.args.wd.offset((self.number * inner * hidden + col) * F32);
            let to = self.results.offset(col * F32);
            let product = Multiplied { expert: self, rows: self.gate, weights, to };
            let after = [gated, products.before().unwrap_or(gated)];
            let after = &after[..1 + usize::from(products.before().is_some())];
            let id = if step.is_on(cols) {
                let arguments = cut.starts().map(|at| product.arguments(at));
                self.submit_again(stream, step, arguments, after)?
            } else {
                let calls = product.calls(&cut, [inner, hidden]);
                let varies = [1, 2].map(|arg| moves(arg, cut.width));
                self.submit(stream, cut.links(&calls, &varies)?.whole(), (step, cols), after)?
            };
            products.push(id);
        }
        Ok(products)
    }

    /// Adds the expert's results in one tile. Without an entry the kernel adds nothing.
    fn scatter(&self, (col, cols): (u64, u64)) -> Call<u64, 10> {
        let args = self.args;
        let [tokens, hidden, top_k] = [args.tokens, args.hidden, args.top_k].map(Size::get);
        let [results, out] = [self.results, args.out].map(|at| at.offset(col * F32));
        let (list, count, weights) = (self.list, self.count.address(), args.weights);
        library::moe_scatter(
            results, list, count, weights, out, tokens, cols, top_k, hidden, hidden,
        )
    }
}

/// A product of an expert's rows and some columns of a matrix of weights.
struct Multiplied<'e> {
    expert: &'e Expert<'e>,
    rows: GmAddr,
    weights: GmAddr,
    to: GmAddr,
}

impl Multiplied<'_> {
    /// The tensors of the kernel whose columns begin there.
    fn arguments(&self, at: u64) -> [GmAddr; 4] {
        let count = self.expert.count.address();
        [self.rows, self.weights.offset(at * F32), self.to.offset(at * F32), count]
    }

    /// The kernels of some tiles. Sizes: the elements of a sum, and the columns of the matrix.
    fn calls(&self, cut: &Cut, [depth, columns]: [u64; 2]) -> TileCalls<9> {
        cut.calls(|at, cols| {
            let [rows, weights, to, count] = self.arguments(at);
            library::moe_matmul(rows, weights, to, count, cols, depth, depth, columns, columns)
        })
    }
}

/// The kernel of the first whole tile of a cut, and that of the last tile, which is narrower.
struct TileCalls<const N: usize> {
    whole: Call<u64, N>,
    rest: Call<u64, N>,
}

/// Columns cut in tiles: whole ones, and a last one that is narrower.
#[derive(Clone, Copy)]
struct Cut {
    width: u64,
    whole: u64,
    rest: u64,
}

impl Cut {
    const fn of(cols: u64, width: Size) -> Self {
        let width = width.get();
        Self { width, whole: cols / width, rest: cols % width }
    }

    /// Where the last tile begins.
    const fn rest_at(&self) -> u64 {
        self.whole * self.width
    }

    /// Where the first tile of each link begins.
    fn starts(&self) -> impl Iterator<Item = u64> + use<> {
        let whole = (self.whole > 0).then_some(0);
        [whole, (self.rest > 0).then_some(self.rest_at())].into_iter().flatten()
    }

    /// The kernels, by where their columns begin, and how many these are.
    fn calls<const N: usize>(&self, of: impl Fn(u64, u64) -> Call<u64, N>) -> TileCalls<N> {
        TileCalls { whole: of(0, self.width), rest: of(self.rest_at(), self.rest) }
    }

    /// A link of the whole tiles, whose arguments vary so, and one of the last tile, as far as there are such.
    fn links<'l, const N: usize>(
        &self,
        calls: &'l TileCalls<N>,
        varies: &'l [Variation<'l>],
    ) -> Result<Links<'l>, BuildError> {
        let rest = Link::new(calls.rest.task());
        let mut links = Links { links: [rest; 4], count: 0 };
        if self.whole > 0 {
            let whole = Link::new(calls.whole.task()).varying(varies);
            links.push(whole.times(extent(self.whole)?));
        }
        if self.rest > 0 {
            links.push(rest);
        }
        Ok(links)
    }
}

/// The links of a cut, or of two.
struct Links<'l> {
    links: [Link<'l>; 4],
    count: usize,
}

impl<'l> Links<'l> {
    fn whole(&self) -> &[Link<'l>] {
        self.links.get(..self.count).unwrap_or(&self.links)
    }

    /// One more; there are at most two of a cut.
    fn push(&mut self, link: Link<'l>) {
        if let Some(entry) = self.links.get_mut(self.count) {
            *entry = link;
        }
        self.count += 1;
    }

    fn and(mut self, other: &Self) -> Self {
        other.whole().iter().for_each(|link| self.push(*link));
        self
    }
}
