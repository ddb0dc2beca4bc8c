//! The shared structs as C sees them: names, types, array lengths, order of definition.

use pto_abi::layout::{ALL, FieldLayout, StructLayout};

use super::field_docs::FieldDocs;

/// All shared structs, each after those that it contains.
pub(crate) struct AbiModel {
    pub(crate) structs: Vec<Struct>,
}

/// A shared struct.
pub(crate) struct Struct {
    /// As in Rust.
    pub(crate) name: &'static str,
    /// As in C.
    pub(crate) c_name: String,
    pub(crate) doc: String,
    pub(crate) size: usize,
    pub(crate) align: usize,
    pub(crate) fields: Vec<Field>,
}

/// A field of it.
pub(crate) struct Field {
    pub(crate) name: &'static str,
    pub(crate) c_type: String,
    /// Elements, of an array.
    pub(crate) count: Option<usize>,
    pub(crate) offset: usize,
    pub(crate) size: usize,
    /// Others may write it at any time.
    pub(crate) is_atomic: bool,
    pub(crate) doc: String,
}

/// Types that are no shared structs: Rust name, C name, size.
const SCALARS: &[(&str, &str, usize)] = &[
    ("u8", "uint8_t", 1),
    ("u16", "uint16_t", 2),
    ("u32", "uint32_t", 4),
    ("u64", "uint64_t", 8),
    ("AtomicU8", "uint8_t", 1),
    ("AtomicU16", "uint16_t", 2),
    ("AtomicU32", "uint32_t", 4),
    ("AtomicU64", "uint64_t", 8),
    ("TaskLock", "uint8_t", 1),
    ("GmAddr", "pto_gm_addr", 8),
    ("TaskId", "pto_task_id", 8),
];

impl AbiModel {
    pub(crate) fn new(docs: &FieldDocs) -> Result<Self, String> {
        let mut structs = Vec::new();
        for layout in in_order_of_use(ALL) {
            structs.push(Struct::new(layout, docs)?);
        }
        Ok(Self { structs })
    }
}

impl Struct {
    fn new(layout: &StructLayout, docs: &FieldDocs) -> Result<Self, String> {
        let fields: Result<_, String> =
            layout.fields.iter().map(|field| Field::new(layout.name, field, docs)).collect();
        Ok(Self {
            name: layout.name,
            c_name: c_name(layout.name),
            doc: docs.of(layout.name, "")?.to_owned(),
            size: layout.size,
            align: layout.align,
            fields: fields?,
        })
    }
}

impl Field {
    fn new(owner: &str, layout: &FieldLayout, docs: &FieldDocs) -> Result<Self, String> {
        let element = element_of(layout.type_name);
        let (c_type, size) = c_type_of(element).ok_or_else(|| {
            format!("{owner}.{}: xtask does not know the type {element}", layout.name)
        })?;
        Ok(Self {
            name: layout.name,
            c_type,
            count: layout.type_name.starts_with('[').then_some(layout.size / size),
            offset: layout.offset,
            size: layout.size,
            is_atomic: element.starts_with("Atomic") || element == "TaskLock",
            doc: docs.of(owner, layout.name)?.to_owned(),
        })
    }
}

/// `u64` of `[u64; 5]`.
fn element_of(type_name: &str) -> &str {
    let inner = type_name.strip_prefix('[').and_then(|inner| inner.split_once(';'));
    inner.map_or(type_name, |(element, _)| element.trim())
}

/// The C type of a Rust type that is no array, and its size.
fn c_type_of(element: &str) -> Option<(String, usize)> {
    let scalar = SCALARS.iter().find(|(rust, ..)| *rust == element);
    let scalar = scalar.map(|(_, c, size)| ((*c).to_owned(), *size));
    scalar.or_else(|| {
        let layout = ALL.iter().find(|layout| layout.name == element)?;
        Some((c_name(layout.name), layout.size))
    })
}

/// `pto_task` of `Task`, `pto_run_config` of `RunConfig`.
pub(crate) fn c_name(name: &str) -> String {
    let mut c_name = String::from("pto");
    for letter in name.chars() {
        if letter.is_ascii_uppercase() {
            c_name.push('_');
        }
        c_name.push(letter.to_ascii_lowercase());
    }
    c_name
}

/// The structs, each after those that it contains.
fn in_order_of_use(all: &[StructLayout]) -> Vec<&StructLayout> {
    let mut placed: Vec<&StructLayout> = Vec::new();
    while placed.len() < all.len() {
        let is_placed = |name: &str| placed.iter().any(|layout| layout.name == name);
        let is_struct = |name: &str| all.iter().any(|layout| layout.name == name);
        let is_next = |layout: &&StructLayout| {
            let mut elements = layout.fields.iter().map(|field| element_of(field.type_name));
            !is_placed(layout.name) && elements.all(|name| !is_struct(name) || is_placed(name))
        };
        let next = all.iter().find(is_next).expect("no struct contains itself");
        placed.push(next);
    }
    placed
}

#[cfg(test)]
mod tests {
    use super::{ALL, c_name, c_type_of, element_of, in_order_of_use};

    #[test]
    fn names_and_types_become_those_of_c() {
        assert_eq!(c_name("RunConfig"), "pto_run_config");
        assert_eq!(element_of("[AtomicU32; INLINE_CONSUMERS]"), "AtomicU32");
        assert_eq!(element_of("GmAddr"), "GmAddr");
        assert_eq!(c_type_of("WorkerEntry"), Some(("pto_worker_entry".to_owned(), 8)));
        assert_eq!(c_type_of("String"), None);
    }

    #[test]
    fn a_struct_stands_after_those_that_it_contains() {
        let order: Vec<_> = in_order_of_use(ALL).iter().map(|layout| layout.name).collect();
        let index_of = |name| order.iter().position(|other| *other == name).unwrap();
        assert!(index_of("Runtime") > index_of("Handshake"));
        assert!(index_of("Handshake") > index_of("WorkerLine"));
        assert_eq!(order.len(), ALL.len());
    }
}
