//! The tests named in docs/conformance.md exist.

use std::{collections::BTreeSet, fs, path::Path};

const TABLE: &str = include_str!("../../../docs/conformance.md");

/// The files and test names in backticks: `` `path.rs` `name` ``, possibly with several names per file.
fn named() -> BTreeSet<(&'static str, &'static str)> {
    let mut named = BTreeSet::new();
    for line in TABLE.lines() {
        let mut file = None;
        for quoted in line.split('`').skip(1).step_by(2) {
            match file {
                _ if quoted.ends_with(".rs") => file = Some(quoted),
                Some(file) => drop(named.insert((file, quoted))),
                None => {}
            }
        }
    }
    named
}

#[test]
fn every_test_in_the_table_exists() {
    let named = named();
    assert!(named.len() > 50, "the table names only {}", named.len());
    for (file, name) in named {
        let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(file));
        let text = text.unwrap_or_else(|error| panic!("{file}: {error}"));
        let (before, _) = text.split_once(&format!("fn {name}(")).unwrap_or_else(|| panic!("{file} has no {name}"));
        let attributes = before.rsplit("\n\n").next().unwrap();
        assert!(attributes.contains("test]") || attributes.contains("::test("), "{name} in {file} is no test");
    }
}

#[test]
fn every_row_of_the_table_names_a_test() {
    let rows = TABLE.lines().filter(|line| line.starts_with("| ") && *line != "| what | shown by |");
    for row in rows {
        let shown = row.trim_matches('|').rsplit('|').next().unwrap().trim();
        let is_shown = shown.contains(".rs`") || shown.contains("/transcripts/") || shown == "**not built yet**";
        assert!(is_shown, "{row}");
    }
}
