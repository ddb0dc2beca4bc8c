//! The programs of `docs/how-to/rust.md`.

use pto_host::abi::CoreKind;
use pto_host::graph::{GraphBuilder, NoBuilders, TaskSpec};
use pto_host::{Device, DeviceOptions, HostGraph, RunOptions, Work, func};

#[test]
fn the_documented_program_runs() -> Result<(), Box<dyn std::error::Error>> {
    let mut device = Device::open_sim(DeviceOptions::default(), NoBuilders)?;
    device.register_library()?;
    let (a, b) = (device.upload(&[2.0_f32; 64])?, device.upload(&[3.0_f32; 64])?);
    let sum = device.zeroed::<f32>(64)?;

    let mut graph = HostGraph::new(&device, &[]);
    let args = [a.address().0, b.address().0, sum.address().0, 64];
    graph.submit(TaskSpec::new(func::ADD, CoreKind::AIV, &args), &[])?;

    let report = device.run(Work::HostGraph(&graph.finish()?), &RunOptions::default())?;
    assert_eq!(report.tasks, 1);
    assert_eq!(sum.read()?, [5.0; 64]);
    Ok(())
}

mod own_kernel {
    use pto_host::abi::{CoreKind, FuncId};
    use pto_host::graph::{GraphBuilder, NoBuilders, TaskSpec};
    use pto_host::{Device, DeviceOptions, HostGraph, Kernel, RunOptions, Work};

    const DOUBLE: FuncId = FuncId(100);

    /// Doubles numbers. Its words are the address of the first number, and how many there are.
    unsafe extern "C" fn double(words: *const u64) {
        // SAFETY: each task has these two words.
        let &[first, count] = unsafe { &*words.cast::<[usize; 2]>() };
        let first = std::ptr::with_exposed_provenance_mut::<f32>(first);
        // SAFETY: the words are those of a buffer that no other task uses meanwhile.
        let numbers = unsafe { std::slice::from_raw_parts_mut(first, count) };
        numbers.iter_mut().for_each(|number| *number *= 2.0);
    }

    #[test]
    fn the_documented_kernel_runs() -> Result<(), Box<dyn std::error::Error>> {
        let mut device = Device::open_sim(DeviceOptions::default(), NoBuilders)?;
        device.register_kernel(DOUBLE, Kernel::from_fn("double", CoreKind::AIV, double))?;
        let x = device.upload(&[1.5_f32; 64])?;

        let mut graph = HostGraph::new(&device, &[]);
        graph.submit(TaskSpec::new(DOUBLE, CoreKind::AIV, &[x.address().0, 64]), &[])?;
        device.run(Work::HostGraph(&graph.finish()?), &RunOptions::default())?;
        assert_eq!(x.read()?, [3.0; 64]);
        Ok(())
    }
}

#[test]
fn the_documentation_shows_this_file() {
    let lines = |text: &str| text.lines().map(str::trim).collect::<Vec<_>>().join("\n");
    let here = lines(include_str!("documented.rs"));
    let page = include_str!("../../../docs/how-to/rust.md");
    let programs: Vec<_> = page.split("```rust\n").skip(1).collect();
    assert_eq!(programs.len(), 2, "a graph, and a kernel of one's own");
    for program in programs {
        let program = program.split("```").next().expect("the program ends");
        // Imports, kernels and the body of `main` are not together here.
        for part in program.split("\n\n") {
            assert!(here.contains(lines(part).trim()), "not in this file:\n{part}");
        }
    }
}
