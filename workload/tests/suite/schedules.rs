//! Dispatch and windows: eight equal tasks.

use pto_workload::clock::{Bindings, Issue, RunError, TaskTime, WindowFull, run, run_observed};
use pto_workload::tile::DType;
use pto_workload::tree::{BinaryOp, Dispatch, Expr, Schedule, TaskWindow, TreeNode, WindowMode};

use crate::v9::{checked, copy_kernel, parallel, task, workload};

/// When eight tasks of 32 cycles are done.
fn total(dispatch: Dispatch, workers: u64, window: TaskWindow) -> Result<(u64, u64), RunError> {
    let at: &[&str] = &["b"];
    let root = parallel("b", 8, TreeNode::Task(task(0, at, &[(0, at), (1, at)])));
    let shape: &[u64] = &[8, 4, 4];
    let tensors = [("X", DType::F32, shape), ("Y", DType::F32, shape)];
    let mut workload = workload("eight", 1, &tensors, vec![copy_kernel("copy", [4, 4])], root);
    workload.schedule = Schedule { dispatch, workers, window, ..Schedule::default() };
    let checked = checked(workload);
    let (mut x, mut y) = (vec![1f32; 128], vec![0f32; 128]);
    let result = {
        let bindings = Bindings::new().dense(&checked, "X", &mut x).unwrap();
        run(&checked, &bindings.dense(&checked, "Y", &mut y).unwrap())
    };
    result.map(|report| (report.total_cycles, report.overflows))
}

fn window(tasks: u64, mode: WindowMode) -> TaskWindow {
    TaskWindow { tasks, mode }
}

#[test]
fn the_known_totals_of_eight_tasks() {
    let stall = |tasks| window(tasks, WindowMode::Stall);
    let any = TaskWindow::default();
    let var = || Expr::var("b");
    let negative = Expr::binary(BinaryOp::Sub, Expr::Int(0), var());
    for (dispatch, workers, window, expected) in [
        (Dispatch::RoundRobin, 1, any, 256),
        (Dispatch::RoundRobin, 4, any, 64),
        (Dispatch::WorkSteal, 4, any, 64),
        (Dispatch::RoundRobin, 4, stall(2), 128),
        (Dispatch::RoundRobin, 4, stall(3), 96),
        (Dispatch::RoundRobin, 4, stall(1), 256),
        (Dispatch::RoundRobin, 4, stall(0), 64),
        (Dispatch::Hash(var()), 3, any, 96),
        (Dispatch::By(negative), 3, any, 128),
        (Dispatch::Affinity(Expr::Int(5)), 4, any, 256),
        (Dispatch::By(Expr::Param(0)), 8, any, 32),
    ] {
        let found = total(dispatch.clone(), workers, window).unwrap();
        assert_eq!(found, (expected, 0), "{dispatch:?}, {workers} workers, {window:?}");
    }
}

#[test]
fn a_full_window_aborts_or_is_counted() {
    let full = total(Dispatch::RoundRobin, 4, window(2, WindowMode::Abort)).unwrap_err();
    assert_eq!(
        full.to_string(),
        "At b = 2: 2 tasks under way, and the window takes no more. Make it larger, or let it stall."
    );
    let counted = total(Dispatch::RoundRobin, 4, window(2, WindowMode::Benchmark)).unwrap();
    assert_eq!(counted, (64, 6));
    assert_eq!(total(Dispatch::RoundRobin, 4, window(8, WindowMode::Abort)).unwrap(), (64, 0));
}

#[test]
fn issue_is_in_order() {
    // What is ready late holds back what comes after it.
    let mut issue = Issue::new(2, TaskWindow::default());
    assert_eq!(issue.issue(10, 0, 100), Ok((0, 100, 110)));
    assert_eq!(issue.issue(10, 1, 0), Ok((1, 100, 110)));
    let mut issue = Issue::new(1, window(1, WindowMode::Abort));
    assert_eq!(issue.issue(10, 0, 0), Ok((0, 0, 10)));
    assert_eq!(issue.issue(10, 0, 9), Err(WindowFull(1)));
    assert_eq!(issue.issue(10, 0, 10), Ok((0, 10, 20)));
}

#[test]
fn every_task_is_shown_with_worker_and_times() {
    let at: &[&str] = &["b"];
    let root = parallel("b", 3, TreeNode::Task(task(0, at, &[(0, at), (1, at)])));
    let shape: &[u64] = &[3, 4, 4];
    let tensors = [("X", DType::F32, shape), ("Y", DType::F32, shape)];
    let checked = checked(workload("three", 2, &tensors, vec![copy_kernel("copy", [4, 4])], root));
    let (mut x, mut y) = (vec![1f32; 48], vec![0f32; 48]);
    let mut seen = Vec::new();
    {
        let bindings = Bindings::new().dense(&checked, "X", &mut x).unwrap();
        let bindings = bindings.dense(&checked, "Y", &mut y).unwrap();
        let mut observer = |task: TaskTime| {
            seen.push((
                task.kernel.to_owned(),
                task.axes.to_vec(),
                task.lane,
                task.start,
                task.end,
            ));
        };
        run_observed(&checked, &bindings, &mut observer).unwrap();
    }
    let copy = |b, lane, start| ("copy".to_owned(), vec![b], lane, start, start + 32);
    assert_eq!(seen, [copy(0, 0, 0), copy(1, 1, 0), copy(2, 0, 32)]);
    assert_eq!(y, x);
}
