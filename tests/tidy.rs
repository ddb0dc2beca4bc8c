//! Style as a test: the rules of `pto_tests::tidy`, applied to this tree.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use cargo_metadata::{CargoOpt, DependencyKind, MetadataCommand, NodeDep, Package, Target};
use pto_tests::tidy::arrows::{self, Arrow, Use};
use pto_tests::tidy::dependencies::{self, Dependency};
use pto_tests::tidy::source::{files, root};
use pto_tests::tidy::{
    Finding, circles, decisions, features, figures, links, partners, python, recipes, rooms, rules,
};

fn assert_tidy(findings: &[Finding]) {
    let lines: Vec<_> = findings.iter().map(|finding| format!("  {finding}")).collect();
    assert!(findings.is_empty(), "{} findings:\n{}", findings.len(), lines.join("\n"));
}

#[test]
fn every_source_file_keeps_every_rule() {
    let sources = files(&root(), "rs");
    assert!(sources.len() > 50, "the tree was not found: {} files", sources.len());
    let mut findings = Vec::new();
    for (name, rule) in rules::ALL {
        let found = sources.iter().flat_map(rule);
        findings.extend(found.map(|finding| {
            let message = format!("{} ({name})", finding.message);
            Finding { message, ..finding }
        }));
    }
    assert_tidy(&findings);
}

#[test]
fn every_partner_of_an_ordering_exists() {
    let sources = files(&root(), "rs");
    let mut functions = partners::Functions::of(&sources);
    files(&root(), "h").iter().for_each(|header| functions.add_header(header));
    let findings: Vec<_> =
        sources.iter().flat_map(|source| partners::missing(source, &functions)).collect();
    assert_tidy(&findings);
}

#[test]
fn every_link_in_the_documentation_leads_somewhere() {
    let root = root();
    let pages = files(&root, "md");
    let exists = |path: &str| root.join(path).exists();
    let findings: Vec<_> = pages.iter().flat_map(|page| links::broken(page, exists)).collect();
    assert_tidy(&findings);
    let findings: Vec<_> = pages.iter().flat_map(links::unreplaced).collect();
    assert_tidy(&findings);
    assert_tidy(&links::without_part(&pages));
}

#[test]
fn every_page_is_two_links_from_the_readme() {
    let mut pages = files(&root(), "md");
    pages.retain(|page| page.path.starts_with("docs/") || page.path == "README.md");
    assert!(pages.len() > 100, "the pages were not found: {} pages", pages.len());
    assert_tidy(&links::out_of_reach(&pages, "README.md", 2));
}

/// Pages that summarise measurements.
const SUMMARIES: &[&str] = &["README.md", "docs/explanation/performance.md"];

#[test]
fn every_figure_of_a_summary_is_one_of_a_measurement() {
    let pages = files(&root(), "md");
    let measurements: Vec<_> =
        pages.iter().filter(|page| page.path.starts_with("docs/measurements/")).cloned().collect();
    let summaries: Vec<_> =
        pages.iter().filter(|page| SUMMARIES.contains(&page.path.as_str())).collect();
    assert_eq!((summaries.len(), measurements.len() > 10), (SUMMARIES.len(), true));
    let findings: Vec<_> =
        summaries.iter().flat_map(|page| figures::unmeasured(page, &measurements)).collect();
    assert_tidy(&findings);
}

#[test]
fn every_decision_binds_code_that_exists() {
    let root = root();
    let exists = |path: &str| root.join(path).exists();
    let pages = files(&root, "md");
    let pages: Vec<_> = pages.iter().filter(|page| decisions::is_page(&page.path)).collect();
    assert!(pages.len() > 30, "the decisions were not found: {} pages", pages.len());
    let mut findings: Vec<_> =
        pages.iter().flat_map(|page| decisions::incomplete(page, exists)).collect();
    for extension in ["rs", "toml"] {
        let sources = files(&root, extension);
        findings.extend(sources.iter().flat_map(|source| decisions::unknown(source, exists)));
    }
    assert_tidy(&findings);
}

#[test]
fn every_module_with_parts_is_the_first_file_of_its_folder() {
    let sources = files(&root(), "rs");
    assert_tidy(&rooms::beside_their_folder(sources.iter().map(|source| source.path.as_str())));
}

const LISTS_OF_EXAMPLES: &[&str] = &["examples/src/lib.rs"];
const LISTS_OF_KERNELS: &[&str] = &["aicore-kernels/src/library/table.rs"];

#[test]
fn an_example_or_a_kernel_is_one_row_of_one_table() {
    let sources = files(&root(), "rs");
    let text_of = |path: &str| {
        let table = sources.iter().find(|source| source.path == path);
        table.unwrap_or_else(|| panic!("{path} is gone")).text.as_str()
    };
    let examples = recipes::examples(text_of(LISTS_OF_EXAMPLES[0]));
    let kernels = recipes::kernels(text_of(LISTS_OF_KERNELS[0]));
    assert!(examples.len() >= 9 && kernels.len() >= 40, "{examples:?} {kernels:?}");
    for example in &examples {
        let job = format!("examples/src/{example}/job.rs");
        assert!(text_of(&job).contains("fn description(&self)"), "{job} describes the example");
    }
    let mut findings = recipes::second_tables(&examples, &sources, LISTS_OF_EXAMPLES);
    findings.extend(recipes::second_tables(&kernels, &sources, LISTS_OF_KERNELS));
    assert_tidy(&findings);
}

#[test]
fn every_folder_has_the_name_of_its_crate() {
    let root = root();
    let metadata = MetadataCommand::new()
        .manifest_path(root.join("Cargo.toml"))
        .no_deps()
        .exec()
        .expect("cargo metadata reads the workspace");
    let mut findings = Vec::new();
    for package in metadata.workspace_packages() {
        let folder = package.manifest_path.parent().expect("a manifest stands in a folder");
        let folder = folder.strip_prefix(&root).expect("below the workspace's folder");
        if !rooms::is_called_like(folder.as_str(), &package.name) {
            let message = format!("it holds {}: call both alike", package.name);
            findings.push(Finding { location: folder.to_string(), message });
        }
    }
    assert_tidy(&findings);
}

#[test]
fn what_comes_from_others_may_be_used() {
    let metadata = MetadataCommand::new()
        .manifest_path(root().join("Cargo.toml"))
        .features(CargoOpt::AllFeatures)
        .exec()
        .expect("cargo metadata reads the workspace and what it needs");
    let edges =
        metadata.resolve.iter().flat_map(|resolve| &resolve.nodes).flat_map(|node| &node.deps);
    let is_of_program = |edge: &&NodeDep| {
        edge.dep_kinds.iter().any(|kind| kind.kind != DependencyKind::Development)
    };
    let linked: BTreeSet<_> = edges.filter(is_of_program).map(|edge| &edge.pkg).collect();
    let nodes = metadata.resolve.iter().flat_map(|resolve| &resolve.nodes);
    let mut needed_by = BTreeMap::<_, BTreeSet<String>>::new();
    for (node, dep) in nodes.flat_map(|node| node.deps.iter().map(move |dep| (node, dep))) {
        needed_by.entry(&dep.pkg).or_default().insert(metadata[&node.id].name.to_string());
    }
    let dependency = |package: &Package| Dependency {
        needed_by: needed_by.get(&package.id).cloned().unwrap_or_default(),
        is_linked: linked.contains(&package.id),
        name: package.name.to_string(),
        version: package.version.to_string(),
        licence: package.license.clone(),
        source: package.source.as_ref().map(|source| source.repr.clone()),
    };
    let all: Vec<_> = metadata.packages.iter().map(dependency).collect();
    assert!(all.len() > 100, "the graph was not read: {} crates", all.len());
    assert_tidy(&dependencies::unwelcome(&all));
}

#[test]
fn the_python_package_is_built_from_what_the_tests_have_compiled() {
    let tree = |packages: &[&str]| {
        let mut cargo = Command::new(env!("CARGO"));
        let output = cargo.args(features::TREE).args(packages).current_dir(root()).output();
        let output = output.expect("cargo can be started");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{cargo:?}: {}\n{errors}", output.status);
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let workspace = tree(&["--workspace", "--edges", "normal,dev"]);
    let alone = tree(&["--package", "pto-python", "--edges", "normal"]);
    assert!(alone.lines().count() > 30 && workspace.contains("pto-tests"), "{alone}\n{workspace}");
    assert_tidy(&features::apart("pto-python", &alone, &workspace));
}

#[test]
fn every_arrow_between_crates_points_the_right_way() {
    let metadata = MetadataCommand::new()
        .manifest_path(root().join("Cargo.toml"))
        .no_deps()
        .exec()
        .expect("cargo metadata reads the workspace");
    let packages = metadata.workspace_packages();
    let ours: Vec<String> = packages.iter().map(|package| package.name.to_string()).collect();
    assert!(ours.len() >= 6, "{ours:?}");
    let arrows: Vec<Arrow> = packages.iter().flat_map(|package| arrows_of(package)).collect();
    assert_tidy(&arrows::wrong(&ours, &arrows));
}

#[test]
fn every_arrow_between_rooms_leads_down() {
    let root = root();
    let metadata = MetadataCommand::new()
        .manifest_path(root.join("Cargo.toml"))
        .no_deps()
        .exec()
        .expect("cargo metadata reads the workspace");
    let room = |package: &Package| {
        let folder = package.manifest_path.parent().expect("a manifest stands in a folder");
        rooms::room_of(folder.strip_prefix(&root).expect("below the workspace's folder").as_str())
    };
    let packages = metadata.workspace_packages();
    let room_of: BTreeMap<_, _> =
        packages.iter().map(|package| (package.name.to_string(), room(package))).collect();
    let is_shipped = |arrow: &Arrow| matches!(arrow.used_by, Use::Product | Use::Optional);
    let arrows = packages.iter().flat_map(|package| arrows_of(package)).filter(is_shipped);
    let between = arrows
        .filter_map(|arrow| Some((room_of[&arrow.from].clone(), room_of.get(&arrow.to)?.clone())));
    let between: BTreeSet<_> = between.filter(|(from, to)| from != to).collect();
    assert!(between.len() > 15, "the arrows were not found: {between:?}");
    assert_tidy(&rooms::arrows_that_lead_up(&between));
}

#[test]
fn no_files_of_a_crate_need_each_other() {
    let circles = |path: &str| {
        let found = circles::of_crate(path, read).expect("every file can be read");
        found.iter().map(circles::Circle::finding).collect()
    };
    assert_tidy(&of_each_crate(circles));
}

#[test]
fn no_modules_of_python_need_each_other() {
    let folder = root().join("bindings/python");
    let sources = ["py", "pyi"].into_iter().flat_map(|extension| files(&folder, extension));
    let modules: Vec<_> = sources
        .map(|source| (source.path, source.text))
        .filter(|(path, _)| !path.starts_with("tests/") && !path.starts_with("benches/"))
        .collect();
    assert!(modules.len() > 80, "the packages were not found: {} modules", modules.len());
    assert_tidy(&python::circles(&modules));
}

fn read(path: &str) -> Option<String> {
    std::fs::read_to_string(root().join(path)).ok()
}

/// What `rule` finds in each crate that is shipped, given the crate's root.
/// Tests and benches may be arranged as they like: nothing is built on them.
fn of_each_crate(rule: impl Fn(&str) -> Vec<Finding>) -> Vec<Finding> {
    let root = root();
    let metadata = MetadataCommand::new()
        .manifest_path(root.join("Cargo.toml"))
        .no_deps()
        .exec()
        .expect("cargo metadata reads the workspace");
    let packages = metadata.workspace_packages();
    let targets = packages.iter().flat_map(|package| &package.targets);
    let is_shipped =
        |target: &&Target| !target.is_custom_build() && !target.is_test() && !target.is_bench();
    let roots: Vec<_> = targets.filter(is_shipped).map(|target| &target.src_path).collect();
    assert!(roots.len() > 30, "the workspace was not found: {} crates", roots.len());
    let below = |path: &&cargo_metadata::camino::Utf8PathBuf| {
        path.strip_prefix(&root).expect("below the workspace's folder").to_string()
    };
    roots.iter().map(below).flat_map(|path| rule(&path)).collect()
}

fn arrows_of(package: &Package) -> Vec<Arrow> {
    let arrow = |dependency: &cargo_metadata::Dependency| {
        let checker = dependency.target.as_ref().is_some_and(|target| {
            let target = target.to_string();
            target.contains("loom") || target.contains("shuttle")
        });
        let used_by = match dependency.kind {
            DependencyKind::Development => Use::Test,
            _ if checker => Use::ModelChecker,
            _ if dependency.optional => Use::Optional,
            _ => Use::Product,
        };
        Arrow { from: package.name.to_string(), to: dependency.name.clone(), used_by }
    };
    package.dependencies.iter().map(arrow).collect()
}
