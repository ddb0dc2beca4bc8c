//! The platform of one AICPU instance in virtual time: `LinesPlatform` over the arena's lines, with a time for
//! each operation, and with lines that the machine moves between the caches.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::hash::{Hash, Hasher};
use std::rc::Rc;

use pto_abi::Fault;
use pto_abi::handshake::Handshake;
use pto_abi::sync::Exclusive;
use pto_aicpu_fw::platform::{CoreStatus, Platform, Staged};
use pto_aicpu_fw::{LinesPlatform, Machine};

use super::core::SLOTS;
use super::device::{Ring, VirtualDevice};

/// Doorbells that the inner platform has rung; the outer platform rings them in virtual time.
#[derive(Clone, Default)]
struct PendingDoorbells(Rc<RefCell<Vec<u32>>>);

impl Machine for PendingDoorbells {
    const SLOTS: usize = SLOTS;
    const STAGES_AHEAD: bool = true;

    fn now_ns(&self) -> u64 {
        0
    }

    #[inline]
    fn ring(&mut self, worker: u32) {
        self.0.borrow_mut().push(worker);
    }
}

/// One instance's view of the machine.
pub(super) struct VirtualPlatform {
    inner: LinesPlatform<'static, Exclusive, PendingDoorbells>,
    pending: PendingDoorbells,
    device: Rc<RefCell<VirtualDevice>>,
    me: usize,
    workers: Vec<u32>,
    tasks: Vec<VecDeque<u32>>,
    now_ns: u64,
    // Something was written for a core since the last barrier.
    needs_barrier: bool,
}

impl VirtualPlatform {
    pub(super) fn new(
        me: usize,
        lines: &'static [Handshake],
        device: Rc<RefCell<VirtualDevice>>,
    ) -> Self {
        let pending = PendingDoorbells::default();
        let inner = LinesPlatform::new(lines, pending.clone());
        let (workers, tasks) = (Vec::new(), Vec::new());
        Self { inner, pending, device, me, workers, tasks, now_ns: 0, needs_barrier: false }
    }

    /// The instance's own time.
    #[inline]
    pub(super) const fn time_ns(&self) -> u64 {
        self.now_ns
    }

    /// Hashes its own state, without that of the machine.
    pub(super) fn hash_state<H: Hasher>(&self, into: &mut H) {
        let Self { inner, pending, device: _, me: _, workers: _, tasks, now_ns, needs_barrier } =
            self;
        inner.hash_state(into);
        (&*pending.0.borrow(), tasks, now_ns, needs_barrier).hash(into);
    }

    /// Goes on to `time_ns`, if that is later.
    #[inline]
    pub(super) fn advance_to(&mut self, time_ns: u64) {
        self.now_ns = self.now_ns.max(time_ns);
    }

    /// When the next report of one of its cores becomes visible, as far as one is under way that a step which
    /// started at `start_ns` could not see yet.
    pub(super) fn next_report_ns(&self, start_ns: u64) -> Option<u64> {
        let device = self.device.borrow();
        let cores = self.workers.iter().filter_map(|worker| device.cores.get(*worker as usize));
        let reports = cores.filter_map(|core| core.reports.front()).map(|report| report.visible_ns);
        reports.filter(|visible_ns| *visible_ns > start_ns).min()
    }

    #[inline]
    fn worker(&self, core: usize) -> usize {
        self.workers.get(core).map_or(usize::MAX, |worker| *worker as usize)
    }

    /// Looks at a core's line in GM.
    fn look(&mut self, core: usize) {
        let worker = self.worker(core);
        let mut device = self.device.borrow_mut();
        self.now_ns += device.options.profile.line_hit_ns.low;
        device.look_at(worker, self.now_ns);
    }

    /// Rings the doorbells that the inner platform has rung.
    fn ring_all(&mut self, what: Ring) {
        let mut device = self.device.borrow_mut();
        let profile = device.options.profile;
        let mut cost = profile.store_first_ns;
        for worker in self.pending.0.borrow_mut().drain(..) {
            let worker = worker as usize;
            if what == Ring::Dispatch {
                device.dispatched(worker, self.now_ns, self.me);
            }
            self.now_ns += device.chooser.delay(cost);
            cost = profile.store_burst_ns;
            device.ring(worker, self.now_ns, self.me, what);
        }
    }
}

impl Platform for VirtualPlatform {
    type Sharing = Exclusive;
    type Machine = Self;

    fn machine(&mut self) -> &mut Self {
        self
    }

    fn attach(&mut self, worker: u32) {
        self.workers.push(worker);
        self.tasks.push(VecDeque::new());
        self.inner.attach(worker);
    }

    fn greet(&mut self, core: usize, epoch: u32) {
        self.inner.greet(core, epoch);
        self.ring_all(Ring::Order);
    }

    fn answer(&mut self, core: usize, epoch: u32) -> Option<(u32, u32)> {
        self.look(core);
        self.inner.answer(core, epoch)
    }

    #[inline]
    fn poll(&mut self, core: usize) -> CoreStatus {
        let worker = self.worker(core);
        {
            let mut device = self.device.borrow_mut();
            let cost = device.options.profile.cond_load_ns;
            self.now_ns += device.chooser.delay(cost);
            device.look_at(worker, self.now_ns);
        }
        let status = self.inner.poll(core);
        if matches!(status, CoreStatus::Finished | CoreStatus::FinishedMore) {
            let tasks = self.tasks.get_mut(core);
            let task = tasks.and_then(VecDeque::pop_front).unwrap_or(u32::MAX);
            self.now_ns = self.device.borrow_mut().completed(task, (self.me, worker), self.now_ns);
        }
        status
    }

    #[inline]
    fn stage(&mut self, core: usize, dispatch: Staged) -> Result<(), Fault> {
        if let Some(tasks) = self.tasks.get_mut(core) {
            tasks.push_back(dispatch.task);
        }
        {
            let mut device = self.device.borrow_mut();
            let profile = device.options.profile;
            // A sibling that is ahead in virtual time made the task ready: this instance sees it then.
            let ready_ns = device.ledger.ready_ns(dispatch.task);
            let ready_ns = device.block_ledger.ready_ns(dispatch.task).max(ready_ns);
            self.now_ns = self.now_ns.max(ready_ns);
            let line_ns = device.line_ns(dispatch.task, self.me);
            self.now_ns += device.chooser.delay(profile.dispatch_ns) + line_ns;
        }
        self.inner.stage(core, dispatch)
    }

    #[inline]
    fn commit(&mut self) {
        {
            let mut device = self.device.borrow_mut();
            let cost = device.options.profile.barrier_ns;
            self.now_ns += device.chooser.delay(cost);
        }
        self.needs_barrier = false;
        self.inner.commit();
        self.ring_all(Ring::Dispatch);
    }

    fn stop(&mut self, core: usize) {
        self.inner.stop(core);
        self.ring_all(Ring::Order);
    }

    fn stopped(&mut self, core: usize) -> bool {
        self.look(core);
        self.inner.stopped(core)
    }

    #[inline]
    fn fetch(&mut self, task: u32) {
        self.now_ns += self.device.borrow_mut().line_ns(task, self.me);
    }

    #[inline]
    fn stage_ahead(&mut self, core: usize, dispatch: Staged) {
        {
            let mut device = self.device.borrow_mut();
            let profile = device.options.profile;
            self.now_ns += device.chooser.delay(profile.dispatch_ns) + profile.line_hit_ns.low;
        }
        self.needs_barrier = true;
        self.inner.stage_ahead(core, dispatch);
    }

    #[inline]
    fn settle(&mut self) {
        if std::mem::take(&mut self.needs_barrier) {
            let mut device = self.device.borrow_mut();
            let cost = device.options.profile.barrier_ns;
            self.now_ns += device.chooser.delay(cost);
        }
    }

    #[inline]
    fn ring_ahead(&mut self, core: usize, task: u32) -> Result<(), Fault> {
        if let Some(tasks) = self.tasks.get_mut(core) {
            tasks.push_back(task);
        }
        {
            let mut device = self.device.borrow_mut();
            let profile = device.options.profile;
            self.now_ns = self.now_ns.max(device.ledger.ready_ns(task));
            self.now_ns += device.chooser.delay(profile.ring_ns);
        }
        self.settle();
        self.inner.ring_ahead(core, task)?;
        self.ring_all(Ring::Dispatch);
        Ok(())
    }

    fn skipped(&mut self, task: u32) {
        self.now_ns = self.device.borrow_mut().skipped(task, self.me, self.now_ns);
    }

    fn transferred(&mut self, task: u32) {
        self.now_ns = self.device.borrow_mut().transferred(task, self.me, self.now_ns);
    }
}

impl Machine for VirtualPlatform {
    const SLOTS: usize = SLOTS;
    const POLLS_COST: bool = true;
    const STAGES_AHEAD: bool = true;

    fn now_ns(&self) -> u64 {
        let tick = self.device.borrow().options.profile.clock_tick_ns.low.max(1);
        self.now_ns / tick * tick
    }

    fn wake_siblings(&mut self) {
        self.device.borrow_mut().wake_others(self.me, self.now_ns);
    }

    #[inline]
    fn fetch_sibling(&mut self) {
        self.now_ns += self.device.borrow().options.profile.line_miss_ns.low;
    }
}
