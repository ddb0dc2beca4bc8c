//! Exactly once, after all producers, with what they wrote: the shapes of graphs that there are.

use pto_abi::CoreKind;
use pto_abi::sync::{AtomicU64, Ordering};

use super::dag::{self, Dag};
use super::ways::{check, for_every_way};

const BOTH: &[CoreKind] = CoreKind::ALL;

#[test]
fn random_graphs() {
    let sizes = [1, 40, 100, 160, 220, 340];
    let dags: Vec<_> = (0..).zip(sizes).map(|(seed, nodes)| Dag::random(seed, nodes)).collect();
    for_every_way(|device| dags.iter().for_each(|dag| check(device, dag)));
}

#[test]
fn a_chain() {
    let dags = [Dag::new(dag::chain(300), BOTH), Dag::new(dag::chain(300), &[CoreKind::AIC])];
    for_every_way(|device| dags.iter().for_each(|dag| check(device, dag)));
}

#[test]
fn forks_and_joins() {
    let dag = Dag::new(dag::fork_join(8, 40), BOTH);
    for_every_way(|device| check(device, &dag));
}

#[test]
fn a_wavefront() {
    let dag = Dag::new(dag::wavefront(20), BOTH);
    for_every_way(|device| check(device, &dag));
}

/// A fanout and a fanin of 5,000: chunks of consumers, and a release in several steps.
#[test]
fn one_to_five_thousand_to_one() {
    let dag = Dag::new(dag::fork_join(1, 5_000), BOTH);
    for_every_way(|device| check(device, &dag));
}

#[test]
fn nothing_and_one() {
    let (none, one) = (Dag::new(vec![], BOTH), Dag::new(vec![vec![]], BOTH));
    for_every_way(|device| {
        [&none, &one, &none, &one].into_iter().for_each(|dag| check(device, dag));
    });
}

/// What the instances count agrees with the graph.
#[test]
fn the_counts_agree() {
    let dag = Dag::random(11, 200);
    for_every_way(|device| {
        check(device, &dag);
        let sum = |of: fn(&pto_abi::runtime::InstanceLine) -> &AtomicU64| {
            device.arena.instances().iter().map(|line| of(line).load(Ordering::Relaxed)).sum()
        };
        let counts: [u64; 3] = [sum(|i| &i.added), sum(|i| &i.published), sum(|i| &i.completed)];
        assert_eq!(counts, [200; 3]);
        let edges: u64 = sum(|i| &i.edges);
        let satisfied: u64 = sum(|i| &i.edges_satisfied);
        assert_eq!(edges + satisfied, dag.edges() as u64);
        let phases = device.arena.instances().iter().map(|i| i.phase.load(Ordering::Relaxed));
        assert_eq!(phases.filter(|phase| *phase == 2).count(), device.options.aicpu as usize);
    });
}
