//! Texts of a column, one after the other, until they are written.

use std::iter;

use bytes::Bytes;
use parquet::{
    column::writer::ColumnWriterImpl,
    data_type::{ByteArray, ByteArrayType},
    errors::Result,
};

use crate::sealed::schema::PAGE_ROWS;

/// Texts, and where each ends.
#[derive(Default)]
pub(crate) struct Texts {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

/// Levels of a column, of which those that are `value` have one.
#[derive(Clone, Copy)]
pub(crate) struct Levels<'a> {
    pub(crate) definition: &'a [i16],
    /// More than zero for what is in the same row as what is before it; none if each is in a row of its own.
    pub(crate) repetition: Option<&'a [i16]>,
    pub(crate) value: i16,
}

impl Texts {
    pub(crate) fn push(&mut self, text: &[u8]) {
        self.bytes.extend_from_slice(text);
        self.ends.push(self.bytes.len());
    }

    /// Writes them a page at a time: more values would not stay in the processor's cache.
    pub(crate) fn write(self, out: &mut ColumnWriterImpl<'_, ByteArrayType>, levels: Option<Levels<'_>>) -> Result<()> {
        // One allocation for all values, of which each is a part.
        let bytes = Bytes::from(self.bytes);
        let starts = [0].into_iter().chain(self.ends.iter().copied());
        let mut values = starts.zip(&self.ends).map(|(start, end)| ByteArray::from(bytes.slice(start..*end)));
        let mut page = Vec::with_capacity(PAGE_ROWS);
        let mut write = |count: usize, levels: Option<Levels<'_>>| {
            page.clear();
            page.extend(values.by_ref().take(count));
            let repetition = levels.and_then(|levels| levels.repetition);
            out.write_batch(&page, levels.map(|levels| levels.definition), repetition).map(drop)
        };
        match levels {
            Some(levels) => levels.parts(PAGE_ROWS).try_for_each(|part| write(part.values(), Some(part))),
            None => self.ends.chunks(PAGE_ROWS).try_for_each(|ends| write(ends.len(), None)),
        }
    }
}

impl<'a> Levels<'a> {
    /// The number of values.
    fn values(self) -> usize {
        self.definition.iter().filter(|level| **level == self.value).count()
    }

    /// Parts of so many levels, or more where a row would be cut.
    fn parts(self, levels: usize) -> impl Iterator<Item = Self> {
        let mut rest = self;
        iter::from_fn(move || {
            let mut end = levels.min(rest.definition.len());
            while rest.repetition.is_some_and(|repetition| repetition.get(end).is_some_and(|level| *level > 0)) {
                end += 1;
            }
            let (part, after) = rest.split(end)?;
            rest = after;
            (end > 0).then_some(part)
        })
    }

    fn split(self, end: usize) -> Option<(Self, Self)> {
        let (definition, definition_after) = self.definition.split_at_checked(end)?;
        let (repetition, repetition_after) = match self.repetition {
            Some(levels) => levels.split_at_checked(end).map(|(part, after)| (Some(part), Some(after)))?,
            None => (None, None),
        };
        let levels = |definition, repetition| Self { definition, repetition, value: self.value };
        Some((levels(definition, repetition), levels(definition_after, repetition_after)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_part_ends_within_a_row() {
        let parts = |repetition: Option<&[i16]>| {
            let levels = Levels { definition: &[3, 2, 3, 3, 0], repetition, value: 3 };
            levels.parts(2).map(|part| (part.definition.to_vec(), part.values())).collect::<Vec<_>>()
        };
        assert_eq!(parts(None), [(vec![3, 2], 1), (vec![3, 3], 2), (vec![0], 0)]);
        assert_eq!(parts(Some(&[0, 0, 1, 1, 0])), [(vec![3, 2, 3, 3], 3), (vec![0], 0)]);
        assert_eq!(parts(Some(&[0, 1, 0, 1, 1])), [(vec![3, 2], 1), (vec![3, 3, 0], 2)]);
    }
}
