//! Budgets on the command line.

use crate::pto::refused;

#[test]
fn a_run_that_exceeds_its_budget_ends_with_a_fault() {
    // Some hundred milliseconds of work on any machine.
    let args = ["run", "random_dag", "--param=tasks=500000", "--run-budget-ms=1"];
    refused(&args, 3, &["STALL_RUN_BUDGET"]);
}
