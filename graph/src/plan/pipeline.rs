//! Pipelines: processes that communicate through channels, expanded side by side by one builder.
//!
//! ```text
//! next: the process furthest back in time --> step: one node of it --> task, which waits for the process's last one
//!                                                 |--> send: a task, then a token with it; the process waits for room
//!                                                 '--> consume: takes a token; the next task waits for the token's task
//! ```
//! The expansion never waits for a core: what a send or a receive waits for in time becomes an edge between tasks. So a pipeline needs the
//! memory of its processes and channels alone, and the order of its tokens is the same in every run: that of the `v9` clock, on which a
//! task takes the cycles of its kernel on whole tiles. Tasks of a process run one after another; tiles order tasks of different processes
//! as well. Where processes are on several ranks, each rank goes through all of them and submits the tasks of its own; the rest is in
//! `crossings.rs`.

use pto_abi::fault::Fault;

use super::accept::slots_of;
use super::channels::{Channel, Completed, Mark, Marks, Moment, Token, TokenSlots};
use super::crossings::{self, Ranks};
use super::cursor::Cursor;
use super::expression::eval_signed;
use super::heads::{self, Loop};
use super::layout::{RANK_SHIFT, limits, node};
use super::processes::{Frame, Process, State};
use super::stop::Stop;
use super::tasks;
use super::turns::next_of;
use super::walk::Walk;
use crate::stream::StreamBuilder;

/// Expands the pipeline at the cursor.
// Not inlined, because its processes would otherwise use stack of every other plan as well.
#[inline(never)]
pub(super) fn run<G: StreamBuilder>(
    walk: &mut Walk<'_, G>,
    mut cursor: Cursor<'_>,
) -> Result<(), Stop> {
    let at = cursor.at();
    let mut pipeline = Pipeline::read(&mut cursor, walk.plan.counts()[3]);
    pipeline.begin(walk).map_err(|fault| Stop::new(fault, at))?;
    while let Some(number) = pipeline.next() {
        pipeline.go_on(walk, number)?;
    }
    let waiting = pipeline.processes.iter().filter(|process| process.state != State::Done);
    let mut count = 0;
    for (var, process) in (0..).zip(waiting) {
        // The host chooses the contents of these words.
        walk.values.set_var(var, i64::try_from(process.waits_at).unwrap_or(0));
        count = var + 1;
    }
    walk.vars = count;
    if count == 0 {
        Ok(())
    } else {
        Err(Stop::new(Fault::PLAN_DEADLOCK, at).detail(count.into(), 0))
    }
}

struct Pipeline {
    processes: heapless::Vec<Process, { limits::PROCESSES }>,
    channels: heapless::Vec<Channel, { limits::CHANNELS }>,
    slots: TokenSlots,
    /// The tokens with which processes wait.
    sending: [Token; limits::PROCESSES],
    cycles: [u64; limits::KERNELS],
    /// Tasks so far.
    tasks: u64,
    ranks: Ranks,
}

impl Pipeline {
    /// The pipeline at the cursor; the plan was checked.
    fn read(cursor: &mut Cursor<'_>, kernels: u32) -> Self {
        let (_, operand) = cursor.code();
        let (processes, channels) = (operand & 0xFF, operand >> 8);
        let mut read = Self {
            processes: heapless::Vec::new(),
            channels: heapless::Vec::new(),
            slots: [(Token::default(), 0); limits::TOKENS],
            sending: [Token::default(); limits::PROCESSES],
            cycles: [0; limits::KERNELS],
            tasks: 0,
            ranks: Ranks::one(),
        };
        let mut first = 0;
        for _ in 0..channels {
            let depth = cursor.word();
            let count = slots_of(depth, processes);
            // There is room for as many as were accepted; so below.
            let _ = read.channels.push(Channel::new(depth, [first, count]));
            first += count;
        }
        read.cycles.iter_mut().take(kernels as usize).for_each(|cycles| *cycles = cursor.wide());
        for _ in 0..processes {
            let (body, sends) = (cursor.word(), cursor.word());
            let rank = u16::try_from(sends >> RANK_SHIFT).unwrap_or(u16::MAX);
            let sends = sends & ((1 << RANK_SHIFT) - 1);
            let _ = read.processes.push(Process::new(cursor.at(), sends, rank));
            cursor.skip(body);
            read.count_senders(sends, 1);
        }
        read
    }

    /// The processes come to their ranks.
    fn begin<G: StreamBuilder>(&mut self, walk: &mut Walk<'_, G>) -> Result<(), Fault> {
        if self.processes.iter().all(|process| process.rank == 0) {
            return Ok(());
        }
        let [symbols, ..] = walk.plan.counts();
        let numbers = (0..symbols).map(|number| walk.values.symbol(number));
        let print = crossings::print_of(walk.plan.words(), numbers);
        self.ranks.begin(walk.stream, print)?;
        self.processes.iter_mut().for_each(|process| process.rank = self.ranks.of(process.rank));
        Ok(())
    }

    /// Adds `by` to the number of processes that may send to these channels.
    fn count_senders(&mut self, sends: u32, by: i32) {
        for (number, channel) in self.channels.iter_mut().enumerate() {
            if sends >> number & 1 == 1 {
                channel.senders = channel.senders.saturating_add_signed(by);
            }
        }
    }

    /// When a process could go on.
    fn ready(&self, process: &Process) -> Option<u64> {
        match process.state {
            State::Runs => Some(process.time),
            State::Takes(channel) => {
                let channel = self.channels.get(usize::from(channel))?;
                let closed = channel.is_finished().then_some(process.time);
                channel.next_at(process.time, &self.slots).or(closed)
            }
            State::Sends | State::Done => None,
        }
    }

    /// The process that goes on.
    fn next(&self) -> Option<usize> {
        next_of(self.processes.iter().map(|process| self.ready(process)))
    }

    fn go_on<G: StreamBuilder>(
        &mut self,
        walk: &mut Walk<'_, G>,
        number: usize,
    ) -> Result<(), Stop> {
        let state = self.processes.get(number).map_or(State::Done, |process| process.state);
        match state {
            State::Takes(channel) => self.take(walk, number, channel.into()),
            _ => self.step(walk, number),
        }
    }

    /// One node of a process. After a fault the walk has the variables of that process.
    fn step<G: StreamBuilder>(
        &mut self,
        walk: &mut Walk<'_, G>,
        number: usize,
    ) -> Result<(), Stop> {
        let Some(process) = self.processes.get_mut(number) else { return Ok(()) };
        walk.values.swap_vars(&mut process.vars);
        walk.vars = process.var_count;
        if process.is_at_node {
            self.node(walk, number)?;
        } else {
            self.frame(walk, number)?;
        }
        let Some(process) = self.processes.get_mut(number) else { return Ok(()) };
        process.var_count = walk.vars;
        walk.values.swap_vars(&mut process.vars);
        Ok(())
    }

    /// Continues after a node that has ended.
    fn frame<G: StreamBuilder>(
        &mut self,
        walk: &mut Walk<'_, G>,
        number: usize,
    ) -> Result<(), Stop> {
        let Some(process) = self.processes.get_mut(number) else { return Ok(()) };
        let Some(mut frame) = process.frames.pop() else {
            process.state = State::Done;
            let sends = process.sends;
            self.count_senders(sends, -1);
            return Ok(());
        };
        match &mut frame {
            Frame::Nodes(0) => return Ok(()),
            Frame::Nodes(left) => {
                *left -= 1;
                process.begin(process.at);
            }
            Frame::Choice { after } => {
                process.end(*after);
                return Ok(());
            }
            Frame::Loop { around, body, after } => {
                walk.vars = around.first;
                if !around.turn(walk)? {
                    process.end(*after);
                    return Ok(());
                }
                process.begin(*body);
            }
            Frame::Consume { channel, var, at, .. } => {
                // The first word of the node says who waits for whom, and the others where it is.
                walk.turn(*at + 1)?;
                walk.vars = *var;
                (process.state, process.waits_at) = (State::Takes(*channel), *at);
            }
        }
        // There is room: it has just been taken out.
        let _ = process.frames.push(frame);
        Ok(())
    }

    /// The node at which a process is.
    fn node<G: StreamBuilder>(
        &mut self,
        walk: &mut Walk<'_, G>,
        number: usize,
    ) -> Result<(), Stop> {
        let Some(process) = self.processes.get_mut(number) else { return Ok(()) };
        let at = process.at;
        let mut cursor = walk.plan.from(at);
        let (code, operand) = cursor.code();
        let frame = match code {
            node::BLOCK => {
                process.end(cursor.at());
                Frame::Nodes(operand)
            }
            node::LOOP => {
                let around = Loop::read(&mut cursor, walk, (at, operand))?;
                let body = cursor.at();
                process.end(body);
                Frame::Loop { after: body + around.body_words as usize, body, around }
            }
            node::COND => {
                let after = heads::choose(&mut cursor, walk, operand)?;
                process.begin(cursor.at());
                Frame::Choice { after }
            }
            node::CONSUME => {
                let words = cursor.word() as usize;
                let [var, channel, ..] = operand.to_le_bytes();
                let body = cursor.at();
                process.end(body);
                Frame::Consume { channel, var: var.into(), at, body, after: body + words }
            }
            node::TASK => {
                self.task(walk, number, &mut cursor, (at, operand), false)?;
                return self.end(number, cursor);
            }
            node::SEND => {
                let value = eval_signed(&mut cursor, &walk.values)?;
                let task_at = cursor.at();
                let (_, kernel) = cursor.code();
                let mark = self.task(walk, number, &mut cursor, (task_at, kernel), true)?;
                self.send(walk, number, (operand, at), (value, mark))?;
                return self.end(number, cursor);
            }
            // An element of a tensor is what it is on one rank alone.
            node::SLOT_LOAD if self.ranks.are_several() => {
                return Err(Stop::new(Fault::PLAN_CODE, at).detail(code.into(), 0));
            }
            _ => {
                let mut cursor = walk.plan.from(at);
                walk.node(&mut cursor)?;
                return self.end(number, cursor);
            }
        };
        // A process that was accepted has no more nodes inside of each other.
        let _ = process.frames.push(frame);
        Ok(())
    }

    /// A process has come to the end of a node.
    fn end(&mut self, number: usize, cursor: Cursor<'_>) -> Result<(), Stop> {
        if let Some(process) = self.processes.get_mut(number) {
            process.end(cursor.at());
        }
        Ok(())
    }

    /// Submits a task of a process, after its last one and after what it has received, if the process is on this rank. `is_sent`: a token goes with it.
    fn task<G: StreamBuilder>(
        &mut self,
        walk: &mut Walk<'_, G>,
        number: usize,
        cursor: &mut Cursor<'_>,
        (at, kernel): (usize, u32),
        is_sent: bool,
    ) -> Result<Option<Mark>, Stop> {
        let Some(process) = self.processes.get_mut(number) else { return Ok(None) };
        let mut after = heapless::Vec::<_, { limits::PROCESSES }>::new();
        for mark in process.after() {
            // There is room for one of each process.
            let _ = after.push(mark.id);
        }
        let rank = process.rank;
        let after = self.ranks.is_here(rank).then_some(after.as_slice());
        let load = if is_sent { self.ranks.sending(number) } else { None };
        let id = tasks::submit_after(walk, cursor, (at, kernel), after, load)?;
        self.tasks = self.tasks.wrapping_add(1);
        let process_number = u8::try_from(number).unwrap_or(u8::MAX);
        let mark = Mark { process: process_number, rank, number: self.tasks, id };
        process.submitted(mark);
        let cycles = self.cycles.get(kernel as usize).copied().unwrap_or(0);
        process.time = process.time.saturating_add(cycles);
        Ok(Some(mark))
    }

    /// Sends a token with the task that was submitted for it.
    fn send<G: StreamBuilder>(
        &mut self,
        walk: &mut Walk<'_, G>,
        number: usize,
        (channel, at): (u32, usize),
        (value, mark): (i64, Option<Mark>),
    ) -> Result<(), Stop> {
        let Some(process) = self.processes.get_mut(number) else { return Ok(()) };
        (process.state, process.waits_at) = (State::Sends, at);
        let sent = Moment { time: process.time, marks: [mark, None] };
        if let Some(sending) = self.sending.get_mut(number) {
            *sending = Token { value, sent };
        }
        if let Some(channel) = self.channels.get_mut(channel as usize) {
            channel.send(u8::try_from(number).unwrap_or(u8::MAX));
        }
        self.admit(walk, channel as usize)
    }

    /// Lets those into a channel for whom there is room.
    fn admit<G: StreamBuilder>(
        &mut self,
        walk: &mut Walk<'_, G>,
        channel: usize,
    ) -> Result<(), Stop> {
        while let Some(channel) = self.channels.get_mut(channel)
            && let Some((process, slot)) = channel.entering()
            && let Some(admitted) = channel.admit(&self.sending, &mut self.slots)
        {
            self.ranks.placed(process, slot);
            self.complete(walk, admitted)?;
        }
        Ok(())
    }

    /// A process whose send has completed goes on.
    fn complete<G: StreamBuilder>(
        &mut self,
        walk: &mut Walk<'_, G>,
        completed: Option<Completed>,
    ) -> Result<(), Stop> {
        let Some(Completed { process, at }) = completed else { return Ok(()) };
        let number = usize::from(process);
        let Some(process) = self.processes.get_mut(number) else { return Ok(()) };
        process.state = State::Runs;
        process.time = process.time.max(at.time);
        self.wait(walk, number, at.marks)
    }

    /// The next task of a process waits for these as well, wherever they are.
    fn wait<G: StreamBuilder>(
        &mut self,
        walk: &mut Walk<'_, G>,
        number: usize,
        marks: Marks,
    ) -> Result<(), Stop> {
        let Some(process) = self.processes.get_mut(number) else { return Ok(()) };
        for mark in marks.into_iter().flatten() {
            if process.lacks(mark) {
                let known = self.ranks.news(walk.stream, mark, process.rank);
                process.wait_for(known.map_err(|fault| Stop::new(fault, process.waits_at + 1))?);
            }
        }
        Ok(())
    }

    /// A process takes a token, or continues after the loop over tokens.
    fn take<G: StreamBuilder>(
        &mut self,
        walk: &mut Walk<'_, G>,
        number: usize,
        channel: usize,
    ) -> Result<(), Stop> {
        let Some(process) = self.processes.get_mut(number) else { return Ok(()) };
        let Some(of) = self.channels.get_mut(channel) else { return Ok(()) };
        process.state = State::Runs;
        let frame = process.frames.last();
        let Some(Frame::Consume { var, body, after, .. }) = frame else { return Ok(()) };
        let (var, body, after) = (*var, *body, *after);
        let first = of.first(&self.slots).zip(of.leaving());
        let Some((token, slot)) = first else {
            let _ = process.frames.pop();
            process.end(after);
            return Ok(());
        };
        process.time = process.time.max(token.sent.time);
        // A token has one mark: that of its task.
        if let [Some(mark), _] = token.sent.marks {
            let ways = (&mut *walk.stream, &walk.bindings);
            let brought = self.ranks.bring(ways, (mark, slot), process.rank);
            let known = brought.map_err(|fault| Stop::new(fault, process.waits_at + 1))?;
            if process.lacks(known) {
                process.wait_for(known);
            }
        }
        let taken = process.now(u8::try_from(number).unwrap_or(u8::MAX));
        let met = of.take(taken, &mut self.slots);
        if let Some(variable) = process.vars.get_mut(var as usize) {
            *variable = token.value;
        }
        process.var_count = var + 1;
        process.begin(body);
        self.complete(walk, met)?;
        self.admit(walk, channel)
    }
}
