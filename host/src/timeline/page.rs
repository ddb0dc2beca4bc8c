//! How a page is put together: one HTML file with its style, its script and its data, that loads nothing else.
//!
//! `view/` holds the parts. Each script file there is about one thing; they become one function, so that none of their names is
//! known outside of it.

use serde::Serialize;

use crate::timeline::text::escaped;

const STYLE: &str = include_str!("view/style.css");
/// What every page uses.
const SHARED: [&str; 4] = [
    include_str!("view/units.js"),
    include_str!("view/dom.js"),
    include_str!("view/theme.js"),
    include_str!("view/address.js"),
];

/// A page: its frame, its own script files in the order in which they run, its title, and what it shows.
pub(crate) fn page(frame: &str, scripts: &[&str], title: &str, shown: &impl Serialize) -> String {
    // Maps with numbers as keys become objects with names; nothing here can fail to be written.
    let data = serde_json::to_string(shown).unwrap_or_default();
    // No text of the data may end the script element around it.
    let data = data.replace('<', "\\u003c");
    let script = script(scripts);
    let title = escaped(title);
    filled(
        frame,
        &[("@TITLE@", &title), ("@STYLE@", STYLE), ("@DATA@", &data), ("@SCRIPT@", &script)],
    )
}

fn script(own: &[&str]) -> String {
    let files = [&SHARED[..], own].concat();
    format!("\"use strict\";\n(() => {{\n{}}})();\n", files.join("\n"))
}

/// The frame with its parts; a part is not searched for further marks.
fn filled(frame: &str, parts: &[(&str, &str)]) -> String {
    let mut page = String::new();
    let mut rest = frame;
    loop {
        let found = parts.iter().filter_map(|(mark, part)| Some((rest.find(mark)?, *mark, *part)));
        let Some((at, mark, part)) = found.min() else { return page + rest };
        page += &rest[..at];
        page += part;
        rest = &rest[at + mark.len()..];
    }
}
