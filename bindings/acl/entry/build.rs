//! Writes the entry points: one for each function of the interface, with its place in the table.

use std::fmt::Write as _;
use std::path::Path;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let (mut entries, mut rows) = (String::new(), String::new());
    let functions = pto_acl_interface::all().chain(pto_acl_interface::runtime());
    for (index, function) in functions.enumerate() {
        let (name, has_code) = (function.name, function.has_code);
        // Text in memory can be written.
        let _ = writeln!(entries, "    {index} {name},");
        let _ = writeln!(rows, "    Row {{ name: c\"{name}\", has_code: {has_code} }},");
    }
    let text =
        format!("entries! {{\n{entries}}}\n\npub(crate) const ROWS: &[Row] = &[\n{rows}];\n");
    let folder = std::env::var_os("OUT_DIR").expect("cargo names a folder");
    std::fs::write(Path::new(&folder).join("entries.rs"), text).expect("the folder can be written");
}
