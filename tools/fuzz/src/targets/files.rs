//! Files that a user names on the command line.

use pto_check::file;
use pto_check::{Cores, Options, Rings, check, task_graph};
use pto_examples::host::npy;
use pto_host::abi::{BuildMode, CoreKind};
use pto_host::fw::{FlashDevice, Image};
use pto_host::timeline::{self, Analysis, gantt, html, report, svg};
use pto_native::kernels::{KERNEL_SYMBOL, KernelSource, check_relocatable};

/// Reads an image, damaged ones as well, and asks all that `pto fw` asks.
pub(super) fn firmware_image(bytes: &[u8]) {
    let Ok(image) = Image::parse("input".to_owned(), bytes.to_vec()) else { return };
    let _ = (image.verify().is_ok(), image.suits(FlashDevice::Qemu).is_ok(), image.blob());
}

/// Lays out and relocates an object file of a kernel.
pub(super) fn relocatable_object(bytes: &[u8]) {
    let source = KernelSource { name: "input", symbol: KERNEL_SYMBOL, kind: CoreKind::AIV };
    let _ = check_relocatable(bytes, source).is_ok();
}

/// The rings of a check: small ones, so that programs find them too small as well.
const RINGS: Rings = Rings {
    window: 64,
    arg_words: 512,
    edge_chunks: 64,
    map_entries: 256,
    heap_rings: 4,
    heap_bytes: 1 << 16,
    recording_words: 1 << 12,
    build_mode: BuildMode::CONCURRENT,
};

/// Reads a graph file and checks its program. What was read is the same when it was written and read again.
pub(super) fn graph_file(bytes: &[u8]) {
    let Ok(program) = file::read(bytes) else { return };
    let cores = Cores::default();
    let _ = check(&program, &Options { rings: RINGS, cores, kernels: None });
    let _ = task_graph(&program, cores);
    let written = write(&program);
    let again = file::read(written.as_slice());
    let again = again.unwrap_or_else(|error| panic!("what was written is not read: {error}"));
    assert!(
        write(&again) == written,
        "a file that was read and written changes when it is read again"
    );
}

fn write(program: &pto_check::Program) -> Vec<u8> {
    let mut written = Vec::new();
    file::write(program, &mut written)
        .unwrap_or_else(|error| panic!("memory takes bytes: {error}"));
    written
}

/// Reads a trace, and makes numbers, pictures and a page of it.
pub(super) fn trace(bytes: &[u8]) {
    let Ok(trace) = timeline::file::read(bytes) else { return };
    let _ = gantt::chart(&trace, 80);
    if let Ok(analysis) = Analysis::of(&trace) {
        let _ = report::text(&trace, &analysis);
        let _ = (html::page(&trace, &analysis), svg::picture(&trace, &analysis));
    }
    let mut written = Vec::new();
    let _ = timeline::file::write(&trace, &mut written);
}

/// Reads a tensor, and writes it.
pub(super) fn npy(bytes: &[u8]) {
    let Ok(tensor) = npy::read(bytes, bytes.len() as u64) else { return };
    let mut written = Vec::new();
    let _ = npy::write(&mut written, &tensor);
    let again = npy::read(written.as_slice(), written.len() as u64);
    assert!(
        again.is_ok_and(|again| again.bytes() == tensor.bytes()),
        "a tensor changes when it is written"
    );
}
