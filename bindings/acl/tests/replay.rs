//! A record of calls and its replay: programs in C against the library, which is built before these tests.

#[path = "support/program.rs"]
mod program;
mod support;

use std::path::Path;

use program::{compile, program, said};
use support::start;

/// The program that makes the calls of a record.
const REPLAY: &str = env!("CARGO_BIN_EXE_pto-acl-replay");

#[test]
fn the_calls_of_a_record_are_made_again_without_the_program() {
    let folder = tempfile::tempdir().expect("a folder for programs");
    let (calls, object) = (program("calls.c", folder.path()), folder.path().join("kernels.so"));
    compile("conformance/object.c", &["-shared", "-fPIC"], &object);
    let record = folder.path().join("record");
    let (out, errors, code) = said(start(&calls).arg(&object).env("PTO_ACL_RECORD", &record));
    assert_eq!((&*out, &*errors, code), ("calls: 1\n", "", Some(0)));
    let text = std::fs::read_to_string(&record).expect("a record");
    let count = text.lines().count() - 1;
    assert!(text.starts_with("pto-acl-calls 1\n") && count > 40, "{text}");
    std::fs::remove_file(&calls).expect("the replay does without the program");
    let again = |record: &Path, variables: &[(&str, &str)]| {
        said(
            start(Path::new("timeout"))
                .arg("60")
                .arg(REPLAY)
                .arg(record)
                .envs(variables.iter().copied()),
        )
    };
    let well = format!("{count} calls, 0 end otherwise\n");
    for variables in [&[][..], &[("PTO_ACL_SEED", "7")], &[("PTO_ACL_SEED", "8")]] {
        let (out, errors, code) = again(&record, variables);
        assert_eq!((&*out, code), (&*well, Some(0)), "{errors}");
    }
    // A call that ends otherwise is reported with its line.
    let (out, _, code) = again(&record, &[("PTO_ACL_FAIL", "aclrtMalloc:1:207001")]);
    assert!(
        out.contains("aclrtMalloc: the record has 0, and it gives 207001: [207001]")
            && code == Some(1),
        "{out}"
    );
    // So is a result that is otherwise.
    let changed = folder.path().join("changed");
    let needle = "\t>";
    let line = text.lines().find(|line| line.contains(needle)).expect("a copy to the host");
    let (head, tail) = line.rsplit_once(':').expect("bytes");
    let other = format!("{head}:{}{}", if tail.starts_with('0') { 'F' } else { '0' }, &tail[1..]);
    std::fs::write(&changed, text.replace(line, &other)).expect("a file");
    let (out, _, code) = again(&changed, &[]);
    assert!(
        out.contains("the 4096 bytes that it copies to the host are not those of the record")
            && code == Some(1),
        "{out}"
    );
    // What no replay can do, and what is no record.
    for (more, why) in [
        ("F0\tF1\t1\tptoAclKernelFromFunction\t0", "the kernel is a function of the program"),
        ("F0\tF1\t1\taclrtIpcOpenEventHandle\t0\thandle=x", "what another process has made"),
        ("F0\tF1\t1\taclrtNoSuch\t0", "the library lacks the function aclrtNoSuch"),
        ("F0\tF1", "the thread is missing"),
    ] {
        std::fs::write(&changed, format!("{text}{more}\n")).expect("a file");
        let (out, errors, code) = again(&changed, &[]);
        assert!(errors.contains(why) && out.is_empty() && code == Some(2), "{more}: {out}{errors}");
    }
    let (_, errors, code) = said(
        start(&program("calls.c", folder.path()))
            .arg(&object)
            .env("PTO_ACL_RECORD", "/no/such/file"),
    );
    assert!(
        errors.contains("there is no record of calls: /no/such/file cannot be written")
            && code == Some(0),
        "{errors}"
    );
}

/// Programs of tiles are launched in a replay as in the program, on memory that lies elsewhere; each result is compared.
#[test]
fn launches_of_tile_kernels_are_made_again() {
    let folder = tempfile::tempdir().expect("a folder for programs");
    let record = folder.path().join("record");
    let tiles = program("tile_calls.c", folder.path());
    let (out, errors, code) = said(start(&tiles).env("PTO_ACL_RECORD", &record));
    assert_eq!((&*out, code), ("done\n", Some(0)), "{errors}");
    let text = std::fs::read_to_string(&record).expect("a record");
    let calls = pto_acl_interface::read(&text).expect("a whole record");
    let copies = calls.iter().filter(|call| !call.writes.is_empty()).count();
    assert_eq!(copies, 6, "each result is in the record");
    for seed in ["1", "7"] {
        let mut command = start(Path::new("timeout"));
        command.arg("60").arg(REPLAY).arg(&record).env("PTO_ACL_SEED", seed);
        let (out, errors, code) = said(&mut command);
        let well = format!("{} calls, 0 end otherwise\n", calls.len());
        assert_eq!((&*out, code), (&*well, Some(0)), "{errors}");
    }
}
