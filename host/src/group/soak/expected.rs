//! What the calls of a campaign must give, worked out on the host, one call after the other.

use pto_graph::group::Reduction;

use super::setting::{Call, CallKind, MOST, Setting};

/// The tensors of all ranks: for each rank the first, the second, and the target of each call's put.
pub(super) type Tensors = Vec<Vec<Vec<i32>>>;

/// What they are before the run.
pub(super) fn before(setting: &Setting) -> Tensors {
    let tensors = 2 + setting.calls.len();
    let value = |rank: u32, tensor: usize, at: usize| {
        let index = u64::from(rank) * 7919 + at as u64 * 31 + tensor as u64 * 977;
        i32::try_from((setting.seed ^ index) % 23).unwrap_or(0) - 11
    };
    let tensor = |rank, of| (0..MOST).map(|at| value(rank, of, at)).collect();
    (0..setting.ranks).map(|rank| (0..tensors).map(|of| tensor(rank, of)).collect()).collect()
}

/// What they are after it.
pub(super) fn after(setting: &Setting) -> Tensors {
    let mut tensors = before(setting);
    for (at, call) in setting.calls.iter().enumerate() {
        step(&mut tensors, at, call);
    }
    tensors
}

fn step(tensors: &mut Tensors, at: usize, call: &Call) {
    let (ranks, n) = (tensors.len(), call.elements);
    let firsts: Vec<Vec<i32>> = tensors.iter().map(|rank| rank[0][..n].to_vec()).collect();
    let mut set = |rank: usize, tensor: usize, values: &[i32]| {
        tensors[rank][tensor][..n].copy_from_slice(values);
    };
    for rank in 0..ranks {
        let before = (rank + ranks - 1) % ranks;
        match call.what {
            CallKind::BROADCAST => set(rank, 0, &firsts[call.root as usize]),
            CallKind::REDUCE | CallKind::ALL_REDUCE | CallKind::SCATTER_GATHER => {
                set(rank, 0, &reduced(&firsts, call.reduction));
            }
            CallKind::ALL_TO_ALL => {
                let part = n / ranks;
                let of = |from: &Vec<i32>| from[rank * part..(rank + 1) * part].to_vec();
                set(rank, 1, &firsts.iter().flat_map(of).collect::<Vec<_>>());
            }
            CallKind::PUT => set(rank, 2 + at, &firsts[before]),
            CallKind::SEND => set(rank, 1, &firsts[before]),
            _ => {}
        }
    }
}

fn reduced(of: &[Vec<i32>], reduction: Reduction) -> Vec<i32> {
    let combine = |a: i32, b: i32| match reduction {
        Reduction::SUM => a.wrapping_add(b),
        Reduction::PROD => a.wrapping_mul(b),
        Reduction::MAX => a.max(b),
        _ => a.min(b),
    };
    let first = of.first().cloned().unwrap_or_default();
    of.iter()
        .skip(1)
        .fold(first, |sum, next| sum.iter().zip(next).map(|(a, b)| combine(*a, *b)).collect())
}
