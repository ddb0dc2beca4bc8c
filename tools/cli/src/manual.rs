//! `pto completions` and `pto man`: what a shell and `man` know of this command, made from what clap knows.

use std::collections::BTreeSet;
use std::fs;
use std::io::{Result as IoResult, Write};

use clap::CommandFactory;
use clap::builder::PossibleValuesParser;
use pto_abi::{FanoutStrategy, RuntimeVariant};
use pto_examples::host::{EXAMPLES, Example, TensorSpec};
use pto_examples::training_loop;

use crate::args::{Cli, CompletionsArgs, ManArgs};
use crate::errors::{Exit, Failure};
use crate::help::{EXIT_CODES, VERSION};
use crate::output::say;
use crate::output_file;
use crate::training;

/// Writes the script of a shell.
pub(crate) fn completions(args: &CompletionsArgs) -> Result<Exit, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut with_names(Cli::command()), "pto", &mut script);
    let script = String::from_utf8_lossy(&script);
    // zsh would complete no files where a word is one of some.
    let words = examples().join(" ");
    let or_files = format!(r#"{{_alternative "examples:example:({words})" "files:file:_files"}}"#);
    say(script.replace(&format!(":({words})"), &format!(":{or_files}")))
}

/// The names that a shell completes, and that the parsers of the command line look up elsewhere.
fn with_names(command: clap::Command) -> clap::Command {
    let subcommands: Vec<_> =
        command.get_subcommands().map(|one| one.get_name().to_owned()).collect();
    let command = command.mut_args(|arg| {
        let names: Vec<&str> = match arg.get_id().as_str() {
            "runtime" => RuntimeVariant::ALL.iter().map(|variant| variant.name()).collect(),
            "fanout" => FanoutStrategy::ALL.iter().map(|strategy| strategy.name()).collect(),
            "log" => vec!["off", "error", "warn", "info", "debug", "trace"],
            "example" | "target" if arg.is_positional() => examples(),
            "params" => {
                let of_examples = EXAMPLES.iter().flat_map(|one| one.params());
                let of_training = training::parameters().map(|[name, ..]| name);
                begun(of_examples.map(|one| one.name.to_owned()).chain(of_training))
            }
            "inputs" => begun(tensors(|one| one.inputs())),
            "outputs" | "expect" => begun(tensors(|one| one.outputs())),
            _ => return arg,
        };
        arg.value_parser(PossibleValuesParser::new(names))
    });
    subcommands.into_iter().fold(command, |command, name| command.mut_subcommand(name, with_names))
}

/// Names of tensors of all examples.
fn tensors(of: fn(&dyn Example) -> &'static [TensorSpec]) -> impl Iterator<Item = String> {
    EXAMPLES.iter().flat_map(move |one| of(*one)).map(|one| one.name.to_owned())
}

/// Words such as `batch=`, each once; a value follows. They last for the rest of the process, as clap asks.
fn begun(names: impl Iterator<Item = String>) -> Vec<&'static str> {
    let once: BTreeSet<_> = names.collect();
    once.into_iter().map(|name| &*Box::leak(format!("{name}=").into_boxed_str())).collect()
}

fn examples() -> Vec<&'static str> {
    let known = EXAMPLES.iter().map(|example| example.name());
    known.chain([training_loop::NAME]).collect()
}

/// Writes the manual pages.
pub(crate) fn man(args: &ManArgs) -> Result<Exit, Failure> {
    let folder = &args.folder;
    output_file::check_folder("the folder", folder)?;
    fs::create_dir_all(folder).map_err(|error| {
        Failure::internal(format!("cannot make the folder '{}': {error}", folder.display()))
    })?;
    let mut written = Vec::new();
    let command = Cli::command().disable_help_subcommand(true);
    pages(command, "pto", &mut |name, page| {
        let path = folder.join(format!("{name}.1"));
        written.push(path.display().to_string());
        output_file::write(&path, |to| to.write_all(rendered(&page)?.as_bytes()))
    })?;
    say(written.join("\n"))
}

/// A page with the sections that readers of manuals look for: after the options come examples and exit codes, line by line.
fn rendered(page: &clap_mangen::Man) -> IoResult<String> {
    let mut roff = Vec::new();
    page.render(&mut roff)?;
    let roff = String::from_utf8_lossy(&roff);
    let Some((front, after)) = roff.split_once(".SH EXTRA\nExamples:\n") else {
        return Ok(roff.into_owned());
    };
    let (examples, rest) = after.split_once("\n.SH").unwrap_or((after, ""));
    let rest = if rest.is_empty() { String::new() } else { format!("\n.SH{rest}") };
    let examples = examples.trim_end();
    Ok(format!(
        "{front}.SH EXAMPLES\n.nf\n{examples}\n.fi\n.SH EXIT STATUS\n.nf\n{EXIT_CODES}\n.fi\n{}",
        rest.trim_start()
    ))
}

/// The page of a command, then those of the commands that it has.
fn pages(
    command: clap::Command,
    name: &str,
    write: &mut impl FnMut(&str, clap_mangen::Man) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let inner: Vec<_> = command.get_subcommands().cloned().collect();
    // For the rest of the process: clap keeps names as they are.
    let page = command.name(&*Box::leak(name.to_owned().into_boxed_str())).version(VERSION);
    write(name, clap_mangen::Man::new(page))?;
    for command in inner {
        let name = format!("{name}-{}", command.get_name());
        pages(command, &name, write)?;
    }
    Ok(())
}
