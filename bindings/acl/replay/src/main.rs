//! `pto-acl-replay FILE`: makes the calls of a record again, and says which of them end otherwise. `pto acl replay` starts it.

use std::process::ExitCode;

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    let (Some(file), None) = (arguments.next(), arguments.next()) else {
        eprintln!("pto-acl-replay: name the file of one record: pto-acl-replay FILE");
        return ExitCode::from(2);
    };
    match pto_acl_replay::replay(file.as_ref()) {
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
