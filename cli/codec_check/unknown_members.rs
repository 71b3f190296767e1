//! The names that members have, and those that are nearly theirs.

use std::collections::BTreeMap;

use serde::{Deserialize, de::IgnoredAny};

/// What members of a codec are called.
pub(super) const OF_CODECS: &[&str] = &["id", "script", "script_file", "style", "examples"];
/// What members of an example are called.
pub(super) const OF_EXAMPLES: &[&str] = &[
    "kind",
    "port",
    "bytes_hex",
    "input_obj",
    "extra",
    "expected",
    "outcome",
    "match",
    "desc",
    "env",
    "quickjs",
    "oracle_ok",
    "oracle",
    "oracle_outcome",
];

/// Members that mean nothing here, by their names.
#[derive(Deserialize)]
#[serde(transparent)]
pub(super) struct Others(BTreeMap<String, IgnoredAny>);

impl Others {
    /// Their names; none of them may be a misspelt one of `known`, or it would be left out without a word.
    pub(super) fn names(&self, known: &[&str]) -> Result<impl Iterator<Item = &String>, String> {
        let misspelt = self.0.keys().find_map(|name| Some((name, nearest(name, known)?)));
        match misspelt {
            Some((name, right)) => Err(format!("`{name}` is no member: is `{right}` meant?")),
            None => Ok(self.0.keys()),
        }
    }
}

/// The one of `known` that `name` is nearly; a quarter of its letters may be missing, too many or swapped.
fn nearest<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    let name = name.to_lowercase();
    let slips_of = |known: &'a str| {
        let slips_max = known.len() / 4;
        let is_worth_it = name.len().abs_diff(known.len()) <= slips_max;
        is_worth_it.then(|| (slips(name.as_bytes(), known.as_bytes()), known)).filter(|(slips, _)| *slips <= slips_max)
    };
    known.iter().filter_map(|known| slips_of(known)).min().map(|(_, known)| known)
}

/// How many letters to add, to take away or to swap with their neighbours until `one` is `other`.
fn slips(one: &[u8], other: &[u8]) -> usize {
    let mut table = vec![vec![0; other.len() + 1]; one.len() + 1];
    for i in 0..=one.len() {
        for j in 0..=other.len() {
            let last = |behind: usize| i >= behind && j >= behind;
            let mut least = match last(1) {
                false => i + j,
                true => 1 + table[i - 1][j].min(table[i][j - 1]),
            };
            if last(1) && one[i - 1] == other[j - 1] {
                least = least.min(table[i - 1][j - 1]);
            }
            if last(2) && one[i - 1] == other[j - 2] && one[i - 2] == other[j - 1] {
                least = least.min(table[i - 2][j - 2] + 1);
            }
            table[i][j] = least;
        }
    }
    table[one.len()][other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misspelt_names_are_told_from_foreign_ones() {
        for (name, meant) in [
            ("exampels", Some("examples")),
            ("Examples", Some("examples")),
            ("example", Some("examples")),
            ("scriptFile", Some("script_file")),
            ("scirpt", Some("script")),
            ("styl", Some("style")),
            ("ID", Some("id")),
            ("vendor", None),
            ("source_path", None),
            ("script_sha256", None),
            ("idx", None),
            ("", None),
        ] {
            assert_eq!(nearest(name, OF_CODECS), meant, "{name}");
        }
        for (name, meant) in [
            ("expect", Some("expected")),
            ("bytesHex", Some("bytes_hex")),
            ("bytes-hex", Some("bytes_hex")),
            ("input_object", None),
            ("fport", Some("port")),
            ("matches", None),
            ("mathc", Some("match")),
            ("outcomes", Some("outcome")),
            ("oracel", Some("oracle")),
            ("oracle_ko", Some("oracle_ok")),
            ("error", None),
            ("edge", None),
            ("entry", None),
            ("batch", None),
            ("note", None),
        ] {
            assert_eq!(nearest(name, OF_EXAMPLES), meant, "{name}");
        }
    }

    #[test]
    fn the_page_for_developers_tells_every_name() {
        let page = include_str!("../../docs/functions.md");
        for name in OF_CODECS.iter().chain(OF_EXAMPLES) {
            assert!(page.lines().any(|line| line.starts_with("| `") && line.contains(&format!("`{name}`"))), "{name}");
        }
    }

    #[test]
    fn every_name_is_known_with_a_slip() {
        for known in [OF_CODECS, OF_EXAMPLES] {
            for name in known {
                assert_eq!(nearest(name, known), Some(*name));
                let doubled = format!("{name}{}", &name[name.len() - 1..]);
                assert!(name.len() < 4 || nearest(&doubled, known) == Some(name), "{doubled}");
            }
        }
    }
}
