//! Which items are there in tests only.

use syn::punctuated::Punctuated;
use syn::{Attribute, Item, Meta, Token};

/// Is the item there only when tests are compiled?
pub(crate) fn is_for_tests_only(item: &Item) -> bool {
    let attributes: &[Attribute] = match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    };
    attributes.iter().filter(|attribute| attribute.path().is_ident("cfg")).any(|attribute| {
        attribute.parse_args::<Meta>().is_ok_and(|condition| !can_hold(&condition))
    })
}

/// Can the condition hold in a build without tests? What else it asks for may be there or not.
fn can_hold(condition: &Meta) -> bool {
    match condition {
        Meta::Path(path) => !path.is_ident("test"),
        Meta::NameValue(_) => true,
        Meta::List(list) => {
            let inner = parts(list);
            if list.path.is_ident("all") {
                inner.iter().all(can_hold)
            } else if list.path.is_ident("not") {
                inner.iter().any(can_fail)
            } else {
                inner.iter().any(can_hold)
            }
        }
    }
}

fn can_fail(condition: &Meta) -> bool {
    match condition {
        Meta::Path(_) | Meta::NameValue(_) => true,
        Meta::List(list) => {
            let inner = parts(list);
            if list.path.is_ident("all") {
                inner.iter().any(can_fail)
            } else if list.path.is_ident("not") {
                inner.iter().any(can_hold)
            } else {
                inner.iter().all(can_fail)
            }
        }
    }
}

fn parts(list: &syn::MetaList) -> Vec<Meta> {
    let parsed = list.parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated);
    parsed.map(|parts| parts.into_iter().collect()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::is_for_tests_only;

    fn judge(condition: &str) -> bool {
        let item = syn::parse_str(&format!("#[cfg({condition})] mod a {{}}")).unwrap();
        is_for_tests_only(&item)
    }

    #[test]
    fn a_condition_that_needs_tests_is_found() {
        for condition in
            ["test", "all(test, not(loom))", "all(unix, all(test))", "any(test, all(test, loom))"]
        {
            assert!(judge(condition), "{condition}");
        }
        for condition in
            ["unix", "not(test)", "any(test, unix)", "not(any(loom, test))", "feature = \"x\""]
        {
            assert!(!judge(condition), "{condition}");
        }
    }
}
