//! `pto fw inspect`: what an image is, and whether this host can use it.

use pto_host::fw::{Image, ImageKind, Seal, Tracing};
use serde_json::{Value, json};

use crate::args::FwInspectArgs;
use crate::errors::{Exit, Failure, refused_image};
use crate::form::Form;
use crate::output::answer;
use crate::text::{filled, grouped, table};

/// Shows an image.
pub(crate) fn inspect(args: &FwInspectArgs) -> Result<Exit, Failure> {
    let image = Image::inspect(&args.image).map_err(|error| refused_image(&args.image, &error))?;
    let exit = if image.verify().is_ok() { Exit::Pass } else { Exit::Wrong };
    answer(Form::from(args.json), exit, || text(&image), || as_json(&image))
}

fn text(image: &Image) -> String {
    let mut rows: Vec<Vec<String>> = Vec::new();
    let mut row = |name: &str, value: String| rows.push(vec![name.to_owned(), value]);
    row("image", image.kind.to_string());
    row("machine", format!("{}, ELF 64 bits, little-endian", image.machine));
    row("entry", if image.entry == 0 { "none".into() } else { format!("{:#x}", image.entry) });
    let sizes = image.sizes;
    let parts =
        [("text", sizes.text), ("rodata", sizes.rodata), ("data", sizes.data), ("bss", sizes.bss)];
    let parts = parts.map(|(name, bytes)| format!("{name} {}", grouped(bytes)));
    row("sizes", format!("{}; file {}", parts.join(", "), grouped(image.bytes().len() as u64)));
    row("ABI", format!("{}.{}", image.abi.0, image.abi.1));
    row("layout hash", image.layout_hash.map_or("none".into(), |hash| format!("{hash:#018x}")));
    let known = |text: &str| if text.is_empty() { "none".to_owned() } else { text.to_owned() };
    if image.kind == ImageKind::Qemu {
        let traces = image.tracing == Tracing::On;
        row("traces runs", if traces { "yes" } else { "no: see `--tracing`" }.to_owned());
    }
    row("build id", known(&image.build_id));
    row("SHA-256", image.sha256.clone());
    row("checksum", checksum(image));
    let kernels: Vec<_> = image.kernels.iter().map(|kernel| kernel.name.as_str()).collect();
    let builders: Vec<_> = image.builders.iter().map(String::as_str).collect();
    for (title, names) in [("builders", builders), ("kernels", kernels)] {
        let lines = filled(&names);
        if lines.is_empty() {
            row(title, "none".to_owned());
        }
        for (index, line) in lines.into_iter().enumerate() {
            row(if index == 0 { title } else { "" }, line);
        }
    }
    let verdict = image.verify().map_or_else(|error| format!("no: {error}"), |()| "yes".into());
    row("usable here", verdict);
    let sections = image.sections.iter().map(|section| {
        let address =
            if section.address == 0 { String::new() } else { format!("{:#x}", section.address) };
        vec![section.name.clone(), address, grouped(section.bytes)]
    });
    let sections: Vec<_> = sections.collect();
    format!("{}\n\n{}\nsections\n{}", image.name, table(&rows, &[]), table(&sections, &[1, 2]))
}

fn checksum(image: &Image) -> String {
    match image.seal {
        Seal::Open => "none: not sealed by `pto fw build`".to_owned(),
        Seal::Whole(checksum) => format!("{checksum:#018x}, right"),
        Seal::Broken { sealed, found } => {
            format!("{sealed:#018x}, wrong: the file has {found:#018x}")
        }
    }
}

fn as_json(image: &Image) -> Value {
    let hex = |word: u64| format!("{word:#018x}");
    let (sealed, whole) = match image.seal {
        Seal::Open => (None, None),
        Seal::Whole(checksum) => (Some(hex(checksum)), Some(true)),
        Seal::Broken { sealed, .. } => (Some(hex(sealed)), Some(false)),
    };
    let kernels = image.kernels.iter().map(|kernel| {
        json!({
            "name": kernel.name,
            "func_id": kernel.func_id,
            "kind": kernel.kind.name(),
            "offset": kernel.offset,
        })
    });
    let sections = image.sections.iter().map(|section| {
        json!({
            "name": section.name,
            "address": section.address,
            "bytes": section.bytes,
            "offset": section.offset,
        })
    });
    let error = image.verify().err().map(|error| error.to_string());
    json!({
        "name": image.name,
        "kind": image.kind.name(),
        "format": "elf64-little",
        "machine": image.machine.name(),
        "entry": image.entry,
        "sizes": {
            "text": image.sizes.text,
            "rodata": image.sizes.rodata,
            "data": image.sizes.data,
            "bss": image.sizes.bss,
        },
        "file_bytes": image.bytes().len(),
        "abi": format!("{}.{}", image.abi.0, image.abi.1),
        "layout_hash": image.layout_hash.map(hex),
        "build_id": image.build_id,
        "sha256": image.sha256,
        "checksum": sealed,
        "checksum_is_right": whole,
        "traces": image.tracing == Tracing::On,
        "builders": image.builders,
        "kernels": kernels.collect::<Vec<_>>(),
        "sections": sections.collect::<Vec<_>>(),
        "usable": error.is_none(),
        "refused": error,
    })
}
