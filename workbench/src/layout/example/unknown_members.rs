//! Members that are not part of the format: ignored, unless they look like a misspelt one.

use std::collections::BTreeMap;

use serde::{Deserialize, de::IgnoredAny};

pub(in super::super) const OF_CODECS: &[&str] = &["id", "script", "script_file", "style", "examples"];
pub(in super::super) const OF_EXAMPLES: &[&str] = &[
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

/// The members that no field takes.
#[derive(Deserialize)]
#[serde(transparent)]
pub(in super::super) struct UnknownMembers(BTreeMap<String, IgnoredAny>);

impl UnknownMembers {
    /// Their names; an error when one is a misspelt one of `known`, which would otherwise be ignored silently.
    pub(in super::super) fn names(&self, known: &[&str]) -> Result<impl Iterator<Item = &String>, String> {
        not_misspelt(self.0.keys().map(String::as_str), known)?;
        Ok(self.0.keys())
    }
}

/// An error when one of `names` is a misspelt one of `known`.
pub(in super::super) fn not_misspelt<'a>(
    mut names: impl Iterator<Item = &'a str>,
    known: &[&str],
) -> Result<(), String> {
    match names.find_map(|name| Some((name, meant(name, known).filter(|meant| *meant != name)?))) {
        Some((name, meant)) => Err(format!("unknown member `{name}`: did you mean `{meant}`?")),
        None => Ok(()),
    }
}

/// The one of `known` that `name` misspells, allowing one edit for every four letters.
fn meant<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    let name = name.to_lowercase();
    let candidates = known.iter().map(|known| (edits(&name, known), *known));
    candidates.filter(|(edits, known)| *edits <= known.len() / 4).min().map(|(_, known)| known)
}

/// The edit distance, where replacing a letter counts twice: `batch` is not a misspelt `match`.
fn edits(name: &str, known: &str) -> usize {
    let (short, long) = if name.len() < known.len() { (name, known) } else { (known, name) };
    let mut letters: Vec<char> = long.chars().collect();
    let replaced = short.chars().filter(|letter| match letters.iter().position(|other| other == letter) {
        Some(index) => {
            letters.swap_remove(index);
            false
        }
        None => true,
    });
    strsim::osa_distance(name, known) + replaced.count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tells_misspelt_names_from_foreign_ones() {
        for (name, expected) in [
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
            assert_eq!(meant(name, OF_CODECS), expected, "{name}");
        }
        for (name, expected) in [
            ("expect", Some("expected")),
            ("expacted", Some("expected")),
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
            assert_eq!(meant(name, OF_EXAMPLES), expected, "{name}");
        }
    }

    #[test]
    fn the_documentation_lists_every_member() {
        let page = include_str!("../../../../docs/functions.md");
        for name in OF_CODECS.iter().chain(OF_EXAMPLES) {
            assert!(page.lines().any(|line| line.starts_with("| `") && line.contains(&format!("`{name}`"))), "{name}");
        }
    }

    #[test]
    fn recognizes_every_name_with_a_doubled_letter() {
        for known in [OF_CODECS, OF_EXAMPLES] {
            for name in known {
                assert_eq!(meant(name, known), Some(*name));
                let doubled = format!("{name}{}", &name[name.len() - 1..]);
                assert!(name.len() < 4 || meant(&doubled, known) == Some(name), "{doubled}");
            }
        }
    }
}
