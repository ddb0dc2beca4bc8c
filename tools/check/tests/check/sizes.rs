//! Real sizes, by what they cost in comparisons and questions, not by the clock.

use pto_abi::{CoreKind, RuntimeVariant};
use pto_check::Kind;
use pto_check::program::{
    Action, Argument, Location, OwnedBlockShape, Program, Publish, Step, Task, Tensor, View,
};
use pto_graph::{DependencyMode, ElementType};

use crate::{checked, standard};

const TASKS: u32 = 100_000;

fn manual(shape: &[u32]) -> Program {
    let mut program = Program::new("large", RuntimeVariant::TENSORMAP_AND_RINGBUFFER);
    let elements: u64 = shape.iter().map(|extent| u64::from(*extent)).product();
    let (bytes, element) = (4 * elements, ElementType::F32);
    let shape = Some(shape.to_vec());
    program.tensors =
        vec![Tensor { id: 0, name: None, bytes, element, shape, location: Location::Host(None) }];
    program.steps.push(Step { action: Action::OpenScope(DependencyMode::MANUAL), line: 0 });
    program
}

fn add(program: &mut Program, args: Vec<Argument>, after: Vec<u32>) {
    let index = program.tasks.len();
    let (id, kind) = (u32::try_from(index).unwrap(), CoreKind::AIV);
    let (publish, shape) = (Publish::Now, OwnedBlockShape::default());
    program.tasks.push(Task {
        id,
        name: None,
        func: 0,
        kind,
        args,
        after,
        publish,
        block_shape: shape,
        links: Vec::new(),
    });
    program.steps.push(Step { action: Action::Add(index), line: 0 });
}

fn close(mut program: Program) -> Program {
    program.steps.push(Step { action: Action::CloseScope, line: 0 });
    program
}

/// Tile number `tile` of 64 x 64 of a matrix of 4096 x 4096.
fn tile(tile: u32) -> View {
    let (row, column) = (u64::from(tile / 64 % 64), u64::from(tile % 64));
    let offset = 64 * (row * 4096 + column);
    View::new(0, ElementType::F32, offset, (&[64, 64], &[4096, 1])).unwrap()
}

/// Each tile is written by one task after another, and read by a neighbour in between.
#[test]
fn tiles_of_a_matrix() {
    let mut program = manual(&[4096, 4096]);
    for task in 0..TASKS {
        let left = if task % 64 == 0 { task } else { task - 1 };
        let args = vec![Argument::In(tile(left)), Argument::InOut(tile(task))];
        // The last writer of its tile, who writes the tile on its left, and who reads its own from the right.
        let mut after = vec![left, task.saturating_sub(4096), task.saturating_sub(4095)];
        after.retain(|other| *other < task);
        after.sort_unstable();
        after.dedup();
        add(&mut program, args, after);
    }
    let program = close(program);
    let report = checked(&program, standard());
    assert!(report.is_clean(), "{:?}", report.findings.first());
    assert_eq!((report.tasks, report.parts), (TASKS as usize, 4096));
    assert!(
        report.compared < 64 * 64 * 64,
        "{}: each tile with those of its rows",
        report.compared
    );
    assert!(report.asked < 4 * u64::from(TASKS) * 2, "{}", report.asked);

    let mut broken = program;
    let victim = 77_777;
    broken.tasks[victim].after.retain(|other| *other != 77_777 - 4096);
    broken.tasks[victim].after.retain(|other| *other != 77_777 - 4095);
    let report = checked(&broken, standard());
    assert!(report.count(Kind::Race) > 0, "an edge is wanting");
    assert!(
        report.findings.iter().all(|race| race.tasks.contains(&77_777)),
        "{:#?}",
        report.findings
    );
}

/// One tensor that everybody writes in turn, and one that everybody reads.
#[test]
fn one_tensor_for_all() {
    let whole = View::new(0, ElementType::F32, 0, (&[1024], &[1])).unwrap();
    let mut chain = manual(&[1024]);
    for task in 0..TASKS {
        add(&mut chain, vec![Argument::InOut(whole)], task.checked_sub(1).into_iter().collect());
    }
    let report = checked(&close(chain), standard());
    assert!(report.is_clean() && report.asked < 3 * u64::from(TASKS), "{}", report.asked);

    let mut fan = manual(&[1024]);
    add(&mut fan, vec![Argument::Out(whole)], vec![]);
    for _ in 1..TASKS {
        add(&mut fan, vec![Argument::In(whole)], vec![0]);
    }
    let report = checked(&close(fan), standard());
    assert!(report.is_clean() && report.asked < 3 * u64::from(TASKS), "{}", report.asked);
}

/// Readers far after their writer, by a way of many edges: questions that no edge answers.
#[test]
fn ways_across_the_whole_program() {
    let part = |at: u32| View::new(0, ElementType::F32, u64::from(at), (&[1], &[1])).unwrap();
    let mut program = manual(&[TASKS]);
    let half = TASKS / 2;
    for task in 0..half {
        add(
            &mut program,
            vec![Argument::Out(part(task))],
            task.checked_sub(1).into_iter().collect(),
        );
    }
    for task in half..TASKS {
        add(&mut program, vec![Argument::In(part(task - half))], vec![task - 1]);
    }
    let report = checked(&close(program), standard());
    assert!(report.is_clean(), "{:?}", report.findings.first());
    assert_eq!(report.parts, half as usize);
}
