//! The firmware's builders as those that a set of programs is run on. What programs in C need to know of the run, the
//! platform says around them.

use pto_abi::sync::Sharing;
use pto_graph::HostedBuilder;

use crate::builder::{Builder, BuilderHost, DeviceMemory};
use crate::fanout::FanoutPolicy;
use crate::stream::Stream;

impl<S: Sharing, F: FanoutPolicy, M: DeviceMemory, H: BuilderHost> HostedBuilder
    for Builder<'_, S, F, M, H>
{
}

impl<S: Sharing, F: FanoutPolicy, M: DeviceMemory, H: BuilderHost> HostedBuilder
    for Stream<'_, S, F, M, H>
{
}
