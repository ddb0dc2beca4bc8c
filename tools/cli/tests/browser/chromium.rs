//! Headless Chromium: found, or installed.

use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// Names under which Chromium is installed.
const NAMES: &[&str] = &["chromium", "chromium-browser", "google-chrome"];
/// How long a page may take.
const LIMIT: Duration = Duration::from_secs(120);

fn program() -> &'static str {
    static PROGRAM: OnceLock<&'static str> = OnceLock::new();
    PROGRAM.get_or_init(|| found().unwrap_or_else(install))
}

fn found() -> Option<&'static str> {
    NAMES.iter().copied().find(|name| {
        let version = Command::new(name).arg("--version").stderr(Stdio::null()).output();
        version.is_ok_and(|output| output.status.success())
    })
}

fn install() -> &'static str {
    println!("no Chromium: apt-get install chromium");
    let apt = |arguments: &[&str]| {
        let status = Command::new("apt-get")
            .args(arguments)
            .env("DEBIAN_FRONTEND", "noninteractive")
            .status();
        status.is_ok_and(|status| status.success())
    };
    let had = apt(&["update", "-qq"])
        && apt(&["install", "-y", "-qq", "--no-install-recommends", "chromium"]);
    found().filter(|_| had).unwrap_or_else(|| {
        panic!(
            "the page of `pto view` was NOT tested: there is no Chromium, and `apt-get install chromium` does not \
             give one (it needs root and a network). Install chromium, then run this test again."
        )
    })
}

/// The window in which a page is opened.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BrowserWindow<'a> {
    /// How wide it is, in pixels.
    pub(crate) width: u32,
    /// Whether the system prefers dark colours.
    pub(crate) dark: bool,
    /// The fragment of the address, with `#`; or nothing.
    pub(crate) fragment: &'a str,
}

impl Default for BrowserWindow<'_> {
    fn default() -> Self {
        Self { width: 1400, dark: false, fragment: "" }
    }
}

/// The document of a page after its scripts have run.
pub(crate) fn dom(page: &Path, window: &BrowserWindow<'_>) -> String {
    let options = ["--virtual-time-budget=4000".to_owned(), "--dump-dom".to_owned()];
    let output = run(page, window, &options);
    String::from_utf8(output.stdout).expect("a document is UTF-8")
}

/// A picture of a page.
pub(crate) fn screenshot(page: &Path, to: &Path) {
    run(page, &BrowserWindow::default(), &[format!("--screenshot={}", to.display())]);
}

fn run(page: &Path, window: &BrowserWindow<'_>, options: &[String]) -> Output {
    let profile = tempfile::tempdir().expect("a temporary folder");
    let mut command = Command::new(program());
    command
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"])
        .args(["--disable-background-networking", "--disable-component-update", "--disable-sync"])
        .args(["--hide-scrollbars", "--force-device-scale-factor=1"])
        .arg(format!("--window-size={},900", window.width))
        .args(window.dark.then_some("--blink-settings=preferredColorScheme=0"))
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .args(options)
        .arg(format!("file://{}{}", page.display(), window.fragment))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().expect("Chromium starts");
    // Its output can be larger than a pipe, so it is read while the clock runs.
    let (id, start) = (child.id(), Instant::now());
    let stdout = child.stdout.take().map(read);
    let stderr = child.stderr.take().map(read);
    let status = loop {
        match child.try_wait().expect("Chromium can be waited for") {
            Some(status) => break status,
            None if start.elapsed() < LIMIT => std::thread::sleep(Duration::from_millis(20)),
            None => {
                child.kill().and_then(|()| child.wait()).expect("Chromium can be ended");
                panic!("Chromium (process {id}) took longer than {LIMIT:?} for {}", page.display());
            }
        }
    };
    let text = |reader: Option<std::thread::JoinHandle<Vec<u8>>>| {
        reader.map(|reader| reader.join().expect("a reader ends")).unwrap_or_default()
    };
    let output = Output { status, stdout: text(stdout), stderr: text(stderr) };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output
}

fn read(mut from: impl std::io::Read + Send + 'static) -> std::thread::JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        from.read_to_end(&mut bytes).expect("a pipe can be read");
        bytes
    })
}
