//! `pto fw flash`, `list` and `rollback`: which image each device has.

use std::path::Path;

use pto_host::fw::{
    DeviceState, Entry, FlashDevice, Generation, Image, ImageKind, Machine, Store, Tracing,
};
use pto_image_build::Built;
use serde_json::{Value, json};

use crate::args::{FlashTarget, FwFlashArgs, FwListArgs, FwRollbackArgs};
use crate::errors::{Exit, Failure, refused_image};
use crate::form::Form;
use crate::fw::build;
use crate::output::answer;
use crate::text::{bytes, table};

/// Makes images the ones of a device.
pub(crate) fn flash(args: &FwFlashArgs) -> Result<Exit, Failure> {
    let images: Vec<_> = args.images.iter().map(|path| read(path)).collect::<Result<_, _>>()?;
    let first = images.first().map_or(FlashDevice::Qemu, |image| FlashDevice::of(image.kind));
    let device = args.device.map_or(first, device_of);
    let store = Store::open()?;
    let made = store.flash(device, &images.iter().collect::<Vec<_>>())?;
    say_generation(device, &made, args.json)
}

/// Goes back to what a device had before.
pub(crate) fn rollback(args: &FwRollbackArgs) -> Result<Exit, Failure> {
    let device = device_of(args.device);
    let now = Store::open()?.rollback(device)?;
    say_generation(device, &now, args.json)
}

/// Lists what each device has and had.
pub(crate) fn list(args: &FwListArgs) -> Result<Exit, Failure> {
    let store = Store::open()?;
    let states = FlashDevice::ALL.iter().map(|device| Ok((*device, store.state(*device)?)));
    let states: Vec<_> = states.collect::<Result<_, Failure>>()?;
    let as_text = || {
        let parts: Vec<_> =
            states.iter().map(|(device, state)| state_text(*device, state.as_ref())).collect();
        format!("{}\nKept in {}\n", parts.join("\n"), store.root().display())
    };
    let as_json = || {
        let devices: serde_json::Map<_, _> = states
            .iter()
            .map(|(device, state)| (device.name().to_owned(), state_json(state.as_ref())))
            .collect();
        json!({ "folder": store.root().display().to_string(), "devices": devices })
    };
    answer(Form::from(args.json), Exit::Pass, as_text, as_json)
}

/// Firmware and kernels of `qemu`; the default ones are built and flashed where there are none, a firmware that records
/// if that is needed.
pub(crate) fn images_of_qemu(tracing: Tracing) -> Result<(Image, Image), Failure> {
    images_of(FlashDevice::Qemu, tracing, |_, _| build::build_default(tracing))
}

/// Firmware and kernels of `a2a3`; the default ones are built and flashed where there are none.
pub(crate) fn images_of_a2a3() -> Result<(Image, Image), Failure> {
    images_of(FlashDevice::A2a3, Tracing::Off, |missing, machine| {
        if machine == Machine::X86_64 {
            return build::build_cann(machine);
        }
        let mut built = Vec::new();
        if missing.contains(&ImageKind::Cann) {
            built.extend(build::build_cann(machine)?);
        }
        if missing.contains(&ImageKind::Kernels) {
            built.extend(build::build_default(Tracing::Off)?);
        }
        Ok(built)
    })
}

/// What a device has. What it lacks is an image that was installed with this command, or what `build` makes for the machine of what it has, and is flashed.
fn images_of(
    device: FlashDevice,
    tracing: Tracing,
    build: impl FnOnce(&[ImageKind], Machine) -> Result<Vec<Built>, Failure>,
) -> Result<(Image, Image), Failure> {
    let store = Store::open()?;
    let flashed = store.load(device)?;
    let (firmware, kernels) = flashed.map_or((None, None), |one| (one.firmware, one.kernels));
    let lacks = |kind: &ImageKind| {
        let known = if *kind == ImageKind::Kernels { &kernels } else { &firmware };
        device.takes(*kind) && known.is_none()
    };
    let missing: Vec<ImageKind> =
        [ImageKind::Qemu, ImageKind::Cann, ImageKind::Kernels].into_iter().filter(lacks).collect();
    if !missing.is_empty() {
        let machine = firmware.as_ref().or(kernels.as_ref());
        // Beside a program for AICores the firmware is that of AICPUs.
        let machine = machine.map(|image| image.machine).filter(|one| *one != Machine::DavC220);
        let machine = machine.unwrap_or_default();
        let made = match installed(&missing, machine, tracing) {
            Some(images) => {
                build::say(&format!("{} has no image: flashing the installed one", device.name()));
                images
            }
            None => {
                build::say(&format!(
                    "{} has no image: building the default one, and flashing it",
                    device.name()
                ));
                let built = build(&missing, machine)?.into_iter().map(|built| built.image);
                built.filter(|image| missing.contains(&image.kind)).collect()
            }
        };
        let generation = store.flash(device, &made.iter().collect::<Vec<_>>())?;
        build::say(&format!("flashed to {} as generation {}", device.name(), generation.number));
    }
    Ok(store.load_both(device)?)
}

/// Images of these kinds that an installation has beside this command (`share/pto/firmware`); `None`: it lacks one.
fn installed(kinds: &[ImageKind], machine: Machine, tracing: Tracing) -> Option<Vec<Image>> {
    let program = std::env::current_exe().ok()?;
    let folder = program.parent()?.join("../share/pto/firmware");
    let files = std::fs::read_dir(folder).ok()?.filter_map(Result::ok);
    let images: Vec<Image> = files.filter_map(|file| Image::read(&file.path()).ok()).collect();
    let find = |kind: &ImageKind| {
        // Kernels trace nothing.
        let traces = |image: &Image| *kind == ImageKind::Kernels || image.tracing == tracing;
        let mut fitting =
            images.iter().filter(|image| image.kind == *kind && image.machine == machine);
        fitting.find(|image| traces(image)).cloned()
    };
    kinds.iter().map(find).collect()
}

fn device_of(target: FlashTarget) -> FlashDevice {
    match target {
        FlashTarget::Qemu => FlashDevice::Qemu,
        FlashTarget::A2a3 => FlashDevice::A2a3,
    }
}

fn say_generation(
    device: FlashDevice,
    generation: &Generation,
    json: bool,
) -> Result<Exit, Failure> {
    let as_text = || {
        let rows = generation_rows(generation);
        format!("{} has generation {}\n{}", device.name(), generation.number, table(&rows, &[]))
    };
    let as_json = || json!({ "device": device.name(), "generation": generation_json(generation) });
    answer(Form::from(json), Exit::Pass, as_text, as_json)
}

fn slots(generation: &Generation) -> [(&'static str, Option<&Entry>); 2] {
    [("firmware", generation.firmware.as_ref()), ("kernels", generation.kernels.as_ref())]
}

fn generation_rows(generation: &Generation) -> Vec<Vec<String>> {
    let there = slots(generation).into_iter().filter_map(|(slot, entry)| Some((slot, entry?)));
    let row = |(slot, entry): (&str, &Entry)| {
        let hash = entry.sha256.get(..12).unwrap_or(&entry.sha256).to_owned();
        vec![slot.to_owned(), entry.name.clone(), bytes(entry.bytes), format!("sha256 {hash}")]
    };
    there.map(row).collect()
}

fn state_text(device: FlashDevice, state: Option<&DeviceState>) -> String {
    let Some(state) = state else {
        return format!("{}\n  nothing flashed\n", device.name());
    };
    let mut rows = Vec::new();
    for generation in state.generations.iter().rev() {
        let is_current = generation.number == state.current;
        let mark = if is_current { "now" } else { "" };
        for (index, row) in generation_rows(generation).into_iter().enumerate() {
            let (number, mark) = match index {
                0 => (generation.number.to_string(), mark),
                _ => (String::new(), ""),
            };
            rows.push([vec![mark.to_owned(), number], row].concat());
        }
    }
    format!("{}\n{}", device.name(), table(&rows, &[1]))
}

fn state_json(state: Option<&DeviceState>) -> Value {
    let Some(state) = state else { return Value::Null };
    json!({
        "current": state.current,
        "generations": state.generations.iter().map(generation_json).collect::<Vec<_>>(),
    })
}

fn generation_json(generation: &Generation) -> Value {
    let entry = |entry: Option<&Entry>| {
        entry.map(|entry| {
            json!({
                "name": entry.name,
                "bytes": entry.bytes,
                "sha256": entry.sha256,
                "build_id": entry.build_id,
            })
        })
    };
    json!({
        "number": generation.number,
        "before": generation.before,
        "flashed_at_s": generation.flashed_at_s,
        "firmware": entry(generation.firmware.as_ref()),
        "kernels": entry(generation.kernels.as_ref()),
    })
}

fn read(path: &Path) -> Result<Image, Failure> {
    Image::read(path).map_err(|error| refused_image(path, &error))
}
