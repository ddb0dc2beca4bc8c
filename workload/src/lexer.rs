//! The words of the textual form: names, numbers, values (`%3`), strings and marks; `#` begins a comment.

/// A text that is not a kernel or workload.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {message}")]
pub struct ParseError {
    /// The line, from 1.
    pub line: usize,
    /// The column, from 1.
    pub column: usize,
    /// What is wrong, and what was expected.
    pub message: String,
}

/// A word.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Token {
    Name(String),
    /// As it is written, without a sign.
    Number(String),
    Value(u16),
    Mark(&'static str),
    End,
}

impl std::fmt::Display for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Name(text) | Self::Number(text) => write!(f, "`{text}`"),
            Self::Value(number) => write!(f, "`%{number}`"),
            Self::Mark(mark) => write!(f, "`{mark}`"),
            Self::End => f.write_str("the end of the text"),
        }
    }
}

/// Marks, the longer ones first.
const MARKS: [&str; 33] = [
    "<<", ">>", "<=", ">=", "==", "!=", "&&", "||", "..", "(", ")", "[", "]", "{", "}", "<", ">",
    "=", ",", ":", ";", "+", "-", "*", "/", "%", "&", "|", "^", "!", "~", "?", ".",
];

/// A text, taken word by word.
pub(crate) struct Lexer {
    tokens: Vec<(Token, usize, usize)>,
    at: usize,
}

impl Lexer {
    /// Takes a text apart.
    pub(crate) fn new(text: &str) -> Result<Self, ParseError> {
        let mut tokens = Vec::new();
        for (number, line) in text.lines().enumerate() {
            words_of(line, number + 1, &mut tokens)?;
        }
        let line = text.lines().count().max(1);
        tokens.push((Token::End, line, 1));
        Ok(Self { tokens, at: 0 })
    }

    /// The next word, which stays.
    pub(crate) fn peek(&self) -> &Token {
        self.ahead(0)
    }

    /// A word further on.
    pub(crate) fn ahead(&self, distance: usize) -> &Token {
        let last = self.tokens.len() - 1;
        &self.tokens[(self.at + distance).min(last)].0
    }

    /// The next word.
    pub(crate) fn next(&mut self) -> Token {
        let token = self.peek().clone();
        self.at = (self.at + 1).min(self.tokens.len() - 1);
        token
    }

    /// An error at the next word.
    pub(crate) fn error(&self, message: impl Into<String>) -> ParseError {
        let (_, line, column) = self.tokens[self.at];
        ParseError { line, column, message: message.into() }
    }

    /// An error at the word before the next one.
    pub(crate) fn error_before(&self, message: impl Into<String>) -> ParseError {
        let (_, line, column) = self.tokens[self.at.saturating_sub(1)];
        ParseError { line, column, message: message.into() }
    }

    fn expected(&self, what: &str) -> ParseError {
        self.error(format!("expected {what}, found {}", self.peek()))
    }

    /// Takes a mark if it comes next.
    pub(crate) fn takes(&mut self, mark: &str) -> bool {
        let is_next = matches!(self.peek(), Token::Mark(found) if *found == mark);
        if is_next {
            self.next();
        }
        is_next
    }

    /// Takes a word if it comes next.
    pub(crate) fn takes_name(&mut self, name: &str) -> bool {
        let is_next = matches!(self.peek(), Token::Name(found) if found == name);
        if is_next {
            self.next();
        }
        is_next
    }

    /// Takes a mark.
    pub(crate) fn mark(&mut self, mark: &str) -> Result<(), ParseError> {
        if self.takes(mark) { Ok(()) } else { Err(self.expected(&format!("`{mark}`"))) }
    }

    /// Takes a certain name.
    pub(crate) fn keyword(&mut self, name: &str) -> Result<(), ParseError> {
        if self.takes_name(name) { Ok(()) } else { Err(self.expected(&format!("`{name}`"))) }
    }

    /// Takes a name.
    pub(crate) fn name(&mut self) -> Result<String, ParseError> {
        match self.peek() {
            Token::Name(name) => {
                let name = name.clone();
                self.next();
                Ok(name)
            }
            _ => Err(self.expected("a name")),
        }
    }

    /// Takes a number without a sign.
    pub(crate) fn unsigned<T: std::str::FromStr>(&mut self) -> Result<T, ParseError> {
        let Token::Number(text) = self.peek() else { return Err(self.expected("a number")) };
        let number = parse_number(text);
        let number = number.ok_or_else(|| self.error("the number is not valid here"))?;
        self.next();
        Ok(number)
    }

    /// Takes a number with or without a sign, as text.
    pub(crate) fn signed_text(&mut self) -> Result<String, ParseError> {
        let sign = if self.takes("-") { "-" } else { "" };
        match self.peek() {
            Token::Number(text) => {
                let text = format!("{sign}{text}");
                self.next();
                Ok(text)
            }
            _ => Err(self.expected("a number")),
        }
    }
}

/// A number in decimal, or an integer in hexadecimal.
pub(crate) fn parse_number<T: std::str::FromStr>(text: &str) -> Option<T> {
    let hexadecimal = text.strip_prefix("0x");
    let value = hexadecimal.and_then(|digits| u64::from_str_radix(digits, 16).ok());
    value.map_or_else(|| text.parse().ok(), |value| value.to_string().parse().ok())
}

fn words_of(
    line: &str,
    number: usize,
    tokens: &mut Vec<(Token, usize, usize)>,
) -> Result<(), ParseError> {
    let mut rest = line;
    loop {
        rest = rest.trim_start();
        let column = line.chars().count() - rest.chars().count() + 1;
        if rest.is_empty() || rest.starts_with('#') {
            return Ok(());
        }
        let Some((token, length)) = first_word(rest) else {
            let message = format!("{:?} belongs to no word", rest.chars().next().unwrap_or(' '));
            return Err(ParseError { line: number, column, message });
        };
        tokens.push((token, number, column));
        rest = &rest[length..];
    }
}

/// The first word of a text, and its length.
fn first_word(rest: &str) -> Option<(Token, usize)> {
    let length_of =
        |is_part: fn(char) -> bool| rest.find(|letter| !is_part(letter)).unwrap_or(rest.len());
    let first = rest.chars().next()?;
    if first.is_ascii_alphabetic() || first == '_' {
        let length = length_of(|letter| letter.is_ascii_alphanumeric() || letter == '_');
        return Some((Token::Name(rest[..length].to_owned()), length));
    }
    if first.is_ascii_digit() {
        let length = number_length(rest);
        return Some((Token::Number(rest[..length].to_owned()), length));
    }
    if let Some(digits) = rest.strip_prefix('%') {
        let length = digits.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(digits.len());
        if let Ok(value) = digits[..length].parse() {
            return Some((Token::Value(value), length + 1));
        }
    }
    let mark = MARKS.into_iter().find(|mark| rest.starts_with(mark))?;
    Some((Token::Mark(mark), mark.len()))
}

/// The length of the number that a text begins with: digits, hexadecimal digits, or a float with an exponent.
fn number_length(rest: &str) -> usize {
    let bytes = rest.as_bytes();
    let mut at = 0;
    let is_hexadecimal = rest.starts_with("0x");
    while let Some(byte) = bytes.get(at) {
        let before = if at == 0 { 0 } else { bytes[at - 1] };
        let after = bytes.get(at + 1).copied().unwrap_or(0);
        let is_part = match byte {
            b'.' => !is_hexadecimal && after != b'.' && before != b'.',
            b'-' | b'+' => !is_hexadecimal && matches!(before, b'e' | b'E'),
            _ => byte.is_ascii_alphanumeric(),
        };
        if !is_part {
            break;
        }
        at += 1;
    }
    at
}
