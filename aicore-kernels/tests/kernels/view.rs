//! Views: shapes that do not fit are refused, and what is out of range is empty.

use pto_aicore_kernels::view::{Matrix, extent, vector};

#[test]
fn extent_ends_with_the_last_row() {
    assert_eq!(extent(3, 4, 10), Some(24));
    assert_eq!(extent(1, 4, usize::MAX), Some(4));
    assert_eq!(extent(0, 4, 10), Some(0));
    assert_eq!(extent(3, 0, 10), Some(0));
    assert_eq!(extent(3, 4, 0), Some(4));
    assert_eq!(extent(3, 4, usize::MAX), None);
    assert_eq!(extent(2, 2, usize::MAX - 1), None);
}

#[test]
fn a_matrix_needs_its_extent() {
    let mut memory = [0.0; 24];
    let cells = vector(&mut memory);
    assert!(Matrix::new(cells, 3, 4, 10).is_some());
    assert!(Matrix::new(cells, 3, 5, 10).is_none());
    assert!(Matrix::new(cells, usize::MAX, 5, 10).is_none());
}

#[test]
fn what_is_out_of_range_is_empty() {
    let mut memory = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0];
    let matrix = Matrix::new(vector(&mut memory), 2, 2, 4).expect("six elements");
    let values = |row: usize| matrix.row(row).iter().map(|cell| cell.get()).collect::<Vec<_>>();
    assert_eq!((values(0), values(1)), (vec![0.0, 1.0], vec![4.0, 5.0]));
    assert_eq!((values(2), values(usize::MAX)), (vec![], vec![]));
    assert_eq!(matrix.panel::<2>(0).count(), 2);
    assert_eq!(matrix.panel::<2>(1).count(), 0);
    assert_eq!(matrix.panel::<1>(usize::MAX).count(), 0);
    let repeated = Matrix::new(vector(&mut memory), 2, 6, 0).expect("six elements");
    assert_eq!((repeated.row(1).len(), repeated.row(2).len()), (6, 0));
    assert_eq!(Matrix::EMPTY.iter_rows().count(), 0);
}
