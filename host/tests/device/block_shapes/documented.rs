//! The examples of shaped tasks of `docs/how-to/streaming.md`, in one program.

use pto_host::abi::block::BlockContext;
use pto_host::abi::{CoreKind, FuncId, GmAddr};
use pto_host::graph::{
    Arg, BuildError, Comparison, ElementType, Predicate, Priority, StreamBuilder, TensorTask,
    TensorView, builder_set,
};
use pto_host::{Device, DeviceOptions, Kernel, RunOptions, Work};

builder_set! { struct Programs {} stream { "shapes" => shapes } }

const CUBE: FuncId = FuncId(100);
const VECTOR: FuncId = FuncId(101);
const ROUTE: FuncId = FuncId(102);

/// Adds 1 to its share of the rows. Arguments: matrix, rows, columns, cores of a block, cube cores among them.
unsafe extern "C" fn on_vector(args: *const u64) {
    // SAFETY: five arguments, and the word after them.
    let [matrix, rows, columns, cores, cubes, context] = unsafe { args.cast::<[u64; 6]>().read() };
    let BlockContext { block, blocks, lane } = BlockContext::of(context);
    let (own, all) =
        (u64::from(block) * cores + cubes + u64::from(lane), u64::from(blocks) * cores);
    (own..rows)
        .step_by(usize::try_from(all).unwrap())
        .for_each(|row| add_one(matrix, row, columns));
}

/// As [`on_vector`], on the cube core of a block.
unsafe extern "C" fn on_cube(args: *const u64) {
    // SAFETY: as above.
    let [matrix, rows, columns, cores, _, context] = unsafe { args.cast::<[u64; 6]>().read() };
    let BlockContext { block, blocks, .. } = BlockContext::of(context);
    let (own, all) = (u64::from(block) * cores, u64::from(blocks) * cores);
    (own..rows)
        .step_by(usize::try_from(all).unwrap())
        .for_each(|row| add_one(matrix, row, columns));
}

/// Says how much work an expert has. Arguments: its count, how many tokens.
unsafe extern "C" fn route(args: *const u64) {
    // SAFETY: two arguments.
    let [count, tokens] = unsafe { args.cast::<[u64; 2]>().read() };
    let at = usize::try_from(count).unwrap();
    // SAFETY: an element of a live tensor, which this task writes.
    unsafe {
        core::ptr::with_exposed_provenance_mut::<u32>(at).write(u32::try_from(tokens).unwrap())
    };
}

fn add_one(matrix: u64, row: u64, columns: u64) {
    for column in 0..columns {
        let at = usize::try_from(matrix + 4 * (row * columns + column)).unwrap();
        let element = core::ptr::with_exposed_provenance_mut::<f32>(at);
        // SAFETY: an element of a live matrix, in a row that no other part has.
        let value = unsafe { element.read() };
        // SAFETY: as above.
        unsafe { element.write(value + 1.0) };
    }
}

fn shapes<G: StreamBuilder>(stream: &mut G) -> Result<(), BuildError> {
    let [matrix, counts] = stream.orch_args() else { return Err(BuildError::Failed(1)) };
    let (matrix, counts) = (GmAddr(*matrix), GmAddr(*counts));
    let matrix = TensorView::dense(matrix, ElementType::F32, &[64, 16]);
    let counts = TensorView::dense(counts, ElementType::U32, &[8]);

    let [m, rows, columns] = [Arg::InOut(&matrix), Arg::Scalar(64), Arg::Scalar(16)];
    let args = [m, rows, columns, Arg::Scalar(3), Arg::Scalar(1)];
    let mix = TensorTask::new(CUBE, CoreKind::AIC, &args).mix(&[VECTOR, VECTOR]);
    stream.submit_tensors(&mix)?;

    let args = [m, rows, columns, Arg::Scalar(1), Arg::Scalar(0)];
    let spread = TensorTask::new(VECTOR, CoreKind::AIV, &args).blocks(100);
    stream.submit_tensors(&spread)?;

    let together = TensorTask::new(VECTOR, CoreKind::AIV, &args).blocks(48).sync_start();
    stream.submit_tensors(&together)?;

    for expert in 0..8_u32 {
        let count = counts.slice(0, expert, 1);
        let args = [Arg::Out(&count), Arg::Scalar(u64::from(expert % 3))];
        stream.submit_tensors(&TensorTask::new(ROUTE, CoreKind::AIV, &args))?;
    }
    for expert in 0..8 {
        let has_tokens = Predicate::new(&counts, &[expert], Comparison::GREATER, 0);
        let task = TensorTask::new(VECTOR, CoreKind::AIV, &args);
        stream.submit_tensors(&task.when(&has_tokens))?;
    }

    let soon = TensorTask::new(VECTOR, CoreKind::AIV, &args).priority(Priority::HIGH);
    stream.submit_tensors(&soon)?;
    Ok(())
}

#[test]
fn the_documented_shapes_run() -> Result<(), pto_host::Error> {
    let mut device = Device::open_sim(DeviceOptions::default(), Programs)?;
    device.register_kernel(CUBE, Kernel::from_fn("on_cube", CoreKind::AIC, on_cube))?;
    device.register_kernel(VECTOR, Kernel::from_fn("on_vector", CoreKind::AIV, on_vector))?;
    device.register_kernel(ROUTE, Kernel::from_fn("route", CoreKind::AIV, route))?;
    let matrix = device.zeroed::<f32>(64 * 16)?;
    let counts = device.zeroed::<u32>(8)?;
    let orch_args = [matrix.address().0, counts.address().0];
    device
        .run(Work::Stream { builder: "shapes", orch_args: &orch_args }, &RunOptions::default())?;
    // Three tasks, five experts of eight, and one more.
    assert_eq!(matrix.read()?, [9.0; 64 * 16]);
    Ok(())
}

/// Every example of the section is in this file, whatever its indentation.
#[test]
fn the_documentation_shows_this_file() {
    let lines = |text: &str| text.lines().map(str::trim).collect::<Vec<_>>().join("\n");
    let here = lines(include_str!("documented.rs"));
    let page = include_str!("../../../../docs/how-to/streaming.md");
    let (_, section) = page.split_once("## Shapes of work").unwrap();
    let section = section.split("\n## ").next().unwrap();
    let examples: Vec<_> = section.split("```rust\n").skip(1).collect();
    assert!(examples.len() > 4);
    for example in examples {
        let example = lines(example.split("```").next().unwrap());
        assert!(here.contains(example.trim()), "not in this file:\n{example}");
    }
}
