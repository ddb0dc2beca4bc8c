//! The library of entry points and its plug-ins: programs in C, as in `programs.rs`.

#[path = "support/program.rs"]
mod program;
mod support;

use std::path::{Path, PathBuf};
use std::process::Command;

use program::{compile, program, said};
use pto_acl_interface::{ArgumentRule, CHECKED, Check};
use pto_host::workloads::program::Program;
use pto_host::workloads::tree::Workload;
use support::{library_folder, start};

#[test]
fn the_vendors_library_has_a_name_space_of_its_own() {
    let folder = tempfile::tempdir().expect("a folder for programs");
    let asks = program("asks.c", folder.path());
    let home = folder.path().join("cann");
    std::fs::create_dir_all(home.join("lib64")).expect("a folder");
    let file = home.join("lib64/libascendcl.so");
    // With the name that ours has, in the file and within.
    compile("vendor.c", &["-shared", "-fPIC", "-Wl,-soname,libascendcl.so"], &file);
    let ask = |home: &Path| {
        let mut command = start(&asks);
        said(command.envs([("PTO_ACL_DEVICE", "a2a3")]).env("ASCEND_HOME_PATH", home))
    };
    let (out, errors, code) = ask(&home);
    // Its own call reaches its own function, although the process had ours first.
    assert_eq!((&*out, code), ("0 0 4711 the vendor's\n207000 0.0\nnone\n", Some(0)), "{errors}");
    assert!(
        errors.contains("cann/lib64/libascendcl.so lacks")
            && errors.contains("which return 207000: "),
        "{errors}"
    );
    // What cannot be: no absolute path, no library, ours.
    for (home, why) in [
        (PathBuf::from("cann"), "set ASCEND_HOME_PATH to the absolute path"),
        (folder.path().to_path_buf(), "no library of the vendor's can be loaded"),
        (copy_of_ours(folder.path()), "is a copy of this library"),
    ] {
        let (out, errors, code) = ask(&home);
        assert!(out.starts_with("507000 507000 0 none\n507000 0.0\n") && code == Some(0), "{out}");
        assert!(errors.contains(why) && out.contains(why), "{out}{errors}");
    }
}

/// A folder of the vendor's that contains our library.
fn copy_of_ours(folder: &Path) -> PathBuf {
    let home = folder.join("copy");
    std::fs::create_dir_all(home.join("lib64")).expect("a folder");
    std::fs::copy(library_folder().join("libascendcl.so"), home.join("lib64/libascendcl.so"))
        .expect("a file");
    home
}

/// Kernels in tile IR never reach the vendor's library; everything else does.
#[test]
fn tile_code_is_refused_before_the_vendors_library() {
    let folder = tempfile::tempdir().expect("a folder for programs");
    let program = program("tile_code.c", folder.path());
    let home = folder.path().join("cann");
    std::fs::create_dir_all(home.join("lib64")).expect("a folder");
    compile("vendor.c", &["-shared", "-fPIC"], &home.join("lib64/libacl_rt.so"));
    let [text, model, other, absent] =
        ["k.txt", "k.ptop", "k.json", "absent"].map(|name| folder.path().join(name));
    std::fs::write(&text, "# One.\nkernel k(x: inout f32[1, 8]) {\n}\n").expect("a file");
    std::fs::write(&model, "PTOPROG\n").expect("a file");
    std::fs::write(&other, "{}").expect("a file");
    let mut command = start(&program);
    command.args([&text, &model, &other, &absent]).env("PTO_ACL_DEVICE", "a2a3");
    let (out, errors, code) = said(command.env("ASCEND_HOME_PATH", &home));
    let lines: Vec<&str> = out.lines().collect();
    assert_eq!((lines.len(), code), (6, Some(0)), "{out}{errors}");
    let refused = |line: &str, call: &str, form: &str| {
        let begin = format!(
            "207000 [207000] {call}: the code is {form}, which the library of the device a2a3 cannot load"
        );
        assert!(
            line.starts_with(&begin) && line.contains("pto program run FILE --device a2a3"),
            "{line}"
        );
    };
    refused(lines[0], "aclrtBinaryLoadFromFile", "a text of kernels in tile IR");
    refused(lines[1], "aclrtBinaryLoadFromFile", "a program file of this project");
    assert_eq!(lines[2..4], ["0 none"; 2], "{out}");
    refused(lines[4], "aclrtBinaryLoadFromData", "a text of kernels in tile IR");
    // A function that the vendor's library lacks is reported when it is loaded.
    assert_eq!(lines[5], "207000 none", "{out}");
}

#[test]
fn a_plug_in_that_cannot_work_is_refused_and_named() {
    let folder = tempfile::tempdir().expect("a folder for programs");
    let asks = program("asks.c", folder.path());
    let own = folder.path().join("libascendcl.so");
    std::fs::copy(library_folder().join("libascendcl.so"), &own).expect("a file");
    compile("plugin.c", &["-shared", "-fPIC"], &folder.path().join("libpto_acl_undefined.so"));
    compile("vendor.c", &["-shared", "-fPIC"], &folder.path().join("libpto_acl_foreign.so"));
    let whole = std::fs::read(folder.path().join("libpto_acl_foreign.so")).expect("a file");
    let cut = folder.path().join("libpto_acl_cut.so");
    std::fs::write(cut, &whole[..9000]).expect("room for a file");
    for (device, why) in [
        ("cut", "libpto_acl_cut.so is no "),
        ("undefined", "undefined symbol: a_function_that_is_not_there"),
        ("foreign", "has version none of the table of functions"),
        ("absent", "libpto_acl_absent.so"),
        ("../up", "is no name of a device"),
    ] {
        let mut command = Command::new(&asks);
        command.env("LD_LIBRARY_PATH", folder.path()).env("PTO_ACL_DEVICE", device);
        let (out, errors, code) = said(&mut command);
        assert!(
            out.starts_with("507000 507000 0 none\n507000 0.0\n") && code == Some(0),
            "{device}: {out}"
        );
        assert!(errors.contains(why) && out.contains(why), "{device}: {out}{errors}");
    }
}

/// What the functions of a plug-in return that does nothing else.
const REACHED: i32 = 4711;

/// A library whose functions return `REACHED`, as a plug-in, and as the vendor's. The lines that are reported to the plug-in go to its standard error.
fn libraries_that_say_that_they_were_reached(folder: &Path) {
    let own = ["aclGetRecentErrMsg", "aclrtGetLastError", "aclrtPeekAtLastError"];
    let functions = pto_acl_interface::all().chain(pto_acl_interface::runtime());
    let functions = functions.filter(|one| !own.contains(&one.name));
    let (of_plugin, of_both): (Vec<_>, Vec<_>) =
        functions.partition(|one| one.name.starts_with("ptoAcl"));
    let body = |one: &pto_acl_interface::AclFunction| {
        format!("int {}() {{ return {REACHED}; }}\n", one.name)
    };
    let mut source: String = of_both.iter().map(body).collect();
    source += "const char *aclGetRecentErrMsg() { static int told; return told++ ? 0 : \"older\"; }
        int aclrtGetLastError() { return 0; }
        int aclrtPeekAtLastError() { return 0; }\n";
    let vendors = source.clone();
    source.extend(of_plugin.iter().map(body));
    source += &format!(
        "#include <stdio.h>
        unsigned ptoAclPlugin() {{ return {}; }}
        int ptoAclRefused(const char *call, int code, const char *text) {{
            fprintf(stderr, \"%s %d %s\\n\", call, code, text);
            return code;
        }}\n",
        pto_acl_interface::PLUGIN_VERSION
    );
    std::fs::create_dir_all(folder.join("lib64")).expect("a folder");
    for (source, file) in [(source, "libpto_acl_reached.so"), (vendors, "lib64/libacl_rt.so")] {
        let text = folder.join("reached.c");
        std::fs::write(&text, source).expect("a file");
        let mut command = Command::new("cc");
        command.args(["-shared", "-fPIC", "-w", "-o"]).arg(folder.join(file));
        let (out, errors, code) = said(command.arg(text));
        assert_eq!(code, Some(0), "{out}{errors}");
    }
}

/// A word that a rule accepts, and one that it does not, as the program takes them. The upper half of a narrow one is dirt.
fn words_of(rule: ArgumentRule) -> [String; 2] {
    let dirt = 0xDEAD_BEEF_0000_0000_u64;
    match rule {
        ArgumentRule::Set => ["p".to_owned(), "0".to_owned()],
        ArgumentRule::Positive => ["1".to_owned(), "0".to_owned()],
        ArgumentRule::To(most) => {
            [u64::from(most), u64::from(most) + 1].map(|word| format!("{:x}", dirt | word))
        }
        ArgumentRule::Limit => [0xFFFF_FFFF, 0xFFFF_FFFE].map(|word| format!("{:x}", dirt | word)),
    }
}

#[test]
fn arguments_that_cannot_be_reach_no_plug_in() {
    let folder = tempfile::tempdir().expect("a folder for programs");
    let above = folder.path().join("above");
    let libraries = library_folder();
    compile("above.c", &["-L", &libraries.to_string_lossy(), "-lascendcl", "-ldl"], &above);
    let own = folder.path().join("libascendcl.so");
    std::fs::copy(library_folder().join("libascendcl.so"), own).expect("a file");
    libraries_that_say_that_they_were_reached(folder.path());
    let checks: Vec<Check> = pto_acl_interface::checks().collect();
    let mut lines = String::new();
    for broken in checks.iter().map(Some).chain([None]) {
        for function in checks.iter().filter(|check| broken.is_none_or(|one| one == *check)) {
            let mut words = [const { String::new() }; CHECKED].map(|_| "p".to_owned());
            for check in checks.iter().filter(|check| check.function == function.function) {
                words[check.index] =
                    words_of(check.rule)[usize::from(broken == Some(check))].clone();
            }
            let code = match broken {
                None => REACHED,
                Some(Check { rule: ArgumentRule::Limit, .. }) => 107_000,
                Some(_) => 100_000,
            };
            lines += &format!("{} {code} {}\n", function.function, words.join(" "));
        }
    }
    // The last line is the report of the library.
    lines +=
        "aclrtSynchronizeDeviceWithTimeout 107000 0 0 0 0 0 0\naclrtMalloc 100000 0 1 0 0 0 0\n";
    let ask = |lines: &str, device: &str| {
        let file = folder.path().join("lines");
        std::fs::write(&file, lines).expect("a file");
        let mut command = Command::new(&above);
        command.arg(&file).env("LD_LIBRARY_PATH", folder.path()).env("PTO_ACL_DEVICE", device);
        let (out, errors, code) = said(command.env("ASCEND_HOME_PATH", folder.path()));
        let count = lines.lines().count();
        assert!(
            out.starts_with(&format!("{count} calls, 0 wrong\n")) && code == Some(0),
            "{out}{errors}"
        );
        (out, errors)
    };
    // Each error is reported to the plug-in, which keeps it: the library has no errors of its own.
    let (out, errors) = ask(&lines, "reached");
    assert_eq!(errors.lines().count(), checks.len() + 2, "{errors}");
    assert!(out.ends_with("\nlast error 0, then 0\nolder\nnone\n"), "{out}");
    // The vendor's library gets no reports. The newest message comes first; what that library had comes last.
    let of_vendor = lines.lines().filter(|line| !line.starts_with("ptoAcl"));
    let of_vendor: String = of_vendor.map(|line| format!("{line}\n")).collect();
    let (out, errors) = ask(&of_vendor, "a2a3");
    let messages = [
        "last error 107000, then 0",
        "[100000] aclrtMalloc: address is null; pass a pointer or a handle",
        "[107000] aclrtSynchronizeDeviceWithTimeout: a limit of 0 ms is none; pass -1 for no limit, or 1 and more",
    ];
    assert!(out.contains(&messages.join("\n")) && out.ends_with("\nnone\n"), "{out}{errors}");
}

#[test]
fn a_vendors_library_that_would_call_ours_is_refused() {
    let folder = tempfile::tempdir().expect("a folder for programs");
    let ours = folder.path().join("ours");
    std::fs::create_dir_all(&ours).expect("a folder");
    for name in ["libascendcl.so", "libruntime.so"] {
        std::os::unix::fs::symlink(library_folder().join("libascendcl.so"), ours.join(name))
            .expect("a link");
    }
    let from_ours = ["-L", &ours.to_string_lossy(), "-Wl,--no-as-needed"];
    let asks = folder.path().join("asks");
    compile("asks.c", &[&from_ours[..], &["-lascendcl", "-lruntime"]].concat(), &asks);
    let home = folder.path().join("cann");
    std::fs::create_dir_all(home.join("lib64")).expect("a folder");
    let vendors = |options: &[&str]| {
        let file = home.join("lib64/libacl_rt.so");
        compile("vendor.c", &[&["-shared", "-fPIC"], options].concat(), &file);
        let mut command = Command::new(&asks);
        command.env("LD_LIBRARY_PATH", &ours).env("PTO_ACL_DEVICE", "a2a3");
        said(command.env("ASCEND_HOME_PATH", &home))
    };
    // It needs `libruntime.so`, and the process has ours under this name.
    let (out, errors, code) = vendors(&[&from_ours[..], &["-lruntime"]].concat());
    let why = "needs a library whose name this library has been loaded by, so that its ";
    assert!(errors.contains(why) && out.contains(why), "{out}{errors}");
    assert!(out.starts_with("507000 507000 0 none\n") && code == Some(0), "{out}");
    // One that needs nothing of that name is taken.
    let (out, errors, _) = vendors(&[]);
    assert!(out.starts_with("0 0 4711 the vendor's\n"), "{out}{errors}");
}

#[test]
fn a_plug_in_calls_nothing_above_it_and_the_entry_points_have_no_state_of_threads() {
    let folder = library_folder();
    let undefined = |file: &str| {
        let (out, errors, code) =
            said(Command::new("nm").args(["-D", "--undefined-only"]).arg(folder.join(file)));
        assert_eq!(code, Some(0), "{errors}");
        out
    };
    for line in undefined("libpto_acl.so").lines() {
        let name = line.rsplit(' ').next().unwrap_or_default();
        assert!(
            !name.starts_with("acl") && !name.starts_with("rt"),
            "the plug-in needs {name} from above"
        );
    }
    // A program that closes the library still has what the end of its threads calls.
    let dynamic = Command::new("readelf").arg("-d").arg(folder.join("libascendcl.so")).output();
    let dynamic = String::from_utf8_lossy(&dynamic.expect("binutils").stdout).into_owned();
    assert!(dynamic.contains("NODELETE"), "{dynamic}");
    // The library of entry points knows no device: it is small.
    let bytes = std::fs::metadata(folder.join("libascendcl.so")).expect("a file").len();
    let plugin = std::fs::metadata(folder.join("libpto_acl.so")).expect("a file").len();
    assert!(bytes * 2 < plugin, "{bytes} and {plugin}");
}

#[test]
fn functions_of_libruntime_work_or_are_refused_by_name() {
    let folder = tempfile::tempdir().expect("a folder for programs");
    let asks = program("asks.c", folder.path());
    let (out, errors, code) = said(start(&asks).arg("runtime"));
    assert!(out.starts_with("0 0 8 Ascend910B1\n0 0 107017 207000\n"), "{out}{errors}");
    assert!(
        out.contains("rtRegisterAllKernel: rtRegisterAllKernel starts images") && code == Some(0),
        "{out}"
    );
}

/// A model that adds its tensor to itself.
const IN_PLACE: &str = "workload doubled {
  schedule round_robin workers 4 window 8192 stall
  tensor X : f32[4, 8, 64]
  kernel double(x: inout f32[8, 64]) {
    %0 = load x : f32[8, 64]
    %1 = add %0, %0 : f32[8, 64]
    store x, %1
  }
  do parallel i in dyn n default 4 {
    double[i](x = X[i])
  }
}
";

#[test]
fn a_tensor_that_a_model_updates_in_place_takes_part_in_races() {
    let folder = tempfile::tempdir().expect("a folder for programs");
    let (program, model) =
        (program("in_place.c", folder.path()), folder.path().join("doubled.ptop"));
    let checked = Workload::parse(IN_PLACE).expect("a workload").check().expect("a sound one");
    std::fs::write(&model, Program::of_workload(&checked).expect("a program").to_bytes())
        .expect("a file");
    let check = |way: &str| {
        said(start(&program).arg(&model).args(["8192", way]).env("PTO_ACL_CHECK", "report"))
    };
    let (out, errors, _) = check("race");
    assert!(
        out == "0\n"
            && errors.contains("ACL-RACE-01: aclrtMemcpyAsync")
            && errors.contains("written"),
        "{out}{errors}"
    );
    let (out, errors, _) = check("wait");
    assert_eq!((&*out, &*errors), ("0\n", ""));
}
