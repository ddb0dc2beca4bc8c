//! Sets of builders: programs are found by the symbol of their name.
#![cfg(not(any(loom, shuttle)))]

use pto_abi::symbol::symbol;
use pto_abi::{CoreKind, Fault, GmAddr, TaskId};
use pto_graph::{
    BuildError, BuilderSet, EdgeOutcome, GraphBuilder, HostedBuilder, LaunchArgs, NoBuilders,
    Submission, TaskSpec, builder_set,
};

/// Counts the calls.
#[derive(Default)]
struct Counting(u32);

impl GraphBuilder for Counting {
    fn launch_args(&self) -> LaunchArgs<'_> {
        LaunchArgs::default()
    }
    fn submit_desc(&mut self, _: Submission<'_>) -> Result<Option<TaskId>, Fault> {
        self.0 += 1;
        Ok(Some(TaskId { slot: self.0, generation: 1 }))
    }
    fn add_edge(&mut self, _: TaskId, _: TaskId) -> Result<EdgeOutcome, Fault> {
        Ok(EdgeOutcome::Added)
    }
    fn publish(&mut self, _: TaskId) -> Result<(), Fault> {
        Ok(())
    }
    fn read_u32(&self, _: GmAddr) -> Result<u32, Fault> {
        Err(Fault::BUILD_GM_RANGE)
    }
}

impl HostedBuilder for Counting {}

fn one<G: GraphBuilder>(graph: &mut G) -> Result<(), BuildError> {
    graph.submit(TaskSpec::new(pto_abi::FuncId(0), CoreKind::AIV, &[]), &[])?;
    Ok(())
}

fn fails<G: GraphBuilder>(graph: &mut G) -> Result<(), BuildError> {
    graph.read_u32(GmAddr(0))?;
    Ok(())
}

builder_set! { struct Two { "one" => one, "fails" => fails } }

#[test]
fn builders_are_found_by_their_symbols() {
    let mut graph = Counting::default();
    assert_eq!(Two.names(), ["one", "fails"]);
    assert_eq!(Two.build(symbol("one"), &mut graph), Some(Ok(())));
    assert_eq!(graph.0, 1);
    let fault = BuildError::Fault(Fault::BUILD_GM_RANGE);
    assert_eq!(Two.build(symbol("fails"), &mut graph), Some(Err(fault)));
    assert_eq!(Two.build(symbol("three"), &mut graph), None);
    assert_eq!(Two.build(0, &mut graph), None);
    assert_eq!(NoBuilders.build(symbol("one"), &mut graph), None);
    assert!(BuildError::Failed(-3).to_string().contains("-3"));
}
