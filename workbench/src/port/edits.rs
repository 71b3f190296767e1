//! Changes of a text by place.

use std::ops::Range;

/// Changes that do not overlap.
#[derive(Default)]
pub(super) struct Edits(Vec<(Range<usize>, String)>);

impl Edits {
    /// Puts `text` in place of what stands at `range`, in bytes.
    pub(super) fn replace(&mut self, range: Range<u32>, text: impl Into<String>) {
        self.0.push((range.start as usize..range.end as usize, text.into()));
    }

    /// The text with all changes.
    pub(super) fn apply(mut self, text: &str) -> String {
        self.0.sort_by_key(|(range, _)| range.start);
        let (mut changed, mut at) = (String::new(), 0);
        for (range, new) in self.0 {
            // A change within another one is part of it.
            if range.start >= at {
                changed += text.get(at..range.start).unwrap_or_default();
                changed += &new;
                at = range.end;
            }
        }
        changed + text.get(at..).unwrap_or_default()
    }
}
