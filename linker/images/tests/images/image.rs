//! What the default image is, without running it: entry symbols, build id, identity, what it leaves to libc, and
//! that no panic is in it.

use std::collections::BTreeSet;
use std::process::Command;
use std::sync::OnceLock;

use object::read::elf::ElfFile64;
use object::{Architecture, Endianness, Object, ObjectKind, ObjectSection, ObjectSymbol};
use pto_abi::fw_image::{FW_MAGIC, FW_NOTE_OWNER, FW_NOTE_SECTION, FwIdentity};
use pto_abi::launch_words::FW_KIND_CANN;
use pto_abi::layout::LAYOUT_HASH;
use pto_examples::host::EXAMPLES;
use pto_host::fw::{Image, Machine};

use crate::common;

/// Bytes of our note before its body.
const NOTE_HEADER: usize = 16;

/// The image's file, built once.
fn image() -> &'static [u8] {
    static IMAGE: OnceLock<Vec<u8>> = OnceLock::new();
    IMAGE.get_or_init(|| {
        std::fs::read(common::default_image(Machine::Aarch64)).expect("it was built")
    })
}

fn elf() -> ElfFile64<'static, Endianness> {
    ElfFile64::parse(image()).expect("an ELF file")
}

#[test]
fn it_is_a_shared_object_for_aarch64_with_the_entry_symbols() {
    let elf = elf();
    assert_eq!((elf.architecture(), elf.kind()), (Architecture::Aarch64, ObjectKind::Dynamic));
    let exported: BTreeSet<&str> =
        elf.dynamic_symbols().filter(|s| s.is_definition()).map(|s| s.name().unwrap()).collect();
    let expected = [
        "DynTileFwkBackendKernelServer",
        "DynTileFwkBackendKernelServerInit",
        "StaticTileFwkBackendKernelServer",
        "aicpu_runtime_add_successor_conditional",
        "aicpu_runtime_add_task",
        "aicpu_runtime_publish_task",
        "pto_aicpu_run_launch",
        "pto_read",
        "pto_stream_add",
        "pto_stream_alloc",
        "pto_stream_begin_recording",
        "pto_stream_close_scope",
        "pto_stream_end_recording",
        "pto_stream_get",
        "pto_stream_open_scope",
        "pto_stream_replay",
        "pto_stream_set",
        "pto_stream_submit",
        "pto_stream_submit_range",
        "pto_submit_range",
    ];
    assert_eq!(exported, BTreeSet::from(expected), "and nothing else");
}

#[test]
fn it_has_a_build_id() {
    let id = elf().build_id().expect("notes can be read").expect("a build id");
    assert_eq!(id.len(), 20, "sha1");
}

#[test]
fn its_identity_is_readable_without_running_it() {
    let note = elf().section_by_name(FW_NOTE_SECTION).expect("the section").data().unwrap();
    assert_eq!(note[12..NOTE_HEADER], FW_NOTE_OWNER, "a well-formed note");
    let body_bytes = u32::from_le_bytes(note[4..8].try_into().unwrap()) as usize;
    let body = &note[NOTE_HEADER..NOTE_HEADER + body_bytes];
    let word = |at: usize| u64::from_le_bytes(body[at..at + 8].try_into().unwrap());
    assert_eq!(word(0), FW_MAGIC);
    assert_eq!(word(16), LAYOUT_HASH);
    assert_eq!(body[24..40], FW_KIND_CANN);
    let names = std::str::from_utf8(&body[size_of::<FwIdentity>()..]).expect("names are ASCII");
    let names = names.strip_suffix('\0').expect("each name ends with a zero").split('\0');
    let examples = EXAMPLES.iter().map(|example| example.name());
    let expected: BTreeSet<&str> = examples.chain(["workload"]).collect();
    assert_eq!(names.clone().count(), expected.len(), "each builder once");
    assert_eq!(names.collect::<BTreeSet<_>>(), expected, "the examples, and what expands plans");
}

/// `getauxval`: the compiler's choice between two ways of atomic operations, at load time. What makes and names a file:
/// the bootstrap, in which the image writes itself.
#[test]
fn it_leaves_the_allowed_minimum_to_libc() {
    let elf = elf();
    let undefined: BTreeSet<&str> =
        elf.dynamic_symbols().filter(|s| s.is_undefined()).map(|s| s.name().unwrap()).collect();
    let allowed = BTreeSet::from([
        "bcmp",
        "close",
        "fchmod",
        "getauxval",
        "getenv",
        "getpid",
        "memcmp",
        "memcpy",
        "memmove",
        "memset",
        "open",
        "rename",
        "sched_yield",
        "strlen",
        "unlink",
        "write",
    ]);
    assert!(undefined.is_subset(&allowed), "{undefined:?}");
    let needed = common::text(
        Command::new("aarch64-linux-gnu-readelf")
            .arg("-d")
            .arg(common::default_image(Machine::Aarch64)),
    );
    let needed: Vec<&str> = needed.lines().filter(|line| line.contains("(NEEDED)")).collect();
    assert!(needed.len() == 1 && needed[0].contains("libc.so.6"), "{needed:?}");
}

/// The method: the image is linked with its whole symbol table and without sections that nothing refers to. Every
/// panic goes through `core::panicking` to the panic handler; if neither is in the table, no code of the image
/// refers to them, so that no panic is reachable. (`own_firmware::the_method_sees_a_panic` is the control.)
#[test]
fn no_panic_is_in_it() {
    let names = common::symbols(image());
    assert!(names.iter().any(|name| name.contains("run_instance")), "the table is there");
    let panics = common::panics(&names);
    assert!(panics.is_empty(), "{panics:#?}");
}

#[test]
fn it_allocates_nothing_and_calculates_with_integers() {
    let allocates = ["malloc", "calloc", "realloc", "free", "__rust_alloc"];
    let elf = elf();
    let mut names = elf.symbols().filter_map(|symbol| symbol.name().ok());
    assert!(!names.any(|name| allocates.contains(&name)), "no heap");
    let listing = common::text(
        Command::new("aarch64-linux-gnu-objdump")
            .args(["-d", "--no-show-raw-insn"])
            .arg(common::default_image(Machine::Aarch64)),
    );
    // Vector registers hold copies; what calculates with floating-point numbers begins with one of these.
    let arithmetic =
        ["fadd", "fsub", "fmul", "fdiv", "fmadd", "fsqrt", "fcvt", "scvtf", "ucvtf", "fcmp"];
    let mnemonics = listing.lines().filter_map(|line| line.split('\t').nth(1));
    let floating: Vec<&str> = mnemonics
        .filter(|mnemonic| arithmetic.iter().any(|start| mnemonic.starts_with(start)))
        .collect();
    assert!(floating.is_empty(), "{floating:?}");
}

/// What the stand-in loads on a development machine exports what the image for a device does, and has the same builders.
#[test]
fn the_image_for_this_machine_is_the_same_to_a_driver() {
    let [Machine::Aarch64, Machine::X86_64] = *common::MACHINES else { return };
    let read = |machine| Image::read(&common::default_image(machine)).expect("an image");
    let (device, native) = (read(Machine::Aarch64), read(Machine::X86_64));
    assert_eq!((native.machine, native.kind), (Machine::X86_64, device.kind));
    assert_eq!((native.layout_hash, &native.builders), (device.layout_hash, &device.builders));
    assert_eq!(native.build_id.len(), 40, "sha1");
    let exported = |image: &Image| -> BTreeSet<String> {
        let elf: ElfFile64<'_, Endianness> = ElfFile64::parse(image.bytes()).expect("an ELF file");
        let names = elf.dynamic_symbols().filter(|symbol| symbol.is_definition());
        names.map(|symbol| symbol.name().expect("a name").to_owned()).collect()
    };
    assert_eq!(exported(&native), exported(&device));
    assert_eq!(common::panics(&common::symbols(native.bytes())), [""; 0], "no panic is in it");
    let kernels = |machine| Image::read(&common::kernels(machine)).expect("a blob").kernels;
    let names = |machine| {
        kernels(machine).into_iter().map(|one| (one.func_id, one.name)).collect::<Vec<_>>()
    };
    assert_eq!(names(Machine::X86_64), names(Machine::Aarch64));
}
