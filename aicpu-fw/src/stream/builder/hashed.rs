//! What tells a streaming builder from another one on the same memory: for machines that search all orders of steps, and go on
//! from each state once.

use core::hash::Hash;
use core::hash::Hasher;

use pto_abi::sync::Sharing;

use super::Stream;
use crate::builder::{BuilderHost, DeviceMemory};
use crate::fanout::FanoutPolicy;

impl<S: Sharing, F: FanoutPolicy, M: DeviceMemory, H: BuilderHost> Stream<'_, S, F, M, H> {
    /// Tells the host everything that later calls depend on, if it wants that: before each turn of the others. The memory of
    /// the run is not part of it, nor is what is only told, nor for how long it has waited: that decides only when a wait
    /// that can never end is given up. `at`: where in a call the builder is, as far as that does not
    /// follow from the rest.
    #[inline]
    pub(in crate::stream) fn tell_state(&mut self, at: u64) {
        if let Some(into) = self.host.hasher() {
            at.hash(&mut &mut *into);
            self.hash_state();
        }
    }

    #[cold]
    #[inline(never)]
    fn hash_state(&mut self) {
        let Self {
            state: _,
            line: _,
            memory: _,
            host,
            orch_args: _,
            has_kind: _,
            header: _,
            records: _,
            map,
            words,
            chunks,
            heaps,
            heap: _,
            heap_bytes: _,
            scopes,
            next_scope,
            // Its words are memory of the run.
            tape: _,
            taped,
            record_count,
            // Nothing is published while a record is made, and nobody waits.
            draft: _,
            next,
            watermark,
            first,
            shift: _,
            mask: _,
            generation,
            schedulers: _,
            reserve,
            largest: _,
            kept: _,
            traced_ns,
            blame: _,
            policy: _,
        } = self;
        let Some(mut into) = host.hasher() else { return };
        (next, watermark, first, generation, reserve, traced_ns).hash(&mut into);
        (words, chunks, next_scope, taped, record_count).hash(&mut into);
        heaps.iter().for_each(|heap| heap.hash_state(&mut into));
        for scope in scopes.iter() {
            (scope.id.depth, scope.id.serial, scope.mode).hash(&mut into);
        }
        map.hash_state(&mut into);
    }
}
