//! How a core tells its host why a kernel ended: causes as words, and back.

use pto_aicore_kernels::tile::{Cause, Spread};

#[test]
fn causes_come_back_from_their_words() {
    let causes = [
        Cause::Tensors { needed: 3, found: 2 },
        Cause::Scalars { needed: 0, found: 1 },
        Cause::Scratch { needed: 1 << 24, found: 7 },
        Cause::Misaligned,
        Cause::ViewTooLarge { view: [8, u16::MAX], tile: [8, 64] },
        Cause::OutOfTensor { at: [70_000, 5], element: -9, elements: usize::MAX },
        Cause::Remainders { a: [1, 2], b: [3, 4] },
        Cause::StoreTooSmall { source: [1, 2], view: [3, 4] },
        Cause::DivisionByZero { at: [0, 3], spread: Spread::ALL[1] },
        Cause::NoIndex { at: u32::MAX },
        Cause::Broken,
    ];
    for cause in causes {
        assert_eq!(Cause::from_words(cause.to_words()), Some(cause));
    }
    assert_eq!([0, 12, u64::MAX].map(|number| Cause::from_words((number, [0; 5]))), [None; 3]);
}
