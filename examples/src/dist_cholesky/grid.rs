//! Which rank has which tile: rank `r` of a grid of `rows` by `cols` has the tiles of every row `r / cols + i * rows` in every column
//! `r % cols + j * cols`.

use core::num::NonZeroU64;

/// The grid, and the position of one rank in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grid {
    rows: NonZeroU64,
    cols: NonZeroU64,
    rank: u64,
    /// Rows, and columns, of tiles.
    tiles: u64,
}

impl Grid {
    /// The grid of `size` ranks that is the closest to a square, for a matrix of so many rows and columns of tiles.
    #[must_use]
    pub fn new(rank: u32, size: u32, tiles: u64) -> Self {
        let size = u64::from(size.max(1));
        let divides = |rows: &u64| size.is_multiple_of(*rows);
        let rows = (1..=size).take_while(|rows| rows * rows <= size).filter(divides).max();
        let rows = rows.and_then(NonZeroU64::new).unwrap_or(NonZeroU64::MIN);
        let cols = NonZeroU64::new(size / rows).unwrap_or(NonZeroU64::MIN);
        Self { rows, cols, rank: rank.into(), tiles }
    }

    /// The rank that has a tile.
    #[must_use]
    pub fn owner(&self, row: u64, col: u64) -> u64 {
        row % self.rows * self.cols.get() + col % self.cols
    }

    /// Whether this rank has a tile.
    #[must_use]
    pub fn has(&self, row: u64, col: u64) -> bool {
        self.owner(row, col) == self.rank
    }

    /// Where a tile of this rank is among its tiles, row by row.
    #[must_use]
    pub fn tile_index(&self, row: u64, col: u64) -> u64 {
        row / self.rows * self.in_line(self.cols) + col / self.cols
    }

    /// How many tiles a rank has room for.
    #[must_use]
    pub fn places(&self) -> u64 {
        self.in_line(self.rows) * self.in_line(self.cols)
    }

    /// The most tiles of one line of the matrix that one of so many ranks has.
    fn in_line(&self, ranks: NonZeroU64) -> u64 {
        self.tiles / ranks + u64::from(self.tiles % ranks != 0)
    }

    /// Whether a rank needs the solved tile of a row, below the diagonal in `col`: to change a tile of that row further right, or a tile
    /// of the column that has this row's number.
    #[must_use]
    pub fn needs(&self, rank: u64, row: u64, col: u64) -> bool {
        let is = |row, col| self.owner(row, col) == rank;
        (col + 1..=row).any(|right| is(row, right)) || (row..self.tiles).any(|below| is(below, row))
    }

    /// Whether a rank needs the factor on the diagonal of a column: to solve a tile below it.
    #[must_use]
    pub fn needs_diagonal(&self, rank: u64, col: u64) -> bool {
        (col + 1..self.tiles).any(|row| self.owner(row, col) == rank)
    }

    /// The other ranks.
    pub fn others(&self) -> impl Iterator<Item = u64> + use<> {
        let rank = self.rank;
        (0..self.rows.get() * self.cols.get()).filter(move |other| *other != rank)
    }

    /// This rank.
    #[must_use]
    pub const fn rank(&self) -> u64 {
        self.rank
    }
}

#[cfg(test)]
mod tests {
    use super::Grid;
    use std::collections::BTreeSet;

    #[test]
    fn every_tile_has_one_owner_and_a_place_of_its_own() {
        for size in 1..=9 {
            for tiles in [1, 2, 5, 8] {
                let mut seen = BTreeSet::new();
                for rank in 0..size {
                    let grid = Grid::new(rank, size, tiles);
                    for (row, col) in (0..tiles).flat_map(|row| (0..tiles).map(move |c| (row, c))) {
                        if grid.has(row, col) {
                            assert!(grid.tile_index(row, col) < grid.places());
                            assert!(
                                seen.insert((rank, grid.tile_index(row, col))),
                                "{size} {tiles}"
                            );
                        }
                    }
                }
                assert_eq!(seen.len() as u64, tiles * tiles);
            }
        }
    }

    #[test]
    fn the_grid_is_as_square_as_it_can_be() {
        let shape = |size| {
            let grid = Grid::new(0, size, 4);
            (grid.rows.get(), grid.cols.get())
        };
        assert_eq!([1, 2, 4, 6, 7, 8].map(shape), [(1, 1), (1, 2), (2, 2), (2, 3), (1, 7), (2, 4)]);
    }

    #[test]
    fn who_changes_a_tile_needs_both_of_its_factors() {
        let grid = Grid::new(0, 4, 5);
        for col in 0..5 {
            for (row, right) in (col + 1..5).flat_map(|row| (col + 1..=row).map(move |r| (row, r)))
            {
                let owner = grid.owner(row, right);
                assert!(grid.needs(owner, row, col) && grid.needs(owner, right, col));
            }
        }
        assert!(!grid.needs_diagonal(3, 0) && grid.needs_diagonal(2, 0));
    }
}
