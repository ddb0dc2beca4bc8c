//! The table of kernels.

use std::collections::HashSet;

use pto_abi::{CoreKind, FuncId};
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
