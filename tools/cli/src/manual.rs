//! `pto completions` and `pto man`: what a shell and `man` know of this command, made from what clap knows.

use std::fs;

use clap::CommandFactory;

use crate::args::{Cli, CompletionsArgs, ManArgs};
use crate::errors::{Exit, Failure};
use crate::output::say;
use crate::output_file;

/// Writes the script of a shell.
pub(crate) fn completions(args: &CompletionsArgs) -> Result<Exit, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "pto", &mut script);
    say(String::from_utf8_lossy(&script).into_owned())
}

/// Writes the manual pages.
pub(crate) fn man(args: &ManArgs) -> Result<Exit, Failure> {
    let folder = &args.folder;
    fs::create_dir_all(folder).map_err(|error| {
        Failure::internal(format!("cannot make the folder '{}': {error}", folder.display()))
    })?;
    let mut written = Vec::new();
    let command = Cli::command().disable_help_subcommand(true);
    pages(command, "pto", &mut |name, page| {
        let path = folder.join(format!("{name}.1"));
        written.push(path.display().to_string());
        output_file::write(&path, |to| page.render(to))
    })?;
    say(written.join("\n"))
}

/// The page of a command, then those of the commands that it has.
fn pages(
    command: clap::Command,
    name: &str,
    write: &mut impl FnMut(&str, clap_mangen::Man) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let inner: Vec<_> = command.get_subcommands().cloned().collect();
    // For the rest of the process: clap keeps names as they are.
    let page = command.name(&*Box::leak(name.to_owned().into_boxed_str()));
    write(name, clap_mangen::Man::new(page))?;
    for command in inner {
        let name = format!("{name}-{}", command.get_name());
        pages(command, &name, write)?;
    }
    Ok(())
}
