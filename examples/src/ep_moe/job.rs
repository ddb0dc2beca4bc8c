//! The host side of `ep_moe`. Every rank draws all tokens and all experts, and keeps its share; it checks its tokens as `moe_layer` does.

use std::boxed::Box;
use std::vec::Vec;

use pto_host::Device;

use crate::args::Size;
use crate::ep_moe::stream::{Args, tasks};
use crate::host::job::{GraphSize, Prepared, check_room, index};
use crate::host::{
    Error, Example, ExampleDescription, GroupRank, Inputs, ParamSpec, Params, Program, TestSizes,
    for_groups,
};
use crate::moe_layer::inputs::{MoeShape, MoeTensors};
use crate::moe_layer::job::{self, ExpertsCheck, MoeBuffers};
use crate::moe_layer::reference::logits;

/// See [`crate::ep_moe`].
pub struct EpMoe;

static PARAMS: &[ParamSpec] = &[
    ParamSpec::extent("tokens", 32, "tokens, which the ranks share equally"),
    ParamSpec::extent("hidden", 128, "elements of a token"),
    ParamSpec::extent("intermediate", 128, "elements between the projections of an expert"),
    ParamSpec::extent("experts", 16, "experts, which the ranks share equally"),
    ParamSpec::extent("top_k", 2, "experts of a token; at most as many as there are"),
    ParamSpec::extent("tile_n", 64, "columns of a tile of a product"),
    ParamSpec::seed("of the random inputs"),
];

/// Sizes that 8 ranks can share.
const LITTLE: &[(&str, &str)] = &[
    ("tokens", "16"),
    ("hidden", "24"),
    ("intermediate", "20"),
    ("experts", "8"),
    ("top_k", "2"),
    ("tile_n", "16"),
];

impl Example for EpMoe {
    fn description(&self) -> ExampleDescription {
        ExampleDescription {
            name: "ep_moe",
            summary: "a mixture of experts on devices that exchange tokens; both kinds of cores",
            program: Program::Tensors,
            params: PARAMS,
            sizes: TestSizes { whole: LITTLE, little: LITTLE },
            inputs: job::INPUTS,
            outputs: job::OUTPUTS,
        }
    }

    for_groups!();

    fn prepare_member(
        &self,
        member: GroupRank,
        params: &Params,
        inputs: &Inputs,
        device: &Device,
    ) -> Result<Prepared, Error> {
        let whole = MoeShape::new(params)?;
        let own = MoeShape { tokens: member.share("tokens", whole.tokens)?, ..whole };
        let experts = member.share("experts", whole.experts)?;
        let mut args = own.args();
        let size = GraphSize::streamed(tasks(&args, member.size.into()));
        check_room(device, &own.elements(), &size)?;
        let all = MoeTensors::new(&whole, params.get("seed"), inputs);
        let tokens = share(&all.x, own.tokens, own.hidden.get(), member);
        let matrix = own.hidden.get() * own.intermediate.get();
        let [wg, wu, wd] =
            [&all.wg, &all.wu, &all.wd].map(|all| share(all, experts, matrix, member));
        let on_device = MoeTensors { x: tokens.clone(), router: all.router.clone(), wg, wu, wd };
        let buffers = MoeBuffers::new(&own, &on_device, device)?;
        buffers.fill_args(&mut args);
        let tensors = MoeTensors { x: tokens, ..all };
        let logits = logits(&own, &tensors);
        let words = args.words().to_vec();
        let check = ExpertsCheck { shape: own, tensors, logits, buffers, expected: None };
        Prepared::new(self.name(), (words, &Args::NAMES), size, Box::new(check))
    }
}

/// The share of one rank: so many of the tokens, or of the experts, with `each` elements.
fn share(all: &[f32], length: Size, each: u64, member: GroupRank) -> Vec<f32> {
    let length = index(length.get() * each);
    all[member.rank as usize * length..][..length].to_vec()
}
