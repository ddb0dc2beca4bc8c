//! The widest vector instructions of this machine, for loops that the compiler turns into vector instructions.
//!
//! The same loop is compiled twice: for the instructions of the target, and with AVX2; loops with much work for each element a third time,
//! with AVX-512. No fused multiply-add is ever made of it, so all give the same bits. What fuses does so by name (`fused.rs`).

/// Which instructions the machine has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wide {
    /// Those of the target.
    Target,
    /// AVX2 and what comes with it.
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// The first four parts of AVX-512 (F, DQ, BW, VL), and AVX2.
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

impl Wide {
    /// Asks the machine.
    #[must_use]
    pub fn detect() -> Self {
        #[cfg(target_arch = "x86_64")]
        match x86::widest() {
            0 => {}
            1 => return Self::Avx2,
            _ => return Self::Avx512,
        }
        Self::Target
    }

    /// Iterates over the instruction sets of the same machine up to and including this one, the narrowest first.
    pub fn and_narrower(self) -> impl Iterator<Item = Self> {
        #[cfg(target_arch = "x86_64")]
        let all = [Self::Target, Self::Avx2, Self::Avx512];
        #[cfg(not(target_arch = "x86_64"))]
        let all = [Self::Target];
        let count = all.iter().position(|one| *one == self).map_or(0, |index| index + 1);
        all.into_iter().take(count)
    }

    /// Runs `f`, compiled for these instructions.
    #[inline(always)]
    pub fn run<R>(self, f: impl FnOnce() -> R) -> R {
        match self {
            Self::Target => f(),
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 | Self::Avx512 => {
                // SAFETY: `detect` gives these variants on a machine that has the instructions. A caller that makes it up
                // itself gets an illegal instruction, and that is why `Interpreter` asks.
                unsafe { x86::with_avx2(f) }
            }
        }
    }

    /// Runs `f`, compiled for the widest of these instructions. It is compiled once more than with [`run`](Self::run): for loops
    /// whose elements take tens of instructions.
    #[inline(always)]
    pub fn run_widest<R>(self, f: impl FnOnce() -> R) -> R {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => {
                // SAFETY: as in `run`.
                unsafe { x86::with_avx512(f) }
            }
            other => other.run(f),
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use core::arch::x86_64::{__cpuid, __cpuid_count, _xgetbv};

    /// 1: the processor has AVX2, FMA and F16C, and the system keeps the wide registers; 2: the same of AVX-512; 0: neither.
    pub(super) fn widest() -> u8 {
        let has = |register: u32, bit: u32| register >> bit & 1 == 1;
        if __cpuid(0).eax < 7 {
            return 0;
        }
        let (first, seventh) = (__cpuid(1), __cpuid_count(7, 0));
        if !has(first.ecx, 27) {
            return 0;
        }
        // SAFETY: bit 27 says that the instruction is there.
        let kept = unsafe { xcr0() };
        let has_256 = has(first.ecx, 12) && has(first.ecx, 29) && has(seventh.ebx, 5);
        let has_512 = [16, 17, 30, 31].into_iter().all(|bit| has(seventh.ebx, bit));
        match (kept & 0x06 == 0x06 && has_256, kept & 0xE6 == 0xE6 && has_512) {
            (false, _) => 0,
            (true, false) => 1,
            (true, true) => 2,
        }
    }

    #[target_feature(enable = "xsave")]
    fn xcr0() -> u64 {
        // SAFETY: the caller has seen that the processor has the instruction; register 0 always exists.
        unsafe { _xgetbv(0) }
    }

    #[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx2,fma,f16c")]
    pub(super) fn with_avx512<R>(f: impl FnOnce() -> R) -> R {
        f()
    }

    #[target_feature(enable = "avx2,fma,f16c")]
    pub(super) fn with_avx2<R>(f: impl FnOnce() -> R) -> R {
        f()
    }
}
