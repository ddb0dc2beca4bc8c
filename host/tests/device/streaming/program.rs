//! The programs of these tests.

use pto_host::abi::{CoreKind, Fault, GmAddr, TaskId};
use pto_host::func;
use pto_host::graph::{
    Arg, BuildError, DependencyMode, ElementType, StreamBuilder, TensorTask, TensorView,
    builder_set,
};

use super::support::MIX;

builder_set! {
    /// All of them.
    pub(crate) struct StreamingPrograms {}
    stream {
        "random" => random,
        "pieces" => super::pieces::pieces,
        "modes" => super::pieces::modes,
        "endless" => endless,
        "loop" => element_loop,
        "bad" => super::faults::bad,
        "chains" => super::traced::chains,
    }
}

/// Elements of each tensor of a random program, as a matrix.
pub(crate) const SHAPE: [u32; 2] = [16, 24];

/// SplitMix64.
pub(crate) struct SplitMix64(pub(crate) u64);

impl SplitMix64 {
    pub(crate) fn below(&mut self, bound: u32) -> u32 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        u32::try_from((z ^ (z >> 31)) % u64::from(bound)).unwrap_or(0)
    }
}

/// A part of a tensor: rows and columns, stepped, perhaps transposed.
pub(crate) fn part<'s>(random: &mut SplitMix64, mut view: TensorView<'s>) -> TensorView<'s> {
    for dim in 0..2 {
        let extent = view.shape()[dim];
        if random.below(3) > 0 {
            let start = random.below(extent);
            view = view.slice(dim, start, 1 + random.below(extent - start));
        }
        if random.below(4) == 0 {
            view = view.step(dim, 1 + random.below(3));
        }
    }
    if random.below(4) == 0 { view.transpose(0, 1) } else { view }
}

fn random<G: StreamBuilder>(stream: &mut G) -> Result<(), BuildError> {
    let [seed, groups, base] = stream.orch_args() else { return Err(BuildError::Failed(1)) };
    let (mut random, groups, base) = (SplitMix64(*seed), *groups, GmAddr(*base));
    for group in 0..groups {
        stream.scope(DependencyMode::DERIVED, |scope| {
            let first = scope.tensor(ElementType::U32, &SHAPE)?;
            tasks(&mut **scope, &mut random, base, &first, group)?;
            if group % 3 > 0 {
                return Ok(());
            }
            scope.scope(DependencyMode::DERIVED, |inner| {
                let second = inner.tensor(ElementType::U32, &SHAPE)?;
                tasks(&mut **inner, &mut random, base, &first, group)?;
                tasks(&mut **inner, &mut random, base, &second, group)
            })
        })?;
    }
    Ok(())
}

/// Three tensors of the host's.
pub(crate) fn tensors(base: GmAddr) -> [TensorView<'static>; 3] {
    let bytes = 4 * u64::from(SHAPE[0]) * u64::from(SHAPE[1]);
    [0, 1, 2].map(|number| TensorView::dense(base.offset(number * bytes), ElementType::U32, &SHAPE))
}

/// The temporary is written as a whole, then used.
fn tasks<G: StreamBuilder>(
    stream: &mut G,
    random: &mut SplitMix64,
    base: GmAddr,
    temporary: &TensorView<'_>,
    group: u64,
) -> Result<(), BuildError> {
    let tensors = tensors(base);
    let tensor = |random: &mut SplitMix64| tensors[random.below(3) as usize];
    let source = tensor(random);
    submit_mix(stream, [&part(random, source), temporary], Arg::Scalar(group), false, &[])?;
    for salt in 0..5 {
        let (a, b) = (tensor(random), tensor(random));
        let (source, target) = match random.below(4) {
            0 => (part(random, *temporary), part(random, a.detach())),
            1 => (part(random, a.detach()), part(random, *temporary)),
            _ => (part(random, a.detach()), part(random, b.detach())),
        };
        let reads = random.below(2) == 0;
        submit_mix(stream, [&source, &target], Arg::Scalar(group * 8 + salt), reads, &[])?;
    }
    Ok(())
}

/// Words: source, target (address, rows, row stride, columns, column stride each), salt and mode.
pub(crate) fn submit_mix<G: StreamBuilder>(
    stream: &mut G,
    [source, target]: [&TensorView<'_>; 2],
    salt: Arg<'_>,
    reads: bool,
    after: &[TaskId],
) -> Result<TaskId, Fault> {
    let [a, b] = [source, target].map(|view| {
        let (shape, strides) = (view.shape(), view.strides());
        [u64::from(shape[0]) << 32 | strides[0], u64::from(shape[1]) << 32 | strides[1]]
    });
    let args = [
        Arg::In(source),
        Arg::Scalar(a[0]),
        Arg::Scalar(a[1]),
        if reads { Arg::InOut(target) } else { Arg::Out(target) },
        Arg::Scalar(b[0]),
        Arg::Scalar(b[1]),
        salt,
        Arg::Scalar(u64::from(reads)),
    ];
    stream.submit_tensors(&TensorTask { after, ..TensorTask::new(MIX, CoreKind::AIV, &args) })
}

/// `target[i] = 31 * target[i] + source[i] + salt`, over the target in row-major order; the source begins again where it
/// is shorter. Some take longer than others.
pub(crate) unsafe extern "C" fn mix_kernel(args: *const u64) {
    // SAFETY: the program passes these eight words.
    let words: &[u64] = unsafe { core::slice::from_raw_parts(args, 8) };
    let side = |at: usize| {
        let split = |word: u64| (word >> 32, word & 0xFFFF_FFFF);
        let ((rows, row_stride), (columns, column_stride)) =
            (split(words[at + 1]), split(words[at + 2]));
        (0..rows).flat_map(move |row| {
            (0..columns)
                .map(move |column| words_at(words[at], row * row_stride + column * column_stride))
        })
    };
    let (salt, reads) = (u32::try_from(words[6] & 0xFFFF).unwrap_or(0), words[7] == 1);
    for _ in 0..u64::from(salt % 5) * 200 {
        core::hint::spin_loop();
    }
    for (from, to) in side(0).cycle().zip(side(3)) {
        // SAFETY: both are elements of live tensors, aligned to 4 bytes.
        let value = unsafe { from.read_volatile() };
        // SAFETY: as above.
        let old = if reads { unsafe { to.read_volatile() } } else { 0 };
        // SAFETY: as above.
        unsafe { to.write_volatile(old.wrapping_mul(31).wrapping_add(value).wrapping_add(salt)) };
    }
}

fn words_at(base: u64, element: u64) -> *mut u32 {
    core::ptr::with_exposed_provenance_mut(usize::try_from(base + 4 * element).unwrap_or(0))
}

/// Tasks without work, each reading and writing one of 61 tensors and reading another; a scope with a tensor for each
/// hundred.
fn endless<G: StreamBuilder>(stream: &mut G) -> Result<(), BuildError> {
    let [tasks, base] = stream.orch_args() else { return Err(BuildError::Failed(1)) };
    let (tasks, base) = (*tasks, GmAddr(*base));
    let tensor =
        |number: u64| TensorView::dense(base.offset(number % 61 * 64), ElementType::U32, &[16]);
    let mut number = 0;
    while number < tasks {
        stream.scope::<(), BuildError>(DependencyMode::DERIVED, |scope| {
            let temporary = scope.tensor(ElementType::F32, &[256])?;
            for number in number..tasks.min(number + 100) {
                let (a, b) = (tensor(number), tensor(number * 7 + 3));
                let args = [Arg::InOut(&a), Arg::In(&b), Arg::Out(&temporary)];
                let args = if number % 10 == 0 { &args[..] } else { &args[..1] };
                scope.submit_tensors(&TensorTask::new(func::EMPTY_AIV, CoreKind::AIV, args))?;
            }
            Ok(())
        })?;
        number += 100;
    }
    Ok(())
}

/// Doubles a number until it exceeds a bound, which only the device knows.
fn element_loop<G: StreamBuilder>(stream: &mut G) -> Result<(), BuildError> {
    let [bound, base] = stream.orch_args() else { return Err(BuildError::Failed(1)) };
    let (bound, base) = (*bound, GmAddr(*base));
    let [x, y] = [0, 64].map(|at| TensorView::dense(base.offset(at), ElementType::U32, &[1, 1]));
    stream.set(&x, &[0, 0], 1)?;
    while stream.get(&x, &[0, 0])? <= bound {
        submit_mix(stream, [&x, &y], Arg::Scalar(0), false, &[])?;
        submit_mix(stream, [&y, &x], Arg::Scalar(0), true, &[])?;
        // The next `set` waits for the readers of `y`.
        stream.set(&y, &[0, 0], 0)?;
    }
    Ok(())
}
