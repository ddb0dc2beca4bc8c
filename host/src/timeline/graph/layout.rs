//! A layered layout (Sugiyama, Tagawa and Toda 1981): a task's layer is one below its lowest producer's; edges
//! over several layers pass through dummy nodes, which the edges of one producer share; the order within a layer is
//! improved by barycentres.

use super::{Graph, GraphError, MAX_DRAWN_NODES, MAX_DRAWN_TASKS};
use crate::timeline::analysis::topological;
use crate::timeline::model::Edge;

/// Sweeps down and up that improve the order. 8: later ones change little on graphs of this size.
const SWEEPS: usize = 8;
/// The width of a dummy node, in columns; a task has one column.
const DUMMY_WIDTH: f64 = 0.1;

/// The position of every task and edge: columns and layers, from zero.
#[derive(Debug)]
pub(crate) struct GraphLayout {
    /// Column and layer of each task.
    pub(crate) tasks: Vec<(f64, usize)>,
    /// The nodes that each edge passes, its ends included.
    pub(crate) edges: Vec<Vec<(f64, usize)>>,
    /// How many layers there are.
    pub(crate) layers: usize,
    /// How wide the widest layer is, in columns.
    pub(crate) columns: f64,
    /// Whether edges over several layers lead straight through them, because they would need too many dummy nodes.
    pub(crate) straight: bool,
}

/// Edges would need more nodes than [`MAX_DRAWN_NODES`].
#[derive(Clone, Copy, Debug)]
struct TooMany;

/// The nodes of the layout: the tasks first, then the dummy nodes.
struct LayoutNodes {
    tasks: usize,
    /// Of each task: the dummy nodes that its edges pass, a layer each, from the layer below it on.
    trunks: Vec<Vec<usize>>,
    layer: Vec<usize>,
    above: Vec<Vec<usize>>,
    below: Vec<Vec<usize>>,
}

impl GraphLayout {
    /// For a picture: refuses a graph that is too large to read.
    pub(crate) fn of(graph: &Graph) -> Result<Self, GraphError> {
        let layout = match graph.tasks.len() {
            0..=MAX_DRAWN_TASKS => Self::of_any(graph)?,
            _ => return Err(graph.too_large()),
        };
        if layout.straight { Err(graph.too_large()) } else { Ok(layout) }
    }

    /// For a page, which shows more of a large graph the nearer one looks.
    pub(crate) fn of_any(graph: &Graph) -> Result<Self, GraphError> {
        let layers = layers(graph)?;
        let routed = LayoutNodes::routed(layers.clone(), graph);
        let straight = routed.is_err();
        let (nodes, paths) = routed.unwrap_or_else(|TooMany| LayoutNodes::straight(layers, graph));
        let mut rows = nodes.rows();
        for sweep in 0..SWEEPS {
            nodes.improve(&mut rows, sweep % 2 == 0);
        }
        let (at, columns) = nodes.columns(&rows);
        let position = |node: usize| (at[node], nodes.layer[node]);
        Ok(Self {
            tasks: (0..graph.tasks.len()).map(position).collect(),
            edges: paths.iter().map(|path| path.iter().copied().map(position).collect()).collect(),
            layers: rows.len(),
            columns,
            straight,
        })
    }
}

/// The layer of each task.
fn layers(graph: &Graph) -> Result<Vec<usize>, GraphError> {
    let (producers, consumers) = (graph.producers(), graph.consumers());
    let order =
        topological(graph.tasks.len(), &producers, &consumers).map_err(GraphError::Cycle)?;
    let mut layers = vec![0; graph.tasks.len()];
    for slot in order {
        let above = producers.of(slot).iter().map(|producer| layers[*producer as usize] + 1);
        layers[slot as usize] = above.max().unwrap_or(0);
    }
    Ok(layers)
}

impl LayoutNodes {
    fn new(layer: Vec<usize>) -> Self {
        let none = vec![Vec::new(); layer.len()];
        Self { tasks: layer.len(), trunks: none.clone(), layer, above: none.clone(), below: none }
    }

    /// Every edge has a node in each layer that it passes. Returns the nodes, and the path of each edge.
    fn routed(layer: Vec<usize>, graph: &Graph) -> Result<(Self, Vec<Vec<usize>>), TooMany> {
        let mut nodes = Self::new(layer);
        let mut paths = Vec::with_capacity(graph.edges.len());
        for edge in &graph.edges {
            paths.push(nodes.connect(edge.producer as usize, edge.consumer as usize));
            if nodes.layer.len() > MAX_DRAWN_NODES {
                return Err(TooMany);
            }
        }
        Ok((nodes, paths))
    }

    /// Only tasks have nodes.
    fn straight(layer: Vec<usize>, graph: &Graph) -> (Self, Vec<Vec<usize>>) {
        let mut nodes = Self::new(layer);
        for edge in &graph.edges {
            nodes.join(edge.producer as usize, edge.consumer as usize);
        }
        let ends = |edge: &Edge| vec![edge.producer as usize, edge.consumer as usize];
        let paths = graph.edges.iter().map(ends).collect();
        (nodes, paths)
    }

    /// Routes an edge from layer to layer; returns the nodes that it passes.
    fn connect(&mut self, producer: usize, consumer: usize) -> Vec<usize> {
        let between = self.layer[consumer] - self.layer[producer] - 1;
        while self.trunks[producer].len() < between {
            self.lengthen(producer);
        }
        let trunk = &self.trunks[producer][..between];
        let path: Vec<usize> = [&[producer], trunk, &[consumer]].concat();
        self.join(trunk.last().copied().unwrap_or(producer), consumer);
        path
    }

    /// One more dummy node for the edges of a task.
    fn lengthen(&mut self, producer: usize) {
        let before = self.trunks[producer].last().copied().unwrap_or(producer);
        let node = self.layer.len();
        self.layer.push(self.layer[before] + 1);
        self.above.push(Vec::new());
        self.below.push(Vec::new());
        self.trunks[producer].push(node);
        self.join(before, node);
    }

    fn join(&mut self, above: usize, below: usize) {
        self.below[above].push(below);
        self.above[below].push(above);
    }

    fn rows(&self) -> Vec<Vec<usize>> {
        let mut rows = vec![Vec::new(); self.layer.iter().max().map_or(0, |last| last + 1)];
        for (node, layer) in self.layer.iter().enumerate() {
            rows[*layer].push(node);
        }
        rows
    }

    /// Orders each row by the positions of its neighbours in the row before (in the direction of the sweep).
    #[expect(clippy::cast_precision_loss, reason = "a mean of small numbers")]
    fn improve(&self, rows: &mut [Vec<usize>], downwards: bool) {
        let mut position = vec![0; self.layer.len()];
        let neighbours = if downwards { &self.above } else { &self.below };
        let count = rows.len();
        for step in 0..count {
            let row = &mut rows[if downwards { step } else { count - 1 - step }];
            let barycentre = |(index, node): (usize, &usize)| {
                let near = &neighbours[*node];
                let sum: usize = near.iter().map(|other| position[*other]).sum();
                if near.is_empty() { index as f64 } else { sum as f64 / near.len() as f64 }
            };
            let mut keyed: Vec<(f64, usize)> =
                row.iter().enumerate().map(|entry| (barycentre(entry), *entry.1)).collect();
            keyed.sort_by(|a, b| a.0.total_cmp(&b.0));
            *row = keyed.into_iter().map(|(_, node)| node).collect();
            for (index, node) in row.iter().enumerate() {
                position[*node] = index;
            }
        }
    }

    /// The middle of each node, with each row centred, and the width of the widest row.
    fn columns(&self, rows: &[Vec<usize>]) -> (Vec<f64>, f64) {
        let width = |node: &usize| if *node < self.tasks { 1.0 } else { DUMMY_WIDTH };
        let widths: Vec<f64> = rows.iter().map(|row| row.iter().map(width).sum()).collect();
        let widest = widths.iter().copied().fold(0.0, f64::max);
        let mut at = vec![0.0; self.layer.len()];
        for (row, own) in rows.iter().zip(widths) {
            let mut left = (widest - own) / 2.0;
            for node in row {
                // A task's column is where it begins.
                at[*node] = left + (width(node) - 1.0) / 2.0;
                left += width(node);
            }
        }
        (at, widest)
    }
}
