//! The fault that ended the run of a plan, with the names of the workload.

use pto_abi::Fault;
use pto_abi::numbers::Counted;
use pto_graph::plan::epitaph;

use pto_aicore_kernels::tile::{FaultCause, TileFault};

use super::compiled::Compiled;

/// Why a run of a workload ended.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RunFault {
    /// A kernel ended with a fault: its name, the operand and the index are in it.
    #[error("{0}")]
    Kernel(Box<TileFault>),
    /// The processes of a pipeline wait for each other.
    #[error("The pipeline is in a deadlock: {0}. ({fault})", fault = Fault::PLAN_DEADLOCK)]
    Deadlock(String),
    /// The expansion stopped.
    #[error("At {location}{vars}: {message} ({fault})")]
    Expansion {
        /// The loops, kernel and argument.
        location: String,
        /// The values of the loop variables.
        vars: String,
        /// What was found.
        message: String,
        /// The fault.
        fault: Fault,
    },
}

impl Compiled {
    /// What an epitaph says after a run; `None`: no fault.
    #[must_use]
    pub fn fault(&self, found: &[u64]) -> Option<RunFault> {
        let word = |at: usize| found.get(at).copied().unwrap_or(0);
        if word(epitaph::STATE) != epitaph::FREE
            && let Some(fault) = self.kernel_fault(word)
        {
            return Some(RunFault::Kernel(Box::new(fault)));
        }
        let at = |at: u32| word(usize::try_from(at).unwrap_or(usize::MAX));
        let fault = Fault::from_code(u32::try_from(at(epitaph::FAULT)).unwrap_or(0))?;
        if fault == Fault::PLAN_DEADLOCK {
            return Some(RunFault::Deadlock(self.waits(at)));
        }
        let part = self.places.of(usize::try_from(at(epitaph::AT)).unwrap_or(usize::MAX));
        let location = part.map_or("the head of the plan", |part| &part.text).to_owned();
        let values = (0..at(epitaph::VARS)).map(|number| {
            at(epitaph::VAR_WORDS.saturating_add(u32::try_from(number).unwrap_or(u32::MAX)))
        });
        let names = part.map_or(&[][..], |part| &part.vars);
        let vars: Vec<String> = names
            .iter()
            .zip(values)
            .map(|(name, value)| format!("{name} = {}", value.cast_signed()))
            .collect();
        let vars =
            if vars.is_empty() { String::new() } else { format!(", with {}", vars.join(", ")) };
        let message = message(fault, at(epitaph::FOUND), at(epitaph::LIMIT));
        Some(RunFault::Expansion { location, vars, message, fault })
    }

    /// Who waits for whom in a deadlock: the epitaph has the words of the plan at which processes wait.
    fn waits(&self, at: impl Fn(u32) -> u64) -> String {
        let count = u32::try_from(at(epitaph::VARS)).unwrap_or(0);
        let words = (0..count).map(|number| at(epitaph::VAR_WORDS.saturating_add(number)));
        let parts = words.filter_map(|word| self.places.of(usize::try_from(word).ok()?));
        parts.map(|part| part.text.as_str()).collect::<Vec<_>>().join("; ")
    }

    /// `None`: the epitaph names no kernel of the plan.
    fn kernel_fault(&self, word: impl Fn(usize) -> u64) -> Option<TileFault> {
        let location = word(epitaph::KERNEL);
        let index = |word: u64| usize::try_from(word).unwrap_or(usize::MAX);
        let said = [0, 1, 2, 3, 4].map(|at| word(epitaph::CAUSE_WORDS + at));
        let cause =
            FaultCause::from_words((word(epitaph::CAUSE), said)).unwrap_or(FaultCause::Broken);
        let kernel = self.kernels.get(index(location & 0xFFFF_FFFF))?;
        let instruction = u16::try_from(location >> 32 & 0xFFFF).ok()?.checked_sub(1);
        let op = instruction.and_then(|number| kernel.ops().nth(number.into()));
        let param =
            index(location >> 48).checked_sub(1).and_then(|param| kernel.params().get(param));
        Some(TileFault {
            kernel: *kernel.code().name(),
            instruction,
            name: op.map_or("", |op| op.name()),
            param: param.map(|param| param.name),
            cause,
        })
    }
}

/// What was found, in a sentence.
fn message(fault: Fault, found: u64, limit: u64) -> String {
    let signed = found.cast_signed();
    match fault {
        Fault::PLAN_INDEX => {
            format!("the index is {signed}, and the dimension has {limit} places.")
        }
        Fault::PLAN_TILE => format!(
            "the tile begins at element {found} of {limit} and leaves its tensor. Give the view a range, or choose another tile."
        ),
        Fault::PLAN_DIVISION => format!("{signed} is divided by zero."),
        Fault::PLAN_ARRAY => {
            format!("the array has {}, and the axis needs {limit}.", Counted(found, "element"))
        }
        Fault::PLAN_ELEMENT => format!("element {limit} of the array is {signed}, and cannot be."),
        Fault::PLAN_TURNS | Fault::STALL_BUILDER | Fault::STALL_RUN_BUDGET => format!(
            "{found} turns of loops went by without a task. Look at the size of the loop, and at the predicates of its tasks."
        ),
        Fault::PLAN_LIMIT => format!("there are {found}, and the limit is {limit}."),
        // A fault with no numbers of the plan, as one that ended the run elsewhere.
        _ if found == 0 && limit == 0 => "the expansion was stopped here.".to_owned(),
        _ => format!("found {found:#x}, expected {limit:#x}."),
    }
}

#[cfg(test)]
mod tests {
    use pto_abi::Fault;

    use super::message;

    #[test]
    fn numbers_are_told_where_a_fault_has_some() {
        assert_eq!(message(Fault::TRANSFER_FAILED, 0, 0), "the expansion was stopped here.");
        assert_eq!(message(Fault::PLAN_CODE, 7, 0), "found 0x7, expected 0x0.");
    }
}
