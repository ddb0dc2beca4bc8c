//! The longest path of kernels that data demand: how far a program could be taken apart, whatever its chains and edges say.
//!
//! A chain runs its kernels in order, whether they depend on each other or not. What each kernel reads and writes says more: one that
//! touches bytes which an earlier one writes, or writes bytes which an earlier one touches, has to wait for it. *Earlier* is an order of the program
//! in which producers come first.
//!
//! It is a bound from below: a kernel that may be skipped counts nothing, and parts of tensors that take too many steps to compare are
//! taken to be apart.

use pto_aicpu_fw::stream::overlap::overlap;

use crate::chains::without_chains;
use crate::graph::Graph;
use crate::layout::{Class, Layout, take_apart};
use crate::memory_map::Addresses;
use crate::program::Program;
use crate::races::sweep;

/// How many kernels run one after another at least; `None`: the tasks of the program wait for each other in a circle.
#[must_use]
pub fn demanded_path(program: &Program) -> Option<u64> {
    let flat = without_chains(program);
    let layout = take_apart(&flat, &Addresses::of(&flat));
    let positions = Graph::new(layout.nodes.len(), layout.edges.clone()).order().ok()?;
    let mut order: Vec<u32> = (0_u32..).zip(&positions).map(|(node, _)| node).collect();
    order.sort_unstable_by_key(|node| positions[*node as usize]);
    let meets = meets(&layout.classes);
    let touched = touched(&layout);
    let mut depths = vec![Depth::default(); layout.classes.len()];
    let mut longest = 0;
    for node in order {
        let own = &touched[node as usize];
        let before = own.iter().flat_map(|(class, writes)| {
            let depth = |met: &usize| depths[*met].before(*writes);
            meets[*class].iter().map(depth)
        });
        let depth = before.max().unwrap_or(0) + u64::from(counts(&flat, &layout, node));
        for (class, writes) in own {
            depths[*class].take(depth, *writes);
        }
        longest = longest.max(depth);
    }
    Some(longest)
}

/// Whether a node is a kernel that runs in any case.
fn counts(program: &Program, layout: &Layout, node: u32) -> bool {
    layout.task(node).is_some_and(|task| program.tasks[task].block_shape.when.is_none())
}

/// The longest paths to those that have touched the bytes of a class.
#[derive(Clone, Copy, Default)]
struct Depth {
    touched: u64,
    written: u64,
}

impl Depth {
    /// What a kernel that does this to the bytes has before it.
    const fn before(&self, writes: bool) -> u64 {
        if writes { self.touched } else { self.written }
    }

    fn take(&mut self, depth: u64, writes: bool) {
        self.touched = self.touched.max(depth);
        if writes {
            self.written = self.written.max(depth);
        }
    }
}

/// Of each node the classes that it touches, and whether it writes there.
fn touched(layout: &Layout) -> Vec<Vec<(usize, bool)>> {
    let mut touched = vec![Vec::new(); layout.nodes.len()];
    for (class, bytes) in layout.classes.iter().enumerate() {
        for access in &bytes.accesses {
            touched[access.node as usize].push((class, access.writes));
        }
    }
    touched
}

/// Of each class those that have bytes in common with it, itself included.
fn meets(classes: &[Class]) -> Vec<Vec<usize>> {
    let mut meets: Vec<Vec<usize>> = (0..classes.len()).map(|class| vec![class]).collect();
    sweep(classes, |class, open| {
        for &other in open {
            if overlap(&classes[other].region, &classes[class].region) == Ok(true) {
                meets[class].push(other);
                meets[other].push(class);
            }
        }
    });
    meets
}
