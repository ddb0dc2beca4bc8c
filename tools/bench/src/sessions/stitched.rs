//! Two programs that were compiled apart, against the same tasks compiled as one, in virtual time: the same on every machine.

use pto_host::graph::builder_set;
use pto_host::session::SessionOptions;
use pto_host::stitch::{HostTensor, Inputs, StitchError, Stitcher};
use pto_host::virtual_time::VirtualOptions;
use pto_host::workloads::Workload;
use pto_host::workloads::program::{Program, TensorLayout};
use pto_host::{Device, DeviceOptions, Hosting};

use super::cost::SessionCost;

builder_set! {
    struct PlanBuilders {}
    stream { "workload" => pto_host::graph::plan::expand }
}

/// Tasks of each of the two programs, on 48 vector cores: fewer than those, some more, many times as many.
const TILES: [u64; 3] = [37, 100, 1000];
/// The most that two programs may take, as a share of what one takes.
const BOUND: f64 = 1.05;
const ROWS: u64 = 8;

/// Measures the makespans.
pub(super) fn measure() -> Result<Vec<SessionCost>, String> {
    TILES.into_iter().map(of).collect()
}

fn of(tiles: u64) -> Result<SessionCost, String> {
    let add = program(&add_one(tiles))?;
    let both = program(&both(tiles))?;
    let message = |error: StitchError| error.to_string();
    let one = makespan(&[&both], tiles).map_err(message)?;
    let two = makespan(&[&add, &add], tiles).map_err(message)?;
    Ok(SessionCost {
        what: format!("virtual time: two stitched programs of {tiles} tasks over one"),
        bound: BOUND,
        found: two / one,
    })
}

fn program(text: &str) -> Result<Program, String> {
    let workload = Workload::parse(text).map_err(|error| error.to_string())?;
    let checked = workload.check().map_err(|error| error.to_string())?;
    Program::of_workload(&checked).map_err(|error| error.to_string())
}

/// Of programs one after the other, each of which reads what the one before has written.
fn makespan(programs: &[&Program], tiles: u64) -> Result<f64, StitchError> {
    let hosting = Hosting::Virtual(VirtualOptions::default());
    let options = DeviceOptions { aic: 24, aiv: 48, gm_bytes: 256 << 20, hosting };
    let mut device = Device::open_sim(options, PlanBuilders)?;
    device.register_library()?;
    let session = device.session(SessionOptions::default())?;
    let stitcher = Stitcher::new(&session)?;
    let stream = stitcher.overlapping_stream(programs.len())?;
    let ones = vec![1.0; usize::try_from(tiles * ROWS * 16).unwrap_or(0)];
    let tensor = HostTensor::of_f32(&[tiles * ROWS, 16], &ones)?;
    let mut x = stream.to_device(&tensor, &TensorLayout::device())?;
    stream.synchronize()?;
    let before = session.now();
    for program in programs {
        let loaded = stitcher.load((*program).clone())?;
        let mut outputs = stream.run(&loaded, Inputs::new().give("X", x))?;
        x = outputs.take(if programs.len() == 1 { "Z" } else { "Y" })?;
    }
    stream.synchronize()?;
    Ok((session.now() - before).as_secs_f64())
}

/// `Y = X + 1`, in tiles of 8 rows.
fn add_one(tiles: u64) -> String {
    let rows = tiles * ROWS;
    format!(
        "workload add_one {{
  schedule round_robin workers 1 window 8192 stall
  tensor X : f32[{rows}, 16]
  tensor Y : f32[{rows}, 16]
{KERNEL}
  do parallel i in dense {tiles} {{ add[i](x = X[i * 8 for 8], y = Y[i * 8 for 8]) }}
}}"
    )
}

/// `Y = X + 1` and `Z = Y + 1`.
fn both(tiles: u64) -> String {
    let rows = tiles * ROWS;
    format!(
        "workload both {{
  schedule round_robin workers 1 window 8192 stall
  tensor X : f32[{rows}, 16]
  tensor Y : f32[{rows}, 16]
  tensor Z : f32[{rows}, 16]
{KERNEL}
  do sequential {{
    parallel i in dense {tiles} {{ add[i](x = X[i * 8 for 8], y = Y[i * 8 for 8]) }}
    parallel i in dense {tiles} {{ add[i](x = Y[i * 8 for 8], y = Z[i * 8 for 8]) }}
  }}
}}"
    )
}

const KERNEL: &str = "  kernel add(x: in f32[8, 16], y: out f32[8, 16]) {
    %0 = load x : f32[8, 16]
    %1 = constant 1.0 : f32
    %2 = add %0, %1 by one : f32[8, 16]
    store y, %2
  }";
