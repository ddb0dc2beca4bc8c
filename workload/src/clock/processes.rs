//! The processes of a pipeline, gone through side by side, by the rule of [`pto_graph::plan::turns`].

use pto_graph::plan::turns::next_of;

use crate::tree::{Channel, Process, Task};

use super::channels::{ChannelState, Rendezvous};
use super::report::{CHANNEL_LATENCY, Report, RunError};
use super::tasks::Runner;
use super::walk::{Event, Walker};

/// What a process does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Runs,
    /// The process waits for a token.
    Consumes(usize),
    /// The process waits for room, or for the receiver.
    Sends(usize),
    Done,
}

struct RunningProcess<'w> {
    process: &'w Process,
    walker: Walker<'w>,
    state: State,
    /// The process's local time.
    time: u64,
}

/// Runs a pipeline.
pub(super) fn run<'w>(
    processes: &'w [Process],
    runner: &mut Runner<'w>,
) -> Result<Report, RunError> {
    let mut pipeline = Pipeline::new(processes, runner);
    while let Some(number) = pipeline.next() {
        pipeline.go_on(number, runner)?;
    }
    if pipeline.running.iter().any(|running| running.state != State::Done) {
        return Err(RunError::Deadlock(pipeline.waits()));
    }
    let total_cycles = pipeline.running.iter().map(|running| running.time).max().unwrap_or(0);
    Ok(Report { total_cycles, tasks: runner.tasks(), overflows: 0 })
}

struct Pipeline<'w> {
    running: Vec<RunningProcess<'w>>,
    channels: Vec<ChannelState>,
    declared: &'w [Channel],
}

impl<'w> Pipeline<'w> {
    fn new(processes: &'w [Process], runner: &Runner<'w>) -> Self {
        let declared = &runner.workload().channels;
        let latency = runner.inputs().bindings.symbol_or(CHANNEL_LATENCY, 0);
        let channels = declared.iter().enumerate().map(|(number, channel)| {
            let senders = processes.iter().filter(|process| sends(process, number)).count();
            ChannelState::new(channel.depth, latency, senders)
        });
        let running = processes.iter().map(|process| {
            let walker = Walker::new(&process.body);
            RunningProcess { process, walker, state: State::Runs, time: 0 }
        });
        Self { channels: channels.collect(), running: running.collect(), declared }
    }

    /// When a process could go on.
    fn ready(&self, running: &RunningProcess) -> Option<u64> {
        match running.state {
            State::Runs => Some(running.time),
            State::Consumes(channel) => {
                let channel = &self.channels[channel];
                let closed = channel.is_finished().then_some(running.time);
                channel.next_at(running.time).or(closed)
            }
            State::Sends(_) | State::Done => None,
        }
    }

    /// The process that goes on.
    fn next(&self) -> Option<usize> {
        next_of(self.running.iter().map(|running| self.ready(running)))
    }

    fn go_on(&mut self, number: usize, runner: &mut Runner<'w>) -> Result<(), RunError> {
        if let State::Consumes(channel) = self.running[number].state {
            self.receive(number, channel);
            return Ok(());
        }
        match self.running[number].walker.next(runner.inputs())? {
            Event::Enter(_) | Event::Exit => {}
            Event::Task(task) => drop(self.task(number, task, runner)?),
            Event::Slot(node) => runner.slot(node, self.running[number].walker.scope())?,
            Event::Send { channel, task } => {
                let token = self.task(number, task, runner)?;
                let running = &mut self.running[number];
                running.state = State::Sends(channel);
                let completed = self.channels[channel].send(number, token, running.time);
                self.complete(&completed);
            }
            Event::Consume(channel) => self.running[number].state = State::Consumes(channel),
            Event::Done => self.end(number),
        }
        Ok(())
    }

    /// Runs a task; returns its first axis.
    fn task(
        &mut self,
        number: usize,
        task: &'w Task,
        runner: &mut Runner<'w>,
    ) -> Result<i64, RunError> {
        let running = &mut self.running[number];
        let outcome = runner.run(task, running.walker.scope())?;
        let start = running.time;
        running.time = start.saturating_add(outcome.cycles);
        runner.show(task, &outcome, number as u64, [start, running.time]);
        Ok(outcome.axes.first().copied().unwrap_or(0))
    }

    /// Takes a token, or ends the loop over tokens.
    fn receive(&mut self, number: usize, channel: usize) {
        let running = &mut self.running[number];
        running.state = State::Runs;
        let time = self.channels[channel].next_at(running.time);
        let Some((time, (token, completed))) =
            time.and_then(|time| Some((time, self.channels[channel].take(time)?)))
        else {
            running.walker.closed();
            return;
        };
        running.time = time;
        running.walker.token(token);
        self.complete(&completed);
    }

    /// Processes whose sends have completed go on.
    fn complete(&mut self, completed: &[Rendezvous]) {
        for Rendezvous { process, time } in completed {
            let running = &mut self.running[*process];
            running.state = State::Runs;
            running.time = running.time.max(*time);
        }
    }

    /// A process has ended: it sends no more.
    fn end(&mut self, number: usize) {
        let running = &mut self.running[number];
        running.state = State::Done;
        for (channel, state) in self.channels.iter_mut().enumerate() {
            if sends(running.process, channel) {
                state.close_one();
            }
        }
    }

    /// Who waits for whom.
    fn waits(&self) -> String {
        let waits = self.running.iter().filter_map(|running| {
            let name = running.process.called();
            let who = |channel: usize, does: fn(&Process, usize) -> bool| {
                let others = self.running.iter().filter(|other| does(other.process, channel));
                others.map(|other| other.process.called()).collect::<Vec<_>>().join(" and ")
            };
            match running.state {
                State::Consumes(channel) => Some(format!(
                    "{name} waits for a token of {} from {}",
                    self.declared[channel].name,
                    who(channel, sends)
                )),
                State::Sends(channel) => Some(format!(
                    "{name} waits until {} takes a token of {}",
                    who(channel, |process, channel| process.consumes.contains(&channel)),
                    self.declared[channel].name
                )),
                State::Runs | State::Done => None,
            }
        });
        waits.collect::<Vec<_>>().join("; ")
    }
}

fn sends(process: &Process, channel: usize) -> bool {
    crate::tree::sends(&process.body, channel)
}
