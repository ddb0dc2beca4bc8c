//! The backend `a2a3sim`: firmware and cores run in this process.

use std::ops::Range;
use std::sync::Arc;

use pto_abi::arena::Arena;
use pto_abi::{FuncId, GmAddr};
use pto_aicore_kernels::cost::OnChip;
use pto_sim_shim::group::TransferEngine;
use pto_sim_shim::virtual_time::group::NetEndpoint;
use pto_sim_shim::virtual_time::{FastRegions, KernelCosts, VirtualReport};
use pto_sim_shim::{Doorbell, Hosting, SimulatedMachine};

use crate::backend::simulated_set::SimulatedSet;
use crate::backend::{Backend, OnChipMark, RingDoorbell, RunOutcome};
use crate::copy_costs::CopyCosts;
use crate::error::Error;
use crate::kernel::Kernel;
use crate::kernel::KernelCode;
use crate::memory::Memory;

/// A machine, and what it takes to make another one: clones of `B` are the same set of programs.
pub(crate) struct Simulator<B> {
    hosting: Hosting,
    memory: Arc<Memory>,
    builders: B,
    machine: SimulatedMachine,
    doorbell: Arc<Doorbell>,
    fast: FastRegions,
    virtual_report: Option<Box<VirtualReport>>,
    post_mortem: Vec<String>,
    engine: Option<Arc<dyn TransferEngine>>,
    network: Option<NetEndpoint>,
}

impl<B: SimulatedSet> Simulator<B> {
    pub(crate) fn new(hosting: Hosting, memory: Arc<Memory>, builders: B) -> Self {
        let mut machine = builders.clone().machine(hosting, memory.clone());
        let doorbell = Arc::default();
        machine.hang(&doorbell);
        let fast = FastRegions::default();
        machine.follow(&fast);
        let (virtual_report, engine, network) = (None, None, None);
        let post_mortem = Vec::new();
        Self {
            hosting,
            memory,
            builders,
            machine,
            doorbell,
            fast,
            virtual_report,
            post_mortem,
            engine,
            network,
        }
    }
}

impl<B: SimulatedSet> Backend for Simulator<B> {
    fn name(&self) -> &'static str {
        "a2a3sim"
    }

    fn builders(&self) -> Vec<String> {
        self.machine.builders()
    }

    fn shares_launches_with_builders(&self) -> bool {
        B::SHARES_LAUNCHES
    }

    fn runs_cores_at_once(&self) -> bool {
        // The other modes step one core after the other.
        matches!(self.hosting, Hosting::Threads)
    }

    fn has_virtual_clock(&self) -> bool {
        matches!(self.hosting, Hosting::Virtual(_))
    }

    fn copy_costs(&self) -> Option<CopyCosts> {
        let Hosting::Virtual(options) = self.hosting else { return None };
        let profile = options.profile;
        Some(CopyCosts {
            start_ns: profile.start_ns.mean(),
            host_mib_ns: profile.host_mib_ns.mean(),
            device_mib_ns: profile.device_mib_ns.mean(),
        })
    }

    fn on_chip_costs(&self) -> Option<OnChip> {
        let Hosting::Virtual(options) = self.hosting else { return None };
        Some(options.profile.on_chip())
    }

    fn mark_on_chip(&self, addresses: Range<u64>) -> Option<OnChipMark> {
        Some(Box::new(self.fast.add(addresses)))
    }

    fn doorbell(&self) -> Option<RingDoorbell> {
        let is_pool = matches!(self.hosting, Hosting::Pool { .. });
        let doorbell = Arc::clone(&self.doorbell);
        is_pool.then(|| -> RingDoorbell { Arc::new(move || doorbell.ring()) })
    }

    fn kernel_costs(&self) -> KernelCosts {
        match self.hosting {
            Hosting::Virtual(options) => options.costs,
            _ => KernelCosts::Library { fallback: 0 },
        }
    }

    fn kernel_address(&self, kernel: &Kernel) -> Result<GmAddr, Error> {
        let entry = match kernel.code() {
            KernelCode::Library(library) => library.entry,
            KernelCode::Function(entry) => entry,
            KernelCode::Flashed => {
                let name = kernel.name().to_owned();
                return Err(Error::KernelNotFlashed { name, device: self.name() });
            }
        };
        Ok(GmAddr(entry as usize as u64))
    }

    fn name_kernel(&self, address: GmAddr, func_id: FuncId, kernel: &Kernel) {
        pto_sim_shim::name_kernel(address.0, func_id, kernel.name());
        if let Some(word) = kernel.cost_word() {
            pto_sim_shim::virtual_time::set_cost_word(address.0, word);
        }
    }

    fn run(&mut self, arena: Arena<'static>) -> RunOutcome {
        let outcome = self.machine.run(arena);
        self.virtual_report = outcome.virtual_report;
        let describe = |cause| {
            format!(
                "No thread could be started for the run ({cause}). End other threads of this process."
            )
        };
        self.post_mortem = outcome.no_thread.into_iter().map(describe).collect();
        RunOutcome {
            fault: outcome.fault,
            makespan: outcome.makespan,
            arena_lost: outcome.arena_lost,
        }
    }

    fn release(&mut self) -> bool {
        self.machine.release()
    }

    fn post_mortem(&self) -> &[String] {
        &self.post_mortem
    }

    fn take_virtual_report(&mut self) -> Option<Box<VirtualReport>> {
        self.virtual_report.take()
    }

    fn attach(&mut self, engine: Arc<dyn TransferEngine>) -> bool {
        self.machine.attach(Arc::clone(&engine));
        self.engine = Some(engine);
        true
    }

    fn join_network(&mut self, seat: NetEndpoint) -> bool {
        self.network = Some(seat.clone());
        self.machine.join_group(seat)
    }

    fn renew(&mut self) -> bool {
        let builders = self.builders.clone();
        self.machine = builders.machine(self.hosting, self.memory.clone());
        self.machine.hang(&self.doorbell);
        self.machine.follow(&self.fast);
        self.engine.iter().for_each(|engine| self.machine.attach(Arc::clone(engine)));
        if let Some(seat) = self.network.clone() {
            self.join_network(seat);
        }
        // A thread in a kernel that never returns lives as long as the process.
        false
    }
}
