//! Commands that had another name.

use std::ffi::OsString;

/// The words of a command's earlier name, and those of today.
const RENAMED: &[(&[&str], &[&str])] = &[
    (&["list"], &["info"]),
    (&["query"], &["program", "query"]),
    (&["acl"], &["compat", "cann"]),
    (&["migrate"], &["compat", "simpler"]),
    (&["comm", "bench"], &["bench", "collectives"]),
    (&["comm", "scaling"], &["bench", "groups"]),
];

/// A command line with today's name of its command, and a hint where that is another one.
pub(crate) fn todays(arguments: Vec<OsString>) -> (Vec<OsString>, Option<String>) {
    // The program comes first; `pto help COMMAND` names the command one word later.
    let first = 1 + usize::from(arguments.get(1).is_some_and(|word| word == "help"));
    let words = arguments.get(first..).unwrap_or(&[]);
    let begins = |(old, _): &&(&[&str], &[&str])| {
        old.len() <= words.len() && old.iter().zip(words).all(|(old, word)| word == old)
    };
    let Some((old, new)) = RENAMED.iter().find(begins) else { return (arguments, None) };
    let hint = format!("note: `pto {}` is called `pto {}` now", old.join(" "), new.join(" "));
    let mut today = arguments;
    today.splice(first..first + old.len(), new.iter().map(OsString::from));
    (today, Some(hint))
}

#[cfg(test)]
mod tests {
    use super::{RENAMED, todays};
    use crate::args::Cli;
    use clap::CommandFactory;
    use std::ffi::OsString;

    #[test]
    fn earlier_names_become_those_of_today() {
        let all = |line: &str| {
            let (words, hint) = todays(line.split(' ').map(OsString::from).collect());
            (words.join(" ".as_ref()).into_string().unwrap(), hint.is_some())
        };
        let today = |line: &str| (line.to_owned(), true);
        assert_eq!(all("pto list kernels"), today("pto info kernels"));
        assert_eq!(all("pto help migrate"), today("pto help compat simpler"));
        assert_eq!(all("pto comm scaling --json"), today("pto bench groups --json"));
        assert_eq!(all("pto run list"), ("pto run list".to_owned(), false));
        assert_eq!(todays(vec!["pto".into()]), (vec!["pto".into()], None));
    }

    #[test]
    fn the_names_of_today_are_commands() {
        for (old, new) in RENAMED {
            let mut command = &Cli::command();
            for word in *new {
                command = command.find_subcommand(word).unwrap_or_else(|| panic!("{new:?}"));
            }
            assert!(Cli::command().find_subcommand(old[0]).is_none(), "{old:?} is a command");
        }
    }
}
