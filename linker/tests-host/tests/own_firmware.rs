//! A firmware crate of a user's own builds outside this workspace, against our crates, and runs.

use std::path::{Path, PathBuf};
use std::{fs, process};

use pto_aicore_kernels::func;
use pto_linker_tests::graphs::Shape;
use pto_linker_tests::images::{build_in, identity, workspace};
use pto_linker_tests::session::Tables;
use pto_linker_tests::{Session, Setup};

/// A folder of this process, removed on drop.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).unwrap_or_default();
    }
}

fn manifest(workspace: &Path) -> String {
    let path = |crate_folder: &str| workspace.join(crate_folder).display().to_string();
    format!(
        "[package]\nname = \"my-firmware\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n\
         [dependencies]\npto-abi = {{ path = {:?} }}\npto-virt-platform = {{ path = {:?} }}\n\n\
         [profile.firmware]\ninherits = \"release\"\nopt-level = \"s\"\nlto = \"fat\"\n\n[workspace]\n",
        path("abi"),
        path("linker/virt/platform"),
    )
}

#[test]
fn it_builds_and_runs_outside_the_workspace() {
    let ours = workspace();
    let folder = Folder(std::env::temp_dir().join(format!("pto-own-firmware-{}", process::id())));
    fs::create_dir_all(folder.0.join("src")).unwrap();
    fs::write(folder.0.join("Cargo.toml"), manifest(&ours)).unwrap();
    // The versions that are here already: no registry is asked.
    fs::copy(ours.join("Cargo.lock"), folder.0.join("Cargo.lock")).unwrap();
    for file in ["build.rs", "src/main.rs", "src/builders.rs"] {
        fs::copy(ours.join("linker/own-firmware").join(file), folder.0.join(file)).unwrap();
    }
    let target = folder.0.join("target").display().to_string();
    let image = build_in(&folder.0, "my-firmware", &["--offline", "--target-dir", &target]);
    let builders = identity(&fs::read(&image).unwrap()).unwrap().builders;
    assert!(builders.contains(&"diamond".to_owned()), "{builders:?}");
    let mut session = Session::start_image(image, 5);
    let setup = Setup { func_id: func::EMPTY_AIV.0, tables: Tables::None, ..Setup::default() };
    let ended = session.run_named("diamond", Shape::Chain(1), &setup);
    let ended = ended.unwrap_or_else(|error| panic!("{error}"));
    assert_eq!((ended.fault, ended.completed), (None, 4));
}
