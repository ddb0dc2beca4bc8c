//! What units of an operator are: how many there are, and which elements of each tensor they touch.

use pto_abi::CoreKind;

/// Which elements of a tensor units touch: units `n * units .. (n + 1) * units` those from `n * elements` on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reach {
    /// So many units touch the same elements; 0: every unit touches all.
    pub units: usize,
    /// How many elements that are.
    pub elements: usize,
}

impl Reach {
    /// The elements that units (first, count) touch, of a tensor of so many: from, to.
    #[must_use]
    pub fn of(&self, (first, count): (usize, usize), all: usize) -> (usize, usize) {
        if self.units == 0 {
            return (0, all);
        }
        let from = first / self.units * self.elements;
        let to = (first + count).div_ceil(self.units).saturating_mul(self.elements);
        (from.min(all), to.min(all))
    }
}

/// The work of an operator: how it is split into units, each of which a task can do apart.
#[derive(Clone, Debug, PartialEq)]
pub struct WorkSplit {
    /// How many units there are.
    pub units: usize,
    /// The cores.
    pub kind: CoreKind,
    /// What units read of each input.
    pub inputs: Vec<Reach>,
    /// What units write of each output. No two units write the same element.
    pub outputs: Vec<Reach>,
    /// Whether an index that stands in memory may stand for no element.
    pub can_fail: bool,
}
