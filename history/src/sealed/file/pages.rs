//! Pages of a column, which have no more values than those of our files: few bytes of another may claim any number.

use parquet::{
    basic::Encoding,
    column::page::{Page, PageMetadata, PageReader},
    errors::Result,
    schema::types::ColumnDescriptor,
};

use super::{claims::damaged, compact::Compact};
use crate::sealed::schema::{GATEWAYS_MAX, GROUP_ROWS};

/// Maximum number of values of a column in a row group, with those that are null.
pub(super) const VALUES_MAX: usize = GATEWAYS_MAX + GROUP_ROWS;
/// Least length of a value in a dictionary, in bytes.
const VALUE_BYTES_MIN: usize = 4;

/// Pages of a column of a row group. Each that has too many values is an error.
pub(super) struct BoundedPages<R> {
    pages: R,
    /// Number of values that further pages may have.
    values_left: usize,
    /// Kinds of levels that are before the values of a page.
    levels: usize,
}

impl<R: PageReader> BoundedPages<R> {
    /// The pages of a column of so many rows.
    pub(super) fn new(pages: R, column: &ColumnDescriptor, rows: usize) -> Self {
        let levels = [column.max_rep_level(), column.max_def_level()];
        // A row has several values only where they are repeated.
        let values_left = if column.max_rep_level() > 0 { VALUES_MAX } else { rows.min(VALUES_MAX) };
        Self { pages, values_left, levels: levels.iter().filter(|max| **max > 0).count() }
    }

    fn checked(&mut self, page: Option<Page>) -> Result<Option<Page>> {
        let Some(page) = page else { return Ok(None) };
        let values = page.num_values() as usize;
        let is_possible = if page.is_dictionary_page() {
            values <= page.buffer().len() / VALUE_BYTES_MIN
        } else {
            let left = self.values_left.checked_sub(values);
            self.values_left = left.unwrap_or(0);
            left.is_some() && is_possible(&page, self.levels).unwrap_or(false)
        };
        if is_possible { Ok(Some(page)) } else { Err(damaged("a page has more values than it can have")) }
    }
}

/// False or none if a page of values claims more than it can have: its reader would make room for that.
fn is_possible(page: &Page, levels: usize) -> Option<bool> {
    let (encoding, values) = encoded(page, levels)?;
    Some(match encoding {
        Encoding::DELTA_LENGTH_BYTE_ARRAY => lengths(values)? <= u64::from(page.num_values()),
        // Its reader makes room for no more than are wanted.
        Encoding::DELTA_BINARY_PACKED => true,
        Encoding::PLAIN | Encoding::RLE | Encoding::RLE_DICTIONARY | Encoding::PLAIN_DICTIONARY => true,
        // Ours have no others.
        _ => false,
    })
}

/// The encoding of the values of a page, and what is behind its levels.
fn encoded(page: &Page, levels: usize) -> Option<(Encoding, &[u8])> {
    match page {
        Page::DataPage { buf, encoding, def_level_encoding, rep_level_encoding, .. } => {
            let is_ours = [def_level_encoding, rep_level_encoding].iter().all(|encoding| **encoding == Encoding::RLE);
            let values = (0..levels).try_fold(&buf[..], |rest, _| {
                let (length, rest) = rest.split_first_chunk::<4>()?;
                rest.get(u32::from_le_bytes(*length) as usize..)
            })?;
            is_ours.then_some((*encoding, values))
        }
        Page::DataPageV2 { buf, encoding, def_levels_byte_len, rep_levels_byte_len, .. } => {
            let levels = rep_levels_byte_len.checked_add(*def_levels_byte_len)?;
            Some((*encoding, buf.get(levels as usize..)?))
        }
        Page::DictionaryPage { .. } => None,
    }
}

/// Number of texts whose lengths are before them: it follows the sizes of two kinds of blocks.
fn lengths(values: &[u8]) -> Option<u64> {
    let mut values = Compact::new(values);
    let (_block, _part) = (values.unsigned()?, values.unsigned()?);
    values.unsigned()
}

impl<R: PageReader> Iterator for BoundedPages<R> {
    type Item = Result<Page>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}

impl<R: PageReader> PageReader for BoundedPages<R> {
    fn get_next_page(&mut self) -> Result<Option<Page>> {
        let page = self.pages.get_next_page()?;
        self.checked(page)
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
        self.pages.peek_next_page()
    }

    fn skip_next_page(&mut self) -> Result<()> {
        self.pages.skip_next_page()
    }

    fn supports_deferred_dictionary(&self) -> bool {
        self.pages.supports_deferred_dictionary()
    }

    fn take_deferred_dictionary(&mut self) -> Result<Option<Page>> {
        let page = self.pages.take_deferred_dictionary()?;
        self.checked(page)
    }

    fn at_record_boundary(&mut self) -> Result<bool> {
        self.pages.at_record_boundary()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use bytes::Bytes;
    use parquet::{basic::Type, schema::types};

    use super::*;

    /// Pages that are read from the last to the first.
    struct Pages(Vec<Page>);

    impl Iterator for Pages {
        type Item = Result<Page>;

        fn next(&mut self) -> Option<Self::Item> {
            self.get_next_page().transpose()
        }
    }

    impl PageReader for Pages {
        fn get_next_page(&mut self) -> Result<Option<Page>> {
            Ok(self.0.pop())
        }

        fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
            Ok(None)
        }

        fn skip_next_page(&mut self) -> Result<()> {
            Ok(())
        }
    }

    /// A column with these levels.
    fn column(max_def_level: i16, max_rep_level: i16) -> ColumnDescriptor {
        let column = types::Type::primitive_type_builder("column", Type::BYTE_ARRAY).build().unwrap();
        ColumnDescriptor::new(Arc::new(column), max_def_level, max_rep_level, types::ColumnPath::from("column"))
    }

    fn are_read(pages: Vec<Page>, column: &ColumnDescriptor, rows: usize) -> bool {
        BoundedPages::new(Pages(pages), column, rows).all(|page| page.is_ok())
    }

    fn rows(count: usize) -> Page {
        page(count, Encoding::PLAIN, &[])
    }

    fn page(count: usize, encoding: Encoding, buf: &[u8]) -> Page {
        Page::DataPage {
            buf: Bytes::copy_from_slice(buf),
            num_values: count as u32,
            encoding,
            def_level_encoding: Encoding::RLE,
            rep_level_encoding: Encoding::RLE,
            statistics: None,
        }
    }

    #[test]
    fn pages_have_no_more_values_than_there_are_rows() {
        let flat = column(0, 0);
        assert!(are_read(vec![rows(1), rows(9)], &flat, 10));
        assert!(!are_read(vec![rows(2), rows(9)], &flat, 10));
        assert!(!are_read(vec![rows(u32::MAX as usize)], &flat, usize::MAX));
    }

    #[test]
    fn pages_of_lists_have_no_more_values_than_a_row_group_of_ours() {
        let repeated = column(0, 1);
        let rows = |count| page(count, Encoding::PLAIN, &[0; 4]);
        assert!(are_read(vec![rows(1), rows(VALUES_MAX - 1)], &repeated, 1));
        assert!(!are_read(vec![rows(2), rows(VALUES_MAX - 1)], &repeated, 1));
    }

    #[test]
    fn a_page_has_no_more_lengths_than_values() {
        let is_read = |levels: &[u8], lengths: &[u8]| {
            let values = [levels, &[0x80, 0x01, 0x04], lengths].concat();
            let column = column(if levels.is_empty() { 0 } else { 1 }, 0);
            are_read(vec![page(3, Encoding::DELTA_LENGTH_BYTE_ARRAY, &values)], &column, 3)
        };
        for levels in [&[][..], &[2, 0, 0, 0, 0x06, 0x01]] {
            assert!(is_read(levels, &[3, 0]), "{levels:?}");
            // Without a check, its reader makes room for four thousand million.
            for lengths in [&[4, 0][..], &[0xff, 0xff, 0xff, 0xff, 0x0f, 0], &[]] {
                assert!(!is_read(levels, lengths), "{levels:?} {lengths:?}");
            }
        }
        assert!(!is_read(&[9, 0, 0, 0, 0x06, 0x01], &[3, 0]), "the levels are longer than the page");
    }

    #[test]
    fn pages_in_encodings_that_ours_do_not_have_are_not_read() {
        let is_read = |encoding| are_read(vec![page(1, encoding, &[0; 9])], &column(0, 0), 1);
        assert!(is_read(Encoding::RLE_DICTIONARY));
        assert!(!is_read(Encoding::DELTA_BYTE_ARRAY));
    }

    #[test]
    fn a_dictionary_has_no_more_values_than_fit_into_it() {
        let dictionary = |num_values| {
            let buf = Bytes::from_static(&[0; 9]);
            Page::DictionaryPage { buf, num_values, encoding: Encoding::PLAIN, is_sorted: false }
        };
        assert!(are_read(vec![dictionary(2)], &column(0, 0), 1));
        assert!(!are_read(vec![dictionary(3)], &column(0, 0), 1));
    }
}
