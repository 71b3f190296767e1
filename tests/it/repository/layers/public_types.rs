//! The names of a crate's public types.

use std::collections::BTreeMap;

use syn::{Item, Visibility};

use super::imports;

/// The names that several public types of a crate share, with how many do.
pub(super) fn repeated(src: &str) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for text in imports::sources(src).values() {
        for name in syn::parse_file(text).unwrap().items.iter().filter_map(public_type) {
            *counts.entry(name).or_default() += 1;
        }
    }
    counts.retain(|_, count| *count > 1);
    counts
}

fn public_type(item: &Item) -> Option<String> {
    let (vis, ident) = match item {
        Item::Struct(item) => (&item.vis, &item.ident),
        Item::Enum(item) => (&item.vis, &item.ident),
        Item::Trait(item) => (&item.vis, &item.ident),
        Item::Type(item) => (&item.vis, &item.ident),
        _ => return None,
    };
    matches!(vis, Visibility::Public(_)).then(|| ident.to_string())
}
