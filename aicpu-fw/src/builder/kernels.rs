//! Which kernels a builder accepts: those that are registered, for cores that the device has.

use pto_abi::limits::{MAX_ARGS, MAX_FUNC_ID};
use pto_abi::{CoreKind, Fault, FuncId, GmAddr, TaskId};

use super::memory::DeviceMemory;
use crate::blame::Blame;

/// The kernels and the core kinds of the device.
pub(crate) struct KernelLookup<M> {
    memory: M,
    has_kind: [bool; CoreKind::COUNT],
}

impl<M: DeviceMemory> KernelLookup<M> {
    pub(crate) const fn new(memory: M, has_kind: [bool; CoreKind::COUNT]) -> Self {
        Self { memory, has_kind }
    }

    /// The memory of the device.
    #[inline]
    pub(crate) const fn memory(&self) -> &M {
        &self.memory
    }

    /// The code of the kernel, for a task with this many arguments; `given`: the code, or null: what is registered. `None`: the
    /// task cannot run, and [`refusal`](Self::refusal) says why.
    #[inline]
    pub(crate) fn accept(
        &self,
        (func, kind): (FuncId, CoreKind),
        given: GmAddr,
        args: usize,
    ) -> Option<GmAddr> {
        if func.index() >= MAX_FUNC_ID || args > MAX_ARGS || !self.has_kind[kind.index()] {
            return None;
        }
        let kernel = if given.is_null() { self.memory.kernel_addr(func) } else { given };
        (!kernel.is_null()).then_some(kernel)
    }

    /// Why a task that would have been `next` cannot run.
    #[cold]
    #[inline(never)]
    pub(crate) fn refusal(
        &self,
        (func, kind): (FuncId, CoreKind),
        args: usize,
        next: TaskId,
    ) -> Blame {
        let (fault, found, bound) = if func.index() >= MAX_FUNC_ID {
            (Fault::BUILD_UNKNOWN_FUNC, func.index(), MAX_FUNC_ID - 1)
        } else if args > MAX_ARGS {
            (Fault::BUILD_TOO_MANY_ARGS, args, MAX_ARGS)
        } else if !self.has_kind[kind.index()] {
            (Fault::BUILD_NO_CORE_OF_KIND, kind.index(), 0)
        } else {
            (Fault::BUILD_KERNEL_MISSING, func.index(), 0)
        };
        let blame = Blame::of(fault).func(func.0.into()).task(next);
        blame.detail(found as u64, bound as u64)
    }
}

/// The kernels of one run, while which what is registered stays as it is: most tasks have the kernel of the one before.
pub(crate) struct RunKernels<M> {
    kernels: KernelLookup<M>,
    /// The registered kernel that was accepted last (func id, and core kind from bit 16 on), and its code.
    last: (u32, GmAddr),
}

impl<M: DeviceMemory> RunKernels<M> {
    pub(crate) const fn new(memory: M, has_kind: [bool; CoreKind::COUNT]) -> Self {
        Self { kernels: KernelLookup::new(memory, has_kind), last: (u32::MAX, GmAddr::NULL) }
    }

    /// As [`KernelLookup::memory`].
    #[inline]
    pub(crate) const fn memory(&self) -> &M {
        self.kernels.memory()
    }

    /// As [`KernelLookup::accept`].
    #[inline]
    pub(crate) fn accept(
        &mut self,
        (func, kind): (FuncId, CoreKind),
        given: GmAddr,
        args: usize,
    ) -> Option<GmAddr> {
        let key = u32::from(func.0) | u32::from(kind.get()) << u16::BITS;
        let remembers = given.is_null();
        if remembers && self.last.0 == key && args <= MAX_ARGS {
            return Some(self.last.1);
        }
        let code = self.kernels.accept((func, kind), given, args)?;
        if remembers {
            self.last = (key, code);
        }
        Some(code)
    }

    /// As [`KernelLookup::refusal`].
    pub(crate) fn refusal(&self, kernel: (FuncId, CoreKind), args: usize, next: TaskId) -> Blame {
        self.kernels.refusal(kernel, args, next)
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::{DeviceMemory, KernelLookup, RunKernels};
    use pto_abi::{CoreKind, Fault, FuncId, GmAddr, TaskId};

    struct FourKernels;

    impl DeviceMemory for FourKernels {
        fn kernel_addr(&self, func: FuncId) -> GmAddr {
            if func.0 < 4 { GmAddr(0x40) } else { GmAddr::NULL }
        }
        fn read_u32(&self, _: GmAddr) -> Option<u32> {
            None
        }
    }

    #[test]
    fn a_kernel_is_given_or_registered_and_has_cores() {
        let mut has_kind = [false; CoreKind::COUNT];
        has_kind[CoreKind::AIV.index()] = true;
        let kernels = KernelLookup::new(FourKernels, has_kind);
        let accept = |func, kind, given, args| {
            let accepted = kernels.accept((FuncId(func), kind), GmAddr(given), args);
            accepted.ok_or_else(|| {
                let next = TaskId { slot: 9, generation: 1 };
                let blame = kernels.refusal((FuncId(func), kind), args, next);
                assert_eq!((blame.func_id, blame.task.slot), (func.into(), 9));
                (blame.fault, blame.detail)
            })
        };
        assert_eq!(accept(3, CoreKind::AIV, 0, 128), Ok(GmAddr(0x40)));
        assert_eq!(accept(4, CoreKind::AIV, 0x80, 0), Ok(GmAddr(0x80)));
        assert_eq!(accept(4, CoreKind::AIV, 0, 0), Err((Fault::BUILD_KERNEL_MISSING, [4, 0])));
        assert_eq!(accept(3, CoreKind::AIC, 0, 0), Err((Fault::BUILD_NO_CORE_OF_KIND, [0, 0])));
        assert_eq!(accept(3, CoreKind::AIV, 0, 129), Err((Fault::BUILD_TOO_MANY_ARGS, [129, 128])));
        let unknown = (Fault::BUILD_UNKNOWN_FUNC, [1024, 1023]);
        assert_eq!(accept(1024, CoreKind::AIV, 0x80, 0), Err(unknown));
    }

    #[test]
    fn the_kernel_of_the_task_before_is_accepted_as_any_other() {
        let mut has_kind = [false; CoreKind::COUNT];
        has_kind[CoreKind::AIV.index()] = true;
        let (plain, mut kernels) =
            (KernelLookup::new(FourKernels, has_kind), RunKernels::new(FourKernels, has_kind));
        let asked = [
            (3, CoreKind::AIV, 0, 128),
            (3, CoreKind::AIV, 0, 0),
            (3, CoreKind::AIV, 0, 129),
            (3, CoreKind::AIC, 0, 0),
            (3, CoreKind::AIV, 0x80, 0),
            (3, CoreKind::AIV, 0, 1),
            (2, CoreKind::AIV, 0, 1),
            (4, CoreKind::AIV, 0, 1),
            (4, CoreKind::AIV, 0x80, 1),
            (4, CoreKind::AIV, 0, 1),
        ];
        for (func, kind, given, args) in asked {
            let kernel = (FuncId(func), kind);
            let accepted = kernels.accept(kernel, GmAddr(given), args);
            assert_eq!(accepted, plain.accept(kernel, GmAddr(given), args), "{func}, {given}");
        }
    }
}
