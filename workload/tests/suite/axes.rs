//! Axes that are bound at run time, predicates, slots, partial tiles.

use pto_workload::clock::{Bindings, RunError, run};
use pto_workload::tile::DType;
use pto_workload::{Checked, Workload};

/// Reads a workload, prints it, reads it again, and checks it.
fn checked(text: &str) -> Checked {
    let workload = Workload::parse(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let printed = workload.to_string();
    assert_eq!(Workload::parse(&printed).unwrap(), workload, "{printed}");
    workload.check().unwrap_or_else(|error| panic!("{error}"))
}

/// A kernel that writes its scalar to one element.
const MARK: &str = "kernel mark(out: out i32[1, 1], s: i32) {
    %0 = scalar s : i32
    %1 = broadcast %0 : i32[1, 1]
    store out, %1
  }";

#[test]
fn a_dynamic_axis_is_bound_by_name() {
    let text = format!(
        "workload dynamic {{
  schedule round_robin workers 1 window 8192 stall
  tensor OUT : i32[8]
  {MARK}
  do parallel b in dyn rows default 3 {{ mark[b](out = OUT[b], s = b + 1) }}
}}"
    );
    let checked = checked(&text);
    for (size, expected) in [(None, 3), (Some(5), 5), (Some(0), 0), (Some(8), 8)] {
        let mut out = vec![0i32; 8];
        let report = {
            let mut bindings = Bindings::new().dense(&checked, "OUT", &mut out).unwrap();
            if let Some(size) = size {
                bindings = bindings.size("rows", size);
            }
            run(&checked, &bindings).unwrap()
        };
        let marks = (1..=8).map(|mark| if mark <= expected { mark } else { 0 });
        assert_eq!(out, marks.collect::<Vec<i32>>());
        assert_eq!(
            report.total_cycles,
            2 * u64::try_from(expected).unwrap(),
            "one for the broadcast, one for the store"
        );
    }
    let mut out = vec![0i32; 8];
    let bindings = Bindings::new().dense(&checked, "OUT", &mut out).unwrap().size("rows", 9);
    let error = run(&checked, &bindings).unwrap_err();
    assert_eq!(
        error.to_string(),
        "At b = 8: Kernel mark, operand out: the index of dimension 0 of OUT is 8, and the dimension has 8 places."
    );
}

#[test]
fn a_ragged_axis_gives_row_and_place() {
    let text = format!(
        "workload ragged {{
  tensor FLAT : i32[10]
  tensor ROWS : i32[4, 5]
  {MARK}
  do each p (row, at) in ragged(outer, lengths) {{
    combine {{
      mark[p](out = FLAT[p], s = row * 10 + at)
      mark[p](out = ROWS[row, at], s = p + 1)
    }}
  }}
}}"
    );
    let checked = checked(&text);
    let lengths = [2, 0, 3, 1];
    let (mut flat, mut rows) = (vec![-1i32; 10], vec![0i32; 20]);
    {
        let bindings = Bindings::new().symbol("outer", 4).array("lengths", &lengths);
        let bindings = bindings.dense(&checked, "FLAT", &mut flat).unwrap();
        let report = run(&checked, &bindings.dense(&checked, "ROWS", &mut rows).unwrap()).unwrap();
        assert_eq!(report.tasks, 12);
    }
    assert_eq!(flat, [0, 1, 20, 21, 22, 30, -1, -1, -1, -1]);
    assert_eq!(rows, [1, 2, 0, 0, 0, 0, 0, 0, 0, 0, 3, 4, 5, 0, 0, 6, 0, 0, 0, 0]);
    let mut refused = |outer: u64, lengths: &[i32]| {
        let bindings = Bindings::new().symbol("outer", outer).array("lengths", lengths);
        let bindings = bindings.dense(&checked, "FLAT", &mut flat).unwrap();
        run(&checked, &bindings.dense(&checked, "ROWS", &mut rows).unwrap())
            .unwrap_err()
            .to_string()
    };
    assert_eq!(refused(5, &lengths), "The array lengths has 4 elements, and the axis needs 5.");
    assert_eq!(
        refused(2, &[1, -1]),
        "Element 1 of the array lengths is -1. It must be zero or more."
    );
}

#[test]
fn a_sparse_axis_gives_columns_rows_and_places() {
    let text = format!(
        "workload sparse {{
  tensor MARKS : i32[3, 6]
  tensor ORDER : i32[8]
  {MARK}
  do select e (row, at) in sparse(outer, indptr, indices) {{
    combine {{
      mark[e](out = MARKS[row, e], s = at + 1)
      mark[e](out = ORDER[at], s = e)
    }}
  }}
}}"
    );
    let checked = checked(&text);
    let run_with = |outer: u64, indptr: &[i32], indices: &[i32]| {
        let (mut marks, mut order) = (vec![0i32; 18], vec![-1i32; 8]);
        let result = {
            let bindings = Bindings::new()
                .symbol("outer", outer)
                .array("indptr", indptr)
                .array("indices", indices);
            let bindings = bindings.dense(&checked, "MARKS", &mut marks).unwrap();
            run(&checked, &bindings.dense(&checked, "ORDER", &mut order).unwrap())
        };
        (result, marks, order)
    };
    let (result, marks, order) = run_with(3, &[0, 2, 2, 5], &[1, 4, 0, 2, 5]);
    assert_eq!(result.unwrap().tasks, 10);
    assert_eq!(marks, [0, 1, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 3, 0, 4, 0, 0, 5]);
    assert_eq!(order, [1, 4, 0, 2, 5, -1, -1, -1]);
    // Other indices, nothing built again; a first row that does not begin at the first index.
    let (result, marks, _) = run_with(1, &[1, 3], &[9, 3, 0]);
    assert_eq!(result.unwrap().tasks, 4);
    assert_eq!(marks[..6], [3, 0, 0, 2, 0, 0]);
    let wrong =
        |outer, indptr: &[i32], indices: &[i32]| run_with(outer, indptr, indices).0.unwrap_err();
    assert_eq!(
        wrong(2, &[0, 2, 1], &[0, 0]).to_string(),
        "Element 2 of the array indptr is 1. It must be at least the one before it."
    );
    assert!(matches!(wrong(1, &[-1, 1], &[0]), RunError::ArrayElement { index: 0, .. }));
    assert!(matches!(wrong(1, &[0, 3], &[0]), RunError::ArrayTooShort { needed: 3, found: 1, .. }));
    assert!(matches!(wrong(u64::MAX, &[0], &[0]), RunError::ArrayTooShort { .. }));
    assert!(wrong(1, &[0, 1], &[6]).to_string().contains("dimension 1 of MARKS is 6"));
}

#[test]
fn predicates_and_slots_are_read_when_they_are_reached() {
    let text = format!(
        "workload predicates {{
  tensor OUT : i32[6]
  tensor N : i64[6, 1]
  {MARK}
  do each b in dense 6 {{
    sequential {{
      slot 0 from N[b] at (0, 0)
      slot 1 = slot_i64(1) + slot_i64(0)
      if slot_i64(0) < 3 {{ mark[b](out = OUT[b], s = slot_i64(1)) }}
      else {{ if b < i64(symbol(limit)) {{ mark[b](out = OUT[b], s = 0 - 1) }} else {{ empty }} }}
      mark[b](out = N32[b], s = 0)
    }}
  }}
}}"
    );
    let text = text.replace("      mark[b](out = N32[b], s = 0)\n", "");
    let checked = checked(&text);
    let run_with = |limit: u64| {
        let (mut out, mut n) = (vec![0i32; 6], vec![1i64, 5, 2, 9, -4, 3]);
        {
            let bindings =
                Bindings::new().symbol("limit", limit).dense(&checked, "OUT", &mut out).unwrap();
            run(&checked, &bindings.dense(&checked, "N", &mut n).unwrap()).unwrap();
        }
        out
    };
    assert_eq!(run_with(4), [1, -1, 8, -1, 13, 0]);
    assert_eq!(run_with(0), [1, 0, 8, 0, 13, 0]);
}

/// A slot reads what a kernel wrote before, of any element type.
#[test]
fn slots_hold_elements_of_every_type() {
    for dtype in DType::ALL {
        let text = format!(
            "workload slots {{
  tensor X : {dtype}[2, 3]
  tensor OUT : i32[1]
  {MARK}
  do sequential {{ slot 7 from X at (1, 2) mark[0](out = OUT[0], s = slot_i64(7)) }}
}}"
        );
        let checked = checked(&text);
        let (mut x, mut out) = (vec![0u64; 6], vec![0i32]);
        let bits = match dtype {
            DType::F16 => 0x4480,
            DType::BF16 => 0x4090,
            DType::F32 => u64::from(4.5f32.to_bits()),
            DType::F64 => 4.5f64.to_bits(),
            _ => 4,
        };
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut x);
        bytes[5 * dtype.bytes()..][..dtype.bytes()]
            .copy_from_slice(&bits.to_le_bytes()[..dtype.bytes()]);
        {
            let bindings = Bindings::new().dense(&checked, "X", &mut x).unwrap();
            run(&checked, &bindings.dense(&checked, "OUT", &mut out).unwrap()).unwrap();
        }
        assert_eq!(out, [4], "{dtype}");
    }
}

/// Rows of every length, in tiles of 4 x 8: the tiles at the ends are partial.
#[test]
fn ranges_compute_remainders() {
    let text = "workload remainders {
  tensor X : f32[6, 20]
  tensor SUMS : f32[6, 1]
  kernel add_row(x: in f32[4, 8], sums: inout f32[4, 1]) {
    %0 = load x : f32[4, 8]
    %1 = load sums : f32[4, 1]
    %2 = rowsum %0 : f32[4, 1]
    %3 = add %1, %2 : f32[4, 1]
    store sums, %3
  }
  do parallel r in dense 2 {
    each c in dyn tiles {
      add_row[r, c](x = X[r * 4 for 4, c * 8 for i64(symbol(length)) - c * 8], sums = SUMS[r * 4 for 4])
    }
  }
}";
    let checked = checked(text);
    for length in [20u64, 17, 8, 3, 0] {
        let (mut x, mut sums) = ((0..120u16).map(f32::from).collect::<Vec<_>>(), vec![0f32; 6]);
        let expected: Vec<f32> =
            x.chunks(20).map(|row| row[..usize::try_from(length).unwrap()].iter().sum()).collect();
        let tiles = length.div_ceil(8);
        let report = {
            let bindings = Bindings::new().size("tiles", tiles).symbol("length", length);
            let bindings = bindings.dense(&checked, "X", &mut x).unwrap();
            run(&checked, &bindings.dense(&checked, "SUMS", &mut sums).unwrap()).unwrap()
        };
        assert_eq!(sums, expected, "length {length}");
        // Elements are counted once, sums four times for each tile.
        assert_eq!(report.total_cycles, 6 * length + 4 * 6 * tiles, "length {length}");
    }
}
