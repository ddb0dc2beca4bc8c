//! A round of programs: which tensor has to be converted in front of which program, so that the fewest bytes are converted.
//!
//! A program needs each of its tensors in one layout. A tensor that no program of the round writes is converted once for each layout and
//! kept. What a program writes is valid in one layout, until it is converted; each further layout costs one conversion between two writes, and
//! no plan has fewer. So conversions come before the first program that needs the layout.

use std::collections::BTreeMap;

use pto_workload::program::{Program, Role, TensorDescription, TensorLayout};

/// A program of a round, and what its tensors are called in the round.
#[derive(Clone, Debug)]
pub struct Step<'p> {
    program: &'p Program,
    names: Vec<(String, String)>,
}

impl<'p> Step<'p> {
    /// A program whose tensors keep their names.
    #[must_use]
    pub const fn new(program: &'p Program) -> Self {
        Self { program, names: Vec::new() }
    }

    /// The program's tensor is another one's of the round.
    #[must_use]
    pub fn with(mut self, tensor: &str, name: &str) -> Self {
        self.names.push((tensor.to_owned(), name.to_owned()));
        self
    }

    /// The tensors of the program with the names that they have in the round.
    fn tensors(&self) -> impl Iterator<Item = (&str, &TensorDescription)> {
        let shared =
            |one: &&TensorDescription| !matches!(one.role, Role::Temporary | Role::Constant);
        self.program.tensors().iter().filter(shared).map(|tensor| {
            let named = self.names.iter().find(|(known, _)| *known == tensor.name);
            (named.map_or(tensor.name.as_str(), |(_, name)| name.as_str()), tensor)
        })
    }
}

/// A conversion that a round needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedConversion {
    /// The tensor, by its name in the round.
    pub tensor: String,
    /// The number of the step in front of which it is converted.
    pub before: usize,
    /// From this layout.
    pub from: TensorLayout,
    /// To this one.
    pub to: TensorLayout,
    /// Bytes that it writes.
    pub bytes: u64,
    /// Whether it is needed in every round; otherwise once, because the round only reads the tensor.
    pub each_round: bool,
    /// Why, in a sentence.
    pub why: String,
}

/// What a round needs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SequencePlan {
    /// The layout that each tensor should have in the beginning.
    pub initial: BTreeMap<String, TensorLayout>,
    /// The conversions, in the order of the steps.
    pub conversions: Vec<PlannedConversion>,
}

impl SequencePlan {
    /// Bytes that every round converts.
    #[must_use]
    pub fn bytes_each_round(&self) -> u64 {
        self.conversions.iter().filter(|one| one.each_round).map(|one| one.bytes).sum()
    }

    /// Bytes that are converted once.
    #[must_use]
    pub fn bytes_once(&self) -> u64 {
        self.conversions.iter().filter(|one| !one.each_round).map(|one| one.bytes).sum()
    }

    /// The conversions in front of a step.
    pub fn before(&self, step: usize) -> impl Iterator<Item = &PlannedConversion> {
        self.conversions.iter().filter(move |one| one.before == step)
    }
}

/// Programs that run one after the other, round after round.
#[derive(Clone, Debug, Default)]
pub struct Sequence<'p> {
    steps: Vec<Step<'p>>,
}

/// What a step does with a tensor.
struct TensorAccess<'p> {
    step: usize,
    program: &'p str,
    tensor: &'p TensorDescription,
}

impl<'p> Sequence<'p> {
    /// No programs.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// One program more.
    #[must_use]
    pub fn then(mut self, step: Step<'p>) -> Self {
        self.steps.push(step);
        self
    }

    /// Which conversions a round needs. Bytes, layouts and reasons follow from the descriptions of the tensors alone.
    #[must_use]
    pub fn plan(&self) -> SequencePlan {
        let mut plan = SequencePlan::default();
        let mut accesses: BTreeMap<&str, Vec<TensorAccess<'_>>> = BTreeMap::new();
        for (step, of) in self.steps.iter().enumerate() {
            for (name, tensor) in of.tensors() {
                let access = TensorAccess { step, program: of.program.name(), tensor };
                accesses.entry(name).or_default().push(access);
            }
        }
        for (name, accesses) in accesses {
            plan_tensor(name, &accesses, &mut plan);
        }
        plan.conversions.sort_by_key(|one| one.before);
        plan
    }
}

fn plan_tensor(name: &str, accesses: &[TensorAccess<'_>], plan: &mut SequencePlan) {
    let last = accesses.iter().rposition(|access| access.tensor.role != Role::Input);
    let Some(first) = accesses.first() else { return };
    // What a round leaves is what the next one finds.
    let start = &last.map_or(first, |last| &accesses[last]).tensor.layout;
    if first.tensor.role != Role::Output {
        plan.initial.insert(name.to_owned(), start.clone());
    }
    let last_write = last.map(|last| &accesses[last]);
    // The round from the last write to itself: what is converted after it serves the beginning of the next round as well.
    let split = last.map_or(0, |last| last + 1);
    let (before, after) = accesses.split_at(split);
    let mut valid = vec![start];
    for access in after {
        need(name, access, &mut valid, last_write, plan);
    }
    let mut made_after = valid.split_off(1);
    valid.extend(&made_after);
    for access in before {
        // In the first round nothing was converted after a write.
        let index = made_after.iter().position(|made| **made == access.tensor.layout);
        if let Some(index) = index.filter(|_| access.tensor.role != Role::Output) {
            made_after.swap_remove(index);
            let once = conversion(name, access, start, None);
            plan.conversions.push(PlannedConversion { why: FIRST_ROUND.to_owned(), ..once });
        }
        need(name, access, &mut valid, last_write, plan);
        if access.tensor.role != Role::Input {
            made_after.clear();
        }
    }
}

/// Why a conversion is needed in the first round alone.
const FIRST_ROUND: &str =
    "in later rounds the conversion after the last write serves this program as well";

/// A program needs a tensor that is valid in some layouts.
fn need<'a>(
    name: &str,
    access: &'a TensorAccess<'_>,
    valid: &mut Vec<&'a TensorLayout>,
    last_write: Option<&TensorAccess<'_>>,
    plan: &mut SequencePlan,
) {
    let wanted = &access.tensor.layout;
    if access.tensor.role != Role::Output && !valid.contains(&wanted) {
        plan.conversions.push(conversion(name, access, valid[0], last_write));
        valid.push(wanted);
    }
    if access.tensor.role != Role::Input {
        *valid = vec![wanted];
    }
}

fn conversion(
    name: &str,
    access: &TensorAccess<'_>,
    from: &TensorLayout,
    last_write: Option<&TensorAccess<'_>>,
) -> PlannedConversion {
    let to = access.tensor.layout.clone();
    let program = access.program;
    let why = match last_write {
        Some(write) => format!(
            "program {} writes {name} as '{}', and program {program} needs '{to}'; one conversion between two writes is the least",
            write.program, write.tensor.layout
        ),
        None => format!(
            "program {program} needs {name} as '{to}' and as '{from}'; no program of the round writes it, so that one conversion serves all rounds"
        ),
    };
    PlannedConversion {
        tensor: name.to_owned(),
        before: access.step,
        from: from.clone(),
        to,
        bytes: access.tensor.bytes(),
        each_round: last_write.is_some(),
        why,
    }
}
