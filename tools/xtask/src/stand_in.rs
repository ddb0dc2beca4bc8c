//! `stand-in`: builds the folder with our libraries under the names of the vendor's, and the programs that play the device
//! (`pto_image_build::toolchain::stand_in`), as `target/stand-in`.

use std::path::Path;
use std::process::Command;

use pto_image_build::toolchain::stand_in;

use crate::cargo::cargo;

/// Builds everything, lays it out, and says how it is used.
pub(crate) fn make(root: &Path, target: &Path) -> Result<(), String> {
    let mut library = cargo(root);
    library.args(["build", "--package", stand_in::PACKAGE, "--lib", "--no-default-features"]);
    library.arg("--target-dir").arg(target);
    run(&mut library)?;
    let mut emulators = Vec::new();
    for triple in stand_in::targets() {
        let say = |sentence: &str| println!("{sentence}");
        let made = stand_in::emulator(cargo(root), target, triple, &say);
        let (mut build, program) = made.map_err(|error| error.to_string())?;
        run(&mut build)?;
        emulators.push((*triple, program));
    }
    let folder = target.join("stand-in");
    let library = target.join("debug").join(stand_in::LIBRARY);
    stand_in::lay_out(&folder, &library, &emulators)
        .map_err(|error| format!("{}: {error}", folder.display()))?;
    let folder = folder.display();
    println!("{folder}");
    println!("Next: ASCEND_HOME_PATH={folder} pto run vector_example --device a2a3");
    println!(
        "Firmware that runs on this machine without qemu: pto fw build --image cann --machine x86-64 --release"
    );
    println!(
        "With the worker and the kernels in C++ on its cores: ASCEND_HOME_PATH={folder} pto fw build --image cann --machine x86-64 --release --aicore \
         --pto-isa aicore-kernels/aicore/this_machine"
    );
    Ok(())
}

fn run(command: &mut Command) -> Result<(), String> {
    let status = command.status().map_err(|error| format!("cargo cannot be started: {error}"))?;
    status.success().then_some(()).ok_or_else(|| format!("{command:?}: {status}"))
}
