//! The inputs of `moe_layer`: what the user gave, checked; what they did not, drawn from the seed.

use std::vec::Vec;

use crate::args::Size;
use crate::host::error::invalid;
use crate::host::job::index;
use crate::host::random::Rng;
use crate::host::tensor::count;
use crate::host::{Error, Inputs, Params};
use crate::moe_layer::stream::Args;
use crate::streaming::LINE;

/// The parameters, checked against each other.
#[derive(Clone, Copy, Debug)]
pub struct MoeShape {
    /// Tokens.
    pub tokens: Size,
    /// Elements of a token.
    pub hidden: Size,
    /// Elements between the projections of an expert.
    pub intermediate: Size,
    /// Experts.
    pub experts: Size,
    /// Experts of a token.
    pub top_k: Size,
    /// Columns of a tile of a product.
    pub tile_n: Size,
}

impl MoeShape {
    /// The shape that the parameters describe.
    ///
    /// # Errors
    /// More experts of a token than there are.
    pub fn new(params: &Params) -> Result<Self, Error> {
        let (experts, top_k) = (params.extent("experts")?, params.extent("top_k")?);
        if top_k > experts {
            let (experts, top_k) = (experts.get(), top_k.get());
            return Err(invalid!(
                "top_k = {top_k} is more than experts = {experts}; a token has different experts"
            ));
        }
        Ok(Self {
            tokens: params.extent("tokens")?,
            hidden: params.extent("hidden")?,
            intermediate: params.extent("intermediate")?,
            experts,
            top_k,
            tile_n: params.extent("tile_n")?,
        })
    }

    /// The words, without chains of several tiles; addresses are null.
    #[must_use]
    pub fn args(&self) -> Args {
        let null = pto_abi::GmAddr::NULL;
        let Self { tokens, hidden, intermediate, experts, top_k, tile_n } = *self;
        Args {
            x: null,
            out: null,
            router: null,
            wg: null,
            wu: null,
            wd: null,
            choices: null,
            weights: null,
            counts: null,
            ran: null,
            tokens,
            hidden,
            intermediate,
            experts,
            top_k,
            tile_n,
            chained: Size::ONE,
        }
    }

    /// Elements of a token, of the router, of the weights of one kind, of the choices, of the marks.
    #[must_use]
    pub fn counts(&self) -> [u64; 5] {
        let [tokens, hidden, inner, experts, top_k] =
            [self.tokens, self.hidden, self.intermediate, self.experts, self.top_k].map(Size::get);
        let weights = count(&[experts, hidden, inner]);
        [tokens * hidden, hidden * experts, weights, tokens * top_k, experts * LINE]
    }

    /// The elements of everything that the host puts into the memory of the device.
    #[must_use]
    pub fn elements(&self) -> [u64; 10] {
        let [x, router, weights, choices, marks] = self.counts();
        [x, x, router, weights, weights, weights, choices, choices, marks, marks]
    }
}

/// Everything that the program and the reference work on.
#[derive(Clone, Debug)]
pub struct MoeTensors {
    /// tokens, hidden.
    pub x: Vec<f32>,
    /// hidden, experts.
    pub router: Vec<f32>,
    /// experts, hidden, intermediate.
    pub wg: Vec<f32>,
    /// As `wg`.
    pub wu: Vec<f32>,
    /// experts, intermediate, hidden.
    pub wd: Vec<f32>,
}

impl MoeTensors {
    /// What the user gave; of the rest, what the seed draws.
    #[must_use]
    pub fn new(shape: &MoeShape, seed: u64, inputs: &Inputs) -> Self {
        let given = |name: &str, count: u64, fan_in: Option<Size>| match inputs.f32(name) {
            Some(values) => values.to_vec(),
            None => {
                // Products of weights have the variance of what they are taken of.
                let scale = fan_in.map_or(1.0, |fan_in| (3.0 / fan_in.get() as f32).sqrt());
                let units = Rng::new(seed, name).units(index(count));
                units.into_iter().map(|unit| unit * scale).collect()
            }
        };
        let [x, router, weights, ..] = shape.counts();
        Self {
            x: given("x", x, None),
            router: given("router", router, Some(shape.hidden)),
            wg: given("wg", weights, Some(shape.hidden)),
            wu: given("wu", weights, Some(shape.hidden)),
            wd: given("wd", weights, Some(shape.intermediate)),
        }
    }
}
