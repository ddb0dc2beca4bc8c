//! This process as a rank of an MPI job.

use std::sync::Arc;
use std::time::Duration;

use crate::ranks::error::MpiError;
use crate::ranks::exchange::Numbers;
use crate::ranks::find::{self, Kind};
use crate::ranks::group::Transport;
use crate::ranks::launcher;
use crate::ranks::library::MpiLibrary;
use crate::ranks::transport::WireTransport;

/// How a rank comes up, and when it takes another one for dead.
#[derive(Clone, Copy, Debug)]
pub struct MpiOptions {
    /// How long a rank waits for all others to come up.
    pub bring_up_budget: Duration,
    /// A rank that says nothing for so long, while a run is on, is taken for dead.
    pub silence_budget: Duration,
}

impl Default for MpiOptions {
    fn default() -> Self {
        Self { bring_up_budget: Duration::from_secs(30), silence_budget: Duration::from_secs(10) }
    }
}

/// A rank of an MPI job. Dropped, it leaves the job together with all other ranks.
pub struct Mpi {
    transport: Arc<WireTransport<MpiLibrary>>,
    kind: Kind,
    library: String,
    rank: u32,
    ranks: u32,
    host: String,
}

impl Mpi {
    /// Makes this process a rank: finds the MPI that has started it, loads its plug-in, starts MPI, and waits for all other ranks.
    ///
    /// # Errors
    /// Those of [`MpiError`].
    pub fn join(options: &MpiOptions) -> Result<Self, MpiError> {
        let kind = Kind::of_launcher()?;
        let (library, started) = MpiLibrary::start(&find::plugin(kind)?)?;
        launcher::note_wishes();
        let numbers = Numbers {
            rank: started.rank,
            ranks: started.ranks,
            max_tag: started.max_tag,
            silence: options.silence_budget,
        };
        let transport =
            WireTransport::join(library, numbers, &started.host, options.bring_up_budget)?;
        Ok(Self {
            transport: Arc::new(transport),
            kind,
            library: started.library,
            rank: started.rank,
            ranks: started.ranks,
            host: started.host,
        })
    }

    /// What a group joins with.
    #[must_use]
    pub fn transport(&self) -> Arc<dyn Transport> {
        Arc::clone(&self.transport) as Arc<dyn Transport>
    }

    /// The MPI that has started this process.
    #[must_use]
    pub const fn kind(&self) -> Kind {
        self.kind
    }

    /// MPI's own name and version.
    #[must_use]
    pub fn library(&self) -> &str {
        &self.library
    }

    /// This rank.
    #[must_use]
    pub const fn rank(&self) -> u32 {
        self.rank
    }

    /// The number of ranks.
    #[must_use]
    pub const fn ranks(&self) -> u32 {
        self.ranks
    }

    /// The name of this rank's host.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Whether the launcher has asked this process to end, as it does when another rank has died.
    #[must_use]
    pub fn is_asked_to_end(&self) -> bool {
        launcher::has_asked_to_end()
    }

    /// MPI's own sum over all ranks, which `pto bench collectives` compares ours with. It waits for all ranks.
    ///
    /// # Errors
    /// What MPI says.
    pub fn all_reduce_sum(&self, from: &[f32], to: &mut [f32]) -> Result<(), MpiError> {
        let result = self.transport.with_wire(|wire| wire.all_reduce_sum(from, to));
        result.map_err(|why| MpiError::Refused { what: "sum over all ranks", why: why.0 })
    }

    /// Waits for all ranks.
    ///
    /// # Errors
    /// What MPI says.
    pub fn barrier(&self) -> Result<(), MpiError> {
        let result = self.transport.with_wire(Wire::barrier);
        result.map_err(|why| MpiError::Refused { what: "wait for all ranks", why: why.0 })
    }
}

use crate::ranks::wire::Wire;

impl Drop for Mpi {
    fn drop(&mut self) {
        self.transport.leave();
    }
}
