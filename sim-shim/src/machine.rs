//! The machine: owns the OS threads that host a device, parked between runs and reused.

use std::any::Any;
use std::sync::Arc;
use std::time::{Duration, Instant};

use pto_abi::Fault;
use pto_abi::arena::Arena;
use pto_aicpu_fw::{Launch, instance};
use pto_graph::BuilderSet;

use crate::builders::AnyBuilders;
use crate::clock;
use crate::crash;
use crate::doorbell::Doorbell;
use crate::group::{RunPort, TransferEngine};
use crate::host::Host;
use crate::hosting::Hosting;
use crate::pool::Pool;
use crate::threads::Threads;
use crate::virtual_time::group::NetEndpoint;
use crate::virtual_time::{FastRegions, Virtual, VirtualHost, VirtualReport};

/// How a run ended.
#[derive(Clone, Debug)]
pub struct LaunchOutcome {
    /// The fault, if there was one; its epitaph is in the arena.
    pub fault: Option<Fault>,
    /// From launch to the last return; in hosting mode `virtual`, in virtual time.
    pub makespan: Duration,
    /// A thread did not return: the arena may still be written to; it must not be freed or used again,
    /// and the machine must be replaced.
    pub arena_lost: bool,
    /// In hosting mode `virtual`: what the machine saw.
    pub virtual_report: Option<Box<VirtualReport>>,
    /// What the operating system says, where the process got no thread for the run.
    pub no_thread: Option<String>,
}

/// Who hosts, by the clock of its runs.
enum Hosted {
    Real(Box<dyn Host>),
    Virtual(Box<dyn VirtualHost>),
}

impl Hosted {
    fn as_host(&self) -> &dyn Host {
        match self {
            Self::Real(host) => &**host,
            Self::Virtual(host) => &**host,
        }
    }

    fn as_host_mut(&mut self) -> &mut dyn Host {
        match self {
            Self::Real(host) => &mut **host,
            Self::Virtual(host) => &mut **host,
        }
    }
}

/// Hosts firmware and kernels on this machine.
pub struct SimulatedMachine {
    host: Hosted,
    engine: Option<Arc<dyn TransferEngine>>,
}

impl SimulatedMachine {
    /// A machine in one of the hosting modes, whose firmware is compiled around these builders. `memory` owns the mapping
    /// of every arena that will be run; it stays alive as long as a thread of the machine does.
    pub fn new<B: BuilderSet>(
        hosting: Hosting,
        memory: Arc<dyn Any + Send + Sync>,
        builders: B,
    ) -> Self {
        crash::install();
        let builders = Arc::new(builders);
        let host = match hosting {
            Hosting::Threads => Hosted::Real(Box::new(Threads::new(memory, builders))),
            Hosting::Pool { os_threads } => {
                Hosted::Real(Box::new(Pool::new(os_threads, memory, builders)))
            }
            Hosting::Virtual(options) => {
                Hosted::Virtual(Box::new(Virtual::new(options, memory, builders)))
            }
        };
        Self { host, engine: None }
    }

    /// A machine whose firmware calls its builders through a table. It has no parameters, so that this firmware is compiled in
    /// this crate and in no other one.
    #[must_use]
    #[inline(never)]
    pub fn of_any(
        hosting: Hosting,
        memory: Arc<dyn Any + Send + Sync>,
        builders: AnyBuilders,
    ) -> Self {
        Self::new(hosting, memory, builders)
    }

    /// Has the transfers of all further runs moved by `engine`.
    pub fn attach(&mut self, engine: Arc<dyn TransferEngine>) {
        self.host.as_host_mut().attach(&engine);
        self.engine = Some(engine);
    }

    /// From now on `doorbell` wakes the thread that feeds a resident firmware, while that sleeps.
    pub fn hang(&mut self, doorbell: &Arc<Doorbell>) {
        self.host.as_host_mut().hang(doorbell);
    }

    /// Makes a machine in virtual time a rank of a group; `false`: it is not one in virtual time.
    #[must_use]
    pub fn join_group(&mut self, endpoint: NetEndpoint) -> bool {
        match &mut self.host {
            Hosted::Real(_) => false,
            Hosted::Virtual(host) => {
                host.join_group(endpoint);
                true
            }
        }
    }

    /// Gives a machine in virtual time the regions of its memory that are fast: transfers of library kernels from and to them cost less.
    pub fn follow(&mut self, fast: &FastRegions) {
        if let Hosted::Virtual(host) = &mut self.host {
            host.follow(fast.clone());
        }
    }

    /// The names of the builders that are linked in.
    #[must_use]
    pub fn builders(&self) -> Vec<String> {
        self.host.as_host().builders()
    }

    /// Lets go of the arena of the last run: after a run without a fault its cores stay in service for the next
    /// run of the same arena. To be called before that arena is freed or replaced by another one. `false`:
    /// a core did not come back; the arena must not be freed, and the machine must be replaced.
    #[must_use]
    pub fn release(&mut self) -> bool {
        self.host.as_host_mut().release()
    }

    /// Launches an arena that the host has prepared, and blocks until every AICPU instance has returned, or
    /// until it is certain that one does not.
    pub fn run(&mut self, arena: Arena<'static>) -> LaunchOutcome {
        let start = Instant::now();
        let arena_lost = match Launch::accept(arena) {
            Ok(launch) => !self.run_with_engine(&launch),
            Err(blame) => {
                instance::refuse(&arena, &blame, 0, clock::now_ns());
                false
            }
        };
        let virtual_report = match &mut self.host {
            Hosted::Real(_) => None,
            Hosted::Virtual(host) => host.take_report().map(Box::new),
        };
        let makespan = match &virtual_report {
            Some(report) => Duration::from_nanos(report.makespan_ns),
            None => start.elapsed(),
        };
        let no_thread = self.host.as_host_mut().take_thread_error();
        LaunchOutcome {
            fault: arena.fault().first(),
            makespan,
            arena_lost,
            virtual_report,
            no_thread: no_thread.map(|error| error.to_string()),
        }
    }

    fn run_with_engine(&mut self, launch: &Launch<'static>) -> bool {
        let host = self.host.as_host_mut();
        let Some(engine) = &self.engine else { return host.run(launch) };
        engine.begin(RunPort::new(launch));
        let is_back = host.run(launch);
        engine.end();
        is_back
    }
}
