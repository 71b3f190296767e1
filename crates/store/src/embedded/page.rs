//! Reads a page of a list and counts the list, with the help of the blocks, which know their numbers of keys.

use bytes::Bytes;
use redb::{Database, ReadOnlyTable, ReadableDatabase};

use super::{
    decode,
    positions::{BLOCKS, Count},
    tables,
};
use crate::{Error, Key, Page, entry::record};

/// Returns the entries under a prefix after the first `offset`, at most `limit`, and the number of all.
pub(super) fn page(database: &Database, prefix: &Key, offset: usize, limit: usize, now: u64) -> Result<Page, Error> {
    page_and_reads(database, prefix, offset, limit, now).map(|(page, _)| page)
}

/// Like `page`, and returns the number of blocks and entries read for it.
pub(super) fn page_and_reads(
    database: &Database,
    prefix: &Key,
    offset: usize,
    limit: usize,
    now: u64,
) -> Result<(Page, usize), Error> {
    let open = || -> Result<_, redb::Error> {
        let read = database.begin_read()?;
        Ok((read.open_table(tables::ENTRIES)?, blocks(&read.open_table(BLOCKS)?, prefix)?))
    };
    let (entries, blocks) = open().map_err(unavailable)?;
    let mut reader = Reader { entries, prefix, offset, limit, now, page: Page::default(), reads: blocks.len() };
    blocks.iter().try_for_each(|block| reader.read(block))?;
    Ok((reader.page, reader.reads))
}

/// Some successive keys of a tag.
struct Block {
    first: String,
    /// The first path of the next block of the tag.
    next: Option<String>,
    count: Count,
}

/// The blocks that have keys under a prefix.
fn blocks(
    blocks: &ReadOnlyTable<(&'static str, &'static str), (u32, u32)>,
    prefix: &Key,
) -> Result<Vec<Block>, redb::Error> {
    let (tag, path) = (prefix.tag(), prefix.path());
    let start = blocks.range((tag, "")..=(tag, path))?.next_back().transpose()?;
    let start = start.map_or_else(|| path.to_owned(), |(key, _)| key.value().1.to_owned());
    let mut found: Vec<Block> = Vec::new();
    for block in blocks.range((tag, start.as_str())..)? {
        let (key, count) = block?;
        let (_, first) = Some(key.value()).filter(|(other, _)| *other == tag).unzip();
        if let Some(last) = found.last_mut() {
            last.next = first.map(str::to_owned);
        }
        match first.filter(|first| *first <= path || first.starts_with(path)) {
            Some(first) => found.push(Block { first: first.to_owned(), next: None, count: count.value().into() }),
            None => break,
        }
    }
    Ok(found)
}

struct Reader<'a> {
    entries: ReadOnlyTable<&'static str, &'static [u8]>,
    prefix: &'a Key,
    offset: usize,
    limit: usize,
    now: u64,
    page: Page,
    /// Number of blocks and entries read.
    reads: usize,
}

impl Reader<'_> {
    /// Counts a block, and reads it unless all of it counts and none of it is on the page.
    fn read(&mut self, block: &Block) -> Result<(), Error> {
        let has_prefix = |path: &str| path.starts_with(self.prefix.path());
        let counts = has_prefix(&block.first) && block.next.as_deref().is_some_and(has_prefix);
        let end = self.page.total + block.count.keys as usize;
        let is_elsewhere = end <= self.offset || self.page.entries.len() == self.limit;
        if counts && block.count.expiring == 0 && is_elsewhere {
            self.page.total = end;
            return Ok(());
        }
        self.walk(block)
    }

    /// Reads the keys of a block one by one.
    fn walk(&mut self, block: &Block) -> Result<(), Error> {
        let from = format!("{}{}", self.prefix.tag(), block.first).max(self.prefix.as_str().to_owned());
        for found in self.entries.range(from.as_str()..).map_err(|error| unavailable(error.into()))? {
            let (key, bytes) = found.map_err(|error| unavailable(error.into()))?;
            let path = key.value().strip_prefix(self.prefix.tag());
            let path = path.filter(|path| path.starts_with(self.prefix.path()));
            let Some(path) = path.filter(|path| block.next.as_deref().is_none_or(|next| *path < next)) else { break };
            self.reads += 1;
            if record::is_live_in(bytes.value(), key.value(), self.now)? {
                self.count(path, bytes.value())?;
            }
        }
        Ok(())
    }

    fn count(&mut self, path: &str, bytes: &[u8]) -> Result<(), Error> {
        if self.page.total >= self.offset && self.page.entries.len() < self.limit {
            let entry = decode(&self.prefix.sibling(path), Some(Bytes::copy_from_slice(bytes)), self.now)?;
            self.page.entries.extend(entry);
        }
        self.page.total += 1;
        Ok(())
    }
}

fn unavailable(error: redb::Error) -> Error {
    Error::unavailable("list entries", error)
}
