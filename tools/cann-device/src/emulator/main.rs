//! Plays the driver and the cores of an Ascend device around a `cann` image: loads it as the driver stack does,
//! serves the control registers from memory with one thread for each core, and runs whole graphs.
//!
//! ```text
//! pto-cann-emulator default IMAGE.so     every graph and every fault path on the default image
//! pto-cann-emulator example IMAGE.so     the builders of linker/example-firmware
//! pto-cann-emulator run:matmul:m=70 IMAGE.so    an example of `pto run`, with its own kernels, and its bits
//! pto-cann-emulator once:matmul:m=70 IMAGE.so   the same in one way
//! pto-cann-emulator serve FILE BYTES GM REGISTERS FOLDER     the device of the stand-in libraries
//! ```
//! A program of the image's machine: for an AArch64 image `qemu-aarch64 -L /usr/aarch64-linux-gnu pto-cann-emulator ..` on another one.
//! It exits with 0 when every scenario passes, and prints a line for each.
//!
//! [`image`] dlopen, [`memory`] GM and register window, [`core`] one core, [`aicore`] one that runs the worker in C++, [`device`] arena, launch words, launch,
//! [`examples`] those of `pto run`, [`serve`] orders of another
//! process, [`graphs`] patterns and their reference, [`scenarios`], [`faults`].

#![expect(clippy::cast_possible_truncation, reason = "the graphs here are far below the limits")]

mod aicore;
mod cache;
mod cluster_flags;
mod core;
mod device;
mod examples;
mod faults;
mod graphs;
mod image;
mod memory;
mod scenario;
mod scenarios;
mod serve;

use std::process::ExitCode;

use image::Image;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    if let ["serve", of_device @ ..] = words.as_slice()
        && let Ok(of_device) = of_device.try_into()
    {
        return match serve::serve(of_device) {
            Ok(()) => ExitCode::SUCCESS,
            Err(why) => {
                eprintln!("{why}");
                ExitCode::FAILURE
            }
        };
    }
    let (scenarios, path) = match *words.as_slice() {
        ["default", path] => {
            (scenarios::graphs().into_iter().chain(faults::all()).collect::<Vec<_>>(), path)
        }
        ["example", path] => {
            let of_firmware = scenarios::example().into_iter();
            (of_firmware.chain(examples::shapes_in_cpp()).collect(), path)
        }
        [run, path] if run.starts_with("run:") || run.starts_with("once:") => {
            (examples::scenarios(run), path)
        }
        _ => {
            eprintln!(
                "usage: pto-cann-emulator default|example|run:NAME[:PARAM=VALUE]..|once:NAME[:PARAM=VALUE].. IMAGE.so"
            );
            return ExitCode::from(2);
        }
    };
    let image = match Image::load(path) {
        Ok(image) => image,
        Err(why) => {
            eprintln!("{path} cannot be loaded: {why}");
            return ExitCode::FAILURE;
        }
    };
    let failed =
        scenarios.iter().filter(|(name, scenario)| !passes(name, scenario(&image))).count();
    println!("{} scenarios, {failed} failed", scenarios.len());
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn passes(name: &str, result: Result<String, String>) -> bool {
    match &result {
        Ok(what) => println!("ok     {name}: {what}"),
        Err(why) => println!("FAILED {name}: {why}"),
    }
    result.is_ok()
}
