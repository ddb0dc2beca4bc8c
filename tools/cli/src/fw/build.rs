//! `pto fw build`: makes images.

use std::io::Write;

use pto_host::fw::{ImageKind, Machine, Tracing};
use pto_image_build::{
    BuildError, BuilderSource, Built, KernelSource, Platform, Profile, Request, Source,
};
use serde_json::json;

use crate::args::{CompilerSource, FwBuildArgs, FwMachine, FwPlatform};
use crate::errors::{Exit, Failure};
use crate::form::Form;
use crate::output::answer;
use crate::text::{bytes, table};

/// Builds, and says what came out.
pub(crate) fn build(args: &FwBuildArgs) -> Result<Exit, Failure> {
    if args.tracing && args.image == FwPlatform::Cann {
        return Err(Failure::usage(
            "--tracing works only for images of virt; leave out --tracing or --image cann",
        ));
    }
    let machine = match args.machine {
        FwMachine::Aarch64 => Machine::Aarch64,
        FwMachine::X86_64 => Machine::X86_64,
    };
    if machine != Machine::Aarch64 && args.image != FwPlatform::Cann {
        return Err(Failure::usage(
            "--machine x86-64 is for images that the stand-in for CANN runs; add --image cann",
        ));
    }
    let kernel = |text: &String| {
        let usage = || {
            Failure::usage(format!(
                "--kernel {text}: it has the form ID:aic|aiv[:NAME]=FILE[:FUNCTION]"
            ))
        };
        KernelSource::parse(text).ok_or_else(usage)
    };
    let request = Request {
        machine,
        platform: match args.image {
            FwPlatform::Virt => Platform::Virt,
            FwPlatform::Cann => Platform::Cann,
        },
        crate_folder: args.crate_folder.clone(),
        builders: args.builders.iter().map(|text| BuilderSource::parse(text)).collect(),
        kernels: args.kernels.iter().map(kernel).collect::<Result<_, _>>()?,
        kernel_includes: args.kernel_includes.clone(),
        profile: match (args.release, args.small) {
            (_, true) => Profile::Small,
            (true, false) => Profile::Release,
            (false, false) => Profile::Checked,
        },
        source: match args.compiler {
            CompilerSource::Any => Source::Any,
            CompilerSource::Rustup => Source::Rustup,
            CompilerSource::Debian => Source::Debian,
        },
        features: args.features.clone(),
        tracing: if args.tracing { Tracing::On } else { Tracing::Off },
        target_folder: None,
    };
    let has_own_sources = request.crate_folder.is_some()
        || [request.builders.len(), request.kernels.len(), request.features.len()] != [0; 3];
    let built = pto_image_build::build(&request, &say).map_err(|error| match error {
        // The sources of the default images compile: what does not, is what the user gave.
        BuildError::Cargo { .. } if has_own_sources => Failure::usage(error),
        error => error.into(),
    })?;
    let as_json = || -> serde_json::Value {
        let image = |built: &Built| {
            json!({
                "file": built.path.display().to_string(),
                "kind": built.image.kind.name(),
                "build_id": built.image.build_id,
                "bytes": built.image.bytes().len(),
            })
        };
        json!({ "images": built.iter().map(image).collect::<Vec<_>>() })
    };
    answer(Form::from(args.json), Exit::Pass, || text(&built), as_json)
}

/// The default images of the device `virt`, as they are shipped.
pub(crate) fn build_default(tracing: Tracing) -> Result<Vec<Built>, Failure> {
    let request = Request { profile: Profile::Release, tracing, ..Request::default() };
    Ok(pto_image_build::build(&request, &say)?)
}

/// The default firmware of the device `a2a3`, as it is shipped; of x86-64 the kernels too.
pub(crate) fn build_cann(machine: Machine) -> Result<Vec<Built>, Failure> {
    let (platform, profile) = (Platform::Cann, Profile::Release);
    let request = Request { platform, machine, profile, ..Request::default() };
    Ok(pto_image_build::build(&request, &say)?)
}

/// Tells what is being done, beside the answer.
pub(crate) fn say(sentence: &str) {
    // Where standard error is gone, there is nobody to tell.
    let _ = writeln!(std::io::stderr().lock(), "{sentence}");
}

fn text(built: &[Built]) -> String {
    let row = |built: &Built| {
        let size = bytes(built.image.bytes().len() as u64);
        vec![built.image.kind.name().to_owned(), size, built.path.display().to_string()]
    };
    let files = table(&built.iter().map(row).collect::<Vec<_>>(), &[1]);
    let paths: Vec<_> = built.iter().map(|built| built.path.display().to_string()).collect();
    let device = match built.iter().any(|built| built.image.kind == ImageKind::Cann) {
        true => "a2a3",
        false => "virt",
    };
    format!("{files}\nNext: pto fw flash {} --device {device}\n", paths.join(" "))
}
