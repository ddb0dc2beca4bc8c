//! What library kernels save on tensors that are in the fast region of a device.
//!
//! The cost model of the library charges transfers from and to memory. The table of the kernels says which words of a call are
//! addresses of tensors, with their extents: a tensor that is wholly in the region is charged the transfer that the profile
//! has for the region (`[on_chip]`), where that is shorter. Tile kernels are not looked at here: the host knows their parameters when it binds a plan.

use std::ops::Range;
use std::sync::{Arc, PoisonError, RwLock};

use pto_abi::{CoreKind, FuncId};
use pto_aicore_kernels::cost::{
    F32, GM_TO_L1, GM_TO_UB, L0C_TO_GM, OnChip, UB_TO_GM, transfer_bytes,
};
use pto_aicore_kernels::library::{Access, LibraryKernel};
use pto_aicore_kernels::{LIBRARY, func};

use super::super::profile::Profile;

/// The fast regions of a device, as ranges of addresses. Clones are the same regions.
#[derive(Clone, Debug, Default)]
pub struct FastRegions(Arc<RwLock<Vec<Range<u64>>>>);

impl FastRegions {
    /// These addresses are a fast region, for as long as the value lives.
    #[must_use]
    pub fn add(&self, addresses: Range<u64>) -> FastRegion {
        let region = FastRegion { of: self.clone(), addresses };
        self.0.write().unwrap_or_else(PoisonError::into_inner).push(region.addresses.clone());
        region
    }

    /// Nanoseconds that a call of a library kernel saves, because tensors of it are there.
    pub(in super::super) fn saved_ns(&self, func_id: u16, words: &[u64], profile: &Profile) -> u64 {
        let regions = self.0.read().unwrap_or_else(PoisonError::into_inner);
        if regions.is_empty() {
            return 0;
        }
        let Some(kernel) = LIBRARY.get(usize::from(func_id)) else { return 0 };
        let is_there = |bytes: &Range<u64>| {
            regions.iter().any(|region| region.start <= bytes.start && bytes.end <= region.end)
        };
        saved_ps(kernel, words, profile.on_chip(), is_there) / 1_000
    }
}

/// A fast region.
#[derive(Debug)]
pub struct FastRegion {
    of: FastRegions,
    addresses: Range<u64>,
}

impl Drop for FastRegion {
    fn drop(&mut self) {
        let mut regions = self.of.0.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = regions.iter().position(|region| *region == self.addresses) {
            regions.swap_remove(at);
        }
    }
}

fn saved_ps(
    kernel: &LibraryKernel,
    words: &[u64],
    on_chip: OnChip,
    is_there: impl Fn(&Range<u64>) -> bool,
) -> u64 {
    let (to_core, from_core) = match kernel.kind {
        CoreKind::AIC => (GM_TO_L1, L0C_TO_GM),
        _ => (GM_TO_UB, UB_TO_GM),
    };
    let saved = |at: usize| {
        let footprint = (kernel.footprint)(words, 1, at).filter(|_| is_charged(kernel, at))?;
        let extents = footprint.extents?.matrix();
        let [rows, cols, distance] = Some(extents).filter(|[rows, cols, _]| rows * cols > 0)?;
        let (address, last) = (*words.get(at)?, rows.checked_sub(1)?.checked_mul(distance)?);
        let end = last.checked_add(cols)?.checked_mul(F32)?.checked_add(address)?;
        if !is_there(&(address..end)) {
            return None;
        }
        let bytes = rows * cols * F32;
        let one_way =
            |bandwidth| transfer_bytes(bytes, bandwidth).saturating_sub(on_chip.transfer(bytes));
        Some(match footprint.access {
            Access::In => one_way(to_core),
            Access::Out => one_way(from_core),
            Access::InOut => one_way(to_core) + one_way(from_core),
        })
    };
    (0..kernel.args.len()).filter_map(saved).sum()
}

/// Whether the cost model charges the transfer of the tensor of argument `at` as the table describes it. Of triangles it charges a half, of
/// experts a number of rows that is in memory, of an update one of the two results: these are charged what memory takes.
fn is_charged(kernel: &LibraryKernel, at: usize) -> bool {
    let Ok(func_id) = u16::try_from(kernel.func_id) else { return false };
    match FuncId(func_id) {
        func::CHOLESKY_POTRF
        | func::CHOLESKY_TRSM
        | func::CHOLESKY_SYRK
        | func::NEWTON_NORM
        | func::MOE_GATHER
        | func::MOE_MATMUL
        | func::MOE_SCATTER => false,
        func::ATTENTION_UPDATE => at != 6,
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::{FastRegions, saved_ps};
    use crate::virtual_time::{KernelCosts, Profile};
    use pto_aicore_kernels::cost::OnChip;
    use pto_aicore_kernels::{LIBRARY, by_name, func};

    const NOTHING: OnChip = OnChip { start_ns: 0, mib_ns: 0 };

    /// A call of `kernel` whose sizes and distances are all `size`.
    fn words(kernel: &pto_aicore_kernels::LibraryKernel, size: u64) -> Vec<u64> {
        let address = |at: usize| (at as u64 + 1) << 24;
        kernel
            .addresses
            .iter()
            .enumerate()
            .map(|(at, is)| if *is { address(at) } else { size })
            .collect()
    }

    #[test]
    fn no_kernel_saves_more_than_its_transfers_cost() {
        let model = KernelCosts::Library { fallback: 0 };
        let mut followed = 0;
        for kernel in LIBRARY {
            for size in [1, 16, 48, 128] {
                let words = words(kernel, size);
                let saved = saved_ps(kernel, &words, NOTHING, |_| true);
                let cost = model.expected(u16::try_from(kernel.func_id).unwrap(), &words) + 1;
                assert!(saved <= cost * 1_000, "{} of {size}: {saved} of {cost}", kernel.name);
                followed += u64::from(saved > 0);
            }
        }
        assert!(followed >= 4 * 15, "{followed} calls save something");
    }

    #[test]
    fn what_is_there_as_a_whole_is_charged_what_the_region_takes() {
        let (regions, profile) = (FastRegions::default(), Profile::a2a3());
        let add = func::ADD.0;
        let (n, a, b, out) = (1 << 16, 0x10_0000, 0x20_0000, 0x30_0000);
        let saved = || regions.saved_ns(add, &[a, b, out, n], profile);
        assert_eq!(saved(), 0, "there is no region");
        let _but_a_byte = regions.add(a..a + 4 * n - 1);
        assert_eq!(saved(), 0, "all but a byte");
        let of_input = regions.add(b..b + 4 * n);
        // 256 KiB at 100.9 GB/s are 2,598 ns.
        let takes = profile.on_chip_start_ns.mean() + profile.on_chip_mib_ns.mean() / 4;
        assert_eq!(saved(), 2_598 - takes, "one of two inputs");
        let _of_result = regions.add(out..out + 4 * n);
        // 256 KiB at 188.4 GB/s are 1,391 ns.
        assert_eq!(
            saved(),
            (2_598_050 + 1_391_420) / 1_000 - 2 * takes,
            "and the result, rounded once"
        );
        drop(of_input);
        assert_eq!(saved(), 1_391 - takes);
        assert_eq!(regions.saved_ns(func::TILE_AIV.0, &[a; 6], profile), 0, "the host knows those");
        assert_eq!(regions.saved_ns(u16::MAX, &[a; 6], profile), 0, "its tensors are unknown");
    }

    #[test]
    fn a_transfer_takes_at_most_what_it_takes_from_memory() {
        let slow = OnChip { start_ns: 1 << 20, mib_ns: 1 << 30 };
        let kernel = by_name("matmul").unwrap();
        assert_eq!(saved_ps(kernel, &words(kernel, 64), slow, |_| true), 0);
        assert!(saved_ps(kernel, &words(kernel, 64), NOTHING, |_| true) > 0);
    }
}
