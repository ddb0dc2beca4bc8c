//! What is known of each core when a launch has failed: the lines of the arena as they were copied last.
//!
//! The device refuses most copies after a fault, so that the lines are copied while the host waits (`run.rs`). A core that is in service writes its
//! status to a register that the host does not see: of such a core the host knows which kernels AICPU has given it last.

use std::collections::BTreeMap;

use pto_abi::arena::Arena;
use pto_abi::chain::CHAIN_KERNEL;
use pto_abi::handshake::{Handshake, STATUS_EXITED};
use pto_abi::sync::Ordering;
use pto_abi::{CoreKind, GmAddr};

/// The sentences of a report: cores of which the same is known share one.
pub(crate) fn sentences(
    arena: &Arena<'_>,
    clusters: usize,
    kernel_at: &dyn Fn(GmAddr) -> Option<String>,
) -> Vec<String> {
    let epoch = arena.header().bring_up_epoch;
    let mut cores: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (number, lines) in arena.workers().iter().enumerate().take(3 * clusters) {
        let name = match number.checked_sub(clusters) {
            None => format!("{} {number}", CoreKind::AIC.name()),
            Some(vector) => format!("{} {vector}", CoreKind::AIV.name()),
        };
        cores.entry(known(lines, epoch, kernel_at)).or_default().push(name);
    }
    let sentence = |(known, names): (String, Vec<String>)| {
        let (verb, cores) = match names.as_slice() {
            [one] => ("core", one.clone()),
            [first, .., last] if names.len() > 6 => {
                ("cores", format!("{first} to {last} ({} of them)", names.len()))
            }
            some => ("cores", some.join(", ")),
        };
        format!("The last that is known of {verb} {cores}: {known}.")
    };
    cores.into_iter().map(sentence).collect()
}

/// What the lines say of a core.
fn known(lines: &Handshake, epoch: u32, kernel_at: &dyn Fn(GmAddr) -> Option<String>) -> String {
    let (worker, scheduler) = (&lines.worker, &lines.scheduler);
    let tasks = worker.tasks_run.load(Ordering::Relaxed);
    if scheduler.aicpu_ready.load(Ordering::Relaxed) != epoch {
        return "AICPU has not greeted it".to_owned();
    }
    if worker.aicore_done.load(Ordering::Relaxed) != epoch {
        return "AICPU has greeted it, and it has not answered".to_owned();
    }
    if worker.status.load(Ordering::Relaxed) == STATUS_EXITED {
        return format!("it has left its loop after {tasks} tasks");
    }
    let given = scheduler.dispatches.each_ref().map(|words| words.kernel.load(Ordering::Relaxed));
    let mut names: Vec<String> = given
        .into_iter()
        .filter(|address| *address != 0)
        .map(|address| match address {
            chain if chain == CHAIN_KERNEL.0 => "a chain".to_owned(),
            other => kernel_at(GmAddr(other)).unwrap_or_else(|| format!("code at {other:#x}")),
        })
        .collect();
    names.dedup();
    match names.as_slice() {
        [] => "it is in service, and was given nothing".to_owned(),
        some => format!("it is in service, and was given {} last", some.join(" and ")),
    }
}

#[cfg(test)]
mod tests {
    use super::known;
    use pto_abi::handshake::Handshake;
    use pto_abi::sync::Ordering;
    use pto_abi::{CoreKind, GmAddr};

    #[test]
    fn the_lines_say_how_far_a_core_is() {
        let lines = Handshake::default();
        lines.reset();
        let at = |address: GmAddr| (address.0 == 64).then(|| "add".to_owned());
        let says = |lines: &Handshake| known(lines, 7, &at);
        assert_eq!(says(&lines), "AICPU has not greeted it");
        lines.greet(7);
        assert_eq!(says(&lines), "AICPU has greeted it, and it has not answered");
        lines.introduce(7, 3, CoreKind::AIC);
        assert_eq!(says(&lines), "it is in service, and was given nothing");
        lines.stage(0, 0, 64, 0);
        lines.stage(1, 1, 128, 0);
        assert_eq!(says(&lines), "it is in service, and was given add and code at 0x80 last");
        lines.worker.tasks_run.store(2, Ordering::Relaxed);
        lines.leave();
        assert_eq!(says(&lines), "it has left its loop after 2 tasks");
    }
}
