//! What the images say of themselves, and what is in them.

use pto_abi::fw_image::{FW_KIND_QEMU, FW_MAGIC};
use pto_abi::layout::LAYOUT_HASH;
use pto_aicore_kernels::LIBRARY;
use std::fmt::Write;

use crate::built::Images;
use crate::built::{KernelBlob, cann, identity, tracing};
use crate::code::{Sizes, instructions, is_breakpoint, is_floating_point, panic_symbols, sizes};
use crate::goldens;
use pto_examples::ExampleBuilders;
use pto_graph::BuilderSet;

fn read(path: &std::path::Path) -> Vec<u8> {
    std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn an_image_says_what_it_is() {
    let shapes = ["chain", "independent", "fork_join", "wavefront", "rows", "words"];
    // A program that is there as a graph and as a stream is named once. The image has one more before the last, which expands
    // workloads.
    let examples = ExampleBuilders.names();
    let streams = ExampleBuilders.stream_names().iter().filter(|name| !examples.contains(name));
    // No image is of a group, which these two measure.
    let streams = streams.filter(|name| !["comm_bench", "comm_layer"].contains(name));
    let mut tensors: Vec<_> = streams.copied().collect();
    tensors.insert(tensors.len() - 1, "tensors");
    let own =
        vec!["increments", "polynomials", "diamond", "crashing", "failing", "panicking", "shapes"];
    for (path, builders) in [
        (&Images::get().firmware, [examples, &shapes[..], &tensors].concat()),
        (&Images::get().misbehaving, own),
    ] {
        let identity = identity(&read(path)).expect("the image has a note");
        assert_eq!((identity.fixed.magic, identity.fixed.layout_hash), (FW_MAGIC, LAYOUT_HASH));
        assert_eq!(identity.fixed.kind, FW_KIND_QEMU);
        assert_eq!(identity.builders, builders);
        assert_eq!(identity.fixed.builder_count as usize, builders.len());
        assert_eq!(identity.build_id.len(), 20);
    }
}

#[test]
fn no_panic_is_reachable() {
    let Images { firmware, scheduler, smallest, kernels, .. } = Images::get();
    for path in [firmware, scheduler, smallest, kernels] {
        let elf = read(path);
        assert_eq!(panic_symbols(&elf).unwrap(), [""; 0], "{}", path.display());
        let aborts = instructions(&elf, is_breakpoint).unwrap();
        // The one after the call of `pto_vcpu_main`, which does not return.
        let ours = aborts.iter().filter(|(_, word)| (word >> 5) & 0xFFFF == 0xF00).count();
        assert_eq!(aborts.len(), ours, "{}: {aborts:x?}", path.display());
    }
    // The method sees panics where there are some: in the image with a builder that panics.
    assert!(!panic_symbols(&read(&Images::get().misbehaving)).unwrap().is_empty());
}

#[test]
fn the_firmware_computes_no_floating_point() {
    let found = instructions(&read(&Images::get().firmware), is_floating_point).unwrap();
    assert!(found.is_empty(), "{found:x?}");
    // The method sees it where there is some: in the kernels.
    let kernels = instructions(&read(&Images::get().kernels), is_floating_point).unwrap();
    assert!(kernels.len() > 100);
}

#[test]
fn the_scheduler_is_small() {
    let firmware = sizes(&read(&Images::get().scheduler)).unwrap();
    assert!(firmware.text < 96 << 10, "{firmware:?}");
    // The builders of the examples, sessions and the second strategy of fanout can be left out as well.
    let smallest = sizes(&read(&Images::get().smallest)).unwrap();
    assert!(smallest.text < 48 << 10, "{smallest:?}");
    let kernels = sizes(&read(&Images::get().kernels)).unwrap();
    assert_eq!((kernels.data, kernels.bss), (0, 0));
}

/// `PTO_BLESS=1 cargo test -p pto-images --test emulated images` renews them.
#[test]
fn sizes_in_bytes() {
    let mut table = String::from("image                text   rodata     data      bss\n");
    let images = Images::get();
    for (name, path) in [
        ("qemu", &images.firmware),
        ("qemu,tracing", &tracing()),
        ("qemu,scheduler", &images.scheduler),
        ("qemu,smallest", &images.smallest),
        ("kernels", &images.kernels),
        ("cann", &cann()),
    ] {
        let Sizes { text, rodata, data, bss } = sizes(&read(path)).unwrap();
        writeln!(table, "{name:16} {text:8} {rodata:8} {data:8} {bss:8}").unwrap();
    }
    goldens::check("sizes", &table);
}

#[test]
fn the_blob_holds_the_library() {
    let mut blob = KernelBlob::read(&read(&Images::get().kernels)).unwrap();
    assert_eq!(blob.kernels.len(), LIBRARY.len());
    blob.kernels.sort_by_key(|kernel| kernel.func_id);
    let mut offsets: Vec<u64> = Vec::new();
    for (kernel, library) in blob.kernels.iter().zip(LIBRARY) {
        assert_eq!((kernel.name.as_str(), kernel.func_id), (library.name, library.func_id));
        assert_eq!(kernel.kind, u32::from(library.kind.get()), "{}", kernel.name);
        assert!(kernel.offset.is_multiple_of(4) && kernel.offset < blob.bytes.len() as u64);
        offsets.push(kernel.offset);
    }
    // `empty`, `dag_node`, `spin` and `tile` are the same code for both kinds, which a linker may fold, and `transfer` is that of `empty`;
    // others are not.
    offsets.sort_unstable();
    offsets.dedup();
    assert!(offsets.len() >= LIBRARY.len() - 5);
}

#[test]
fn the_blob_needs_no_relocation() {
    use object::{Object, ObjectSection};
    let elf = read(&Images::get().kernels);
    let file = object::File::parse(elf.as_slice()).unwrap();
    assert_eq!(file.sections().map(|section| section.relocations().count()).sum::<usize>(), 0);
    assert!(file.dynamic_relocations().is_none_or(|mut relocations| relocations.next().is_none()));
    let names: Vec<_> = file.sections().filter_map(|s| s.name().ok().map(str::to_owned)).collect();
    for forbidden in [".rela.dyn", ".got", ".data", ".bss"] {
        assert!(!names.iter().any(|name| name == forbidden), "{names:?}");
    }
}
