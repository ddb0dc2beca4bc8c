//! What the builders of the firmware are compiled for. Generic code has one parameter, `C: Config`, and names its parts where it needs them.

use pto_abi::sync::Sharing;

use crate::builder::DeviceMemory;
use crate::fanout::FanoutPolicy;
use crate::machine::Machine;

/// How words are shared, how edges are added, and the machine around a builder. A tuple of the four is one.
pub trait Config {
    /// How the words of a run are shared between agents.
    type Sharing: Sharing;
    /// How an edge is added while its producer may complete.
    type Fanout: FanoutPolicy;
    /// What the builder reads of the device.
    type Memory: DeviceMemory;
    /// What the machine does while the builder program is on the stack.
    type Machine: Machine;
}

impl<S: Sharing, F: FanoutPolicy, M: DeviceMemory, K: Machine> Config for (S, F, M, K) {
    type Sharing = S;
    type Fanout = F;
    type Memory = M;
    type Machine = K;
}
