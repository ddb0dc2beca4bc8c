//! Axes: what a loop goes over.

/// An axis. Names are those of symbols, which are bound when the workload runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Axis {
    /// `0 .. size`.
    Dense(u64),
    /// `0 .. size`, where the size is bound by name; `default` where it is not.
    DenseDyn {
        /// The name of the size.
        name: String,
        /// The size where none is bound; `None`: it has to be.
        default: Option<u64>,
    },
    /// `0 .. lengths[0] + lengths[1] + ..`: all inner elements of `outer` rows. A loop also gives the row and the index in the row.
    Ragged {
        /// The symbol of the number of rows.
        outer: String,
        /// The symbol of their lengths.
        lengths: String,
    },
    /// The elements `indices[indptr[0]] .. indices[indptr[outer] - 1]` of a matrix in compressed rows. A loop also gives the row
    /// and the index in `indices`.
    Sparse {
        /// The symbol of the number of rows.
        outer: String,
        /// The symbol of the beginnings of the rows.
        indptr: String,
        /// The symbol of the columns.
        indices: String,
    },
}
