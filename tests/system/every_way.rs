//! Whole-system tests: every example in every runtime variant, build mode, fanout strategy and hosting mode,
//! against its reference; and that all of them give the same bits.

use std::num::NonZeroUsize;

use pto_examples::host::{self, Example};
use pto_host::virtual_time::VirtualOptions;
use pto_host::{DeviceOptions, Hosting};

use crate::ways;

fn hostings() -> [Hosting; 5] {
    let pool = |n| Hosting::Pool { os_threads: NonZeroUsize::new(n).expect("not zero") };
    [pool(1), pool(2), pool(4), Hosting::Threads, Hosting::Virtual(VirtualOptions::default())]
}

fn in_every_way(example: &dyn Example) {
    let mut first = None;
    for hosting in hostings() {
        let options = DeviceOptions { hosting, ..DeviceOptions::default() };
        let mut device = host::open_sim(options).expect("the device opens");
        device.register_library().expect("the library registers");
        let prepared = host::prepare(example, example.sizes().whole, &device);
        let mut prepared = prepared.expect("the sizes are accepted");
        println!("{hosting}");
        ways::in_every_way(example, &mut device, &mut prepared, &mut first);
    }
}

mod examples {
    pto_examples::examples! { [super::ways::test_each] }
}
