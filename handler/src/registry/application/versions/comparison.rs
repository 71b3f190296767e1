//! Differences between two versions, as a unified diff.

use std::{fmt::Write, time::Duration};

use similar::TextDiff;

use crate::registry::application::StoredVersion;

/// Lines longer than this are compared in pieces, in bytes: minified functions are one line.
const LINE_BYTES_MAX: usize = 240;
/// Maximum number of lines that are compared, without those that both texts have at their start and end.
const LINES_MAX: usize = 20_000;
/// After this time, the rest is shown as replaced.
const TIME_MAX: Duration = Duration::from_millis(200);
/// Maximum size of a diff, in bytes.
const DIFF_BYTES_MAX: usize = 256 << 10;

/// A unified diff of each function and of the payload format; empty if they are equal.
///
/// The texts are not the caller's: whoever shows them on a terminal removes its control sequences.
pub(super) fn compare(from: &StoredVersion, to: &StoredVersion) -> String {
    let (old, new) = (from.application.sources(), to.application.sources());
    let parts = [
        ("payload_format", from.version.payload_format.as_str(), to.version.payload_format.as_str()),
        ("decoder", &old.decoder, &new.decoder),
        ("converter", &old.converter, &new.converter),
        ("validator", &old.validator, &new.validator),
        ("encoder", &old.encoder, &new.encoder),
    ];
    let mut diff = String::new();
    for (name, old, new) in parts {
        if old != new {
            let header = |number: u32| format!("{name} (version {number})");
            diff += &compare_texts(old, new, (&header(from.version.number), &header(to.version.number)));
        }
    }
    if diff.len() > DIFF_BYTES_MAX {
        let end = diff[..diff.floor_char_boundary(DIFF_BYTES_MAX)].rfind('\n').map_or(0, |end| end + 1);
        diff.truncate(end);
        diff += "\\ The rest is left out\n";
    }
    diff
}

fn compare_texts(old: &str, new: &str, (from, to): (&str, &str)) -> String {
    let (old, new) = (lines(old), lines(new));
    let starts = old.iter().zip(&new).take_while(|(old, new)| old == new).count();
    let (old_rest, new_rest) = (&old[starts..], &new[starts..]);
    let ends = old_rest.iter().rev().zip(new_rest.iter().rev()).take_while(|(old, new)| old == new).count();
    let (removed, added) = (old_rest.len() - ends, new_rest.len() - ends);
    if removed + added > LINES_MAX {
        return format!("--- {from}\n+++ {to}\n\\ Too much differs to compare it: {removed} lines became {added}\n");
    }
    if removed + added == 0 {
        return format!("--- {from}\n+++ {to}\n\\ Only ends of lines differ\n");
    }
    let mut diff = String::new();
    // Writing to a string cannot fail.
    let compared = TextDiff::configure().timeout(TIME_MAX).diff_slices(&old, &new);
    let _ = write!(diff, "{}", compared.unified_diff().header(from, to));
    diff
}

/// The lines of a text without their ends, long ones in pieces.
fn lines(text: &str) -> Vec<&str> {
    text.lines().flat_map(pieces).collect()
}

/// A line, or pieces of a long one, which end where statements and members do.
fn pieces(line: &str) -> Vec<&str> {
    if line.len() <= LINE_BYTES_MAX {
        return vec![line];
    }
    let mut pieces = Vec::new();
    for statement in line.split_inclusive([';', '{', '}', ',']) {
        let mut rest = statement;
        while rest.len() > LINE_BYTES_MAX {
            let (piece, after) = rest.split_at(rest.floor_char_boundary(LINE_BYTES_MAX));
            pieces.push(piece);
            rest = after;
        }
        pieces.push(rest);
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    fn diff(old: &str, new: &str) -> String {
        compare_texts(old, new, ("a", "b"))
    }

    #[test]
    fn a_diff_has_the_changed_lines_with_those_around_them() {
        let old: String = (1..=9).map(|number| format!("line {number}\n")).collect();
        let new = old.replace("line 5", "line five");
        let expected = concat!(
            "--- a\n+++ b\n@@ -2,7 +2,7 @@\n line 2\n line 3\n line 4\n",
            "-line 5\n+line five\n line 6\n line 7\n line 8\n",
        );
        assert_eq!(diff(&old, &new), expected);
        assert_eq!(diff("", "new"), "--- a\n+++ b\n@@ -0,0 +1 @@\n+new\n");
        assert_eq!(diff("same\r\n", "same\n"), "--- a\n+++ b\n\\ Only ends of lines differ\n");
    }

    #[test]
    fn a_minified_line_is_compared_in_pieces() {
        let old = format!("{}var a=1;{}", "x();".repeat(200), "y();".repeat(200));
        let new = old.replace("a=1", "a=2");
        let diff = diff(&old, &new);
        assert!(diff.contains("\n-var a=1;\n+var a=2;\n") && diff.len() < 200, "{diff}");
        let old = format!("☂{}", "☃".repeat(1000));
        assert!(pieces(&old).iter().all(|piece| piece.len() <= LINE_BYTES_MAX));
        assert_eq!(pieces(&old).concat(), old);
    }

    #[test]
    fn too_many_changes_are_not_compared() {
        let lines = |word: &str| (0..10_001).map(|number| format!("{word}{number}\n")).collect::<String>();
        let too_many = diff(&lines("a"), &lines("b"));
        assert!(too_many.contains("10001 lines became 10001") && too_many.len() < 200, "{too_many}");
        let old = lines("a");
        let distant = diff(&old, &old.replace("a0\n", "b0\n").replace("a9000\n", "b9000\n"));
        assert!(distant.contains("+b0\n") && distant.contains("+b9000\n") && distant.len() < 400, "{distant}");
    }
}
