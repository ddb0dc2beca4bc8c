//! One step of a core: each command has its answer, and the kernels of a chain are reported once.

use pto_abi::chain::{CHAIN_KERNEL, Turns, by_steps, header, shape};
use pto_abi::handshake::{Command, Dispatch};
use pto_aicore_kernels::worker::{WorkerPort, WorkerStep, step};

struct Script {
    commands: Vec<Command>,
    calls: Vec<(&'static str, u32)>,
}

impl WorkerPort for Script {
    fn command(&mut self) -> Command {
        self.commands.pop().unwrap_or(Command::Wait)
    }
    fn introduce(&mut self, epoch: u32) {
        self.calls.push(("introduce", epoch));
    }
    fn run(&mut self, dispatch: &Dispatch) {
        self.calls.push(("run", dispatch.task));
    }
    fn finish(&mut self, id: u32) {
        self.calls.push(("finish", id));
    }
    fn leave(&mut self) {
        self.calls.push(("leave", 0));
    }
}

#[test]
fn the_kernels_of_a_chain_are_run_and_reported_once() {
    let words = [
        header(2, 8),
        0x40,
        shape(3, 1, 1, 2),
        9,
        by_steps(0, Turns::EACH, 1),
        0x80,
        shape(4, 0, 0, 1),
    ];
    let words = [words[0], words[1], words[2], words[3], words[4], words[5], words[6], 0];
    let args = words.as_ptr().expose_provenance() as u64;
    let chain = Dispatch { id: 4, task: 9, kernel: CHAIN_KERNEL.0, args };
    let mut port = Script { commands: vec![Command::Run(chain)], calls: Vec::new() };
    assert_eq!(step(&mut port), WorkerStep::Worked);
    let calls = [("run", 9), ("run", 9), ("run", 9), ("finish", 4)];
    assert_eq!(port.calls, calls);
}

#[test]
fn each_command_has_its_answer() {
    let dispatch = Dispatch { id: 4, task: 9, kernel: 0, args: 0 };
    let commands = vec![Command::Quit, Command::Wait, Command::Run(dispatch), Command::Greet(2)];
    let mut port = Script { commands, calls: Vec::new() };
    let steps: Vec<_> = (0..4).map(|_| step(&mut port)).collect();
    use WorkerStep::{Idle, Left, Worked};
    assert_eq!(steps, [Worked, Worked, Idle, Left]);
    let calls = [("introduce", 2), ("run", 9), ("finish", 4), ("leave", 0)];
    assert_eq!(port.calls, calls, "a task is reported after it has run");
}
