//! `pto-acl-replay FILE`: makes the calls of a record again, and says which of them end otherwise. `pto compat cann replay` starts it.
//!
//! ```text
//! record    the calls of a program, each with what it was given, what it read and what it gave (pto_acl_interface::Call)
//! plan      which memory and which functions they need; what no replay can do is refused before the first call
//! play      a thread for each thread of the record; a call begins when all calls are over that were over when it began
//! ```
//! Handles and addresses differ from run to run. A word that was a handle, or an address within a block, becomes that of this run.
//! The calls go to whatever library is loaded under the name `libascendcl.so`: nothing of the plug-in is linked.

mod addresses;
mod library;
mod play;

use std::process::ExitCode;

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    let (Some(file), None) = (arguments.next(), arguments.next()) else {
        eprintln!("pto-acl-replay: name the file of one record: pto-acl-replay FILE");
        return ExitCode::from(2);
    };
    match play::replay(file.as_ref()) {
        Ok(outcome) => {
            for difference in &outcome.differences {
                println!("{difference}");
            }
            println!("{} calls, {} end otherwise", outcome.calls, outcome.differences.len());
            ExitCode::from(u8::from(!outcome.differences.is_empty()))
        }
        Err(failure) => {
            eprintln!("pto-acl-replay: {}: {failure}", file.display());
            ExitCode::from(2)
        }
    }
}
