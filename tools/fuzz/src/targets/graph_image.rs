//! Graph images on the simulator: the firmware trusts nothing that the host passes.

use std::cell::RefCell;
use std::num::NonZeroUsize;
use std::time::Duration;

use pto_examples::host::open_sim;
use pto_host::abi::image::{Checksum, GraphHeader};
use pto_host::abi::kinds::GraphFlags;
use pto_host::abi::{CoreKind, FuncId};
use pto_host::{Device, DeviceOptions, GraphImage, Hosting, Kernel, RunOptions, Work};

thread_local! {
    /// Opened once: a run that ended with a fault leaves a device that runs again.
    static DEVICE: RefCell<Device> = RefCell::new(device());
}

/// Does nothing with unchecked words.
unsafe extern "C" fn nothing(_: *const u64) {}

fn device() -> Device {
    let hosting = Hosting::Pool { os_threads: NonZeroUsize::MIN };
    let options = DeviceOptions { aic: 2, aiv: 4, gm_bytes: 64 << 20, hosting };
    let mut device = open_sim(options).unwrap_or_else(|error| panic!("no device: {error}"));
    for (func_id, kind) in [(FuncId(0), CoreKind::AIC), (FuncId(1), CoreKind::AIV)] {
        let kernel = Kernel::from_fn("nothing", kind, nothing);
        let registered = device.register_kernel(func_id, kernel);
        registered.unwrap_or_else(|error| panic!("no kernel: {error}"));
    }
    device
}

/// Runs the image as it is, and with what makes its first checks pass: this release's version, and the right checksum.
pub(super) fn run(bytes: &[u8]) {
    run_one(bytes.to_vec());
    run_one(sealed(bytes));
}

fn sealed(bytes: &[u8]) -> Vec<u8> {
    let mut sealed = bytes.to_vec();
    let Some((start, body)) = sealed.split_at_mut_checked(size_of::<GraphHeader>()) else {
        return sealed;
    };
    let found: GraphHeader = bytemuck::pod_read_unaligned(start);
    let usual = GraphHeader::new(GraphFlags::empty(), 0, 0, 0);
    let header = GraphHeader {
        magic: usual.magic,
        abi_major: usual.abi_major,
        abi_minor: usual.abi_minor,
        layout_hash: usual.layout_hash,
        checksum: Checksum::of(body),
        ..found
    };
    start.copy_from_slice(bytemuck::bytes_of(&header));
    sealed
}

fn run_one(bytes: Vec<u8>) {
    let image = GraphImage::from_bytes(bytes);
    let _ = image.graph("input", &std::collections::BTreeMap::new());
    let budget = Duration::from_millis(500);
    let options = RunOptions { run_budget: Some(budget), ..RunOptions::default() };
    DEVICE.with_borrow_mut(|device| {
        let _ = device.run(Work::HostGraph(&image), &options);
    });
}
