//! The firmware's builders as those that a set of programs is run on. What programs in C need to know of the run, the
//! platform says around them.

use pto_graph::HostedBuilder;

use crate::builder::Builder;
use crate::config::Config;
use crate::stream::Stream;

impl<C: Config> HostedBuilder for Builder<'_, C> {}

impl<C: Config> HostedBuilder for Stream<'_, C> {}
