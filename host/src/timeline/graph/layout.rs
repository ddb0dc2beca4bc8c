//! A layered layout (Sugiyama, Tagawa and Toda 1981): a task's layer is one below its lowest producer's; edges
//! over several layers pass through places between, which the edges of one producer share; the order within a layer is
//! improved by barycentres.

use super::{Graph, GraphError, MAX_DRAWN_PLACES, MAX_DRAWN_TASKS};
use crate::timeline::analysis::topological;
use crate::timeline::model::Edge;

/// Sweeps down and up that improve the order. 8: later ones change little on graphs of this size.
const SWEEPS: usize = 8;
/// The width of a place that edges pass, in columns; a task has one column.
const PASSING: f64 = 0.1;

/// Where everything stands: columns and layers, from zero.
#[derive(Debug)]
pub(crate) struct Layout {
    /// Column and layer of each task.
    pub(crate) tasks: Vec<(f64, usize)>,
    /// The places that each edge passes, its ends included.
    pub(crate) edges: Vec<Vec<(f64, usize)>>,
    /// How many layers there are.
    pub(crate) layers: usize,
    /// How wide the widest layer is, in columns.
    pub(crate) columns: f64,
    /// Whether edges over several layers lead straight through them: they are too many to have places of their own.
    pub(crate) straight: bool,
}

/// Edges would need more places than [`MAX_DRAWN_PLACES`].
#[derive(Clone, Copy, Debug)]
struct TooMany;

/// Places: the tasks first, then those that edges pass.
struct Places {
    tasks: usize,
    /// Of each task: the places that its edges pass, a layer each, from the layer below it on.
    trunks: Vec<Vec<usize>>,
    layer: Vec<usize>,
    above: Vec<Vec<usize>>,
    below: Vec<Vec<usize>>,
}

impl Layout {
    /// For a picture: refuses what nobody could read.
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
        let led = Places::led(layers.clone(), graph);
        let straight = led.is_err();
        let (places, paths) = led.unwrap_or_else(|TooMany| Places::straight(layers, graph));
        let mut rows = places.rows();
        for sweep in 0..SWEEPS {
            places.improve(&mut rows, sweep % 2 == 0);
        }
        let (at, columns) = places.columns(&rows);
        let place = |place: usize| (at[place], places.layer[place]);
        Ok(Self {
            tasks: (0..graph.tasks.len()).map(place).collect(),
            edges: paths.iter().map(|path| path.iter().copied().map(place).collect()).collect(),
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

impl Places {
    fn new(layer: Vec<usize>) -> Self {
        let none = vec![Vec::new(); layer.len()];
        Self { tasks: layer.len(), trunks: none.clone(), layer, above: none.clone(), below: none }
    }

    /// Every edge has a place in each layer that it passes; and the places that each passes.
    fn led(layer: Vec<usize>, graph: &Graph) -> Result<(Self, Vec<Vec<usize>>), TooMany> {
        let mut places = Self::new(layer);
        let mut paths = Vec::with_capacity(graph.edges.len());
        for edge in &graph.edges {
            paths.push(places.connect(edge.producer as usize, edge.consumer as usize));
            if places.layer.len() > MAX_DRAWN_PLACES {
                return Err(TooMany);
            }
        }
        Ok((places, paths))
    }

    /// Only tasks have places.
    fn straight(layer: Vec<usize>, graph: &Graph) -> (Self, Vec<Vec<usize>>) {
        let mut places = Self::new(layer);
        for edge in &graph.edges {
            places.join(edge.producer as usize, edge.consumer as usize);
        }
        let ends = |edge: &Edge| vec![edge.producer as usize, edge.consumer as usize];
        let paths = graph.edges.iter().map(ends).collect();
        (places, paths)
    }

    /// Leads an edge from layer to layer; the places that it passes.
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

    /// One more place for the edges of a task.
    fn lengthen(&mut self, producer: usize) {
        let before = self.trunks[producer].last().copied().unwrap_or(producer);
        let place = self.layer.len();
        self.layer.push(self.layer[before] + 1);
        self.above.push(Vec::new());
        self.below.push(Vec::new());
        self.trunks[producer].push(place);
        self.join(before, place);
    }

    fn join(&mut self, above: usize, below: usize) {
        self.below[above].push(below);
        self.above[below].push(above);
    }

    fn rows(&self) -> Vec<Vec<usize>> {
        let mut rows = vec![Vec::new(); self.layer.iter().max().map_or(0, |last| last + 1)];
        for (place, layer) in self.layer.iter().enumerate() {
            rows[*layer].push(place);
        }
        rows
    }

    /// Orders each row by where its neighbours in the row before (seen in the direction of the sweep) stand.
    #[expect(clippy::cast_precision_loss, reason = "a mean of small numbers")]
    fn improve(&self, rows: &mut [Vec<usize>], downwards: bool) {
        let mut position = vec![0; self.layer.len()];
        let neighbours = if downwards { &self.above } else { &self.below };
        let count = rows.len();
        for step in 0..count {
            let row = &mut rows[if downwards { step } else { count - 1 - step }];
            let barycentre = |(index, place): (usize, &usize)| {
                let near = &neighbours[*place];
                let sum: usize = near.iter().map(|other| position[*other]).sum();
                if near.is_empty() { index as f64 } else { sum as f64 / near.len() as f64 }
            };
            let mut keyed: Vec<(f64, usize)> =
                row.iter().enumerate().map(|entry| (barycentre(entry), *entry.1)).collect();
            keyed.sort_by(|a, b| a.0.total_cmp(&b.0));
            *row = keyed.into_iter().map(|(_, place)| place).collect();
            for (index, place) in row.iter().enumerate() {
                position[*place] = index;
            }
        }
    }

    /// The middle of each place: each row is spread over the middle of the picture. And the width of the widest row.
    fn columns(&self, rows: &[Vec<usize>]) -> (Vec<f64>, f64) {
        let width = |place: &usize| if *place < self.tasks { 1.0 } else { PASSING };
        let widths: Vec<f64> = rows.iter().map(|row| row.iter().map(width).sum()).collect();
        let widest = widths.iter().copied().fold(0.0, f64::max);
        let mut at = vec![0.0; self.layer.len()];
        for (row, own) in rows.iter().zip(widths) {
            let mut left = (widest - own) / 2.0;
            for place in row {
                // A task's column is where it begins.
                at[*place] = left + (width(place) - 1.0) / 2.0;
                left += width(place);
            }
        }
        (at, widest)
    }
}
