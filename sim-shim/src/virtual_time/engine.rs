//! The loop of the machine: who is due takes a turn.
//!
//! ```text
//! InstanceRunner::run(limit): agenda.next -> core: VirtualDevice::step_core (worker::step until there is nothing to do)
//!                               -> instance: InstanceSlot::step (one Instance::step, then due again, or a nap)
//!                               -> alarm:    the instance steps once, so that its watchdog looks
//! builder program on the stack: Host::published -> charges its calls -> InstanceRunner::run(until its own time) of the others
//! ```
//! A step of an instance is made at its start: what it writes to shared words is visible then, up to one step
//! (some microseconds of virtual time) early for a sibling. A sibling that takes a task out of the shared queue
//! before it was ready waits for that moment (`VirtualPlatform::stage`), so that effects follow causes.

use std::cell::RefCell;
use std::hash::{Hash, Hasher};
use std::mem;
use std::rc::Rc;
use std::sync::Arc;

use pto_abi::log_ring::LogRing;
use pto_abi::sync::Ordering::Relaxed;
use pto_abi::task::{SHAPED, Task};
use pto_abi::trace::TraceKind;
use pto_abi::{RuntimeVariant, TaskId};
use pto_aicpu_fw::{FanoutPolicy, Instance, Launch, Machine, Progressed, RangeNote};
use pto_graph::{BuilderSet, EdgeOutcome};

use super::agenda::{Agent, NextTurn, Rival};
use super::chooser::Chooser;
use super::device::{BUILDER, Nap, VirtualDevice};
use super::digest::Digest;
use super::environment::Environment;
use super::group::GroupMember;
use super::image::ImageNotes;
use super::inject::Trouble;
use super::options::{Compute, VirtualOptions};
use super::platform::VirtualPlatform;
use super::report::InstanceReport;
use super::state::Builder;
use super::trace::EventKind;
use super::traced_calls::{self, CallHistory, CallRecord, TracedBuilders};
use crate::group::RunPort;
use crate::logging;
use crate::supervisor::Beat;

type DeviceRef = Rc<RefCell<VirtualDevice>>;

type VirtualInstance<F> = Instance<'static, VirtualPlatform, F>;

/// An instance, and what it did.
struct InstanceSlot<F: FanoutPolicy> {
    instance: VirtualInstance<F>,
    log_ring: Option<LogRing<'static>>,
    has_returned: bool,
    report: InstanceReport,
}

/// Some of the instances, and what it takes to step them.
struct InstanceRunner<'e, F: FanoutPolicy, B> {
    slots: &'e mut [InstanceSlot<F>],
    /// The number of the first one.
    first: usize,
    device: &'e DeviceRef,
    builders: &'e TracedBuilders<B>,
    /// Of the builder program on the stack, as far as it is known.
    builder: Option<u128>,
}

/// Runs a launch to its end.
pub(super) fn run<F: FanoutPolicy, B: BuilderSet>(
    launch: &Launch<'static>,
    builders: &Arc<B>,
    options: VirtualOptions,
    chooser: Chooser,
    beats: &Arc<Vec<Beat>>,
    environment: Environment,
) -> (VirtualDevice, Vec<InstanceReport>) {
    let mut device =
        VirtualDevice::new(launch.clone().with_block_shapes(), options, chooser, Arc::clone(beats));
    device.fast = environment.fast;
    device.member = environment.endpoint.map(|of| GroupMember::new(of, RunPort::new(launch)));
    if device.member.is_some() && options.compute != Compute::Run {
        // The path of one rank is not reported: transfers are not on it.
        device.ledger.forget_paths();
    }
    let fails = device.builder_trouble().filter(|found| found.trouble == Trouble::BuilderFails);
    let history =
        if device.chooser.searches_states() { CallHistory::Kept } else { CallHistory::Forgotten };
    traced_calls::reset(fails.map(|found| found.at), history);
    traced_calls::follow_collectives(device.member.as_ref().is_some_and(GroupMember::follows));
    let device = Rc::new(RefCell::new(device));
    let mut slots: Vec<InstanceSlot<F>> =
        (0..launch.aicpu_instances as usize).map(|me| instance_slot(launch, me, &device)).collect();
    {
        let mut device = device.borrow_mut();
        for me in 0..slots.len() {
            device.agenda.schedule(Agent::Instance(me), 0);
        }
    }
    let tapped = TracedBuilders(Arc::clone(builders));
    let mut runner = InstanceRunner {
        slots: &mut slots,
        first: 0,
        device: &device,
        builders: &tapped,
        builder: None,
    };
    // Nothing is done before the first turn: what comes first must not depend on which OS thread does.
    device.borrow_mut().wait_for_others(u64::MAX - 1);
    runner.run(u64::MAX - 1, Rival::None);
    leave_group(&device, &slots);
    logging::set_ring_afresh(None);
    logging::set_virtual_time(None);
    let reports = slots.iter().map(|instance_slot| instance_slot.report).collect();
    drop(slots);
    let device = Rc::into_inner(device).map(RefCell::into_inner);
    // The slots, which held the other references, are gone.
    let mut device = device.unwrap_or_else(|| {
        VirtualDevice::new(launch.clone(), options, Chooser::replay(Vec::new()), Arc::clone(beats))
    });
    device.cores.iter_mut().for_each(|core| core.show(u64::MAX));
    (device, reports)
}

/// Reports to the group how the run has ended, and when.
fn leave_group<F: FanoutPolicy>(device: &DeviceRef, slots: &[InstanceSlot<F>]) {
    let end_ns =
        slots.iter().map(|instance_slot| instance_slot.report.returned_ns).max().unwrap_or(0);
    device.borrow_mut().leave_group(end_ns);
}

fn instance_slot<F: FanoutPolicy>(
    launch: &Launch<'static>,
    me: usize,
    device: &DeviceRef,
) -> InstanceSlot<F> {
    let platform = VirtualPlatform::new(me, launch.arena.workers(), Rc::clone(device));
    let number = u32::try_from(me).unwrap_or(u32::MAX);
    InstanceSlot {
        instance: Instance::new(launch.clone(), number, platform),
        log_ring: launch.arena.log_ring(launch.log_region(), me),
        has_returned: false,
        report: InstanceReport::default(),
    }
}

impl<F: FanoutPolicy, B: BuilderSet> InstanceRunner<'_, F, B> {
    /// Lets all agents take turns until none is due before `limit_ns`, or until it is the caller's turn.
    fn run(&mut self, limit_ns: u64, rival: Rival) {
        loop {
            self.note_state(limit_ns, rival);
            let turn = {
                let mut device = self.device.borrow_mut();
                let (limit_ns, rival) = device.within_horizon(limit_ns, rival);
                let VirtualDevice { agenda, chooser, .. } = &mut *device;
                agenda.next(limit_ns, rival, chooser)
            };
            match turn {
                None if self.device.borrow_mut().wait_for_others(limit_ns) => {}
                None | Some((_, NextTurn::Caller)) => return,
                Some((time_ns, NextTurn::Agent(Agent::Core(worker)))) => {
                    self.device.borrow_mut().step_core(worker, time_ns);
                }
                Some((time_ns, NextTurn::Agent(Agent::Instance(me)))) => self.step(me, time_ns),
                Some((time_ns, NextTurn::Agent(Agent::Alarm(me)))) => self.alarm(me, time_ns),
                Some((time_ns, NextTurn::Agent(Agent::Engine))) => {
                    self.device.borrow_mut().step_transfers(time_ns);
                }
            }
        }
    }

    /// In a search over states: says which one this is, before a choice. While a builder program is on the stack that does not
    /// say what it is in, the state is not known.
    #[inline]
    fn note_state(&self, limit_ns: u64, rival: Rival) {
        let mut device = self.device.borrow_mut();
        let is_known = self.first == 0 || self.builder.is_some();
        let is_wanted = is_known && device.chooser.wants_state();
        if !is_wanted || !device.agenda.offers_choice(limit_ns, rival) {
            return;
        }
        let mut digest = Digest::new();
        let is_under_way = self.first > 0 || !device.launch.state.build_is_done();
        let builder = if is_under_way { Builder::UnderWay } else { Builder::Gone };
        (self.builder, limit_ns, rival == Rival::Caller).hash(&mut digest);
        device.hash_state(&mut digest, builder);
        drop(device);
        for instance_slot in self.slots.iter() {
            instance_slot.has_returned.hash(&mut digest);
            instance_slot.instance.hash_state(&mut digest, VirtualPlatform::hash_state);
        }
        self.device.borrow_mut().chooser.visit(digest.number());
    }

    /// Wakes an instance whose nap is over. One that is awake needs no alarm before its next nap, which sets one.
    fn alarm(&self, me: usize, time_ns: u64) {
        let mut device = self.device.borrow_mut();
        let nap = device.naps[me];
        let due_ns = nap.from_ns + nap.length_ns(device.shortest_nap_ns);
        if nap.is_asleep && due_ns <= time_ns {
            device.wake_after(me, time_ns);
        } else if nap.is_asleep {
            device.agenda.schedule(Agent::Alarm(me), due_ns);
        }
    }

    #[inline]
    fn step(&mut self, me: usize, time_ns: u64) {
        let at = me.wrapping_sub(self.first);
        if me > 0 {
            if let Some(instance_slot) = self.slots.get_mut(at) {
                instance_slot.step(me, time_ns, self.device, Instance::step_without_program);
            }
            return;
        }
        let Some((instance_slot, others)) = self.slots.split_first_mut() else { return };
        let (device, builders) = (self.device, self.builders);
        // Only instance 0 builds.
        let runner = InstanceRunner { slots: others, first: 1, device, builders, builder: None };
        let (log_ring, state) = (instance_slot.log_ring, None);
        let mut machine =
            BuilderMachine { runner, publishes: 0, in_range: false, log_ring, image: None, state };
        instance_slot.step(0, time_ns, device, |instance| {
            instance.step_on(builders, |_, program| program.build(&mut machine))
        });
    }
}

impl<F: FanoutPolicy> InstanceSlot<F> {
    /// Steps the instance with `step` at `time_ns`, and sees to when its next turn is.
    fn step(
        &mut self,
        me: usize,
        time_ns: u64,
        device: &DeviceRef,
        step: impl FnOnce(&mut VirtualInstance<F>) -> Progressed,
    ) {
        if self.has_returned {
            return;
        }
        for beat in device.borrow().beats.iter() {
            beat.turn();
            beat.no_core();
        }
        let start_ns = self.begin(me, time_ns, device);
        logging::set_ring_afresh(self.log_ring);
        logging::set_virtual_time(Some(start_ns));
        let progressed = step(&mut self.instance);
        let platform = self.instance.platform();
        let mut shared = device.borrow_mut();
        // What the step has built, where it is the builder's: what it waited for in between is no work.
        let mut built_ns = 0;
        if me == 0 {
            charge_rest(&mut shared);
            platform.advance_to(shared.builder_ns);
            built_ns = mem::take(&mut shared.built_ns);
        }
        let now_ns = platform.time_ns();
        self.report.steps += 1;
        self.report.worked_ns += match progressed {
            Progressed::Worked if built_ns == 0 => now_ns - start_ns,
            _ => built_ns,
        };
        match progressed {
            Progressed::Worked => {
                shared.naps[me].worked_ns = now_ns;
                shared.agenda.schedule(Agent::Instance(me), now_ns);
            }
            Progressed::Idle => {
                let period_ns = now_ns - start_ns;
                let worked_ns = shared.naps[me].worked_ns;
                let nap = Nap { is_asleep: true, from_ns: now_ns, period_ns, worked_ns };
                shared.naps[me] = nap;
                let nap_ns = nap.length_ns(shared.shortest_nap_ns);
                shared.agenda.schedule(Agent::Alarm(me), now_ns + nap_ns);
                drop(shared);
                let report_ns = platform.next_report_ns(start_ns);
                shared = device.borrow_mut();
                if let Some(report_ns) = report_ns {
                    shared.wake_within(me, report_ns);
                }
            }
            Progressed::Returned(fault) => {
                self.has_returned = true;
                self.report.returned_ns = now_ns;
                let code = fault.map_or(0, pto_abi::Fault::code);
                shared.trace.add(now_ns, EventKind::Returned, me, code);
            }
        }
        shared.start_transfers(now_ns);
        shared.notice_end(me, now_ns);
    }

    /// Goes to the time of the step, and charges for it; returns when it starts.
    #[inline]
    fn begin(&mut self, me: usize, time_ns: u64, device: &DeviceRef) -> u64 {
        let platform = self.instance.platform();
        let mut device = device.borrow_mut();
        device.naps[me].is_asleep = false;
        device.begins(me);
        platform.advance_to(time_ns);
        let start_ns = platform.time_ns();
        let cost = device.options.profile.step_ns;
        let step_ns = device.chooser.delay(cost);
        platform.advance_to(start_ns + step_ns);
        if me == 0 {
            device.builder_ns = start_ns + step_ns;
        }
        start_ns
    }
}

/// Calls of the builder after its last publish.
fn charge_rest(device: &mut VirtualDevice) {
    traced_calls::drain(|note| {
        device.charge(note);
    });
    if traced_calls::take_failure() {
        device.trace.add(device.builder_ns, EventKind::Injected, 0, u32::MAX);
    }
}

/// The machine under a builder program: it charges what the program did, and lets the others catch up.
struct BuilderMachine<'e, F: FanoutPolicy, B> {
    runner: InstanceRunner<'e, F, B>,
    publishes: u32,
    /// A task of a range is about to be published.
    in_range: bool,
    log_ring: Option<LogRing<'static>>,
    image: Option<ImageNotes>,
    /// In a search over states: what the builder says of itself before others take turns.
    state: Option<Digest>,
}

impl<F: FanoutPolicy, B: BuilderSet> BuilderMachine<'_, F, B> {
    /// Lets the others take turns.
    fn run(&mut self, limit_ns: u64, rival: Rival) {
        let state = self.state.take();
        self.runner.builder = state.map(|mut state| {
            traced_calls::history().hash(&mut state);
            state.number()
        });
        self.runner.run(limit_ns, rival);
        self.runner.builder = None;
    }
}

impl<F: FanoutPolicy, B: BuilderSet> Machine for BuilderMachine<'_, F, B> {
    const NOTES_EDGES: bool = true;

    fn now_ns(&self) -> u64 {
        self.runner.device.borrow().builder_ns
    }

    fn added(&mut self, slot: u32) {
        self.runner.device.borrow_mut().ledger.reuse(slot);
    }

    fn derived(&mut self, producer: u32, consumer: u32, outcome: EdgeOutcome) {
        let mut device = self.runner.device.borrow_mut();
        let cost_ns = device.options.profile.edge_ns.low + device.line_ns(producer, BUILDER);
        let now_ns = device.build_for(cost_ns);
        let kind = match outcome {
            EdgeOutcome::Added => TraceKind::EDGE,
            EdgeOutcome::AlreadySatisfied => TraceKind::EDGE_SATISFIED,
        };
        if outcome == EdgeOutcome::AlreadySatisfied {
            device.ledger.carry(producer, consumer);
        }
        device.tracer.instance(0, now_ns, kind, (consumer, producer));
    }

    fn replayed(&mut self, slot: u32) {
        let mut device = self.runner.device.borrow_mut();
        let state = device.launch.state;
        let Some(task) = state.task(slot) else { return };
        let kind = u32::from(task.kind.load(Relaxed) & !SHAPED);
        let func_and_kind = u32::from(task.func_id.load(Relaxed)) | kind << 16;
        let args = task.arg_count.load(Relaxed).into();
        device.heed_budget_of(task);
        device.charge(CallRecord::Add { slot, replayed: true, args, tensors: 0, func_and_kind });
        device.charge(CallRecord::Publish(slot));
    }

    fn in_range(&mut self, what: RangeNote) {
        self.in_range |= matches!(what, RangeNote::Task(_) | RangeNote::TensorTask { .. });
        self.runner.device.borrow_mut().charge_range(what);
    }

    fn hasher(&mut self) -> Option<&mut dyn Hasher> {
        if !self.runner.device.borrow().chooser.searches_states() {
            return None;
        }
        Some(self.state.get_or_insert_with(Digest::new))
    }

    /// What the program has read since takes its time, during which the others go on.
    fn step_others(&mut self) {
        let until_ns = {
            let mut device = self.runner.device.borrow_mut();
            device.beats.iter().for_each(Beat::turn);
            traced_calls::drain(|note| {
                device.charge(note);
            });
            device.builder_ns
        };
        self.run(until_ns, Rival::None);
        logging::set_ring_afresh(self.log_ring);
        logging::set_virtual_time(Some(until_ns));
    }

    /// One look at the watermark, then everybody who is due until then.
    fn relax(&mut self) {
        let until_ns = {
            let mut device = self.runner.device.borrow_mut();
            device.beats.iter().for_each(Beat::turn);
            traced_calls::drain(|note| {
                device.charge(note);
            });
            device.wait_for_an_event();
            // After the horizon something can come that is not on the agenda yet.
            let due_ns = device.agenda.next_ns().unwrap_or(0).min(device.horizon_ns());
            let look_ns = device.options.profile.step_ns.low.max(1);
            device.builder_ns = due_ns.max(device.builder_ns) + look_ns;
            device.builder_ns
        };
        self.run(until_ns, Rival::None);
        logging::set_ring_afresh(self.log_ring);
        logging::set_virtual_time(Some(until_ns));
    }

    /// The loader of an image, which runs without a builder program: charges for the task, and lets the others wait.
    fn loaded(&mut self, slot: u32) {
        let until_ns = {
            let mut device = self.runner.device.borrow_mut();
            device.beats.iter().for_each(Beat::turn);
            let image = self.image.get_or_insert_with(|| ImageNotes::of(&device.launch));
            image.charge(slot, &mut device);
            device.builder_ns
        };
        self.run(until_ns, Rival::Caller);
        logging::set_ring_afresh(self.log_ring);
        logging::set_virtual_time(Some(until_ns));
    }

    fn published(&mut self) {
        let (until_ns, stops) = {
            let mut device = self.runner.device.borrow_mut();
            device.beats.iter().for_each(Beat::turn);
            let mut noted = std::mem::take(&mut self.in_range);
            traced_calls::drain(|note| {
                noted = true;
                device.charge(note);
            });
            device.book_release();
            device.corrupt_line();
            let now_ns = device.builder_ns;
            device.start_transfers(now_ns);
            let stops = noted
                && device.builder_trouble().is_some_and(|found| {
                    found.trouble == Trouble::BuilderStops && found.at == self.publishes
                });
            (device.builder_ns, stops)
        };
        self.publishes = self.publishes.wrapping_add(1);
        if stops {
            let mut device = self.runner.device.borrow_mut();
            device.trace.add(until_ns, EventKind::Injected, 0, u32::MAX);
            drop(device);
            // The others go on without it until they give up.
            self.run(u64::MAX - 1, Rival::None);
            let mut device = self.runner.device.borrow_mut();
            device.builder_ns = device.builder_ns.max(device.agenda.now());
        } else {
            self.run(until_ns, Rival::Caller);
        }
        // What the builder logs next is its own again.
        logging::set_ring_afresh(self.log_ring);
        logging::set_virtual_time(Some(until_ns));
    }
}

impl VirtualDevice {
    /// Charges the builder for one call, and notes what it did.
    pub(super) fn charge(&mut self, note: CallRecord) {
        let profile = self.options.profile;
        let streams = self.launch.variant == RuntimeVariant::TENSORMAP_AND_RINGBUFFER;
        let of_stream = if streams { profile.stream_ns.low } else { 0 };
        let cost_ns = match note {
            CallRecord::Add { replayed, args, tensors, .. } => {
                let [args, tensors] = [args, tensors].map(|count| count as u64);
                let of_arguments = args * profile.argument_ns.low + tensors * profile.tensor_ns.low;
                profile.add_ns.low + if replayed { 0 } else { of_stream } + of_arguments
            }
            CallRecord::Chain { links, words, dense, strided, .. } => {
                profile.add_ns.low
                    + of_stream
                    + profile.chain_ns.low
                    + links as u64 * profile.chain_link_ns.low
                    + words as u64 * profile.chain_word_ns.low
                    + dense as u64 * profile.chain_part_ns.low
                    + strided as u64 * profile.chain_tensor_ns.low
            }
            CallRecord::Template { links, words } => {
                profile.template_ns.low
                    + links as u64 * profile.chain_link_ns.low
                    + words as u64 * profile.chain_word_ns.low
            }
            CallRecord::FromTemplate { words, .. } => {
                profile.add_ns.low
                    + of_stream
                    + profile.from_template_ns.low
                    + words as u64 * profile.chain_word_ns.low
            }
            CallRecord::Edge { producer, .. } => {
                profile.edge_ns.low + self.line_ns(producer, BUILDER)
            }
            CallRecord::Publish(slot) => profile.publish_ns.low + self.line_ns(slot, BUILDER),
            CallRecord::Read => profile.line_hit_ns.low,
            CallRecord::Collective => 0,
            // What the builder does about them is charged with the task, and with its edges.
            CallRecord::Access { .. } | CallRecord::After { .. } => 0,
        };
        let now_ns = self.build_for(cost_ns);
        if let CallRecord::Chain { slot, kernels, .. }
        | CallRecord::FromTemplate { slot, kernels, .. } = note
        {
            self.ledger.chain_added(slot, kernels);
        }
        match note {
            CallRecord::Add { slot, func_and_kind, .. }
            | CallRecord::Chain { slot, func_and_kind, .. }
            | CallRecord::FromTemplate { slot, func_and_kind, .. } => {
                let generation = |task: &Task| task.generation.load(Relaxed);
                let generation = self.launch.state.task(slot).map_or(0, generation);
                self.ledger.added(slot, generation);
                self.tracer.instance(0, now_ns, TraceKind::ADDED, (slot, func_and_kind));
                self.trace_lanes(slot, now_ns);
            }
            CallRecord::Edge { producer, generation, consumer, outcome } => {
                let mut kind = TraceKind::EDGE;
                if outcome == EdgeOutcome::AlreadySatisfied {
                    // A producer that is retired has given its slot back.
                    let task = self.launch.state.task(producer);
                    if task.is_none_or(|task| task.generation.load(Relaxed) != generation) {
                        self.ledger.after_retired(consumer, (producer, generation));
                        return self.tell_after(consumer, producer, generation, now_ns);
                    }
                    self.ledger.satisfied(producer, consumer, now_ns);
                    kind = TraceKind::EDGE_SATISFIED;
                }
                self.tracer.instance(0, now_ns, kind, (consumer, producer));
            }
            CallRecord::Access { slot, access } => self.ledger.accessed(slot, &access),
            CallRecord::After { slot, producer: TaskId { slot: producer, generation } } => {
                self.ledger.after_retired(slot, (producer, generation));
                self.tell_after(slot, producer, generation, now_ns);
            }
            CallRecord::Publish(slot) => self.published(slot, 0, now_ns),
            CallRecord::Collective => {
                if let Some(member) = &self.member {
                    traced_calls::take_collectives(|submitted| member.submitted(submitted));
                }
            }
            CallRecord::Template { .. } | CallRecord::Read => {}
        }
    }

    /// Records in the timeline that a task of a streaming program comes after another one. An event names the slot of a producer: where that is another
    /// task's by now, no event is recorded.
    fn tell_after(&mut self, consumer: u32, producer: u32, generation: u32, now_ns: u64) {
        if self.ledger.was_last_in(producer, generation) {
            let is_over = self.ledger.sees_completed(producer);
            let kind = if is_over { TraceKind::EDGE_SATISFIED } else { TraceKind::EDGE };
            self.tracer.instance(0, now_ns, kind, (consumer, producer));
        }
    }

    /// Charges the builder for a part of a range, and notes what it did.
    fn charge_range(&mut self, what: RangeNote) {
        let profile = self.options.profile;
        match what {
            RangeNote::Range => {
                self.build_for(profile.range_ns.low);
            }
            RangeNote::Edge { producer, consumer, outcome } => {
                let cost_ns = profile.range_edge_ns.low + self.line_ns(producer, BUILDER);
                let now_ns = self.build_for(cost_ns);
                let mut kind = TraceKind::EDGE;
                if outcome == EdgeOutcome::AlreadySatisfied {
                    self.ledger.satisfied(producer, consumer, now_ns);
                    kind = TraceKind::EDGE_SATISFIED;
                }
                self.tracer.instance(0, now_ns, kind, (consumer, producer));
            }
            RangeNote::Task(slot) => self.charge_task_of_range(slot, 0),
            RangeNote::TensorTask { slot, tensors } => {
                self.charge_task_of_range(slot, tensors);
            }
        }
    }

    /// Charges the builder for a task of a range, which so many tensors are derived from, and notes it.
    fn charge_task_of_range(&mut self, slot: u32, tensors: u32) {
        let profile = self.options.profile;
        let Some(task) = self.launch.state.task(slot) else { return };
        let args = u64::from(task.arg_count.load(Relaxed));
        let generation = task.generation.load(Relaxed);
        let kind = u32::from(task.kind.load(Relaxed)) << 16;
        let func_and_kind = u32::from(task.func_id.load(Relaxed)) | kind;
        let of_tensors = u64::from(tensors) * profile.range_tensor_ns.low;
        let is_ready = task.edges_in.load(Relaxed) == 0;
        let of_queue = if is_ready { profile.range_ready_ns.low } else { 0 };
        let own_ns =
            profile.range_task_ns.low + args * profile.argument_ns.low + of_tensors + of_queue;
        let line_ns = self.line_ns(slot, BUILDER);
        let now_ns = self.build_for(own_ns + line_ns);
        self.ledger.added(slot, generation);
        self.tracer.instance(0, now_ns, TraceKind::ADDED, (slot, func_and_kind));
        traced_calls::take_task_of_range(slot, |note| self.charge(note));
        self.published(slot, 0, now_ns);
    }

    /// What all instances wait for: the end of the build, or a fault.
    #[inline]
    fn notice_end(&mut self, me: usize, now_ns: u64) {
        let is_built = !self.build_noticed && me == 0 && self.launch.state.build_is_done();
        let is_faulted = !self.fault_noticed && self.launch.state.fault.is_raised();
        self.build_noticed |= is_built;
        self.fault_noticed |= is_faulted;
        if is_built || is_faulted {
            self.wake_others(me, now_ns);
        }
    }
}
