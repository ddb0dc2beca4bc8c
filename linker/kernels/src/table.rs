//! The blob's header and its table of kernels.

use core::arch::global_asm;

use pto_abi::fw_image::{KERNEL_BLOB_MAGIC, KERNEL_NAME_BYTES};
use pto_abi::runtime::{ABI_MAJOR, ABI_MINOR};
use pto_aicore_kernels::{LIBRARY, attention, elementwise, matmul, probe, reduce};

global_asm!(
    r#"
    .section .pto.blob.header, "a"
    .balign 4096
    .global pto_blob
    pto_blob:
        .quad   {magic}
        .short  {major}
        .short  {minor}
        .word   {count}
        .quad   PTO_BLOB_END - . + 16
        .zero   40
    "#,
    count = const COUNT,
    magic = const KERNEL_BLOB_MAGIC,
    major = const ABI_MAJOR,
    minor = const ABI_MINOR,
);

/// One entry for each kernel. A test compares the table with `LIBRARY`.
macro_rules! table {
    ($($id:literal $kind:literal $name:literal $entry:path;)*) => {
        $(global_asm!(
            ".section .pto.blob.table, \"a\"",
            ".quad {entry} - .",
            ".word {id}, {kind}",
            concat!("2: .ascii \"", $name, "\""),
            ".zero {name_bytes} - (. - 2b)",
            entry = sym $entry,
            id = const $id,
            kind = const $kind,
            name_bytes = const KERNEL_NAME_BYTES,
        );)*
        const COUNT: usize = [$($id),*].len();
    };
}

table! {
    0 1 "add" elementwise::add;
    1 1 "add_scalar" elementwise::add_scalar;
    2 1 "mul" elementwise::mul;
    3 1 "exp" elementwise::exp;
    4 1 "row_max" reduce::row_max;
    5 1 "row_sum" reduce::row_sum;
    6 0 "matmul" matmul::matmul;
    7 0 "matmul_acc" matmul::matmul_acc;
    8 0 "matmul_add" matmul::matmul_add;
    9 0 "attention_qk" attention::products::attention_qk;
    10 1 "attention_softmax_partial" attention::softmax::attention_softmax_partial;
    11 0 "attention_pv" attention::products::attention_pv;
    12 1 "attention_update" attention::update::attention_update;
    13 0 "empty_aic" probe::empty_aic;
    14 1 "empty_aiv" probe::empty_aiv;
    15 0 "dag_node_aic" probe::dag_node_aic;
    16 1 "dag_node_aiv" probe::dag_node_aiv;
    17 1 "spin_aiv" probe::spin_aiv;
    18 0 "spin_aic" probe::spin_aic;
}

const _: () = assert!(COUNT == LIBRARY.len(), "a kernel of LIBRARY is not in the blob's table");

/// A kernel that panics ends in an exception, which is a fault of the run; a test holds that none can.
#[panic_handler]
fn on_panic(_: &core::panic::PanicInfo<'_>) -> ! {
    // SAFETY: ends the kernel with an exception.
    unsafe { core::arch::asm!("brk #0xf02", options(noreturn)) }
}
