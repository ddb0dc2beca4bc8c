//! No type of the firmware owns too much: so many fields and so many methods, over all files of the crate, and no more.
//!
//! A type that needs more owns one thing too many: another type is missing. Methods are those of `impl` blocks without a trait.

use std::collections::BTreeMap;

use syn::Item;

use super::Finding;
use super::cfg::is_for_tests_only;
use super::source::Source;

/// Fields of a struct.
const MOST_FIELDS: usize = 15;
/// Methods of a type.
const MOST_METHODS: usize = 40;

/// The types of one crate that are too large, given its files.
///
/// # Errors
/// A file that is not Rust.
pub fn too_large<'s>(files: impl IntoIterator<Item = &'s Source>) -> Result<Vec<Finding>, String> {
    let mut types = Types::default();
    for file in files {
        let parsed =
            syn::parse_file(&file.text).map_err(|error| format!("{}: {error}", file.path))?;
        types.place.clone_from(&file.path);
        types.add(&parsed.items);
    }
    let methods = types
        .methods
        .into_iter()
        .map(|(name, (place, count))| ((name, place, count), ("methods", MOST_METHODS)));
    let fields = types
        .fields
        .into_iter()
        .map(|(name, place, count)| ((name, place, count), ("fields", MOST_FIELDS)));
    let found = fields.chain(methods).filter(|((.., count), (_, most))| count > most);
    Ok(found
        .map(|((name, place, count), (what, most))| Finding {
            place,
            message: format!(
                "{name} has {count} {what}, and may have {most}: give a part of it a type of its own"
            ),
        })
        .collect())
}

#[derive(Default)]
struct Types {
    /// The file that is read.
    place: String,
    /// Name, file, fields.
    fields: Vec<(String, String, usize)>,
    /// Name -> the first file, and methods.
    methods: BTreeMap<String, (String, usize)>,
}

impl Types {
    fn add(&mut self, items: &[Item]) {
        for item in items.iter().filter(|item| !is_for_tests_only(item)) {
            match item {
                Item::Mod(module) => {
                    self.add(module.content.as_ref().map_or(&[], |(_, items)| items));
                }
                Item::Struct(item) => {
                    let name = item.ident.to_string();
                    self.fields.push((name, self.place.clone(), item.fields.len()));
                }
                Item::Impl(block) if block.trait_.is_none() => self.add_methods(block),
                _ => {}
            }
        }
    }

    fn add_methods(&mut self, block: &syn::ItemImpl) {
        let syn::Type::Path(of) = &*block.self_ty else { return };
        let Some(name) = of.path.segments.last() else { return };
        let methods = block.items.iter().filter(|item| matches!(item, syn::ImplItem::Fn(_)));
        let place = || (self.place.clone(), 0);
        let (_, count) = self.methods.entry(name.ident.to_string()).or_insert_with(place);
        *count += methods.count();
    }
}

#[cfg(test)]
mod tests {
    use super::{MOST_FIELDS, MOST_METHODS, Source, too_large};

    fn found(files: &[(&str, String)]) -> Vec<String> {
        let sources: Vec<_> =
            files.iter().map(|(path, text)| Source::new(*path, text.clone())).collect();
        too_large(&sources).unwrap().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn fields_are_counted() {
        let of = |count: usize| {
            let fields: String = (0..count).map(|number| format!("f{number}: u8, ")).collect();
            found(&[("a.rs", format!("struct S {{ {fields} }}"))])
        };
        assert!(of(MOST_FIELDS).is_empty());
        assert!(of(MOST_FIELDS + 1)[0].starts_with("a.rs: S has 16 fields, and may have 15"));
    }

    #[test]
    fn methods_are_counted_over_files_and_without_traits_and_tests() {
        let methods = |from: usize, to: usize| -> String {
            (from..to).map(|number| format!("fn m{number}() {{}} ")).collect()
        };
        let first = format!("impl<'a, T> S<'a, T> {{ {} }}", methods(0, MOST_METHODS / 2));
        let rest = |to: usize| {
            format!(
                "impl S<'_, u8> {{ {} }} impl Clone for S<'_, u8> {{ fn clone(&self) -> Self {{ S }} }} \
                 #[cfg(test)] mod tests {{ impl S<'_, u8> {{ fn more() {{}} }} }}",
                methods(MOST_METHODS / 2, to)
            )
        };
        assert!(found(&[("a.rs", first.clone()), ("b.rs", rest(MOST_METHODS))]).is_empty());
        let told = found(&[("a.rs", first), ("b.rs", rest(MOST_METHODS + 1))]);
        assert!(told.len() == 1 && told[0].starts_with("a.rs: S has 41 methods"), "{told:?}");
    }
}
