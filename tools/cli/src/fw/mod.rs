//! `pto fw`: firmware images. [`build`] makes them, [`inspect`] says what they are, [`flashed`] keeps them.

pub(crate) mod build;
pub(crate) mod flashed;
mod inspect;

use crate::args::{FwArgs, FwCommand};
use crate::errors::{Exit, Failure};

/// One of the commands.
pub(crate) fn fw(args: &FwArgs) -> Result<Exit, Failure> {
    match &args.command {
        FwCommand::Build(args) => build::build(args),
        FwCommand::Seal(args) => build::seal(args),
        FwCommand::Inspect(args) => inspect::inspect(args),
        FwCommand::Flash(args) => flashed::flash(args),
        FwCommand::List(args) => flashed::list(args),
        FwCommand::Rollback(args) => flashed::rollback(args),
    }
}
