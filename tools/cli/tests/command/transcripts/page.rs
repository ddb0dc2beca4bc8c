//! The commands of a page, and what it says that they print.

/// A command of a page.
pub(super) struct Transcript {
    /// The page and the line.
    pub(super) position: String,
    /// Names and contents of the files that the page shows between the command before and this one.
    pub(super) files: Vec<(String, String)>,
    /// What follows `pto`; in a tutorial the whole command.
    pub(super) arguments: String,
    /// The lines after the command. Empty: the page does not show what it prints.
    pub(super) printed: Vec<String>,
    /// The lines of the page that `printed` is in, from 0.
    lines: std::ops::Range<usize>,
}

/// The text of a page, in which the output of commands can be replaced.
pub(super) struct Block {
    lines: Vec<String>,
    /// Replacements, each with the lines that it replaces.
    new: Vec<(std::ops::Range<usize>, Vec<String>)>,
}

impl Block {
    pub(super) fn of(text: &str) -> Self {
        Self { lines: text.lines().map(str::to_owned).collect(), new: Vec::new() }
    }

    pub(super) fn replace(&mut self, transcript: &Transcript, printed: &str) {
        let lines = printed.trim_end().lines().map(str::to_owned).collect();
        self.new.push((transcript.lines.clone(), lines));
    }

    pub(super) fn text(&self) -> String {
        let mut lines = self.lines.clone();
        for (range, new) in self.new.iter().rev() {
            lines.splice(range.clone(), new.iter().cloned());
        }
        lines.join("\n") + "\n"
    }
}

/// The arguments of a line `$ pto ..`, without the remark after it.
fn arguments_of(line: &str) -> Option<&str> {
    let rest =
        line.strip_prefix("$ pto ").or_else(|| line.strip_prefix("$ cargo run --release -- "))?;
    Some(rest.split("  #").next().unwrap_or(rest).trim_end())
}

/// Pages whose commands a shell runs in an empty folder, those of other programs as well.
pub(super) fn is_tutorial(page: &str) -> bool {
    page.starts_with("docs/tutorial/")
}

/// The file that a block with the tag `LANGUAGE file=NAME` holds.
fn file_of(tag: &str) -> Option<&str> {
    tag.split_once(" file=").map(|(_, name)| name)
}

/// The tag of a block whose commands are not run here, because they need what the suite does not have.
const NOT_RUN: &str = "shell";
/// Programs that pages call.
const PROGRAMS: &[&str] = &[
    "c++", "cargo", "cc", "clang", "clang++", "export", "g++", "gcc", "git", "maturin", "mpirun",
    "pip", "pto", "pytest", "python", "python3",
];

/// The commands of a page that are not run and that are not marked so, each with its line: those in blocks without `$`, and those of
/// other programs.
pub(super) fn forgotten(page: &str, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut block: Option<Vec<(usize, &str)>> = None;
    for (number, line) in (1..).zip(text.lines()) {
        let Some(tag) = line.strip_prefix("```") else {
            if let Some(lines) = &mut block {
                lines.push((number, line));
            }
            continue;
        };
        block = match block.take() {
            None => Some(if tag == NOT_RUN || file_of(tag).is_some() {
                vec![(0, "")]
            } else {
                Vec::new()
            }),
            // The mark of a block that is not run.
            Some(lines) if lines.first().is_some_and(|(number, _)| *number == 0) => None,
            Some(lines) => {
                let shows_prompts = lines.iter().any(|(_, line)| line.starts_with("$ "));
                let commands = lines.iter().filter(|(_, line)| match line.strip_prefix("$ ") {
                    Some(_) => arguments_of(line).is_none() && !is_tutorial(page),
                    None => !shows_prompts && is_command(line),
                });
                found.extend(commands.map(|(number, line)| format!("{page}:{number}: {line}")));
                None
            }
        };
    }
    found
}

/// Whether a line calls a program, with or without variables of its environment in front.
fn is_command(line: &str) -> bool {
    let is_variable = |word: &&str| {
        let name = word.split_once('=').map(|(name, _)| name);
        name.is_some_and(|name| {
            !name.is_empty() && name.chars().all(|c| c.is_ascii_uppercase() || c == '_')
        })
    };
    let program = line.split(' ').find(|word| !is_variable(word));
    program.is_some_and(|program| PROGRAMS.contains(&program))
}

/// The commands of a page, in their order.
pub(super) fn transcripts(page: &str, text: &str) -> Vec<Transcript> {
    let lines: Vec<&str> = text.lines().collect();
    let (mut found, mut files) = (Vec::new(), Vec::new());
    // A block is open; it is open and its commands are run.
    let (mut is_open, mut in_block) = (false, false);
    let mut at = 0;
    while at < lines.len() {
        let line = lines[at];
        at += 1;
        if let Some(tag) = line.strip_prefix("```") {
            is_open = !is_open;
            let file = file_of(tag).filter(|_| is_open);
            in_block = is_open && tag != NOT_RUN && file.is_none();
            if let Some(name) = file {
                let text = lines[at..].iter().take_while(|line| !line.starts_with("```"));
                files.push((name.to_owned(), text.map(|line| format!("{line}\n")).collect()));
            }
            continue;
        }
        let first = if is_tutorial(page) { line.strip_prefix("$ ") } else { arguments_of(line) };
        let Some(first) = first.filter(|_| in_block) else { continue };
        let position = format!("{page}:{at}");
        let mut arguments = first.to_owned();
        while let Some(start) = arguments.strip_suffix('\\') {
            arguments = format!("{start}{}", lines.get(at).map_or("", |next| next.trim()));
            at += 1;
        }
        let begin = at;
        while at < lines.len() && !lines[at].starts_with("```") && !lines[at].starts_with("$ ") {
            at += 1;
        }
        let end =
            (begin..at).rev().find(|&line| !lines[line].is_empty()).map_or(begin, |last| last + 1);
        let printed = lines[begin..end].iter().map(|&line| line.to_owned()).collect();
        let files = std::mem::take(&mut files);
        found.push(Transcript { position, files, arguments, printed, lines: begin..end });
    }
    found
}

#[test]
fn commands_are_found_with_what_they_print() {
    let text = "text\n```\n$ pto a b   # remark\n$ pto c \\\n    d\none\n\ntwo\n\n```\n$ pto not in a block\n";
    let found = transcripts("page.md", text);
    assert_eq!(found.len(), 2);
    assert_eq!((found[0].arguments.as_str(), found[0].printed.len()), ("a b", 0));
    assert_eq!(found[1].arguments, "c d");
    assert_eq!(found[1].printed, ["one", "", "two"]);
    let mut block = Block::of(text);
    block.replace(&found[1], "three\n");
    assert!(block.text().contains("    d\nthree\n\n```"), "{}", block.text());
}

#[test]
fn files_are_written_before_the_command_that_follows_them() {
    let text = "```\n$ a\n```\n```text file=b/c.txt\n$ one\ntwo\n```\n```\n$ d\nthree\n```\n";
    let found = transcripts("docs/tutorial/page.md", text);
    assert_eq!(found.len(), 2);
    assert!(found[0].files.is_empty());
    assert_eq!(found[1].files, [("b/c.txt".to_owned(), "$ one\ntwo\n".to_owned())]);
    assert_eq!((found[1].arguments.as_str(), found[1].printed.len()), ("d", 1));
    assert!(forgotten("docs/tutorial/page.md", text).is_empty());
    assert_eq!(forgotten("docs/page.md", text).len(), 2);
    assert!(transcripts("docs/page.md", text).is_empty());
}

#[test]
fn commands_that_nobody_runs_are_found_unless_they_are_marked() {
    let of = |text: &str| forgotten("page.md", text);
    assert_eq!(of("```\npto a\n```\n"), ["page.md:2: pto a"]);
    assert_eq!(of("```text\nA=1 cargo b\n```\n"), ["page.md:2: A=1 cargo b"]);
    assert_eq!(of("```\n$ pip c\n```\n"), ["page.md:2: $ pip c"]);
    let run = "```\n$ pto a\npto view t.json\n```\n```shell\npip c\n```\npto in prose\n```rust\nlet pto = 1;\n```\n";
    assert_eq!(of(run), [""; 0]);
    assert!(transcripts("page.md", "```shell\n$ pto a\n```\n").is_empty());
    assert_eq!(transcripts("page.md", "```shell\n$ pto a\n```\n```\n$ pto b\n```\n").len(), 1);
}
