//! How many calls a workload may have.

use pto_workload::Workload;
use pto_workload::clock::{Bindings, BoundTensor, RunError, results, row_major};
use pto_workload::tile::view::tensor_of;

/// What a workload of such a body comes to that may call its kernel 100 times.
fn of(body: &str) -> Result<u64, RunError> {
    let kernel =
        "kernel k(x: in f32[1, 8], y: out f32[1, 8]) { %0 = load x : f32[1, 8] store y, %0 }";
    let text = format!("workload w {{ tensor X : f32[2, 8] {kernel} do {body} }}");
    let text = text.replace("CALL", "k[i](x = X[0 for 1], y = X[0 for 1])");
    let checked = Workload::parse(&text).expect("a workload").check().expect("a right one");
    let mut words = vec![0_u64; 16];
    let bound =
        BoundTensor { memory: tensor_of(&mut words), first: 0, strides: row_major(&[2, 8]) };
    let bindings = Bindings::new().tensor("X", bound).size("n", 1 << 40);
    results(&checked, &bindings, 100)
}

#[test]
fn what_loops_say_is_refused_before_anything_runs() {
    for (body, least) in [
        ("parallel i in dense 4294967296 { CALL }", 1 << 32),
        ("each i in dyn n default 4 { CALL }", 1 << 40),
        (
            "parallel i in dense 3000000000 { parallel j in dense 3000000000 { CALL } }",
            9 * 10_u64.pow(18),
        ),
        ("parallel i in dense 3000000000000 { parallel j in dense 3000000000 { CALL } }", u64::MAX),
        // That is seen when the last task that may run has run.
        ("parallel i in dense 300 { if i < 200 { CALL } else { empty } }", 101),
    ] {
        assert_eq!(of(body), Err(RunError::Tasks { least, most: 100 }), "{body}");
    }
    assert_eq!(of("parallel i in dense 100 { CALL }"), Ok(100));
    assert_eq!(of("parallel i in dense 1000 { if i < 50 { CALL } else { empty } }"), Ok(50));
}
