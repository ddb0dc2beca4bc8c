//! The command line of this process, quoted so that a user can paste it into a shell.

use std::env;
use std::ffi::{OsStr, OsString};

use pto_host::BUILD_MODE_VARIABLE;

/// This command, with the variable that it depends on.
pub(crate) fn this_command() -> String {
    let set = env::var_os(BUILD_MODE_VARIABLE);
    let set = set.map(|value| format!("{BUILD_MODE_VARIABLE}={} ", quoted(&value)));
    format!("{}{}", set.unwrap_or_default(), command(env::args_os()))
}

/// Words as a shell takes them.
pub(crate) fn command(words: impl Iterator<Item = OsString>) -> String {
    words.map(|word| quoted(&word)).collect::<Vec<_>>().join(" ")
}

/// A word in quotes, where a shell would otherwise not take it as it is.
pub(crate) fn quoted(word: &OsStr) -> String {
    let word = word.to_string_lossy();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-+=.,:/@%".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.into_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::command;

    #[test]
    fn words_are_quoted_where_a_shell_needs_it() {
        let words =
            ["pto", "run", "--param=tasks=3", "--kernel-cost=5us..9us", "it's", "", "a b", "$x"];
        let text = command(words.iter().map(|word| (*word).into()));
        assert_eq!(text, r"pto run --param=tasks=3 --kernel-cost=5us..9us 'it'\''s' '' 'a b' '$x'");
    }
}
