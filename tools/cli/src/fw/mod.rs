//! `pto fw`: firmware images. [`build`] makes them, [`inspect`] says what they are, [`flashed`] keeps them.

pub(crate) mod build;
pub(crate) mod flashed;
mod inspect;

use crate::args::{FwArgs, FwCommand};
use crate::errors::{Exit, Failure};

/// One of the commands.
pub(crate) fn fw(args: &FwArgs) -> Result<Exit, Failure> {
    let (result, json) = match &args.command {
        FwCommand::Build(args) => (build::build(args), args.json),
        FwCommand::Inspect(args) => (inspect::inspect(args), args.json),
        FwCommand::Flash(args) => (flashed::flash(args), args.json),
        FwCommand::List(args) => (flashed::list(args), args.json),
        FwCommand::Rollback(args) => (flashed::rollback(args), args.json),
    };
    result.map_err(|failure| if json { failure.also_as_json() } else { failure })
}
