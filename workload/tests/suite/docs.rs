//! The program of the documentation runs as it says.

use pto_workload::Workload;
use pto_workload::clock::{Bindings, run};

#[test]
fn the_example_doubles_its_tensor_in_1536_cycles() {
    let page = include_str!("../../../docs/reference/workloads.md");
    let mut blocks = page.split("```text\n").skip(1).filter_map(|rest| rest.split("```").next());
    let text = blocks.next().unwrap();
    let checked = Workload::parse(text).unwrap().check().unwrap();
    assert_eq!(
        format!("{}\n", checked.workload()).trim(),
        text.trim(),
        "the page has it as it is printed"
    );
    let (mut x, mut y) = ((0..2048u16).map(f32::from).collect::<Vec<_>>(), vec![0f32; 2048]);
    let expected: Vec<f32> = x.iter().map(|x| x + x).collect();
    let report = {
        let bindings = Bindings::new().dense(&checked, "X", &mut x).unwrap();
        run(&checked, &bindings.dense(&checked, "Y", &mut y).unwrap()).unwrap()
    };
    assert_eq!((report.total_cycles, report.tasks, y), (1536, 4, expected));
}
