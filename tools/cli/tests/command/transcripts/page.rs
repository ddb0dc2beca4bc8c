//! The commands of a page, and what it says that they print.

/// A command of a page.
pub(super) struct Transcript {
    /// The page and the line.
    pub(super) place: String,
    /// What follows `pto`.
    pub(super) arguments: String,
    /// The lines behind the command. Empty: the page does not show what it prints.
    pub(super) printed: Vec<String>,
    /// The lines of the page that `printed` stands in, from 0.
    lines: std::ops::Range<usize>,
}

/// The text of a page, in which the output of commands can be replaced.
pub(super) struct Block {
    lines: Vec<String>,
    /// Replacements, each with the lines that it stands for.
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

/// The arguments of a line `$ pto ..`, without the remark behind it.
fn arguments_of(line: &str) -> Option<&str> {
    let rest =
        line.strip_prefix("$ pto ").or_else(|| line.strip_prefix("$ cargo run --release -- "))?;
    Some(rest.split("  #").next().unwrap_or(rest).trim_end())
}

/// The commands of a page, in their order.
pub(super) fn transcripts(page: &str, text: &str) -> Vec<Transcript> {
    let lines: Vec<&str> = text.lines().collect();
    let mut found = Vec::new();
    let mut in_block = false;
    let mut at = 0;
    while at < lines.len() {
        let line = lines[at];
        at += 1;
        if line.starts_with("```") {
            in_block = !in_block;
            continue;
        }
        let Some(first) = arguments_of(line).filter(|_| in_block) else { continue };
        let place = format!("{page}:{at}");
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
        found.push(Transcript { place, arguments, printed, lines: begin..end });
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
