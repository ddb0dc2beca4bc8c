//! The table of kernels.

use std::collections::HashSet;

use pto_abi::{CoreKind, FuncId};
use pto_aicore_kernels::library::{Access, Footprint};
use pto_aicore_kernels::{LIBRARY, by_name, func};

#[test]
fn ids_are_indices_and_names_are_unique() {
    for (index, kernel) in LIBRARY.iter().enumerate() {
        assert_eq!(kernel.func_id as usize, index, "{}", kernel.name);
    }
    let names: HashSet<&str> = LIBRARY.iter().map(|kernel| kernel.name).collect();
    assert_eq!(names.len(), LIBRARY.len());
}

#[test]
fn entries_are_found_by_name() {
    for kernel in LIBRARY {
        assert_eq!(by_name(kernel.name).expect(kernel.name).func_id, kernel.func_id);
    }
    assert!(by_name("no such kernel").is_none());
}

#[test]
fn constants_name_their_kernels() {
    let cases: [(FuncId, &str, CoreKind); 5] = [
        (func::ADD, "add", CoreKind::AIV),
        (func::MATMUL, "matmul", CoreKind::AIC),
        (func::ATTENTION_UPDATE, "attention_update", CoreKind::AIV),
        (func::DAG_NODE_AIC, "dag_node_aic", CoreKind::AIC),
        (func::SPIN_AIC, "spin_aic", CoreKind::AIC),
    ];
    for (id, name, kind) in cases {
        let kernel = &LIBRARY[usize::from(id.0)];
        assert_eq!((kernel.name, kernel.kind), (name, kind));
    }
}

#[test]
fn a_kernel_that_names_its_core_kind_has_it() {
    for kernel in LIBRARY {
        assert!(!kernel.name.ends_with("_aic") || kernel.kind == CoreKind::AIC);
        assert!(!kernel.name.ends_with("_aiv") || kernel.kind == CoreKind::AIV);
    }
}

#[test]
fn a_call_says_what_it_touches() {
    let footprint = |name: &str, words: &[u64], at| (by_name(name).unwrap().footprint)(words, at);
    let of = |access, extents| Some(Footprint { access, extents });
    let product = [1, 2, 3, 4, 5, 6, 7, 8, 9];
    assert_eq!(footprint("matmul", &product, 0), of(Access::In, Some([4, 6, 7])));
    assert_eq!(footprint("matmul", &product, 1), of(Access::In, Some([6, 5, 8])));
    assert_eq!(footprint("matmul", &product, 2), of(Access::Out, Some([4, 5, 9])));
    assert_eq!(footprint("matmul", &product, 3), None, "a size is no tensor");
    assert_eq!(footprint("matmul", &product[..8], 0), None, "a word is missing");
    assert_eq!(footprint("add", &[1, 2, 3, 64], 2), of(Access::Out, Some([1, 64, 64])));
    assert_eq!(footprint("moe_list", &[1, 2, 3, 4, 5], 1), of(Access::Out, None));
    // Whether the last argument is written depends on the flags.
    for (flags, rows) in [(0, 0), (2, 8)] {
        let words = [1, 2, 3, 4, 5, 6, 7, 8, 16, 16, 16, flags];
        let found = footprint("attention_update", &words, 6);
        assert_eq!(found, of(Access::Out, Some([rows, 16, 16])), "flags {flags}");
    }
}
