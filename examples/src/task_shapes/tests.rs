//! Tests of `task_shapes`: the program on a simulated device, and what its reference distinguishes.

use std::vec::Vec;

use crate::host::random::Rng;
use crate::host::{Inputs, Params};
use crate::task_shapes::job::{PARAMS, TaskShapes};
use crate::task_shapes::reference::{Bounds, Planned, Result, When, result};
use crate::testing::attempt;

fn params(given: &[(&str, &str)]) -> Params {
    let mut params = Params::defaults(PARAMS);
    for (name, value) in given {
        params.set(name, value).unwrap();
    }
    params
}

const BOUNDS: Bounds = Bounds { rows: 5, blocks: 4, together: 3 };

fn plan(tasks: usize) -> Vec<Planned> {
    let mut random = Rng::new(3, "plan");
    (0..tasks).map(|_| Planned::draw(&mut random, BOUNDS)).collect()
}

#[test]
fn plans_of_many_sizes() {
    for given in [
        &[][..],
        &[("rows", "1"), ("blocks", "1"), ("layers", "7")],
        &[("rows", "200"), ("tasks", "300"), ("layers", "5"), ("seed", "9")],
        &[("blocks", "300"), ("tasks", "9"), ("layers", "4"), ("together", "1")],
    ] {
        let params = params(given);
        let (report, mut prepared, _device) =
            attempt(&TaskShapes, &params, &Inputs::default()).unwrap();
        assert_eq!(report.tasks, params.get("tasks") * params.get("layers"), "{given:?}");
        let verdict = prepared.verify().unwrap();
        assert!(verdict.passed(), "{given:?}: {verdict:?}");
    }
}

#[test]
fn a_plan_has_every_shape() {
    let plan = plan(400);
    let has = |what: &dyn Fn(&Planned) -> bool| plan.iter().filter(|task| what(task)).count() > 8;
    for cores in [1, 2, 3, 6, 7] {
        assert!(has(&|task| task.cores == cores && task.is_sync && task.blocks > 1), "{cores}");
    }
    assert!((0..4).all(|priority| has(&|task| task.priority == priority)));
    assert!(has(&|task| matches!(task.when, When::Below(_))));
    assert!(has(&|task| matches!(task.when, When::NotBelow(_))));
    let together = plan.iter().filter(|task| task.is_sync).map(|task| task.blocks).max();
    assert_eq!((together, plan.iter().map(|task| task.blocks).max()), (Some(3), Some(4)));
}

/// Whatever is done otherwise shows in the cells.
#[test]
fn the_reference_tells_runs_apart() {
    let plan = plan(60);
    let of = |plan: &[Planned]| -> Result { result(plan, BOUNDS, 2, 1, false) };
    let right = of(&plan);
    assert!(right.ran > 60 && right.ran < 120, "{}", right.ran);
    let at = plan.iter().position(|task| task.when == When::Always && task.cores == 7).unwrap();
    let changed = |change: &dyn Fn(&mut Planned)| {
        let mut plan = plan.clone();
        change(&mut plan[at]);
        of(&plan)
    };
    assert_eq!(changed(&|task| task.priority ^= 1), right);
    assert_ne!(changed(&|task| task.cores = 3), right, "a part is left out");
    assert_ne!(changed(&|task| task.blocks += 1), right, "a block more");
    let twice = [&plan[..], &plan[59..]].concat();
    assert_ne!(of(&twice), right, "a task runs twice");
    let met = result(&plan, BOUNDS, 2, 1, true);
    assert_ne!(met, right, "where parts meet");
}
