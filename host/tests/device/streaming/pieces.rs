//! Records that are replayed, and scopes of all three modes: the bits are those of the same tasks one after the other.

use pto_host::abi::{Fault, GmAddr};
use pto_host::graph::{Arg, Bindings, BuildError, DependencyMode, StreamBuilder, TensorView};
use pto_host::virtual_time::VirtualOptions;
use pto_host::{Hosting, Work};

use super::program::{SHAPE, SplitMix64, part, submit_mix, tensors};
use super::random::{ELEMENTS, sequential};
use super::support::{open, pool, small};

fn any_part<'s>(random: &mut SplitMix64, tensors: &[TensorView<'s>]) -> TensorView<'s> {
    let number = random.below(u32::try_from(tensors.len()).unwrap_or(1));
    part(random, tensors[number as usize])
}

/// A piece on two tensors and a temporary; the salt of some tasks may change.
fn piece<G: StreamBuilder>(
    stream: &mut G,
    seed: u64,
    tensors: [TensorView<'_>; 2],
    salt: Arg<'_>,
) -> Result<(), BuildError> {
    let random = &mut SplitMix64(seed);
    stream.scope(DependencyMode::DERIVED, |scope| {
        let temporary = scope.tensor(tensors[0].element(), &SHAPE)?;
        submit_mix(&mut **scope, [&part(random, tensors[0]), &temporary], salt, false, &[])?;
        for number in 0..4 + random.below(4) {
            let all = [tensors[0].detach(), tensors[1].detach(), temporary.detach()];
            let [source, target] = [0, 0].map(|_| any_part(random, &all));
            let salt = if random.below(2) == 0 { salt } else { Arg::Scalar(number.into()) };
            let reads = random.below(2) == 0;
            submit_mix(&mut **scope, [&source, &target], salt, reads, &[])?;
        }
        Ok(())
    })
}

/// Three pieces, twelve times, on two of the three tensors, with a task between them. The second word: whether they are
/// recorded and replayed, or submitted.
pub(crate) fn pieces<G: StreamBuilder>(stream: &mut G) -> Result<(), BuildError> {
    let [seed, replays, base] = stream.orch_args() else { return Err(BuildError::Failed(1)) };
    let (seed, replays, base) = (*seed, *replays == 1, GmAddr(*base));
    let random = &mut SplitMix64(seed);
    let all = tensors(base);
    let mut recordings = Vec::new();
    for number in 0..3 {
        if replays {
            recordings.push(stream.record(&[all[0]; 2], |stream, bound| {
                let tensors = [bound.tensor(0), bound.tensor(1)];
                piece(stream, seed * 3 + number, tensors, bound.scalar(0))
            })?);
        }
    }
    for round in 0..12_u32 {
        let (which, turn) = (u64::from(random.below(3)), random.below(3));
        let bound = [0, 1].map(|index| all[((turn + index) % 3) as usize]);
        let salt = u64::from(round);
        match recordings.get(usize::try_from(which).unwrap_or(0)) {
            Some(recording) => {
                stream.replay(recording, &Bindings { tensors: &bound, scalars: &[salt] })?;
            }
            None => piece(stream, seed * 3 + which, bound, Arg::Scalar(salt))?,
        }
        let views = [0, 0].map(|_| any_part(random, &all));
        submit_mix(stream, [&views[0], &views[1]], Arg::Scalar(1), false, &[])?;
    }
    Ok(())
}

/// Scopes of the three modes in turn. What the derivation does not see, the program says.
pub(crate) fn modes<G: StreamBuilder>(stream: &mut G) -> Result<(), BuildError> {
    let [seed, groups, base] = stream.orch_args() else { return Err(BuildError::Failed(1)) };
    let (random, groups, base) = (&mut SplitMix64(*seed), *groups, GmAddr(*base));
    let (all, mut ids, mut unseen) = (tensors(base), Vec::new(), Vec::new());
    for _ in 0..groups {
        let mode = DependencyMode::ALL[random.below(3) as usize];
        stream.scope::<(), Fault>(mode, |scope| {
            for number in 0..3 {
                let views = [0, 0].map(|_| any_part(random, &all));
                let after = if mode == DependencyMode::DERIVED { &unseen } else { &ids };
                let reads = random.below(2) == 0;
                let views = [&views[0], &views[1]];
                let id = submit_mix(&mut **scope, views, Arg::Scalar(number), reads, after)?;
                ids.push(id);
                if mode == DependencyMode::MANUAL {
                    unseen.push(id);
                }
            }
            Ok(())
        })?;
    }
    Ok(())
}

fn hostings() -> [Hosting; 4] {
    [pool(1), pool(2), Hosting::Threads, Hosting::Virtual(VirtualOptions::default())]
}

fn check(program: &str, words: [u64; 2], expected: &[u32], hosting: Hosting) {
    let mut device = open(hosting);
    let values: Vec<u32> = (0..u32::try_from(ELEMENTS).unwrap()).collect();
    for window in [16, 64] {
        let tensors = device.upload(&values).unwrap();
        let orch_args = [words[0], words[1], tensors.address().0];
        let mut options = small(window);
        options.capacities.edges = 1200;
        let work = Work::Stream { builder: program, orch_args: &orch_args };
        device.run(work, &options).unwrap_or_else(|e| panic!("{program} {words:?} {window}: {e}"));
        assert_eq!(tensors.read().unwrap(), expected, "{program} {words:?}, {window}, {hosting}");
    }
}

#[test]
fn pieces_that_are_replayed_compute_what_submitted_ones_do() {
    for (seed, hosting) in (0..12).zip(hostings().into_iter().cycle()) {
        let expected = sequential("pieces", [seed, 0]);
        check("pieces", [seed, 1], &expected, hosting);
        check("pieces", [seed, 0], &expected, hosting);
    }
}

#[test]
fn scopes_of_all_modes_may_be_mixed() {
    for (seed, hosting) in (0..12).zip(hostings().into_iter().cycle()) {
        check("modes", [seed, 12], &sequential("modes", [seed, 12]), hosting);
    }
}
