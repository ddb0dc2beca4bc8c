//! `pto fw build`: makes images.

use std::io::Write;
use std::path::{Path, PathBuf};

use pto_host::fw::{ImageKind, Machine, Tracing};
use pto_image_build::{
    AicoreBuilt, AicoreRequest, BuildError, BuilderSource, Built, CodeSize, CoreCode, KernelSource,
    Platform, Profile, Request, Source,
};
use serde_json::json;

use crate::args::{CompilerSource, FwBuildArgs, FwMachine, FwPlatform, FwSealArgs};
use crate::errors::{Exit, Failure};
use crate::form::Form;
use crate::output::answer;
use crate::text::{bytes, grouped, table};

/// Builds, and says what came out.
pub(crate) fn build(args: &FwBuildArgs) -> Result<Exit, Failure> {
    if args.tracing && args.image == FwPlatform::Cann {
        return Err(Failure::usage(
            "--tracing works only for images of qemu; leave out --tracing or --image cann",
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
    if args.aicore && args.image != FwPlatform::Cann {
        return Err(Failure::usage("--aicore is for an Ascend device: add --image cann"));
    }
    if !args.kernel_includes.is_empty() && args.kernels.len() + args.own_kernels.len() == 0 {
        return Err(Failure::usage(
            "--kernel-include is for the kernels of --kernel and --kernels; name some, or leave it out",
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
    let kernels: Vec<_> = args.kernels.iter().map(kernel).collect::<Result<_, _>>()?;
    let aicore = args.aicore.then(|| AicoreRequest {
        pto_isa: args.pto_isa.clone(),
        kernels: kernels.clone(),
        kernel_includes: args.kernel_includes.clone(),
        home: None,
        folder: args.aicore_sources.clone(),
    });
    let request = Request {
        machine,
        platform: match args.image {
            FwPlatform::Qemu => Platform::Qemu,
            FwPlatform::Cann => Platform::Cann,
        },
        crate_folder: args.crate_folder.clone(),
        builders: args.builders.iter().map(|text| BuilderSource::parse(text)).collect(),
        kernels: if args.aicore { Vec::new() } else { kernels },
        own_kernels: args.own_kernels.clone(),
        kernel_includes: args.kernel_includes.clone(),
        core_code: if args.aicore { CoreCode::Aicore } else { CoreCode::Blob },
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
        || !request.kernels.is_empty()
        || !request.own_kernels.is_empty()
        || !request.builders.is_empty()
        || !request.features.is_empty();
    let built = pto_image_build::build(&request, &say).map_err(|error| match error {
        // The sources of the default images compile: what does not, is what the user gave.
        BuildError::Cargo { .. } | BuildError::Kernel(_) if has_own_sources => {
            Failure::usage(error)
        }
        error => error.into(),
    })?;
    let Some(aicore) = aicore else {
        return answer(Form::from(args.json), Exit::Pass, || text(&built), || as_json(&built));
    };
    let of_cores = pto_image_build::build_aicore(&aicore, &say).map_err(of_user)?;
    say_aicore(built, of_cores, args.json)
}

/// Seals what was built of a source tree.
pub(crate) fn seal(args: &FwSealArgs) -> Result<Exit, Failure> {
    let (image, sizes) = pto_image_build::seal_aicore(&args.folder).map_err(of_user)?;
    say_aicore(Vec::new(), AicoreBuilt::Image(Box::new(image), sizes), args.json)
}

/// Sources for AICores are the user's: his kernels, his compiler, his tree.
fn of_user(error: BuildError) -> Failure {
    match error {
        BuildError::Compiler { .. }
        | BuildError::Image { .. }
        | BuildError::Kernel(_)
        | BuildError::Manifest { .. }
        | BuildError::Occupied(_)
        | BuildError::PtoIsa { .. } => Failure::usage(error),
        error => error.into(),
    }
}

/// Says what came of the firmware and of the program of AICores.
fn say_aicore(mut built: Vec<Built>, of_cores: AicoreBuilt, json: bool) -> Result<Exit, Failure> {
    let (sizes, tree) = match of_cores {
        AicoreBuilt::Image(image, sizes) => {
            built.push(*image);
            (sizes, None)
        }
        AicoreBuilt::Tree { folder, looked } => (Vec::new(), Some((folder, looked))),
    };
    let as_text = || match &tree {
        None => format!("{}\n{}", sizes_text(&sizes), text(&built)),
        Some((folder, looked)) => format!("{}\n{}", tree_text(folder, looked), text(&built)),
    };
    let with_aicore = || {
        let mut value = as_json(&built);
        let object = |one: &CodeSize| json!({ "name": one.name, "kind": one.kind, "text_bytes": one.text_bytes });
        let paths = |paths: &[PathBuf]| -> Vec<String> {
            paths.iter().map(|path| path.display().to_string()).collect()
        };
        value["aicore"] = json!({
            "sources": tree.as_ref().map(|(folder, _)| folder.display().to_string()),
            "looked_for_compiler": tree.as_ref().map_or_else(Vec::new, |(_, looked)| paths(looked)),
            "objects": sizes.iter().map(object).collect::<Vec<_>>(),
        });
        value
    };
    answer(Form::from(json), Exit::Pass, as_text, with_aicore)
}

fn sizes_text(sizes: &[CodeSize]) -> String {
    let row = |one: &CodeSize| {
        vec![
            one.name.clone(),
            one.kind.to_owned(),
            format!("{} bytes of code", grouped(one.text_bytes)),
        ]
    };
    table(&sizes.iter().map(row).collect::<Vec<_>>(), &[2])
}

fn tree_text(folder: &Path, looked: &[PathBuf]) -> String {
    let looked = match looked {
        [] => "ASCEND_HOME_PATH is not set".to_owned(),
        places => {
            let places: Vec<_> = places.iter().map(|path| path.display().to_string()).collect();
            format!("looked for {}", places.join(", "))
        }
    };
    let folder = folder.display();
    format!(
        "There is no compiler for AICores here ({looked}): their program was not built.\n\
         Its sources are in {folder}. Where CANN and PTO-ISA are:\n  \
         cmake -S {folder} -B build -DPTO_ISA=FOLDER && cmake --build build --parallel\n\
         Then, here: pto fw seal {folder}\n"
    )
}

fn as_json(built: &[Built]) -> serde_json::Value {
    let image = |built: &Built| {
        json!({
            "file": built.path.display().to_string(),
            "kind": built.image.kind.name(),
            "build_id": built.image.build_id,
            "bytes": built.image.bytes().len(),
        })
    };
    json!({ "images": built.iter().map(image).collect::<Vec<_>>() })
}

/// The default images of the device `qemu`, as they are shipped.
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
    let is_of_cann = |kind| matches!(kind, ImageKind::Cann | ImageKind::Aicore);
    let device = match built.iter().any(|built| is_of_cann(built.image.kind)) {
        true => "a2a3",
        false => "qemu",
    };
    format!("{files}\nNext: pto fw flash {} --device {device}\n", paths.join(" "))
}
