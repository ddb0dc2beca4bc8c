//! A layered layout (Sugiyama, Tagawa and Toda 1981): a task's layer is one below its lowest producer's; edges
//! over several layers pass through places of their own; the order within a layer is improved by barycentres.

use super::{Graph, GraphError, MAX_DRAWN_PLACES, MAX_DRAWN_TASKS};
use crate::analysis::topological;

/// Sweeps down and up that improve the order. 8: later ones change little on graphs of this size.
const SWEEPS: usize = 8;

/// Where everything stands: columns and layers, from zero.
#[derive(Debug)]
pub(crate) struct Layout {
    /// Column and layer of each task.
    pub(crate) tasks: Vec<(f64, usize)>,
    /// The places that each edge passes, its ends included.
    pub(crate) edges: Vec<Vec<(f64, usize)>>,
    /// How many layers there are.
    pub(crate) layers: usize,
    /// How many places the fullest layer has.
    pub(crate) columns: usize,
}

/// Places: the tasks first, then those that edges pass.
struct Places {
    layer: Vec<usize>,
    above: Vec<Vec<usize>>,
    below: Vec<Vec<usize>>,
}

impl Layout {
    pub(crate) fn of(graph: &Graph) -> Result<Self, GraphError> {
        let (tasks, edges) = (graph.tasks.len(), graph.edges.len());
        let too_large = GraphError::TooLarge { tasks, edges };
        if tasks > MAX_DRAWN_TASKS {
            return Err(too_large);
        }
        let mut places = Places::new(layers(graph)?);
        let mut paths = Vec::with_capacity(edges);
        for edge in &graph.edges {
            paths.push(places.connect(edge.producer as usize, edge.consumer as usize));
            if places.layer.len() > MAX_DRAWN_PLACES {
                return Err(too_large);
            }
        }
        let mut rows = places.rows();
        for sweep in 0..SWEEPS {
            places.improve(&mut rows, sweep % 2 == 0);
        }
        let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
        let at = places.columns(&rows, columns);
        let place = |place: usize| (at[place], places.layer[place]);
        Ok(Self {
            tasks: (0..tasks).map(place).collect(),
            edges: paths.iter().map(|path| path.iter().copied().map(place).collect()).collect(),
            layers: rows.len(),
            columns,
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
        Self { layer, above: none.clone(), below: none }
    }

    /// Leads an edge from layer to layer; the places that it passes.
    fn connect(&mut self, producer: usize, consumer: usize) -> Vec<usize> {
        let mut path = vec![producer];
        for layer in self.layer[producer] + 1..self.layer[consumer] {
            path.push(self.layer.len());
            self.layer.push(layer);
            self.above.push(Vec::new());
            self.below.push(Vec::new());
        }
        path.push(consumer);
        for pair in path.windows(2) {
            self.below[pair[0]].push(pair[1]);
            self.above[pair[1]].push(pair[0]);
        }
        path
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

    /// Columns: each row is spread over the middle of the picture.
    #[expect(clippy::cast_precision_loss, reason = "columns of a picture")]
    fn columns(&self, rows: &[Vec<usize>], columns: usize) -> Vec<f64> {
        let mut at = vec![0.0; self.layer.len()];
        for row in rows {
            let margin = (columns - row.len()) as f64 / 2.0;
            for (index, place) in row.iter().enumerate() {
                at[*place] = margin + index as f64;
            }
        }
        at
    }
}
