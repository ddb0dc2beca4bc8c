//! Commands and options that had another name.

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

/// The words of a command, an earlier name of one of its options, and today's.
const RENAMED_OPTIONS: &[(&[&str], &str, &str)] = &[
    (&["run"], "--gm-bytes", "--memory"),
    (&["program", "run"], "--loops", "--rounds"),
    (&["soak"], "--from", "--seed"),
];

/// A command line with today's names, and a hint for each that is another one.
pub(crate) fn todays(mut arguments: Vec<OsString>) -> (Vec<OsString>, Vec<String>) {
    let mut hints = Vec::new();
    let mut hint = |old: &str, new: &str| {
        hints.push(format!("note: `{old}` is called `{new}` now"));
    };
    // The program comes first; `pto help COMMAND` names the command one word later.
    let first = 1 + usize::from(arguments.get(1).is_some_and(|word| word == "help"));
    let begins = |arguments: &[OsString], words: &[&str]| {
        let after = arguments.get(first..).unwrap_or(&[]);
        words.len() <= after.len() && words.iter().zip(after).all(|(word, after)| after == word)
    };
    if let Some((old, new)) = RENAMED.iter().find(|(old, _)| begins(&arguments, old)) {
        arguments.splice(first..first + old.len(), new.iter().map(OsString::from));
        hint(&format!("pto {}", old.join(" ")), &format!("pto {}", new.join(" ")));
    }
    for (command, old, new) in RENAMED_OPTIONS {
        if !begins(&arguments, command) {
            continue;
        }
        // What follows `--` is no option of ours.
        for word in arguments.iter_mut().take_while(|word| *word != "--") {
            let rest = word.to_str().and_then(|word| word.strip_prefix(old));
            if let Some(rest) = rest.filter(|rest| rest.is_empty() || rest.starts_with('=')) {
                *word = format!("{new}{rest}").into();
                hint(old, new);
            }
        }
    }
    (arguments, hints)
}

#[cfg(test)]
mod tests {
    use super::{RENAMED, RENAMED_OPTIONS, todays};
    use crate::args::Cli;
    use clap::CommandFactory;
    use std::ffi::OsString;

    #[test]
    fn earlier_names_become_those_of_today() {
        let all = |line: &str| {
            let (words, hints) = todays(line.split(' ').map(OsString::from).collect());
            (words.join(" ".as_ref()).into_string().unwrap(), hints.len())
        };
        let today = |line: &str| (line.to_owned(), 1);
        assert_eq!(all("pto list kernels"), today("pto info kernels"));
        assert_eq!(all("pto help migrate"), today("pto help compat simpler"));
        assert_eq!(all("pto comm scaling --json"), today("pto bench groups --json"));
        assert_eq!(all("pto run list"), ("pto run list".to_owned(), 0));
        assert_eq!(todays(vec!["pto".into()]), (vec!["pto".into()], vec![]));
        assert_eq!(all("pto run x --gm-bytes=1G"), today("pto run x --memory=1G"));
        assert_eq!(all("pto soak --from 7 --seeds 2"), today("pto soak --seed 7 --seeds 2"));
        assert_eq!(all("pto program run x --loops 3"), today("pto program run x --rounds 3"));
        for kept in
            ["pto bench collectives --from 4K", "pto run x -- --gm-bytes=1", "pto soak --fromage"]
        {
            assert_eq!(all(kept), (kept.to_owned(), 0));
        }
    }

    #[test]
    fn the_names_of_today_are_there_and_the_earlier_ones_are_not() {
        let all = Cli::command();
        let find = |words: &[&str]| {
            let found = words.iter().try_fold(&all, |command, word| command.find_subcommand(word));
            found.unwrap_or_else(|| panic!("{words:?}"))
        };
        for (old, new) in RENAMED {
            find(new);
            assert!(all.find_subcommand(old[0]).is_none(), "{old:?} is a command");
        }
        for (command, old, new) in RENAMED_OPTIONS {
            let has = |name: &str| {
                find(command).get_arguments().any(|option| option.get_long() == Some(&name[2..]))
            };
            assert!(has(new) && !has(old), "{command:?} {old} {new}");
        }
    }
}
