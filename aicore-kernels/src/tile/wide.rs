//! The widest vector instructions of this machine, for loops that the compiler turns into vector instructions.
//!
//! The same loop is compiled twice: as the target has it, and with AVX2. No fused multiply-add is ever made of it, so both give
//! the same bits.

/// Which instructions the machine has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wide {
    /// Those of the target.
    Target,
    /// AVX2 and what comes with it.
    #[cfg(target_arch = "x86_64")]
    Avx2,
}

impl Wide {
    /// Asks the machine.
    #[must_use]
    pub fn detect() -> Self {
        #[cfg(target_arch = "x86_64")]
        if x86::has_avx2() {
            return Self::Avx2;
        }
        Self::Target
    }

    /// Runs `f`, compiled for these instructions.
    #[inline(always)]
    pub fn run<R>(self, f: impl FnOnce() -> R) -> R {
        match self {
            Self::Target => f(),
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => {
                // SAFETY: `detect` gives this variant on a machine that has the instructions. A caller that makes it up
                // itself gets an illegal instruction, and that is why `Machine` asks.
                unsafe { x86::with_avx2(f) }
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use core::arch::x86_64::{__cpuid, __cpuid_count, _xgetbv};

    /// Whether the processor has AVX2, FMA and F16C, and the system keeps the wide registers.
    pub(super) fn has_avx2() -> bool {
        let has = |register: u32, bit: u32| register >> bit & 1 == 1;
        if __cpuid(0).eax < 7 {
            return false;
        }
        let (first, seventh) = (__cpuid(1), __cpuid_count(7, 0));
        let is_kept = has(first.ecx, 27) && {
            // SAFETY: bit 27 says that the instruction is there.
            let kept = unsafe { xcr0() };
            kept & 6 == 6
        };
        is_kept && has(first.ecx, 12) && has(first.ecx, 29) && has(seventh.ebx, 5)
    }

    #[target_feature(enable = "xsave")]
    fn xcr0() -> u64 {
        // SAFETY: the caller has seen that the processor has the instruction; register 0 always exists.
        unsafe { _xgetbv(0) }
    }

    #[target_feature(enable = "avx2,fma,f16c")]
    pub(super) fn with_avx2<R>(f: impl FnOnce() -> R) -> R {
        f()
    }
}
