//! How elements are put together by a reduction.

use pto_abi::closed_set;

closed_set! {
    /// How two elements become one.
    pub struct Reduction(u8) {
        /// Their sum. Integers wrap around.
        SUM = 0, "sum";
        /// The larger one; NaN if one is NaN.
        MAX = 1, "max";
        /// The smaller one; NaN if one is NaN.
        MIN = 2, "min";
        /// Their product. Integers wrap around.
        PROD = 3, "prod";
    }
}
