//! What a user can write after `pto compat simpler`.

use std::path::PathBuf;

use clap::Args;

/// Which programs.
#[derive(Args, Debug)]
pub(crate) struct MigrateArgs {
    /// A folder with programs of the field's runtime: scene tests, scripts, orchestrations, kernels; or one such file
    #[arg(value_name = "PATH")]
    pub(crate) path: PathBuf,

    /// Answers with one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}
