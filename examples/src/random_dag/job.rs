//! The host side of `random_dag`: draws the graph, and recomputes its checksums in order.

use core::num::NonZeroU64;
use std::boxed::Box;
use std::format;
use std::string::String;
use std::vec;
use std::vec::Vec;

use pto_abi::CoreKind;
use pto_abi::limits::MAX_TASKS;
use pto_aicore_kernels::dag_value;
use pto_host::{Device, DeviceBuffer, Error as DeviceError};

use crate::host::check::{ElementPosition, Verdict};
use crate::host::error::invalid;
use crate::host::job::{Check, GraphSize, Prepared, check_room, index};
use crate::host::random::Rng;
use crate::host::tensor::Tensor;
use crate::host::{
    Error, Example, ExampleDescription, Inputs, Needs, ParamSpec, Params, Program, TestSizes,
};
use crate::random_dag::graph::{Args, MAX_WINDOW, WORDS_PER_NODE};

/// See [`crate::random_dag`].
pub struct RandomDag;

static PARAMS: &[ParamSpec] = &[
    ParamSpec { name: "tasks", default: 10_000, min: 1, max: MAX_TASKS as u64, help: "nodes" },
    ParamSpec {
        name: "max_predecessors",
        default: 4,
        min: 0,
        max: MAX_WINDOW,
        help: "most producers of a node",
    },
    ParamSpec {
        name: "window",
        default: 256,
        min: 1,
        max: MAX_WINDOW,
        help: "how far before a node its producers may stand",
    },
    ParamSpec {
        name: "aic_percent",
        default: 33,
        min: 0,
        max: 100,
        help: "share of the nodes that run on cube cores",
    },
    ParamSpec {
        name: "stride",
        default: 16,
        min: 1,
        max: 64,
        help: "entries of the output tables from node to node; below 16 nodes share lines",
    },
    ParamSpec::seed("of the graph"),
];

impl Example for RandomDag {
    fn description(&self) -> ExampleDescription {
        ExampleDescription {
            name: "random_dag",
            summary: "a random graph whose checksums prove order and exactly-once; both kinds of cores",
            program: Program::Graph,
            params: PARAMS,
            sizes: TestSizes {
                whole: &[("tasks", "3000"), ("max_predecessors", "9")],
                little: &[("tasks", "600"), ("max_predecessors", "9")],
            },
            inputs: &[],
            outputs: &[],
        }
    }

    fn needs(&self, params: &Params) -> Needs {
        let kinds: &[CoreKind] = match params.get("aic_percent") {
            0 => &[CoreKind::AIV],
            100 => &[CoreKind::AIC],
            _ => CoreKind::ALL,
        };
        Needs { kinds, ..Needs::USUAL }
    }

    fn prepare(&self, params: &Params, _: &Inputs, device: &Device) -> Result<Prepared, Error> {
        let (nodes, stride) = (params.get("tasks"), Stride::new(params)?);
        let places = nodes * stride.0.get();
        let check = |edges| {
            let size = graph_size(nodes, edges);
            // Checksums take two words an entry, counters one; kinds and starts of producers one a node.
            check_room(device, &[places, places, places, nodes, nodes, edges], &size)
        };
        let dag = Dag::draw(params, check)?;
        let size = graph_size(nodes, dag.edges());

        let values = device.zeroed(index(places))?;
        let counters = device.zeroed(index(places))?;
        // A buffer is never empty; a graph may have no edges.
        let producers = if dag.producers.is_empty() { &[0][..] } else { &dag.producers };
        let tables = [&dag.first, producers, &dag.kinds].map(|table| device.upload(table));
        let [first, producers, kinds] = tables;
        let (first, producers, kinds) = (first?, producers?, kinds?);
        let seed = params.get("seed");
        let args = Args {
            nodes,
            seed,
            values: values.address(),
            counters: counters.address(),
            first: first.address(),
            producers: producers.address(),
            kinds: kinds.address(),
            stride: stride.0,
        };
        let check = DagCheck {
            expected: dag.values(seed),
            stride,
            values,
            counters,
            _tables: [first, producers, kinds],
        };
        Prepared::new(self.name(), (args.words().to_vec(), &Args::NAMES), size, Box::new(check))
    }
}

/// The size of the graph.
const fn graph_size(nodes: u64, edges: u64) -> GraphSize {
    GraphSize { tasks: nodes, arg_words: nodes * WORDS_PER_NODE, edges }
}

/// The distance from the entry of a node in the output tables to that of the next one.
#[derive(Clone, Copy)]
struct Stride(NonZeroU64);

impl Stride {
    fn new(params: &Params) -> Result<Self, Error> {
        let stride = NonZeroU64::new(params.get("stride"));
        stride.map(Self).ok_or_else(|| invalid!("stride = 0 puts all nodes into one entry"))
    }

    /// The entries of the nodes, out of a table.
    fn nodes<T: Copy>(self, table: &[T]) -> Vec<T> {
        table.iter().step_by(index(self.0.get())).copied().collect()
    }

    /// A table with these entries for the nodes, and `other` between them.
    fn table<T: Copy>(self, nodes: impl ExactSizeIterator<Item = T>, other: T) -> Vec<T> {
        let mut table = vec![other; nodes.len() * index(self.0.get())];
        let places = table.iter_mut().step_by(index(self.0.get()));
        places.zip(nodes).for_each(|(position, node)| *position = node);
        table
    }
}

/// The tables of the graph.
struct Dag {
    stride: u32,
    first: Vec<u32>,
    producers: Vec<u32>,
    kinds: Vec<u32>,
}

impl Dag {
    /// Draws the graph. `check` says whether there is room for a number of edges; it is asked before the first
    /// one is drawn, whenever their number has doubled, and at the end.
    fn draw(params: &Params, check: impl Fn(u64) -> Result<(), Error>) -> Result<Self, Error> {
        let mut asked = 0;
        check(asked)?;
        let nodes = params.get("tasks");
        let nodes = u32::try_from(nodes).map_err(|_| invalid!("tasks = {nodes} are too many"))?;
        let (most, window) = (params.get("max_predecessors"), params.get("window"));
        let mut random = Rng::new(params.get("seed"), "random_dag");
        // `Params` has bounded it.
        let stride = u32::try_from(params.get("stride")).unwrap_or(u32::MAX);
        let mut dag = Self { stride, first: vec![0], producers: Vec::new(), kinds: Vec::new() };
        let mut distances = Vec::new();
        for node in 0..nodes {
            let reach = u64::from(node).min(window);
            let count = if reach == 0 { 0 } else { random.below(most.min(reach) + 1) };
            distances.clear();
            distances.extend((0..count).map(|_| 1 + random.below(reach)));
            distances.sort_unstable();
            distances.dedup();
            // At most `reach`, hence at most `node`.
            let distances = distances.iter().filter_map(|distance| u32::try_from(*distance).ok());
            dag.producers.extend(distances.map(|distance| (node - distance) * stride));
            if dag.edges() > 2 * asked {
                asked = dag.edges();
                check(asked)?;
            }
            dag.first.push(u32::try_from(dag.producers.len()).map_err(|_| too_many_edges())?);
            let on_aic = random.below(100) < params.get("aic_percent");
            let kind = if on_aic { CoreKind::AIC } else { CoreKind::AIV };
            dag.kinds.push(kind.get().into());
        }
        check(dag.edges())?;
        Ok(dag)
    }

    fn edges(&self) -> u64 {
        self.producers.len() as u64
    }

    /// The checksum of every node.
    fn values(&self, seed: u64) -> Vec<u64> {
        let mut values: Vec<u64> = Vec::with_capacity(self.kinds.len());
        for (node, bounds) in (0_u64..).zip(self.first.windows(2)) {
            let producers = &self.producers[bounds[0] as usize..bounds[1] as usize];
            let node_of = |position: &u32| (position / self.stride.max(1)) as usize;
            let inputs = producers.iter().map(|position| values[node_of(position)]);
            let value = dag_value(seed, node * u64::from(self.stride), inputs);
            values.push(value);
        }
        values
    }
}

fn too_many_edges() -> Error {
    let what = "edges";
    Error::Limit { what, found: u64::from(u32::MAX) + 1, limit: u64::from(u32::MAX) }
}

struct DagCheck {
    expected: Vec<u64>,
    stride: Stride,
    values: DeviceBuffer<u64>,
    counters: DeviceBuffer<u32>,
    _tables: [DeviceBuffer<u32>; 3],
}

impl Check for DagCheck {
    fn reset(&mut self) -> Result<(), DeviceError> {
        // No checksum is its own complement: a node that does not run is found, and so is all after it.
        let wrong = self.expected.iter().map(|value| !value);
        self.values.write(&self.stride.table(wrong, 0))?;
        self.counters.write(&vec![0; self.counters.len()])
    }

    fn verify(&mut self) -> Result<Verdict, Error> {
        let values = self.stride.nodes(&self.values.read()?);
        Ok(judge(&self.expected, &values, &self.stride.nodes(&self.counters.read()?)))
    }

    fn outputs(&self) -> Result<Vec<(&'static str, Tensor)>, DeviceError> {
        Ok(Vec::new())
    }
}

/// Every node must have run once, and hold its checksum.
fn judge(expected: &[u64], values: &[u64], counters: &[u32]) -> Verdict {
    let mut wrong = 0;
    let mut position = None;
    for (node, ((expected, value), count)) in (0..).zip(expected.iter().zip(values).zip(counters)) {
        if value == expected && *count == 1 {
            continue;
        }
        wrong += 1;
        let say =
            |value: &u64, count: u32| -> String { format!("{value:#018x} after {count} runs") };
        position.get_or_insert_with(|| ElementPosition {
            tensor: "node",
            index: vec![node],
            found: say(value, *count),
            expected: say(expected, 1),
        });
    }
    Verdict::exact(expected.len() as u64, wrong, position)
}

#[cfg(test)]
mod tests {
    use super::{Dag, NonZeroU64, PARAMS, graph_size, judge};
    use crate::dry_run::DryRun;
    use crate::host::Params;
    use crate::random_dag::graph::{Args, BAD_FIRST, BAD_KIND, BAD_PRODUCER, MAX_WINDOW, build};
    use pto_abi::{CoreKind, Fault, GmAddr};
    use pto_graph::BuildError;
    use std::vec::Vec;

    fn dag(given: &[(&str, &str)]) -> Dag {
        let mut params = Params::defaults(PARAMS);
        for (name, value) in given {
            params.set(name, value).unwrap();
        }
        Dag::draw(&params, |_| Ok(())).unwrap()
    }

    fn dry_run(dag: &Dag) -> DryRun {
        let args = Args {
            nodes: dag.kinds.len() as u64,
            seed: 1,
            values: GmAddr(0x100_0000),
            counters: GmAddr(0x200_0000),
            first: GmAddr(0x300_0000),
            producers: GmAddr(0x400_0000),
            kinds: GmAddr(0x500_0000),
            stride: NonZeroU64::new(dag.stride.into()).unwrap(),
        };
        let mut graph = DryRun::new(&args.words());
        graph.put(args.first, dag.first.iter().copied());
        graph.put(args.producers, dag.producers.iter().copied());
        graph.put(args.kinds, dag.kinds.iter().copied());
        graph
    }

    #[test]
    fn the_graph_is_the_one_that_was_drawn() {
        for given in [
            &[][..],
            &[("tasks", "1")],
            &[("max_predecessors", "0"), ("tasks", "50")],
            &[("stride", "1")],
            &[("max_predecessors", "1024"), ("window", "1024"), ("tasks", "1500")],
        ] {
            let dag = dag(given);
            let graph = dry_run(&dag).of(build).unwrap();
            let size = graph_size(dag.kinds.len() as u64, dag.edges());
            assert_eq!(graph.size(), size, "{given:?}");
            let producers: Vec<_> = graph.tasks.iter().flat_map(|task| &task.producers).collect();
            let places = dag.producers.iter().map(|position| *position as usize);
            assert!(producers.iter().zip(places).all(|(a, b)| **a * dag.stride as usize == b));
        }
    }

    #[test]
    fn the_share_of_cube_cores_is_kept_and_the_seed_decides() {
        let share = |percent| {
            let graph = dry_run(&dag(&[("aic_percent", percent)])).of(build).unwrap();
            graph.tasks_of(CoreKind::AIC)
        };
        assert_eq!((share("0"), share("100")), (0, 10_000));
        assert!((2_800..3_800).contains(&share("33")));
        assert_eq!(dag(&[]).producers, dag(&[]).producers);
        assert_ne!(dag(&[]).producers, dag(&[("seed", "2")]).producers);
    }

    #[test]
    fn tables_that_lie_stop_the_program() {
        let stop = |change: fn(&mut Dag)| {
            let mut dag = dag(&[("tasks", "2000"), ("max_predecessors", "1")]);
            change(&mut dag);
            dry_run(&dag).of(build).err().unwrap()
        };
        assert_eq!(
            stop(|dag| *dag.first.last_mut().unwrap() = u32::MAX),
            Fault::BUILD_GM_RANGE.into()
        );
        assert_eq!(stop(|dag| dag.first[0] = 1), BuildError::Failed(BAD_FIRST));
        assert_eq!(stop(|dag| dag.kinds[7] = 2), BuildError::Failed(BAD_KIND));
        assert_eq!(stop(|dag| dag.kinds[7] = 256), BuildError::Failed(BAD_KIND));
        assert_eq!(stop(|dag| dag.producers[3] = 1999 * 16), BuildError::Failed(BAD_PRODUCER));
        let far = |dag: &mut Dag| *dag.producers.last_mut().unwrap() = 0;
        const { assert!(MAX_WINDOW < 1900) };
        assert_eq!(stop(far), BuildError::Failed(BAD_PRODUCER));
    }

    #[test]
    fn a_node_that_ran_twice_or_holds_another_value_is_found() {
        let values = dag(&[("tasks", "10")]).values(1);
        assert_ne!(values, dag(&[("tasks", "10"), ("stride", "1")]).values(1));
        let once = [1; 10];
        assert!(judge(&values, &values, &once).passed());
        let mut twice = once;
        twice[4] = 2;
        let verdict = judge(&values, &values, &twice);
        assert_eq!((verdict.wrong, verdict.position.unwrap().index), (1, [4].to_vec()));
        let mut other = values.clone();
        other[7] ^= 1;
        other[9] ^= 1;
        let verdict = judge(&values, &other, &once);
        assert_eq!((verdict.wrong, verdict.checked), (2, 10));
        assert_eq!(verdict.position.unwrap().index, [7]);
    }
}
