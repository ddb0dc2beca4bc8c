//! Program files: the reader accepts or refuses any bytes, whether they are sealed or not. What it accepts is what the writer writes, and
//! everything that is asked of a program can be asked of it.

use pto_host::workloads::program::{MINOR, Program, differences, seal};

/// Reads the bytes as they are, and sealed.
pub(super) fn read(bytes: &[u8]) {
    read_one(bytes);
    let mut sealed = bytes.to_vec();
    if let Some(length) = sealed.get_mut(16..24) {
        length.copy_from_slice(&(bytes.len() as u64).to_le_bytes());
    }
    seal(&mut sealed);
    read_one(&sealed);
}

fn read_one(file: &[u8]) {
    let Ok(program) = Program::from_bytes(file) else { return };
    let _ = (program.needs(), program.interface_hash(), program.check_target("a2a3").is_ok());
    let is_newer = file.get(10..12) != Some(&MINOR.to_le_bytes());
    let has_unknown = program.sections().iter().any(|section| !section.is_known);
    let written = program.to_bytes();
    // What only a newer writer knows is not written again.
    assert!(is_newer || has_unknown || written == file, "what was read is written otherwise");
    let again = Program::from_bytes(&written);
    let again = again.unwrap_or_else(|error| panic!("what was written is not read: {error}"));
    assert!(differences(&program, &again).is_empty(), "a program changes when it is written");
}
