//! The table of kernels.

use std::collections::HashSet;

use pto_abi::{CoreKind, FuncId};
use pto_aicore_kernels::library::{Access, Extents, Footprint};
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
    let footprint =
        |name: &str, words: &[u64], at| (by_name(name).unwrap().footprint)(words, 3, at);
    let of = |access, extents| Some(Footprint { access, extents: Some(extents), least_bytes: 0 });
    let least = |access, least_bytes| Some(Footprint { access, extents: None, least_bytes });
    let product = [1, 2, 3, 4, 5, 6, 7, 8, 9];
    assert_eq!(footprint("matmul", &product, 0), of(Access::In, Extents::Matrix([4, 6, 7])));
    assert_eq!(footprint("matmul", &product, 1), of(Access::In, Extents::Matrix([6, 5, 8])));
    assert_eq!(footprint("matmul", &product, 2), of(Access::Out, Extents::Matrix([4, 5, 9])));
    assert_eq!(footprint("matmul", &product, 3), None, "a size is no tensor");
    assert_eq!(footprint("matmul", &product[..8], 0), None, "a word is missing");
    assert_eq!(footprint("add", &[1, 2, 3, 64], 2), of(Access::Out, Extents::Vector(64)));
    assert_eq!(footprint("moe_list", &[1, 2, 3, 4, 5], 1), least(Access::Out, 1));
    assert_eq!(footprint("moe_list", &[1, 2, 3, 4, 5], 0), least(Access::In, 16));
    assert_eq!(footprint("dag_node_aic", &[9, 0, 1, 2, 3, 4], 2), least(Access::InOut, 80));
    assert_eq!(footprint("part_aiv", &[1, 0, 0], 0), least(Access::InOut, 96), "of three blocks");
    // 20 elements of f32 in blocks of 8: the third block has 4.
    let float = u64::from(pto_graph::ElementType::F32.get());
    let reduce = [1, 2, 3, 8, float | 20 << 16, 1];
    assert_eq!(footprint("reduce", &reduce, 2), least(Access::Out, 80));
    assert_eq!(
        footprint("dag_node_aic", &[u64::MAX, 0, 1, 2, 3, 4], 2),
        least(Access::InOut, u64::MAX)
    );
    // Whether the last argument is written depends on the flags.
    for (flags, rows) in [(0, 0), (2, 8)] {
        let words = [1, 2, 3, 4, 5, 6, 7, 8, 16, 16, 16, flags];
        let found = footprint("attention_update", &words, 6);
        assert_eq!(found, of(Access::Out, Extents::Matrix([rows, 16, 16])), "flags {flags}");
    }
}
