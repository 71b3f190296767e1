//! Pages of a column, which have no more values than those of our files: few bytes of another may claim any number.

use parquet::{
    column::page::{Page, PageMetadata, PageReader},
    errors::{ParquetError, Result},
};

use crate::sealed::schema::{GATEWAYS_MAX, GROUP_ROWS};

/// Maximum number of values of a column in a row group, with those that are null.
const VALUES_MAX: usize = GATEWAYS_MAX + GROUP_ROWS;
/// Least length of a value in a dictionary, in bytes.
const VALUE_BYTES_MIN: usize = 4;

/// Pages of a column of a row group. Each that has too many values is an error.
pub(super) struct BoundedPages<R> {
    pages: R,
    /// Number of values of all pages so far.
    values: usize,
}

impl<R: PageReader> BoundedPages<R> {
    pub(super) fn new(pages: R) -> Self {
        Self { pages, values: 0 }
    }

    fn checked(&mut self, page: Option<Page>) -> Result<Option<Page>> {
        let Some(page) = page else { return Ok(None) };
        let values = page.num_values() as usize;
        let is_possible = if page.is_dictionary_page() {
            values <= page.buffer().len() / VALUE_BYTES_MIN
        } else {
            self.values = self.values.saturating_add(values);
            self.values <= VALUES_MAX
        };
        if is_possible { Ok(Some(page)) } else { Err(ParquetError::General("a page has too many values".to_owned())) }
    }
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
    use bytes::Bytes;
    use parquet::basic::Encoding;

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

    fn are_read(pages: Vec<Page>) -> bool {
        BoundedPages::new(Pages(pages)).all(|page| page.is_ok())
    }

    fn rows(count: usize) -> Page {
        Page::DataPage {
            buf: Bytes::new(),
            num_values: count as u32,
            encoding: Encoding::PLAIN,
            def_level_encoding: Encoding::RLE,
            rep_level_encoding: Encoding::RLE,
            statistics: None,
        }
    }

    #[test]
    fn pages_have_no_more_values_than_a_row_group_of_ours() {
        assert!(are_read(vec![rows(1), rows(VALUES_MAX - 1)]));
        assert!(!are_read(vec![rows(2), rows(VALUES_MAX - 1)]));
        assert!(!are_read(vec![rows(u32::MAX as usize)]));
    }

    #[test]
    fn a_dictionary_has_no_more_values_than_fit_into_it() {
        let dictionary = |num_values| {
            let buf = Bytes::from_static(&[0; 9]);
            Page::DictionaryPage { buf, num_values, encoding: Encoding::PLAIN, is_sorted: false }
        };
        assert!(are_read(vec![dictionary(2)]));
        assert!(!are_read(vec![dictionary(3)]));
    }
}
