//! The pages of `pto view` and `pto graph` in a real browser: headless Chromium paints them, and scripts use them as a person would.
//!
//! Where there is no Chromium, the tests install Debian's package; where that cannot be had, they fail and say so.

mod chromium;
mod graph;
mod page;
mod timeline;
mod traces;
mod two;
mod window;
