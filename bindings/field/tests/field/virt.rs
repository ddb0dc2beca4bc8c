//! The programs on the emulated machine: their orchestrations on this one, their kernels compiled for AArch64.

use std::path::Path;

use pto_field::{CallOptions, FieldDevice};
use pto_host::abi::CoreKind;
use pto_host::fw::{Image, ImageKind};
use pto_image_build::{Built, KernelSource, Profile, Request, packages};

use crate::bench::KERNELS;
use crate::programs::run_on;
use crate::shapes::{SHAPES, has_exponentials, is_close};
use crate::table::{GOOD, Tensors};

/// Programs that do not run there, each with the reason.
const LEFT_OUT: &[(&str, &str)] = &[];

/// The firmware as it is shipped, and a blob with the kernels of all programs.
fn images() -> [Image; 2] {
    let say = |sentence: &str| println!("{sentence}");
    let programs = [packages::QEMU, packages::CROSS_CXX];
    packages::install(&programs, &say).unwrap_or_else(|why| panic!("{why}"));
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/kernels.cpp");
    let kernel = |(func_id, symbol): (u32, &str)| KernelSource {
        func_id,
        kind: if func_id >= 32 { CoreKind::AIC } else { CoreKind::AIV },
        name: symbol.to_owned(),
        function: symbol.to_owned(),
        path: path.clone(),
    };
    let kernels = KERNELS.map(kernel).to_vec();
    let request = Request { kernels, profile: Profile::Release, ..Request::default() };
    let built = pto_image_build::build(&request, &say).unwrap_or_else(|why| panic!("{why}"));
    let of = |built: &[Built], kind| {
        built.iter().find(|one| one.image.kind == kind).expect("it is built").image.clone()
    };
    [of(&built, ImageKind::Virt), of(&built, ImageKind::Kernels)]
}

#[test]
fn programs_run_on_the_emulated_machine() {
    let [firmware, kernels] = images();
    let device = FieldDevice::open_virt(&FieldDevice::machine(), &firmware, &kernels).unwrap();
    let programs = GOOD.iter().chain(SHAPES);
    let mut wrong = Vec::new();
    for (entry, expected) in
        programs.filter(|(entry, _)| !LEFT_OUT.iter().any(|(left_out, _)| left_out == entry))
    {
        let begin = std::time::Instant::now();
        let (outcome, found) = run_on(&device, entry, &CallOptions::default());
        println!("{entry}: {:?}", begin.elapsed());
        let expected = expected(Tensors::new());
        let is_right =
            if has_exponentials(entry) { is_close(&found, &expected) } else { found == expected };
        if let Some(error) = outcome.error {
            wrong.push(format!("{entry}: {error}"));
        } else if !is_right {
            wrong.push(format!("{entry}: wrong: {:?} {:?}", &found.out[..8], &found.counts));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
