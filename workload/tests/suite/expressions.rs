//! Expressions: evaluated as C does, and what C leaves open.

use pto_workload::clock::{Bindings, run};
use pto_workload::tile::DType;
use pto_workload::tree::{Expr, Task, TaskArgument, TreeNode};
use pto_workload::{KernelBuilder, Workload};

use crate::v9::{checked, parallel, workload};

/// A kernel that stores its scalar.
pub(crate) fn keep(dtype: DType) -> pto_workload::TileKernel {
    use pto_workload::tile::Direction;
    let mut k = KernelBuilder::new("keep");
    let s = k.scalar("s", dtype).unwrap();
    let out = k.tensor("out", Direction::Out, dtype, [1, 1]).unwrap();
    let tile = k.broadcast(s, [1, 1]).unwrap();
    k.store(out, tile, [0, 0], None).unwrap();
    k.finish().unwrap()
}

fn program(argument: TaskArgument, dtype: DType) -> Workload {
    let view = TaskArgument::View(pto_workload::tree::TensorSlice::at(0, []));
    let task = Task { kernel: 0, axes: Vec::new(), arguments: vec![argument, view] };
    let root = parallel(
        "i",
        3,
        TreeNode::Sequential(vec![
            TreeNode::SlotSet { slot: 3, value: Expr::Int(-7) },
            TreeNode::Task(task),
        ]),
    );
    workload("keeps", 1, &[("OUT", dtype, &[1, 1])], vec![keep(dtype)], root)
}

/// The value of an expression in the last turn of a loop, `i = 2`.
fn eval(text: &str) -> Result<i64, String> {
    let example = program(TaskArgument::Expr(Expr::Int(0)), DType::I64).to_string();
    let text = example.replace("s = 0", &format!("s = {text}"));
    let workload = Workload::parse(&text).map_err(|error| error.to_string())?;
    let checked = workload.check().map_err(|error| error.to_string())?;
    let mut out = [0i64];
    {
        let bindings = Bindings::new().symbol("big", u64::MAX).symbol("two", 2);
        let bindings = bindings.dense(&checked, "OUT", &mut out).unwrap();
        run(&checked, &bindings).map_err(|error| error.to_string())?;
    }
    Ok(out[0])
}

#[test]
fn values() {
    for (text, expected) in [
        ("1 + 2 * 3", 7),
        ("(1 + 2) * 3", 9),
        ("7 / -2", -3),
        ("7 % -2", 1),
        ("-7 % 2", -1),
        ("i - 3", -1),
        ("-(i)", -2),
        ("~i", -3),
        ("10 - 4 - 3", 3),
        ("1 << 65", 2),
        ("-8 >> 1", -4),
        ("i64(symbol(big) >> 63)", 1),
        ("i64(symbol(big))", -1),
        // One unsigned operand makes both unsigned.
        ("-1 < symbol(two) ? 1 : 0", 0),
        ("-1 < i64(symbol(two)) ? 1 : 0", 1),
        ("i64(-8 / symbol(two))", i64::MAX - 3),
        ("slot_i64(3)", -7),
        ("slot_u64(3) > 5u ? 1 : 0", 1),
        ("slot_i64(9)", 0),
        ("5 & 3 | 8 ^ 1", 9),
        ("1 < 2 && !(2 < 1) || false ? 4 : 5", 4),
        ("i == 2 ? i == 1 ? 8 : 9 : 10", 9),
        ("0x10 + 1", 17),
        ("9223372036854775807 + 1", i64::MIN),
        // What is not taken is not evaluated.
        ("i == 2 ? 1 : 1 / (i - 2)", 1),
        ("i != 2 && 1 / (i - 2) == 0 ? 1 : 0", 0),
    ] {
        assert_eq!(eval(text), Ok(expected), "{text}");
    }
}

#[test]
fn what_has_no_value() {
    for (text, expected) in [
        ("1 / (i - 2)", "At i = 2: Kernel keep, operand s: 1 / 0 divides by zero."),
        ("5 % (i - i)", "At i = 0: Kernel keep, operand s: 5 % 0 divides by zero."),
        ("symbol(missing)", "The symbol missing is not bound. Set it before the run."),
    ] {
        assert_eq!(eval(text), Err(expected.to_owned()), "{text}");
    }
    for (text, expected) in [
        ("j", "Workload keeps, loop i, kernel keep, argument s: There is no loop variable j here."),
        (
            "slot_u64(256)",
            "Workload keeps, loop i, kernel keep, argument s: There is no slot 256. The last one is 255.",
        ),
        (
            "param(0)",
            "Workload keeps, loop i, kernel keep, argument s: Only where tasks are dispatched are there arguments of a task.",
        ),
        (
            "true + 1",
            "Workload keeps, loop i, kernel keep, argument s: The operator + is not defined for bool and i64.",
        ),
        (
            "1 && 2",
            "Workload keeps, loop i, kernel keep, argument s: The operator && is not defined for i64 and i64.",
        ),
        (
            "!3",
            "Workload keeps, loop i, kernel keep, argument s: The operator ! is not defined for i64.",
        ),
        (
            "1 ? 2 : 3",
            "Workload keeps, loop i, kernel keep, argument s: The condition of a choice must be bool.",
        ),
    ] {
        assert_eq!(eval(text), Err(expected.to_owned()), "{text}");
    }
}

#[test]
fn scalars_become_the_type_of_the_parameter() {
    let run_as = |argument: TaskArgument, dtype: DType| -> Vec<u8> {
        let checked = checked(program(argument, dtype));
        let mut out = vec![0u64; 1];
        {
            let bindings = Bindings::new().symbol_f32("scale", 2.75).symbol("big", u64::MAX);
            run(&checked, &bindings.dense(&checked, "OUT", &mut out).unwrap()).unwrap();
        }
        out[0].to_le_bytes()[..dtype.bytes()].to_vec()
    };
    let symbol = || TaskArgument::Symbol("scale".to_owned());
    assert_eq!(run_as(symbol(), DType::F32), 2.75f32.to_le_bytes());
    assert_eq!(run_as(symbol(), DType::I32), 2i32.to_le_bytes());
    assert_eq!(run_as(TaskArgument::Number(1.5), DType::F64), 1.5f64.to_le_bytes());
    assert_eq!(
        run_as(TaskArgument::Number(f64::INFINITY), DType::F32),
        f32::INFINITY.to_le_bytes()
    );
    assert_eq!(run_as(TaskArgument::Expr(Expr::Int(-3)), DType::F32), (-3f32).to_le_bytes());
    assert_eq!(
        run_as(TaskArgument::Expr(Expr::symbol("big")), DType::F64),
        (u64::MAX as f64).to_le_bytes()
    );
    assert_eq!(run_as(TaskArgument::Expr(Expr::Int(-1)), DType::U16), u16::MAX.to_le_bytes());
    assert_eq!(run_as(TaskArgument::Expr(Expr::Bool(true)), DType::I8), [1]);
}
