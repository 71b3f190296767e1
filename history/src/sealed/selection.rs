//! Wanted rows of a row group: ranges in order, which do not touch.

use std::ops::Range;

/// Rows of a row group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Selection {
    ranges: Vec<Range<usize>>,
}

impl Selection {
    /// The first rows.
    pub(crate) fn all(rows: usize) -> Self {
        let mut all = Self::default();
        all.push_range(0..rows);
        all
    }

    /// These rows, which are in order.
    pub(crate) fn of(rows: impl IntoIterator<Item = usize>) -> Self {
        let mut selection = Self::default();
        rows.into_iter().for_each(|row| selection.push_range(row..row + 1));
        selection
    }

    /// Adds rows after those that it has.
    pub(crate) fn push_range(&mut self, range: Range<usize>) {
        match self.ranges.last_mut() {
            _ if range.is_empty() => {}
            Some(last) if last.end == range.start => last.end = range.end,
            _ => self.ranges.push(range),
        }
    }

    pub(crate) fn ranges(&self) -> &[Range<usize>] {
        &self.ranges
    }

    pub(crate) fn rows(&self) -> impl Iterator<Item = usize> {
        self.ranges.iter().flat_map(Clone::clone)
    }

    pub(crate) fn len(&self) -> usize {
        self.ranges.iter().map(ExactSizeIterator::len).sum()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Returns true if it has one of these rows.
    pub(crate) fn has_any(&self, rows: &Range<usize>) -> bool {
        let place = self.ranges.partition_point(|range| range.end <= rows.start);
        self.ranges.get(place).is_some_and(|range| range.start < rows.end)
    }

    /// Those of its rows for which there is true, one for each in order.
    pub(crate) fn filter(&self, wanted: impl IntoIterator<Item = bool>) -> Self {
        Self::of(self.rows().zip(wanted).filter(|(_, is_wanted)| *is_wanted).map(|(row, _)| row))
    }

    /// The same rows in parts of at most so many.
    pub(crate) fn parts(&self, rows_max: usize) -> Vec<Self> {
        let mut parts = vec![Self::default()];
        let mut room = rows_max;
        for range in &self.ranges {
            let mut start = range.start;
            while start < range.end {
                if room == 0 {
                    parts.push(Self::default());
                    room = rows_max;
                }
                let end = range.end.min(start + room);
                parts.iter_mut().next_back().into_iter().for_each(|part| part.push_range(start..end));
                room -= end - start;
                start = end;
            }
        }
        parts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_kept_as_ranges() {
        let selection = Selection::of([1, 2, 3, 7, 9, 10]);
        assert_eq!(selection.ranges(), [1..4, 7..8, 9..11]);
        assert_eq!((selection.len(), selection.is_empty()), (6, false));
        let filtered = selection.filter([false, true, true, true, false, true]);
        assert_eq!(filtered.rows().collect::<Vec<_>>(), [2, 3, 7, 10]);
        let near = [0..1, 0..2, 3..4, 4..7, 6..8, 8..9, 8..10, 11..20].map(|rows| selection.has_any(&rows));
        assert_eq!(near, [false, true, true, false, true, false, true, false]);
        let parts = Selection::all(5).parts(2);
        assert_eq!(
            parts.iter().map(|part| part.rows().collect()).collect::<Vec<Vec<_>>>(),
            [vec![0, 1], vec![2, 3], vec![4]]
        );
        assert_eq!(Selection::all(0), Selection::default());
    }
}
