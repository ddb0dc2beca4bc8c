//! The kernels of a mixture of experts: routing against a sort, the experts' kernels against plain loops.

use crate::support::{GuardedMatrix, U, XorShift64, assert_close, call, gamma};

/// The address of a table.
fn at<T>(table: &mut [T]) -> u64 {
    table.as_mut_ptr().expose_provenance() as u64
}

fn route(logits: &mut GuardedMatrix, top_k: usize) -> (Vec<u32>, GuardedMatrix) {
    let (tokens, n_experts) = (logits.rows, logits.cols);
    let mut experts = vec![u32::MAX; tokens * top_k + 1];
    let mut weights = GuardedMatrix::unset((tokens, top_k), 0);
    let (sizes, ld) = ([tokens as u64, n_experts as u64, top_k as u64], logits.stride());
    let [t, n, k] = sizes;
    call("moe_route", &[logits.address(), at(&mut experts), weights.address(), t, n, k, ld]);
    weights.assert_guards();
    assert_eq!(experts.pop(), Some(u32::MAX), "wrote past the choices");
    (experts, weights)
}

#[test]
fn the_largest_logits_are_chosen_in_order_and_weighed() {
    let mut rng = XorShift64::new(61);
    for (tokens, n_experts, top_k) in [(0, 3, 1), (1, 1, 1), (5, 8, 2), (9, 33, 8), (3, 4, 4)] {
        let mut logits = GuardedMatrix::random((tokens, n_experts), 2, 4.0, &mut rng);
        let (experts, weights) = route(&mut logits, top_k);
        for token in 0..tokens {
            let mut order: Vec<usize> = (0..n_experts).collect();
            order.sort_by(|a, b| logits.at(token, *b).total_cmp(&logits.at(token, *a)));
            let chosen: Vec<_> = experts[token * top_k..][..top_k].to_vec();
            assert!(chosen.iter().map(|e| *e as usize).eq(order[..top_k].iter().copied()));
            let max = logits.f64_at(token, order[0]);
            let of = |e: &usize| (logits.f64_at(token, *e) - max).exp();
            let sum: f64 = order[..top_k].iter().map(of).sum();
            for (slot, expert) in order[..top_k].iter().enumerate() {
                let exact = of(expert) / sum;
                // The difference, exp, the sum of what is as far off, the quotient.
                let tolerance = 2.0 * (8.0 * U + 3.0 * U + gamma(top_k)) * exact;
                assert_close(weights.at(token, slot), exact, tolerance, || format!("{token}"));
            }
        }
    }
}

#[test]
fn of_equal_logits_the_lower_number_is_first() {
    let mut logits =
        GuardedMatrix::new((2, 5), 0, |token, e| if token == 1 && e > 2 { 1.0 } else { 0.0 });
    let (experts, weights) = route(&mut logits, 3);
    assert_eq!(experts, [0, 1, 2, 3, 4, 0]);
    assert!(weights.row(0).iter().all(|w| (w - 1.0 / 3.0).abs() < 1e-7));
}

#[test]
fn a_nan_is_chosen_first_and_spoils_the_weights_of_its_token() {
    let mut logits = GuardedMatrix::new((3, 5), 0, |token, e| match (token, e) {
        (1, 3) | (2, 0) | (2, 4) => f32::NAN,
        _ => e as f32,
    });
    let (experts, weights) = route(&mut logits, 2);
    assert_eq!(experts, [4, 3, 3, 4, 0, 4]);
    assert!(weights.row(0).iter().all(|weight| weight.is_finite()));
    assert!([1, 2].iter().all(|token| weights.row(*token).iter().all(|weight| weight.is_nan())));
}

#[test]
fn a_list_has_the_entries_of_its_expert_in_order() {
    let mut experts = [3, 1, 0, 3, 3, 2, 1, 3_u32];
    for (expert, expected) in [(3, &[0, 3, 4, 7][..]), (1, &[1, 6]), (7, &[])] {
        let (mut list, mut count) = ([u32::MAX; 8], [u32::MAX]);
        call("moe_list", &[at(&mut experts), at(&mut list), at(&mut count), 8, expert]);
        assert_eq!(count[0] as usize, expected.len());
        assert_eq!(&list[..expected.len()], expected);
        assert!(list[expected.len()..].iter().all(|entry| *entry == u32::MAX));
    }
}

#[test]
fn gather_and_scatter_move_the_rows_of_a_list() {
    let mut rng = XorShift64::new(62);
    let (tokens, cols, top_k) = (6, 19, 2);
    let mut x = GuardedMatrix::random((tokens, cols), 3, 2.0, &mut rng);
    for mut list in [vec![1_u32, 6, 11], vec![], vec![0]] {
        let (mut count, mut ran) = ([u32::try_from(list.len()).unwrap()], [41_u32]);
        let mut rows = GuardedMatrix::unset((list.len(), cols), 1);
        let (x_ld, rows_ld) = (x.stride(), rows.stride());
        let tables = [at(&mut list), at(&mut count), at(&mut ran)];
        let sizes = [tokens as u64, cols as u64, top_k];
        let [l, c, r] = tables;
        let [t, n, k] = sizes;
        call("moe_gather", &[x.address(), l, c, r, rows.address(), t, n, k, x_ld, rows_ld]);
        rows.assert_guards();
        assert_eq!(ran[0], 42);
        let token = |entry: u32| entry as usize / 2;
        assert!(list.iter().enumerate().all(|(i, entry)| rows.row(i) == x.row(token(*entry))));

        let mut weights: Vec<f32> = (0..tokens * 2).map(|_| rng.within(1.0)).collect();
        let before = GuardedMatrix::random((tokens, cols), 2, 2.0, &mut rng);
        let mut out = before.clone();
        let (w, out_ld) = (at(&mut weights), out.stride());
        call("moe_scatter", &[rows.address(), l, c, w, out.address(), t, n, k, rows_ld, out_ld]);
        out.assert_guards();
        for (row, col) in (0..tokens).flat_map(|row| (0..cols).map(move |col| (row, col))) {
            let from = list.iter().position(|entry| token(*entry) == row);
            let term =
                from.map_or(0.0, |i| f64::from(weights[list[i] as usize]) * rows.f64_at(i, col));
            let exact = before.f64_at(row, col) + term;
            let tolerance = gamma(2) * (before.f64_at(row, col).abs() + term.abs());
            assert_close(out.at(row, col), exact, tolerance, || format!("{row}, {col}"));
        }
    }
}

/// They are the kernels without a count, for as many rows as it says; after these they touch nothing.
#[test]
fn counted_kernels_have_the_bits_of_the_others() {
    let mut rng = XorShift64::new(63);
    let mut a = GuardedMatrix::random((7, 12), 1, 2.0, &mut rng);
    let mut b = GuardedMatrix::random((12, 9), 2, 2.0, &mut rng);
    let mut up = GuardedMatrix::random((7, 9), 0, 2.0, &mut rng);
    for mut count in [[0_u32], [3], [7]] {
        let m = u64::from(count[0]);
        let c = at(&mut count);
        let [mut plain, mut counted, mut gated, mut plain_gated] =
            [(); 4].map(|()| GuardedMatrix::unset((7, 9), 1));
        let (a_ld, b_ld, ld) = (a.stride(), b.stride(), plain.stride());
        let [x, y, z] = [a.address(), b.address(), plain.address()];
        call("matmul", &[x, y, z, m, 9, 12, a_ld, b_ld, ld]);
        call("moe_matmul", &[x, y, counted.address(), c, 9, 12, a_ld, b_ld, ld]);
        assert_eq!(plain.bits(), counted.bits());
        let (u, up_ld) = (up.address(), up.stride());
        call("silu_mul", &[z, u, plain_gated.address(), m, 9, ld, up_ld, ld]);
        call("moe_silu_mul", &[z, u, gated.address(), c, 9, ld, up_ld, ld]);
        assert_eq!(plain_gated.bits(), gated.bits());
    }
}
