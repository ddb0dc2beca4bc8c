//! How a core reports to its host why a kernel ended: causes as words, and back.

use pto_aicore_kernels::tile::{FaultCause, Spread};

#[test]
fn causes_come_back_from_their_words() {
    let causes = [
        FaultCause::Tensors { needed: 3, found: 2 },
        FaultCause::Scalars { needed: 0, found: 1 },
        FaultCause::Scratch { needed: 1 << 24, found: 7 },
        FaultCause::Misaligned,
        FaultCause::ViewTooLarge { view: [8, u16::MAX], tile: [8, 64] },
        FaultCause::OutOfTensor { at: [70_000, 5], element: -9, elements: usize::MAX },
        FaultCause::Remainders { a: [1, 2], b: [3, 4] },
        FaultCause::StoreTooSmall { source: [1, 2], view: [3, 4] },
        FaultCause::DivisionByZero { at: [0, 3], spread: Spread::ALL[1] },
        FaultCause::NoIndex { at: u32::MAX },
        FaultCause::Broken,
    ];
    for cause in causes {
        assert_eq!(FaultCause::from_words(cause.to_words()), Some(cause));
    }
    assert_eq!([0, 12, u64::MAX].map(|number| FaultCause::from_words((number, [0; 5]))), [None; 3]);
}
