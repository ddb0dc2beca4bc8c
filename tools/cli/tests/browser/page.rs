//! A page of the command in Chromium, with a script after its own that uses it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

use crate::chromium::{self, BrowserWindow};

/// What drivers have in common.
const DRIVER: &str = include_str!("driver.js");

/// A folder, and the pages in it.
pub(crate) struct Pages(TempDir);

impl Pages {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().expect("a temporary folder"))
    }

    pub(crate) fn path(&self, name: &str) -> String {
        self.0.path().join(name).to_str().expect("temporary folders have plain names").to_owned()
    }

    /// A file with a content.
    pub(crate) fn file(&self, name: &str, content: &str) -> String {
        let path = self.path(name);
        fs::write(&path, content).expect("the folder takes it");
        path
    }

    /// The page that a command writes, with a driver after its own script.
    pub(crate) fn driven(&self, command: &[&str], driver: &str) -> PathBuf {
        let page = self.path("page.html");
        pto(&[command, &["-o", &page]].concat());
        let html = fs::read_to_string(&page).expect("the page was written");
        let driver_scripts = format!("<script>{DRIVER}</script><script>{driver}</script></body>");
        let driven = html.replace("</body>", &driver_scripts);
        assert_ne!(driven, html);
        self.file("driven.html", &driven).into()
    }
}

/// No window of Chromium is narrower; a narrower one is a frame in it.
const LEAST_WIDTH: u32 = 500;

/// A page that shows another one in a frame of a width, and takes over its result.
fn framed(page: &Path, width: u32) -> PathBuf {
    let inner = fs::read_to_string(page).expect("the page was written");
    let inner = inner.replace('&', "&amp;").replace('"', "&quot;");
    let frame = format!(
        "<!DOCTYPE html><iframe id=\"frame\" style=\"border:0\" width=\"{width}\" height=\"844\" srcdoc=\"{inner}\"></iframe>\
         <script>const wait = setInterval(() => {{\
           const made = document.getElementById('frame').contentDocument?.getElementById('result');\
           if (made) {{ clearInterval(wait); document.body.append(made); }}\
         }}, 50);</script>"
    );
    let outer = page.with_extension("framed.html");
    fs::write(&outer, frame).expect("the folder takes it");
    outer
}

/// Runs the command; it succeeds.
pub(crate) fn pto(args: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_pto")).args(args).output().expect("pto starts");
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("the command writes UTF-8")
}

/// What the driver of a page wrote down. No page asks anybody for anything.
pub(crate) fn result(page: &Path, window: &BrowserWindow<'_>) -> Value {
    let dom = match window.width {
        LEAST_WIDTH.. => chromium::dom(page, window),
        width => chromium::dom(&framed(page, width), &BrowserWindow::default()),
    };
    let (_, rest) =
        dom.split_once("<pre id=\"result\">").unwrap_or_else(|| panic!("no result in\n{dom}"));
    let (text, _) = rest.split_once("</pre>").expect("the element ends");
    let text = text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&");
    let text = text.replace("&nbsp;", "\u{a0}");
    let value: Value = serde_json::from_str(&text).expect("the driver writes JSON");
    assert_eq!(value["error"], Value::Null, "{value:#}");
    assert_eq!(value["requests"], 0, "the page sends no request");
    value
}

/// A text of a result.
pub(crate) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("{value} is no text"))
}

/// The texts of a list in a result.
pub(crate) fn texts(value: &Value) -> Vec<&str> {
    value.as_array().unwrap_or_else(|| panic!("{value} is no list")).iter().map(text).collect()
}
