//! Configurations of `aclInit`.

#[path = "support/program.rs"]
mod program;
mod support;

use program::{program, said};
use support::start;

#[test]
fn a_configuration_sets_the_default_device_and_the_scope_of_messages() {
    let folder = tempfile::tempdir().expect("a folder for programs");
    let (program, file) = (program("config.c", folder.path()), folder.path().join("acl.json"));
    for (text, code, device, messages, said_of_it) in [
        ("{}", "0", "-1", "0", "ok"),
        (r#"{"dump": {"dump_path": "x"}, "err_msg_mode": 0}"#, "0", "-1", "0", "ok"),
        (r#"{"defaultDevice": {"default_device": "1"}}"#, "0", "1", "0", "ok"),
        (r#"{"defaultDevice": {"default_device": 0}, "err_msg_mode": "1"}"#, "0", "0", "1", "ok"),
        (r#"{"defaultDevice": {"default_device": 99}}"#, "107001", "-1", "0", "99"),
        (r#"{"defaultDevice": {"default_device": "x"}}"#, "100006", "-1", "0", "write a number"),
        (r#"{"err_msg_mode": 2}"#, "100006", "-1", "0", "write 0 for messages of the thread"),
        ("{", "100006", "-1", "0", "no JSON object"),
        ("[]", "100006", "-1", "0", "no JSON object"),
    ] {
        std::fs::write(&file, text).expect("a file");
        let mut command = start(&program);
        command.arg(&file).args([code, device, messages]).env("PTO_ACL_DEVICES", "2");
        let (out, errors, ended) = said(&mut command);
        assert!(out.starts_with("config: ") && ended == Some(0), "{text}: {out}{errors}");
        assert!(out.contains(said_of_it), "{text}: {out}");
    }
}
