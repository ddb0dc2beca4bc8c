//! The check itself: takes a program apart, lets the builder derive its edges, and looks at all of it.
//!
//! Why it is so: `docs/decisions/program-check.md`.

use std::borrow::Cow;

use serde::Serialize;

use crate::derive::derive;
use crate::diagnostics;
use crate::finding::{Finding, Kind};
use crate::graph::Graph;
use crate::layout::{Layout, take_apart};
use crate::memory_map::Addresses;
use crate::program::Program;
use crate::races::{Races, races};
use crate::rig::{Cores, Rings};
use crate::rings::{self, RingReport, Used};
use crate::signatures::Signatures;
use crate::touched::touched;

/// What a program is checked against.
#[derive(Clone, Debug)]
pub struct Options {
    /// The rings that a run would have.
    pub rings: Rings,
    /// The cores that it would have.
    pub cores: Cores,
    /// The kernels that tasks may name; `None`: they are not looked at.
    pub kernels: Option<Signatures>,
}

/// What came of a check.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The program's name.
    pub name: String,
    /// The runtime variant that it is for.
    pub variant: &'static str,
    /// Tasks that it submits, those of replays included.
    pub tasks: usize,
    /// Kernels of these tasks: as many as its chain has, or one.
    pub kernels: usize,
    /// Edges that the program states, and those that are derived.
    pub stated_edges: usize,
    /// See `stated_edges`.
    pub derived_edges: usize,
    /// Accesses to tensors, and how many tensors and different parts of them there are.
    pub accesses: usize,
    /// See `accesses`.
    pub tensors: usize,
    /// See `accesses`.
    pub parts: usize,
    /// Comparisons of parts, and questions for a way between two nodes, that the search for races took.
    pub compared: u64,
    /// See `compared`.
    pub asked: u64,
    /// What is wrong.
    pub findings: Vec<Finding>,
    /// What looks wrong.
    pub warnings: Vec<Finding>,
    /// Races beyond those that `findings` tells.
    pub more_races: usize,
    /// What was not looked at, and why.
    pub notes: Vec<String>,
    /// The rings of a streaming program.
    pub rings: Vec<RingReport>,
}

impl Report {
    /// Whether nothing is wrong.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.findings.is_empty()
    }

    /// How many findings are of this kind.
    #[must_use]
    pub fn count(&self, kind: Kind) -> usize {
        self.findings.iter().chain(&self.warnings).filter(|finding| finding.kind == kind).count()
    }
}

/// Looks at the views of a program that are smaller than what the kernels touch: a warning for each of them, and the races that they make. A
/// program without such views is not looked at further.
#[must_use]
pub fn check_views(program: &Program, options: &Options) -> (Vec<Finding>, Vec<Finding>) {
    let kernels = options.kernels.as_ref();
    if kernels.is_none_or(|kernels| touched(program, kernels).1.is_empty()) {
        return (Vec::new(), Vec::new());
    }
    let Report { mut findings, mut warnings, .. } = check(program, options);
    warnings.retain(|finding| finding.kind == Kind::NarrowView);
    findings.retain(|finding| finding.kind == Kind::Race);
    (warnings, findings)
}

/// Checks a program.
#[must_use]
pub fn check(program: &Program, options: &Options) -> Report {
    let addresses = Addresses::of(program);
    let (touched, narrow) = match &options.kernels {
        Some(kernels) => touched(program, kernels),
        None => (Cow::Borrowed(program), Vec::new()),
    };
    let layout = take_apart(&touched, &addresses);
    let mut check = Check { program, options, addresses: &addresses, found: Found::default() };
    check.found.findings.extend(layout.findings.iter().cloned());
    let kernels = options.kernels.iter().flat_map(|kernels| kernels.compare(program));
    check.found.findings.extend(kernels);
    check.found.warnings.extend(narrow);
    let used = check.derived(&layout);
    let derived = std::mem::take(&mut check.found.derived);
    let is_task = |node: u32| layout.task(node).is_some();
    let derived_edges = derived.iter().filter(|edge| is_task(edge.0) && is_task(edge.1)).count();
    let edges = layout.edges.iter().copied().chain(derived).collect();
    let graph = Graph::new(layout.nodes.len(), edges);
    let races = match graph.order() {
        Ok(positions) if check.found.was_refused.is_none() => {
            let races = races(&graph, &positions, &layout.classes);
            check.report_races(&layout, &races);
            races
        }
        Ok(_) => Races::default(),
        Err(left) => {
            check.report_cycle(&layout, &graph, &left);
            Races::default()
        }
    };
    if layout.undeclared > 0 {
        let which = match layout.undeclared {
            1 => "1 task does".to_owned(),
            count => format!("{count} tasks do"),
        };
        check.found.notes.push(format!(
            "{which} not declare which tensors are read and written: races there are not looked for"
        ));
    }
    diagnostics::unused(program, &layout, &mut check.found.warnings);
    diagnostics::aliases(program, &addresses, &mut check.found.warnings);
    let rings = used.map_or_else(Vec::new, |used| check.rings(&used));
    let Found { findings, warnings, notes, .. } = check.found;
    let tasks = || (0_u32..).zip(&layout.nodes).filter_map(|(node, _)| layout.task(node));
    Report {
        name: program.name.clone(),
        variant: program.variant.name(),
        tasks: tasks().count(),
        kernels: tasks().map(|task| program.tasks[task].kernel_count()).sum(),
        stated_edges: program.tasks.iter().map(|task| task.after.len()).sum::<usize>()
            + layout.single_edges,
        derived_edges,
        accesses: layout.classes.iter().map(|class| class.accesses.len()).sum(),
        tensors: program.tensors.len(),
        parts: layout.classes.len(),
        compared: races.compared,
        asked: races.asked,
        more_races: races.count - races.races.len(),
        findings,
        warnings,
        notes,
        rings,
    }
}

#[derive(Default)]
struct Found {
    findings: Vec<Finding>,
    warnings: Vec<Finding>,
    notes: Vec<String>,
    derived: Vec<(u32, u32)>,
    /// The runtime refuses the program.
    was_refused: Option<()>,
}

struct Check<'p> {
    program: &'p Program,
    options: &'p Options,
    addresses: &'p Addresses,
    found: Found,
}

impl Check<'_> {
    /// Lets the builder derive the edges; what it used of its rings, if it accepts the program.
    fn derived(&mut self, layout: &Layout) -> Option<Used> {
        if !self.program.streams() {
            return None;
        }
        diagnostics::early_edges(self.program, layout, &mut self.found.findings);
        let program = (self.program, self.addresses);
        match derive(program, layout.nodes.len(), self.options.cores) {
            Ok(derived) => {
                self.found.derived = derived.edges;
                Some(derived.used)
            }
            Err(trouble) => {
                self.found.was_refused = Some(());
                self.found.findings.push(diagnostics::refused(self.program, &trouble));
                self.found.notes.push(
                    "the runtime refuses the program, so that not all edges are known: \
                     races and ring sizes are not looked at"
                        .to_owned(),
                );
                None
            }
        }
    }

    fn report_races(&mut self, layout: &Layout, races: &Races) {
        let findings = races.races.iter().map(|race| diagnostics::race(self.program, layout, race));
        self.found.findings.extend(findings);
        for (one, other) in &races.undecided {
            let finding = diagnostics::undecided(self.program, layout, (*one, *other));
            self.found.findings.push(finding);
        }
    }

    fn report_cycle(&mut self, layout: &Layout, graph: &Graph, left: &[u32]) {
        let cycle = graph.shortest_cycle(left);
        self.found.findings.push(diagnostics::cycle(self.program, layout, &cycle, left.len()));
        self.found.notes.push(
            "tasks wait for each other, so that there is no order: races are not looked for".into(),
        );
    }

    /// Whether the program gets through on the rings that it is given, and with how little it would.
    fn rings(&mut self, ample: &Used) -> Vec<RingReport> {
        let program = (self.program, self.addresses);
        let Options { rings: given, cores, .. } = self.options;
        if self.found.findings.iter().any(|finding| finding.kind == Kind::Cycle) {
            return Vec::new();
        }
        let attempt = rings::attempt(program, *cores, given);
        let least = rings::least(program, *cores, given, ample);
        if let Err(trouble) = attempt {
            let finding = diagnostics::too_small(self.program, &trouble, given, least.as_ref());
            self.found.findings.push(finding);
        }
        least.map_or_else(Vec::new, |least| rings::report(given, &least, ample))
    }
}
