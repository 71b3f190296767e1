//! Ids in history of what networks name otherwise.

use std::str::FromStr;

use sha2::{Digest, Sha256};

/// Maximum length of the beginning of a name in an id that ends with a hash.
const START_MAX: usize = 27;

/// The id of what its network calls `name`: the name in lower case, with `_` in place of `@`, if that is an id;
/// otherwise its beginning and a hash.
pub(super) fn id<T: FromStr>(name: &str) -> Option<T> {
    // As most names are.
    if let Ok(id) = name.parse() {
        return Some(id);
    }
    let name = name.to_ascii_lowercase().replace('@', "_");
    name.parse().or_else(|_| shortened(&name).parse()).ok()
}

/// The hash tells names with the same beginning from each other.
fn shortened(name: &str) -> String {
    let [a, b, c, d, ..]: [u8; 32] = Sha256::digest(name).into();
    let hash = u32::from_be_bytes([a, b, c, d]);
    let words = name.split(|character: char| !character.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let mut start = words.collect::<Vec<_>>().join("-");
    start.truncate(START_MAX);
    match start.trim_end_matches('-') {
        "" => format!("{hash:08x}"),
        start => format!("{start}_{hash:08x}"),
    }
}

#[cfg(test)]
mod tests {
    use types::{AppId, DevId};

    use super::*;

    #[test]
    fn names_that_are_ids_stay_as_they_are() {
        for (name, expected) in [
            ("119e3472-d36a-4260-a167-b51f0bd25676", "119e3472-d36a-4260-a167-b51f0bd25676"),
            ("A300000000000000", "a300000000000000"),
            ("sensors@ttn", "sensors_ttn"),
            ("sensors", "sensors"),
        ] {
            assert_eq!(id::<AppId>(name).unwrap().as_str(), expected);
        }
    }

    #[test]
    fn other_names_become_different_ids() {
        let long = "a".repeat(36);
        let names = [
            "",
            "a",
            "-",
            "ä",
            "ö",
            "a--b",
            "a b",
            "../../etc/passwd",
            "a/b",
            "+",
            "#",
            "x.y",
            &format!("{long}@ttn"),
            &format!("{long}@eu1"),
            &format!("{}-b@{long}", "a".repeat(26)),
        ];
        let mut ids: Vec<DevId> = names.iter().map(|name| id(name).unwrap()).collect();
        assert!(ids.iter().all(|id| !id.as_str().contains(['.', '/'])), "{ids:?}");
        ids.sort();
        ids.dedup();
        assert_eq!(ids.len(), names.len(), "{ids:?}");
    }
}
