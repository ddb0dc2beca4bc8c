//! What a user can write after `pto compat`.

use clap::{Args, Subcommand};

use super::{AclArgs, MigrateArgs};
use crate::help;

/// Programs that were written for other runtimes.
#[derive(Args, Debug)]
#[command(arg_required_else_help = true)]
pub(crate) struct CompatArgs {
    #[command(subcommand)]
    pub(crate) command: CompatCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum CompatCommand {
    /// Runs a program that calls the CANN interface (`aclrt*`), on simulated devices
    #[command(after_help = help::CANN)]
    Cann(AclArgs),
    /// Says which programs for simpler run here, and for each of the others which line prevents it
    #[command(after_help = help::SIMPLER)]
    Simpler(MigrateArgs),
}

impl CompatCommand {
    /// Whether it answers with JSON.
    pub(crate) const fn json(&self) -> bool {
        match self {
            Self::Cann(_) => false,
            Self::Simpler(args) => args.json,
        }
    }
}
