//! Programs as loops over tiles, in Rust: kernels of tile operations, a tree of loops as text, and a check of what comes out.
//!
//! `cargo run -p pto-examples --example tile_programs` runs each of them in program order on this machine and then on a device, and compares both
//! with a reference in `f64`. The tests of this file run them in every hosting mode and with seeds of the virtual machine.

mod attention;
mod experts;
mod pipeline;
mod product;
mod program;
mod softmax;

use std::num::NonZeroUsize;
use std::process::ExitCode;

use program::{Outcome, Program, device};
use pto_host::Hosting;

/// Each of them, with inputs that a number decides.
const PROGRAMS: [fn(u64) -> Outcome<Program>; 5] =
    [product::program, softmax::program, attention::program, experts::program, pipeline::program];

fn main() -> Outcome<ExitCode> {
    let mut device = device(Hosting::Pool { os_threads: NonZeroUsize::MIN })?;
    let mut is_right = true;
    for program in PROGRAMS {
        let program = program(1)?;
        let expected = program.in_program_order()?;
        let found = program.on(&mut device)?;
        let wrong = program.wrong(&found.result).or(program.wrong(&expected.result));
        let same = found.result == expected.result;
        is_right &= wrong.is_none() && same;
        match wrong {
            None if same => println!(
                "{}: PASS, {} tasks, {} cycles on the v9 clock",
                program.name, found.tasks, expected.cycles
            ),
            None => println!("{}: FAIL, a device and program order differ", program.name),
            Some(what) => println!("{}: FAIL, {what}", program.name),
        }
    }
    Ok(if is_right { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

#[cfg(test)]
mod tests {
    use super::{PROGRAMS, attention, device, pipeline, softmax};
    use pto_host::Hosting;
    use pto_host::virtual_time::VirtualOptions;
    use std::num::NonZeroUsize;

    fn hostings() -> Vec<Hosting> {
        let pool = |n| Hosting::Pool { os_threads: NonZeroUsize::new(n).expect("not zero") };
        let seeds = (0..20)
            .map(|seed| Hosting::Virtual(VirtualOptions { seed, ..VirtualOptions::default() }));
        [pool(1), pool(2), Hosting::Threads].into_iter().chain(seeds).collect()
    }

    #[test]
    fn every_hosting_mode_gives_the_bits_of_program_order() {
        let programs = PROGRAMS.map(|program| program(7).expect("it is a program"));
        let expected =
            programs.each_ref().map(|program| program.in_program_order().expect("it runs"));
        for hosting in hostings() {
            let label = format!("{hosting}");
            let mut device = device(hosting).expect("the device opens");
            for (program, expected) in programs.iter().zip(&expected) {
                let found = program.on(&mut device).expect("it runs");
                assert_eq!(program.wrong(&found.result), None, "{} {label}", program.name);
                assert!(found.result == expected.result, "{} {label}", program.name);
                assert_eq!((found.tasks, expected.tasks), (program.tasks, program.tasks));
            }
        }
    }

    /// A softmax of which one tile was left out, or the maximum of another row was taken, is refused.
    #[test]
    fn a_wrong_softmax_is_seen() {
        let program = softmax::program(3).expect("it is a program");
        let right = program.in_program_order().expect("it runs").result;
        assert_eq!(program.wrong(&right), None);
        let mut left_out = right.clone();
        left_out[20 * softmax::COLS..24 * softmax::COLS].fill(0.0);
        assert!(program.wrong(&left_out).is_some(), "zeros pass");
        let mut turned = right;
        turned.rotate_left(softmax::COLS);
        assert!(program.wrong(&turned).is_some(), "rows that were exchanged pass");
    }

    /// The same compiled program runs with other lengths.
    #[test]
    fn other_lengths_compile_nothing() {
        let first = attention::with_lengths(1, [13, 1, 40, 22]).expect("it is a program");
        for lengths in [[16, 8, 24, 8], [1, 1, 1, 1], [40, 40, 9, 7], [3, 40, 17, 0]] {
            let other = attention::with_lengths(2, lengths).expect("it is a program");
            assert_eq!(other.compiled().words(), first.compiled().words(), "{lengths:?}");
            let found = other.in_program_order().expect("it runs");
            assert_eq!(other.wrong(&found.result), None, "{lengths:?}");
        }
    }

    /// How far the first process may run ahead decides when the last tile is done.
    #[test]
    fn deeper_channels_take_fewer_cycles() {
        let cycles = [0, 1, 2].map(|depth| {
            let program = pipeline::with_depth(1, depth).expect("it is a program");
            program.in_program_order().expect("it runs").cycles
        });
        assert_eq!(cycles, [139_296, 131_104, 122_912]);
    }
}
