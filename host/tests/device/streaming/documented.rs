//! The program of `docs/how-to/streaming.md`.

use pto_host::abi::{CoreKind, GmAddr};
use pto_host::graph::{
    Arg, BuildError, DependencyMode, ElementType, StreamBuilder, TensorTask, TensorView,
    builder_set,
};
use pto_host::{Device, DeviceOptions, RunOptions, Work, func};

builder_set! { struct Programs {} stream { "sums" => sums } }

/// out = (a + b) * (a + b), in tiles of 64.
fn sums<G: StreamBuilder>(stream: &mut G) -> Result<(), BuildError> {
    let [a, b, out] = stream.orch_args() else { return Err(BuildError::Failed(1)) };
    let tensor = |at: u64| TensorView::dense(GmAddr(at), ElementType::F32, &[16, 64]);
    let (a, b, out) = (tensor(*a), tensor(*b), tensor(*out));
    for row in 0..16 {
        let [a, b, out] = [a, b, out].map(|tensor| tensor.slice(0, row, 1));
        stream.scope::<(), BuildError>(DependencyMode::DERIVED, |scope| {
            let sum = scope.tensor(ElementType::F32, &[64])?;
            let args = [Arg::In(&a), Arg::In(&b), Arg::Out(&sum), Arg::Scalar(64)];
            scope.submit_tensors(&TensorTask::new(func::ADD, CoreKind::AIV, &args))?;
            let args = [Arg::In(&sum), Arg::In(&sum), Arg::Out(&out), Arg::Scalar(64)];
            scope.submit_tensors(&TensorTask::new(func::MUL, CoreKind::AIV, &args))?;
            Ok(())
        })?;
    }
    Ok(())
}

#[test]
fn the_documented_program_runs() -> Result<(), pto_host::Error> {
    let mut device = Device::open_sim(DeviceOptions::default(), Programs)?;
    device.register_library()?;
    let (a, b) = (device.upload(&[2.0_f32; 1024])?, device.upload(&[3.0_f32; 1024])?);
    let out = device.zeroed::<f32>(1024)?;
    let orch_args = [a.address().0, b.address().0, out.address().0];
    device.run(Work::Stream { builder: "sums", orch_args: &orch_args }, &RunOptions::default())?;
    assert_eq!(out.read()?, [25.0; 1024]);
    Ok(())
}
