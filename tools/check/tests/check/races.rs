//! Races against brute force: random programs with strided views, scopes of all modes, edges and arguments of all kinds. A
//! race is two accesses, one of which writes, with a byte in common and no way between their tasks: both written from the
//! definition, bytes as sets and ways as a matrix.

use std::collections::BTreeSet;

use pto_abi::{CoreKind, RuntimeVariant};
use pto_check::Kind;
use pto_check::program::{
    Action, Argument, Location, OwnedBlockShape, Program, Publish, Step, Task, Tensor, Use, View,
    row_major,
};
use pto_graph::{DependencyMode, ElementType};

use crate::{checked, small};

struct Random(u64);

impl Random {
    fn below(&mut self, bound: u32) -> u32 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        u32::try_from((self.0 >> 33) % u64::from(bound)).unwrap()
    }
}

const ELEMENTS: u32 = 96;
const TENSORS: u32 = 2;

/// Cut and stepped out of a tensor, or any strides that fit.
fn view(random: &mut Random) -> View {
    let tensor = random.below(TENSORS) as usize;
    loop {
        let (offset, shape, strides) = match random.below(3) {
            0 => {
                let len = 1 + random.below(12);
                (random.below(ELEMENTS), vec![len], vec![1])
            }
            1 => {
                let shape = vec![1 + random.below(8), 1 + random.below(6)];
                (random.below(ELEMENTS), shape, vec![12, 1])
            }
            _ => {
                let shape = vec![1 + random.below(5), 1 + random.below(4)];
                (
                    random.below(ELEMENTS),
                    shape,
                    vec![random.below(14).into(), random.below(5).into()],
                )
            }
        };
        let reach =
            shape.iter().zip(&strides).map(|(extent, stride)| u64::from(extent - 1) * stride);
        if u64::from(offset) + reach.sum::<u64>() < u64::from(ELEMENTS) {
            return View::new(tensor, ElementType::F32, offset.into(), (&shape, &strides)).unwrap();
        }
    }
}

fn elements(view: &View) -> BTreeSet<u64> {
    let mut all = BTreeSet::from([view.offset]);
    for (extent, stride) in view.shape().iter().zip(view.strides()) {
        all = all
            .iter()
            .flat_map(|at| (0..u64::from(*extent)).map(move |n| at + n * stride))
            .collect();
    }
    all
}

/// What brute force knows of an access: the task, the argument, the tensor, the elements; whether it writes, whether edges are
/// derived from it.
struct Touch {
    task: usize,
    argument: u32,
    tensor: usize,
    elements: BTreeSet<u64>,
    writes: bool,
    noted: bool,
}

fn touch(task: usize, argument: u32, arg: &Argument, mode: DependencyMode) -> Option<Touch> {
    let (view, writes, declared) = match arg {
        Argument::In(view) => (view, false, true),
        Argument::Out(view) | Argument::InOut(view) => (view, true, true),
        Argument::NoDep(view, Use::Write) => (view, true, false),
        Argument::NoDep(view, Use::Read | Use::Unknown) => (view, false, false),
        _ => return None,
    };
    let noted = declared && mode != DependencyMode::MANUAL;
    Some(Touch { task, argument, tensor: view.tensor, elements: elements(view), writes, noted })
}

impl Touch {
    fn meets(&self, other: &Self) -> bool {
        self.tensor == other.tensor
            && (self.writes || other.writes)
            && !self.elements.is_disjoint(&other.elements)
    }
}

struct Made {
    program: Program,
    touches: Vec<Touch>,
    reaches: Vec<Vec<bool>>,
}

fn argument(random: &mut Random, has_output: &mut Vec<View>) -> Argument {
    let view = view(random);
    match random.below(8) {
        0..3 => Argument::In(view),
        3..6 => {
            // The runtime refuses a task that writes an element twice.
            let clash = has_output.iter().any(|other| {
                other.tensor == view.tensor && !elements(other).is_disjoint(&elements(&view))
            });
            if clash {
                return Argument::In(view);
            }
            has_output.push(view);
            if random.below(2) == 0 { Argument::Out(view) } else { Argument::InOut(view) }
        }
        6 => Argument::Scalar(3),
        _ => {
            let used = [Use::Unknown, Use::Read, Use::Write, Use::None];
            Argument::NoDep(view, used[random.below(4) as usize])
        }
    }
}

fn tensor(id: u32) -> Tensor {
    let (bytes, element) = (u64::from(ELEMENTS) * 4, ElementType::F32);
    Tensor {
        id,
        name: None,
        bytes,
        element,
        shape: Some(vec![ELEMENTS]),
        location: Location::Host(None),
    }
}

fn make(seed: u64) -> Made {
    let random = &mut Random(seed);
    let streams = random.below(3) > 0;
    let variant = if streams {
        RuntimeVariant::TENSORMAP_AND_RINGBUFFER
    } else {
        RuntimeVariant::HOST_BUILD_GRAPH
    };
    let mut program = Program::new("random", variant);
    program.tensors = (0..TENSORS).map(tensor).collect();
    let count = 3 + random.below(12) as usize;
    let (sparse, mut touches) = (1 + random.below(8), Vec::new());
    let mut reaches = vec![vec![false; count]; count];
    let mut mode = if streams { DependencyMode::DERIVED } else { DependencyMode::MANUAL };
    let mut is_open = false;
    for task in 0..count {
        if streams && random.below(4) == 0 {
            if is_open {
                program.steps.push(Step { action: Action::CloseScope, line: 0 });
            }
            mode = DependencyMode::ALL[random.below(3) as usize];
            program.steps.push(Step { action: Action::OpenScope(mode), line: 0 });
            is_open = true;
        }
        let outputs = &mut Vec::new();
        let args: Vec<_> = (0..1 + random.below(3)).map(|_| argument(random, outputs)).collect();
        let after: Vec<usize> =
            (0..task).filter(|_| random.below(sparse) == 0 && random.below(2) == 0).collect();
        let own: Vec<Touch> =
            (0..).zip(&args).filter_map(|(at, arg)| touch(task, at, arg, mode)).collect();
        let conflicts =
            |earlier: &&Touch| earlier.noted && own.iter().any(|t| t.noted && t.meets(earlier));
        let derived = touches.iter().filter(conflicts).map(|earlier: &Touch| earlier.task);
        let derived: Vec<usize> =
            if mode == DependencyMode::DERIVED { derived.collect() } else { Vec::new() };
        for producer in after.iter().chain(&derived) {
            let reaching = |row: &Vec<bool>| row[*producer];
            let known: Vec<bool> = reaches.iter().map(reaching).collect();
            for (from, row) in reaches.iter_mut().enumerate() {
                row[task] |= from == *producer || known[from];
            }
        }
        touches.extend(own);
        let after = after.into_iter().map(|task| u32::try_from(task).unwrap()).collect();
        let (id, func, kind) = (u32::try_from(task).unwrap(), 0, CoreKind::AIV);
        let (publish, shape) = (Publish::Now, OwnedBlockShape::default());
        program.steps.push(Step { action: Action::Add(task), line: 0 });
        program.tasks.push(Task {
            id,
            name: None,
            func,
            kind,
            args,
            after,
            publish,
            block_shape: shape,
            links: Vec::new(),
        });
    }
    if is_open {
        program.steps.push(Step { action: Action::CloseScope, line: 0 });
    }
    Made { program, touches, reaches }
}

#[test]
fn races_are_those_of_brute_force() {
    let (mut clean, mut racing, mut reported) = (0, 0, 0);
    for seed in 0..3000 {
        let made = make(seed);
        let pairs =
            made.touches.iter().flat_map(|one| made.touches.iter().map(move |other| (one, other)));
        let races: BTreeSet<(u32, u32, u32, u32)> = pairs
            .filter(|(one, other)| one.task < other.task && one.meets(other))
            .filter(|(one, other)| !made.reaches[one.task][other.task])
            .map(|(one, other)| {
                let [a, b] = [one.task, other.task].map(|task| u32::try_from(task).unwrap());
                (a, b, one.argument, other.argument)
            })
            .collect();
        let report = checked(&made.program, small());
        let found = report.count(Kind::Race);
        assert_eq!(found, report.findings.len(), "seed {seed}: {:#?}", report.findings);
        assert_eq!(
            found > 0,
            !races.is_empty(),
            "seed {seed}: {:#?}, not {races:?}",
            report.findings
        );
        for race in &report.findings {
            let key = (race.tasks[0], race.tasks[1], race.arguments[0], race.arguments[1]);
            assert!(races.contains(&key), "seed {seed}: {race}");
            let [low, high] = race.bytes.unwrap();
            for (task, argument) in [(key.0, key.2), (key.1, key.3)] {
                let args = &made.program.tasks[task as usize].args;
                let (view, _) = args[argument as usize].view().unwrap();
                let elements = elements(view);
                assert!(
                    low < high && (low..high).all(|byte| elements.contains(&(byte / 4))),
                    "seed {seed}: {race}"
                );
            }
        }
        reported += found;
        if races.is_empty() { clean += 1 } else { racing += 1 }
    }
    assert!(
        clean > 300 && racing > 300 && reported > 2000,
        "{clean} clean, {racing} racing, {reported} reported"
    );
}

/// The edges that the runtime derives, stated in a manual scope: clean. Without one of them: a race, unless others order the two.
#[test]
fn an_edge_less_is_a_race() {
    let mut found = 0;
    for seed in 0..60 {
        let random = &mut Random(seed);
        let mut program = Program::new("explicit", RuntimeVariant::HOST_BUILD_GRAPH);
        program.tensors = (0..TENSORS).map(tensor).collect();
        let mut touches: Vec<Touch> = Vec::new();
        for task in 0..12_usize {
            let outputs = &mut Vec::new();
            let args: Vec<_> = (0..2).map(|_| argument(random, outputs)).collect();
            let mode = DependencyMode::DERIVED;
            let own: Vec<_> =
                (0..).zip(&args).filter_map(|(at, arg)| touch(task, at, arg, mode)).collect();
            let producers = touches.iter().filter(|earlier| own.iter().any(|t| t.meets(earlier)));
            let producers: BTreeSet<u32> =
                producers.map(|t| u32::try_from(t.task).unwrap()).collect();
            touches.extend(own);
            program.steps.push(Step { action: Action::Add(task), line: 0 });
            program.tasks.push(Task {
                id: u32::try_from(task).unwrap(),
                name: None,
                func: 0,
                kind: CoreKind::AIV,
                args,
                after: producers.into_iter().collect(),
                publish: Publish::Now,
                block_shape: OwnedBlockShape::default(),
                links: Vec::new(),
            });
        }
        assert!(checked(&program, small()).is_clean(), "seed {seed}");
        for task in 0..12 {
            for edge in 0..program.tasks[task].after.len() {
                let mut less = program.clone();
                let producer = less.tasks[task].after.remove(edge);
                // Another way from the one to the other.
                let mut successors = BTreeSet::from([producer]);
                for later in &less.tasks {
                    if later.after.iter().any(|before| successors.contains(before)) {
                        successors.insert(later.id);
                    }
                }
                let is_ordered = successors.contains(&less.tasks[task].id);
                let report = checked(&less, small());
                assert_eq!(
                    report.is_clean(),
                    is_ordered,
                    "seed {seed}: without {producer} -> {task}"
                );
                found += report.findings.len();
            }
        }
    }
    assert!(found > 500, "{found}");
}

#[test]
fn strides_are_those_of_row_major_order() {
    assert_eq!(row_major(&[2, 3, 4]), [12, 4, 1]);
    assert_eq!((row_major(&[]), row_major(&[7])), (vec![], vec![1]));
}
