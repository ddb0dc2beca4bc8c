//! Images of a few hundred bytes, and what is wrong with them; the store, and how writing fails.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::PathBuf;

use bytemuck::bytes_of;
use pto_abi::fw_image::{FW_KIND_QEMU, FwElfNote, FwIdentity, names_bytes, qemu};
use pto_abi::launch_words::FW_KIND_CANN;

use super::disk::Writer;
use super::{FlashDevice, Image, ImageError, ImageKind, Seal, Store, StoreError, seal};

const NAMES: &[&str] = &["chain", "tree"];
const TEXT: usize = 0x200;
const NOTE: usize = 0x240;
/// Where the identity begins.
const IDENTITY: usize = 0x240 + 16;

fn put<T: Copy + bytemuck::NoUninit>(file: &mut [u8], at: usize, value: T) {
    file[at..at + size_of::<T>()].copy_from_slice(bytes_of(&value));
}

/// An image of two sections, sealed.
fn image(kind: [u8; 16], salt: u8) -> Vec<u8> {
    let mut file = open_image(kind, salt);
    seal(&mut file).unwrap();
    file
}

fn open_image(kind: [u8; 16], salt: u8) -> Vec<u8> {
    let is_qemu = kind == FW_KIND_QEMU;
    let base = if is_qemu { qemu::IMAGE_ADDRESS } else { 0x1000 };
    let note = FwElfNote::<{ names_bytes(NAMES) }>::new(kind, NAMES);
    let names = b"\0.text\0.note.pto\0.shstrtab\0";
    let mut file = vec![0; 0x400];
    file[..8].copy_from_slice(b"\x7fELF\x02\x01\x01\0");
    put(&mut file, 16, if is_qemu { 2_u16 } else { 3 });
    put(&mut file, 18, 183_u16);
    put(&mut file, 20, 1_u32);
    put(&mut file, 24, if is_qemu { base } else { 0 });
    put(&mut file, 32, 64_u64); // e_phoff
    put(&mut file, 40, 128_u64); // e_shoff: 4 headers, up to 0x180
    for (at, value) in [(52, 64_u16), (54, 56), (56, 1), (58, 64), (60, 4), (62, 3)] {
        put(&mut file, at, value);
    }
    // The segment: type, flags, offset, addresses, sizes, alignment.
    put(&mut file, 64, 1_u32);
    put(&mut file, 68, 5_u32);
    for (at, value) in
        [(72, TEXT as u64), (80, base), (88, base), (96, 0x200), (104, 0x200), (112, 0x1000)]
    {
        put(&mut file, at, value);
    }
    let note_bytes = size_of_val(&note) as u64;
    let sections = [
        (1_u32, 1_u32, 6_u64, base, TEXT as u64, 0x40),
        (7, 7, 2, base + 0x40, NOTE as u64, note_bytes),
        (17, 3, 0, 0, 0x380, names.len() as u64),
    ];
    for (index, (name, kind, flags, address, offset, bytes)) in sections.into_iter().enumerate() {
        let at = 128 + 64 * (index + 1);
        put(&mut file, at, name);
        put(&mut file, at + 4, kind);
        for (field, value) in [(8, flags), (16, address), (24, offset), (32, bytes)] {
            put(&mut file, at + field, value);
        }
    }
    file[TEXT] = salt;
    let used = 16 + size_of::<FwIdentity>() + names_bytes(NAMES);
    // SAFETY: the note is made of integers, whose only padding is after the names, and this reads what is before that.
    let note = unsafe { std::slice::from_raw_parts(std::ptr::from_ref(&note).cast::<u8>(), used) };
    file[NOTE..NOTE + note.len()].copy_from_slice(note);
    file[0x380..0x380 + names.len()].copy_from_slice(names);
    file
}

fn parse(file: &[u8]) -> Result<Image, ImageError> {
    let image = Image::parse("test".to_owned(), file.to_vec())?;
    image.verify()?;
    Ok(image)
}

fn refusal(file: &[u8]) -> String {
    parse(file).err().map_or_else(String::new, |error| error.to_string())
}

/// An image with one field replaced, not sealed: the field itself must be found wrong.
fn with<T: Copy + bytemuck::NoUninit>(at: usize, value: T) -> String {
    let mut file = open_image(FW_KIND_QEMU, 0);
    put(&mut file, at, value);
    refusal(&file)
}

#[test]
fn an_image_says_what_it_is() {
    let image = parse(&image(FW_KIND_QEMU, 7)).unwrap();
    assert_eq!((image.kind, image.entry), (ImageKind::Qemu, qemu::IMAGE_ADDRESS));
    assert_eq!(image.builders, NAMES);
    assert_eq!(image.sizes.text, 0x40);
    assert!(matches!(image.seal, Seal::Whole(_)) && image.kernels.is_empty());
    assert!(image.suits(FlashDevice::Qemu).is_ok());
    let refused = image.suits(FlashDevice::A2a3).unwrap_err().to_string();
    assert!(refused.contains("a2a3 cannot have") && refused.contains("--device qemu"), "{refused}");
    assert_eq!(parse(&open_image(FW_KIND_CANN, 0)).unwrap().seal, Seal::Open);
}

#[test]
fn every_field_of_the_elf_header_is_checked() {
    let fields: [(&str, String); 16] = [
        ("no ELF file", with(0, 0x7e_u8)),
        ("EI_CLASS", with(4, 1_u8)),
        ("EI_DATA", with(5, 2_u8)),
        ("EI_VERSION", with(6, 0_u8)),
        ("EI_OSABI", with(7, 9_u8)),
        ("e_type", with(16, 1_u16)),
        ("x86-64", with(18, 62_u16)),
        ("e_version", with(20, 2_u32)),
        ("e_entry", with(24, 0x1234_u64)),
        ("program headers", with(32, 1_u64 << 40)),
        ("section headers", with(40, 1_u64 << 40)),
        ("e_flags", with(48, 5_u32)),
        ("e_ehsize", with(52, 63_u16)),
        ("e_phentsize", with(54, 57_u16)),
        ("e_shentsize", with(58, 65_u16)),
        ("e_shstrndx", with(62, 9_u16)),
    ];
    for (expected, refused) in fields {
        assert!(refused.contains(expected), "{expected}: {refused:?}");
    }
    for (at, value) in [(56, 0_u16), (60, 0)] {
        assert!(with(at, value).contains("must be above 0"));
    }
    assert!(with(56, 900_u16).contains("the file is cut: the program headers"));
    assert!(with(60, 900_u16).contains("the file is cut: the section headers"));
}

#[test]
fn every_field_of_the_identity_is_checked() {
    let fields: [(&str, String); 10] = [
        ("FwIdentity.magic", with(IDENTITY, 1_u64)),
        ("speaks ABI 9.", with(IDENTITY + 8, 9_u16)),
        ("identity_bytes", with(IDENTITY + 12, 1_u32)),
        ("layout hash", with(IDENTITY + 16, 1_u64)),
        ("a device \"other\"", with(IDENTITY + 24, *b"other\0\0\0\0\0\0\0\0\0\0\0")),
        ("builder_count", with(IDENTITY + 40, 3_u32)),
        ("names_bytes", with(IDENTITY + 44, 3_u32)),
        ("damaged: its checksum", with(IDENTITY + 48, 3_u64)),
        ("FwIdentity.features", with(IDENTITY + 56, 2_u64)),
        ("not a note of owner PTO", with(NOTE + 12, *b"XTO\0")),
    ];
    for (expected, refused) in fields {
        assert!(refused.contains(expected), "{expected}: {refused:?}");
    }
    assert!(with(NOTE + 4, 1_u32 << 20).contains("its note is cut"));
    assert!(with(80, 0x1000_u64).contains("e_entry"), "the segment is elsewhere");
    assert!(with(104, 1_u64 << 40).contains("p_vaddr"), "the segment is too large");
    assert!(with(128 + 128, 1_u32).contains("does not say what it is"), "no .note.pto");
}

#[test]
fn no_damage_to_a_sealed_image_gets_through() {
    let whole = image(FW_KIND_QEMU, 0);
    for at in 0..whole.len() {
        for bit in [0, 7] {
            let mut damaged = whole.clone();
            damaged[at] ^= 1 << bit;
            assert!(parse(&damaged).is_err(), "bit {bit} of byte {at:#x}");
        }
    }
}

#[test]
fn a_cut_image_is_refused_wherever_it_is_cut() {
    let whole = image(FW_KIND_QEMU, 0);
    for bytes in 0..whole.len() {
        assert!(parse(&whole[..bytes]).is_err(), "{bytes} bytes");
    }
    assert!(refusal(&whole[..0x3F0 - 0x80]).contains("the file is cut"));
    assert!(refusal(b"MZ").contains("no ELF file") && refusal(b"").contains("no ELF file"));
}

/// A store in a folder of its own, removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("pto-store-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        Self(path)
    }

    fn store(&self) -> Store {
        Store::at(self.0.clone())
    }

    fn store_that(&self, write: Writer) -> Store {
        Store::with_writer(self.0.clone(), write)
    }

    fn files(&self) -> usize {
        fs::read_dir(self.0.join("images")).unwrap().count()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn of(salt: u8) -> Image {
    parse(&image(FW_KIND_QEMU, salt)).unwrap()
}

fn flashed(store: &Store) -> Option<u8> {
    let flashed = store.load(FlashDevice::Qemu).unwrap()?;
    flashed.firmware.map(|image| image.bytes()[TEXT])
}

#[test]
fn a_flash_lasts_and_can_be_rolled_back() {
    let folder = Folder::new("lasts");
    assert_eq!(flashed(&folder.store()), None);
    assert!(matches!(
        folder.store().rollback(FlashDevice::Qemu),
        Err(StoreError::NothingFlashed { .. })
    ));
    let missing = |store: &Store| match store.load_both(FlashDevice::Qemu) {
        Err(StoreError::NothingFlashed { what, .. }) => what,
        other => panic!("{other:?}"),
    };
    assert_eq!(missing(&folder.store()), "firmware");
    for salt in [1, 2, 3] {
        folder.store().flash(FlashDevice::Qemu, &[&of(salt)]).unwrap();
        assert_eq!(flashed(&folder.store()), Some(salt));
    }
    assert_eq!(folder.store().rollback(FlashDevice::Qemu).unwrap().number, 2);
    assert_eq!(flashed(&folder.store()), Some(2));
    assert_eq!(missing(&folder.store()), "kernels");
    folder.store().flash(FlashDevice::Qemu, &[&of(4)]).unwrap();
    // Back to what was there before the last flash, not to what was rolled back.
    folder.store().rollback(FlashDevice::Qemu).unwrap();
    assert_eq!(flashed(&folder.store()), Some(2));
    folder.store().rollback(FlashDevice::Qemu).unwrap();
    assert_eq!(flashed(&folder.store()), Some(1));
    let none = folder.store().rollback(FlashDevice::Qemu).unwrap_err();
    assert!(none.to_string().contains("no earlier image"), "{none}");
    assert_eq!(folder.store().state(FlashDevice::A2a3).unwrap(), None);
}

#[test]
fn old_generations_and_their_files_go() {
    let folder = Folder::new("old");
    for salt in 0..20 {
        folder.store().flash(FlashDevice::Qemu, &[&of(salt)]).unwrap();
    }
    let state = folder.store().state(FlashDevice::Qemu).unwrap().unwrap();
    assert_eq!((state.generations.len(), state.current, folder.files()), (16, 20, 16));
}

#[test]
fn an_image_for_another_device_is_refused() {
    let folder = Folder::new("other");
    let cann = parse(&image(FW_KIND_CANN, 0)).unwrap();
    let refused = folder.store().flash(FlashDevice::Qemu, &[&of(1), &cann]).unwrap_err();
    assert!(refused.to_string().contains("qemu cannot have"), "{refused}");
    assert_eq!(flashed(&folder.store()), None);
    folder.store().flash(FlashDevice::A2a3, &[&cann]).unwrap();
}

fn half_then_full(file: &mut File, bytes: &[u8]) -> io::Result<()> {
    file.write_all(&bytes[..bytes.len() / 2])?;
    Err(io::ErrorKind::StorageFull.into())
}

fn full_for_states(file: &mut File, bytes: &[u8]) -> io::Result<()> {
    if bytes.starts_with(b"{") { half_then_full(file, bytes) } else { file.write_all(bytes) }
}

#[test]
fn a_full_disk_leaves_the_old_image_and_nothing_else() {
    for write in [half_then_full as Writer, full_for_states] {
        let folder = Folder::new("full");
        folder.store().flash(FlashDevice::Qemu, &[&of(1)]).unwrap();
        let error = folder.store_that(write).flash(FlashDevice::Qemu, &[&of(2)]).unwrap_err();
        let text = error.to_string();
        assert!(text.contains("still has what it had"), "{text}");
        assert!(
            matches!(error, StoreError::Io { source, .. } if source.kind() == io::ErrorKind::StorageFull)
        );
        assert_eq!(flashed(&folder.store()), Some(1));
        folder.store().flash(FlashDevice::Qemu, &[&of(3)]).unwrap();
        assert_eq!((flashed(&folder.store()), folder.files()), (Some(3), 2));
    }
}

#[test]
fn an_interrupted_flash_leaves_the_old_image() {
    let folder = Folder::new("interrupted");
    folder.store().flash(FlashDevice::Qemu, &[&of(1)]).unwrap();
    // What a process that was killed in the middle of writing leaves.
    fs::write(folder.0.join("images/0000.elf.1.new"), b"half").unwrap();
    fs::write(folder.0.join("devices/qemu.json.1.new"), b"{").unwrap();
    assert_eq!(flashed(&folder.store()), Some(1));
    folder.store().flash(FlashDevice::Qemu, &[&of(2)]).unwrap();
    assert_eq!((flashed(&folder.store()), folder.files()), (Some(2), 2));
}

#[test]
fn damage_in_the_store_is_found_at_every_use() {
    let folder = Folder::new("damage");
    let first = folder.store().flash(FlashDevice::Qemu, &[&of(1)]).unwrap();
    folder.store().flash(FlashDevice::Qemu, &[&of(2)]).unwrap();
    let file = folder.0.join(format!("images/{}.elf", first.firmware.unwrap().sha256));
    let mut bytes = fs::read(&file).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(&file, bytes).unwrap();
    let error = folder.store().rollback(FlashDevice::Qemu).unwrap_err().to_string();
    assert!(error.contains("is not what was flashed"), "{error}");
    assert_eq!(flashed(&folder.store()), Some(2), "a damaged image is no way back");
    let state = folder.0.join("devices/qemu.json");
    for text in [
        "",
        "{}",
        "[1]",
        &fs::read_to_string(&state).unwrap().replace("\"format\": 1", "\"format\": 9"),
    ] {
        fs::write(&state, text).unwrap();
        let error = folder.store().load(FlashDevice::Qemu).unwrap_err().to_string();
        assert!(error.contains("qemu.json") && error.contains("damaged"), "{error}");
    }
}

#[test]
fn the_identity_stands_where_the_tests_think() {
    let file = image(FW_KIND_QEMU, 0);
    let fixed: FwIdentity =
        bytemuck::pod_read_unaligned(&file[IDENTITY..IDENTITY + size_of::<FwIdentity>()]);
    assert_eq!(fixed.kind, FW_KIND_QEMU);
    assert_ne!(fixed.checksum, 0);
}
