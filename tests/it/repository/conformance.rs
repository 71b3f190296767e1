//! docs/conformance.md has the tests that show its rows. A comment above each test has the beginning of the row that it
//! shows, and `AIRLOCK_CONFORMANCE=write cargo test --test product conformance` writes the second column from these.

use std::{
    collections::{BTreeMap, BTreeSet},
    env, fs,
    path::Path,
};

use super::links;

const TABLE: &str = include_str!("../../../docs/conformance.md");
const ROOT: &str = env!("CARGO_MANIFEST_DIR");
/// The beginning of the comment above a test.
const MARK: &str = "// Conformance: ";

/// A test, and the beginning of a row that it shows.
#[derive(Debug)]
struct Mark {
    row: String,
    file: String,
    test: String,
}

/// The marks of all tests, by file.
fn marks() -> Vec<Mark> {
    let files = links::files().into_iter().map(|file| file.into_os_string().into_string().unwrap());
    let files: BTreeSet<String> = files.filter(|file| file.ends_with(".rs")).collect();
    files.iter().flat_map(|file| marks_of(file, &fs::read_to_string(Path::new(ROOT).join(file)).unwrap())).collect()
}

fn marks_of(file: &str, text: &str) -> Vec<Mark> {
    let (mut marks, mut rows) = (Vec::new(), Vec::new());
    for line in text.lines().map(str::trim) {
        if let Some(row) = line.strip_prefix(MARK) {
            rows.push(row);
        } else if !line.starts_with("//")
            && let Some((_, rest)) = line.split_once("fn ")
        {
            let test = rest.split(['(', '<']).next().unwrap();
            let mark = |row: &str| Mark { row: row.to_owned(), file: file.to_owned(), test: test.to_owned() };
            marks.extend(rows.drain(..).map(mark));
        }
    }
    assert!(rows.is_empty(), "{file} has no test below {rows:?}");
    marks
}

/// The first cell of a row whose second one is generated. What only a transcript shows is checked with the commands.
fn row(line: &str) -> Option<&str> {
    let (row, shown) = line.strip_prefix("| ")?.strip_suffix(" |")?.rsplit_once(" | ")?;
    let has_transcript = shown.contains("/transcripts/") && !shown.contains(".rs`");
    (row != "what" && !row.starts_with("`airlock") && !has_transcript).then_some(row)
}

/// The page, with the tests of the marks in its second column.
fn generated(page: &str, marks: &[Mark]) -> String {
    let rows: BTreeSet<&str> = page.lines().filter_map(row).collect();
    let mut shown: BTreeMap<&str, Vec<&Mark>> = BTreeMap::new();
    for mark in marks {
        let begins: Vec<_> = rows.iter().filter(|row| row.starts_with(&mark.row)).collect();
        let row = match (rows.get(mark.row.as_str()), begins.as_slice()) {
            (Some(row), _) => *row,
            (None, [row]) => **row,
            _ => panic!("{} rows of docs/conformance.md begin as {mark:?} says, not one", begins.len()),
        };
        shown.entry(row).or_default().push(mark);
    }
    let line = |line: &str| match row(line) {
        Some(row) => format!("| {row} | {} |\n", cell(shown.get(row).map_or(&[][..], Vec::as_slice))),
        None => format!("{line}\n"),
    };
    page.lines().map(line).collect()
}

/// The names of tests, those of a file behind its name.
fn cell(marks: &[&Mark]) -> String {
    let files = marks.chunk_by(|one, other| one.file == other.file).map(|marks| {
        let tests: Vec<_> = marks.iter().map(|mark| format!("`{}`", mark.test)).collect();
        format!("`{}` {}", marks[0].file, tests.join(", "))
    });
    let files: Vec<_> = files.collect();
    if files.is_empty() { "**not built yet**".to_owned() } else { files.join("; ") }
}

#[test]
fn the_table_names_the_tests_that_show_its_rows() {
    let page = generated(TABLE, &marks());
    if env::var_os("AIRLOCK_CONFORMANCE").is_some_and(|what| what == "write") {
        return fs::write(Path::new(ROOT).join("docs/conformance.md"), page).unwrap();
    }
    let other: Vec<_> = page.lines().zip(TABLE.lines()).filter(|(one, other)| one != other).collect();
    assert!(
        other.is_empty(),
        "the tests say the left, the page the right; {MARK:?} above a test names a row: {other:#?}"
    );
}

#[test]
fn the_column_lists_tests_by_file_in_the_order_of_the_rows() {
    let marks = marks_of("a.rs", "    // Conformance: One\n    // Conformance: Two\n    #[test]\n    fn shows() {}\n");
    let more =
        marks_of("b.rs", "// Conformance: Two\n#[test]\nfn a() {}\nfn b() {}\n// Conformance: Two th\nfn c() {}");
    let marks: Vec<_> = marks.into_iter().chain(more).collect();
    let page = "| what | shown by |\n|---|---|\n| Two things |  |\n| One | `old.rs` `x` |\n| One more | `y.rs` `y` |\n\
                | `airlock x` | `tests/it/commands/transcripts/x.md` |\n";
    let expected = "| what | shown by |\n|---|---|\n| Two things | `a.rs` `shows`; `b.rs` `a`, `c` |\n\
                    | One | `a.rs` `shows` |\n| One more | **not built yet** |\n\
                    | `airlock x` | `tests/it/commands/transcripts/x.md` |\n";
    assert_eq!(generated(page, &marks), expected);
}

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
        let text = fs::read_to_string(Path::new(ROOT).join(file));
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
