//! What a ported text changes, as a unified diff.

use std::time::Duration;

use similar::TextDiff;

/// After this time, the rest of a difference is shown as replaced.
const TIME_MAX: Duration = Duration::from_millis(200);
/// Maximum size of a difference, in bytes.
const BYTES_MAX: usize = 256 << 10;
/// In place of a longer one, which one line of a minified source can make. It begins with the names of both texts, too.
const TOO_LONG: &str = "--- as typed\n+++ ported\n\\ The difference is too long to be shown\n";

pub(crate) fn difference(before: &str, after: &str) -> String {
    let compared = TextDiff::configure().timeout(TIME_MAX).diff_lines(before, after);
    let diff = compared.unified_diff().header("as typed", "ported").to_string();
    match diff.len() > BYTES_MAX {
        true => TOO_LONG.to_owned(),
        false => diff,
    }
}
