//! The table of kernels.

use std::collections::HashSet;

use pto_abi::block::BlockContext;
use pto_abi::{CoreKind, FuncId};
use pto_aicore_kernels::library::{Access, Elements, Extents, Footprint};
use pto_aicore_kernels::{LIBRARY, by_name, func, mix};
use pto_graph::signature::{ArgumentMemory, Arguments};

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
    let of = |access, extents| Some(Footprint { access, extents: Some(extents), elements: None });
    let table = |access, bytes, element| {
        let elements = Some(Elements { bytes, element });
        Some(Footprint { access, extents: None, elements })
    };
    let product = [1, 2, 3, 4, 5, 6, 7, 8, 9];
    assert_eq!(footprint("matmul", &product, 0), of(Access::In, Extents::Matrix([4, 6, 7])));
    assert_eq!(footprint("matmul", &product, 1), of(Access::In, Extents::Matrix([6, 5, 8])));
    assert_eq!(footprint("matmul", &product, 2), of(Access::Out, Extents::Matrix([4, 5, 9])));
    assert_eq!(footprint("matmul", &product, 3), None, "a size is no tensor");
    assert_eq!(footprint("matmul", &product[..8], 0), None, "a word is missing");
    assert_eq!(footprint("add", &[1, 2, 3, 64], 2), of(Access::Out, Extents::Vector(64)));
    assert_eq!(
        footprint("moe_list", &[1, 2, 3, 4, 5], 1),
        Some(Footprint { access: Access::Out, extents: None, elements: None }),
        "its length is in memory"
    );
    assert_eq!(footprint("moe_list", &[1, 2, 3, 4, 5], 0), table(Access::In, 16, 4));
    assert_eq!(footprint("dag_node_aic", &[9, 0, 1, 2, 3, 4], 2), table(Access::InOut, 80, 8));
    assert_eq!(
        footprint("part_aiv", &[1, 0, 0], 0),
        table(Access::InOut, 96, 8),
        "of three blocks"
    );
    // 20 elements of f32 in blocks of 8: the third block has 4.
    let float = u64::from(pto_graph::ElementType::F32.get());
    let reduce = [1, 2, 3, 8, float | 20 << 16, 1];
    assert_eq!(footprint("reduce", &reduce, 2), table(Access::Out, 80, 4));
    // Three parts, 64 elements each after the one before; two of them come before `a`.
    for (parts, bytes) in [
        (1, 80),
        (3, 80 + 2 * 256),
        (3 | 2 << 32, 80 + 2 * 256),
        (1 | 4 << 32, 80 + 3 * 256),
        (0, 0),
    ] {
        let reduce = [1, 2, 3, 8, float | 20 << 16, parts];
        assert_eq!(footprint("reduce", &reduce, 1), table(Access::In, bytes, 4), "{parts:#x}");
    }
    assert_eq!(
        footprint("dag_node_aic", &[u64::MAX, 0, 1, 2, 3, 4], 2),
        table(Access::InOut, u64::MAX, 8)
    );
    // Whether the last argument is written depends on the flags.
    for (flags, rows) in [(0, 0), (2, 8)] {
        let words = [1, 2, 3, 4, 5, 6, 7, 8, 16, 16, 16, flags];
        let found = footprint("attention_update", &words, 6);
        assert_eq!(found, of(Access::Out, Extents::Matrix([rows, 16, 16])), "flags {flags}");
    }
}

/// Memory of a device, and calls that may reach for anything else.
struct Memory(Vec<u64>);

/// Words of the memory, and words on either side that the kernel must not touch.
const WORDS: usize = 2048;
const OTHERS: usize = 512;
const FILL: u64 = 0x5A5A_5A5A_5A5A_5A5A;

impl Memory {
    fn start(&self) -> u64 {
        (self.0.as_ptr().expose_provenance() + 8 * OTHERS) as u64
    }

    fn is_of_others_untouched(&self) -> bool {
        let (before, after) = (&self.0[..OTHERS], &self.0[OTHERS + WORDS..]);
        before.iter().chain(after).all(|word| *word == FILL)
    }
}

struct ArgumentWords<'m> {
    words: Vec<u64>,
    memory: &'m Memory,
}

impl Arguments for ArgumentWords<'_> {
    fn words(&self) -> &[u64] {
        &self.words
    }

    fn memory_of(&self, at: usize) -> ArgumentMemory {
        let offset = self.words[at].wrapping_sub(self.memory.start());
        let bytes = 8 * WORDS as u64;
        if offset < bytes {
            ArgumentMemory::Memory { offset, bytes }
        } else {
            ArgumentMemory::Nowhere
        }
    }

    fn describe_nowhere(&self, _: usize, _: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        Ok(())
    }

    fn describe_memory(&self, _: usize, _: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        Ok(())
    }
}

/// A small number as an index.
fn choice(number: u64) -> usize {
    usize::try_from(number).unwrap_or(0)
}

/// Whatever words a kernel is called with, and whatever the memory holds: it is refused, or touches nothing but the memory.
#[test]
fn a_call_that_is_accepted_stays_in_its_memory() {
    const EDGES: [u64; 9] =
        [0, 1, 0x3FF, (1 << 20) + 1, u32::MAX as u64, 1 << 32, 1 << 62, 1 << 63, u64::MAX];
    let mut memory = Memory(vec![FILL; WORDS + 2 * OTHERS]);
    let mut state = 1;
    let mut below = |bound: u64| {
        state = mix(state);
        state % bound
    };
    for kernel in LIBRARY {
        let mut accepted = 0;
        for round in 0..8000 {
            let words = kernel.args.iter().zip(kernel.addresses).map(|(name, is_address)| {
                // It waits for other parts, or takes as long as an argument says.
                let is_slow = ["group", "iterations"].contains(name);
                match is_address {
                    _ if is_slow => below(2),
                    _ if below(12) == 0 => EDGES[choice(below(9))],
                    true => {
                        memory.start() + [0, 8 * below(WORDS as u64), below(8192)][choice(below(3))]
                    }
                    false => below(9),
                }
            });
            let mut words: Vec<u64> = words.collect();
            let call = ArgumentWords { words: words.clone(), memory: &memory };
            if kernel.signature().check(kernel.kind, &call).is_err() {
                continue;
            }
            accepted += 1;
            let holds = [below(u64::MAX), below(4), FILL][choice(below(3))];
            memory.0[OTHERS..OTHERS + WORDS].fill(holds);
            words.push(BlockContext::ONLY.word());
            // SAFETY: the call was accepted, and the memory is there.
            unsafe { (kernel.entry)(words.as_ptr()) }
            assert!(
                memory.is_of_others_untouched(),
                "{} of {words:x?} in round {round}",
                kernel.name
            );
        }
        // Some have no call that can be accepted: how far they reach is in memory.
        let follows = |at| {
            let words = vec![8; kernel.args.len()];
            (kernel.footprint)(&words, 1, at).is_some_and(|footprint| footprint.follows_memory())
        };
        let is_refused = (0..kernel.args.len()).any(follows);
        assert_eq!(accepted == 0, is_refused, "{}: {accepted} calls are accepted", kernel.name);
    }
}
