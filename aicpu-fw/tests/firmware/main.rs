//! The firmware's policy against ordinary memory and scripted cores: builder, scheduler, watchdog, launch.
#![cfg(not(any(loom, shuttle)))]

mod ahead;
mod arena;
mod builder;
mod hoarding;
mod launch;
mod loader;
mod mock;
#[cfg(pto_mutants)]
mod mutants;
mod scheduler;
mod slots;
#[path = "../common/split_mix.rs"]
mod split_mix;
#[path = "../common/stub.rs"]
mod stub;
mod trace;
mod watchdog;
#[path = "../common/words.rs"]
mod words;

use pto_aicpu_fw::FanoutPolicy;

/// A test body that is generic over the fanout strategy.
macro_rules! both_strategies {
    ($($(#[$meta:meta])* $name:ident => $body:ident;)+) => { $(
        $(#[$meta])*
        #[test]
        fn $name() {
            $body::<pto_aicpu_fw::Locked>();
            $body::<pto_aicpu_fw::LockFree>();
        }
    )+ };
}
use both_strategies;

/// A builder over the tests' memory.
type TestBuilder<'a, F> =
    pto_aicpu_fw::Builder<'a, (pto_abi::sync::Concurrent, F, words::FakeDevice, ())>;

fn builder<F: FanoutPolicy>(words: &words::StateMemory) -> TestBuilder<'_, F> {
    TestBuilder::new(words.inputs(), words::FakeDevice, words::quiet())
}
