//! The positions of keys: the number of keys of each tag, in blocks, so that a page neither counts nor skips them one
//! by one.
//!
//! A block has the keys of a tag from its first path to that of the next block. Entries that expire are counted apart:
//! only a block with some of them is read to count it.

use std::ops::Bound;

use redb::{ReadableTable, Table, TableDefinition};

use crate::entry::record::{NEVER, expiry_in};

/// Maximum number of keys of a block; one that has more is split.
pub(super) const BLOCK_KEYS_MAX: u32 = 256;

/// Tag and first path of a block to its keys.
pub(super) const BLOCKS: TableDefinition<'_, (&str, &str), (u32, u32)> = TableDefinition::new("blocks");

type Entries<'txn> = Table<'txn, &'static str, &'static [u8]>;

/// The keys of a block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Count {
    pub(super) keys: u32,
    /// Those of entries that expire.
    pub(super) expiring: u32,
}

/// The blocks within a write transaction.
pub(super) struct Positions<'txn> {
    blocks: Table<'txn, (&'static str, &'static str), (u32, u32)>,
}

impl From<(u32, u32)> for Count {
    fn from((keys, expiring): (u32, u32)) -> Self {
        Self { keys, expiring }
    }
}

impl Count {
    fn add(&mut self, expires: bool) {
        self.keys += 1;
        self.expiring += u32::from(expires);
    }

    fn subtract(&mut self, expires: bool) {
        self.keys = self.keys.saturating_sub(1);
        self.expiring = self.expiring.saturating_sub(u32::from(expires));
    }
}

impl<'txn> Positions<'txn> {
    pub(super) fn new(blocks: Table<'txn, (&'static str, &'static str), (u32, u32)>) -> Self {
        Self { blocks }
    }

    /// Counts a key that is already among `entries`.
    pub(super) fn add(&mut self, key: &str, expires: bool, entries: &Entries<'_>) -> Result<(), redb::Error> {
        let (tag, path) = split(key);
        let (first, mut count) = self.block(tag, path)?.unwrap_or_default();
        count.add(expires);
        match count.keys > BLOCK_KEYS_MAX {
            true => self.split_block(tag, &first, entries),
            false => self.set(tag, &first, count),
        }
    }

    /// No longer counts a key.
    pub(super) fn remove(&mut self, key: &str, expires: bool) -> Result<(), redb::Error> {
        let (tag, path) = split(key);
        let Some((first, mut count)) = self.block(tag, path)? else { return Ok(()) };
        count.subtract(expires);
        self.set(tag, &first, count)
    }

    /// Counts all entries again.
    pub(super) fn rebuild(&mut self, entries: &Entries<'_>) -> Result<(), redb::Error> {
        self.blocks.retain(|_, _| false)?;
        let (mut block, mut count) = ((String::new(), String::new()), Count::default());
        for found in entries.iter()? {
            let (key, bytes) = found?;
            let (tag, path) = split(key.value());
            let is_other = tag != block.0;
            if is_other || count.keys >= BLOCK_KEYS_MAX / 2 {
                self.set(&block.0, &block.1, count)?;
                // The first block of a tag has all paths before that of the second one.
                block = (tag.to_owned(), if is_other { String::new() } else { path.to_owned() });
                count = Count::default();
            }
            count.add(expiry_in(bytes.value()) != NEVER);
        }
        self.set(&block.0, &block.1, count)
    }

    /// The first path and the keys of the block that a path belongs to.
    fn block(&self, tag: &str, path: &str) -> Result<Option<(String, Count)>, redb::Error> {
        let found = self.blocks.range((tag, "")..=(tag, path))?.next_back().transpose()?;
        Ok(found.map(|(key, count)| (key.value().1.to_owned(), count.value().into())))
    }

    fn set(&mut self, tag: &str, first: &str, count: Count) -> Result<(), redb::Error> {
        match count.keys {
            0 => drop(self.blocks.remove((tag, first))?),
            _ => drop(self.blocks.insert((tag, first), (count.keys, count.expiring))?),
        }
        Ok(())
    }

    /// Halves a block, and counts both halves.
    fn split_block(&mut self, tag: &str, first: &str, entries: &Entries<'_>) -> Result<(), redb::Error> {
        let next = self.blocks.range((Bound::Excluded((tag, first)), Bound::Unbounded))?.next().transpose()?;
        let end = next.as_ref().filter(|(key, _)| key.value().0 == tag).map(|(key, _)| key.value().1.to_owned());
        drop(next);
        let (mut halves, mut middle) = ([Count::default(); 2], None);
        for found in entries.range(format!("{tag}{first}").as_str()..)? {
            let (key, bytes) = found?;
            let Some(path) = key.value().strip_prefix(tag).filter(|path| end.as_deref().is_none_or(|end| *path < end))
            else {
                break;
            };
            if halves[0].keys > BLOCK_KEYS_MAX / 2 && middle.is_none() {
                middle = Some(path.to_owned());
            }
            halves[usize::from(middle.is_some())].add(expiry_in(bytes.value()) != NEVER);
        }
        self.set(tag, first, halves[0])?;
        middle.map_or(Ok(()), |middle| self.set(tag, &middle, halves[1]))
    }
}

/// The tag and the path of a key.
pub(super) fn split(key: &str) -> (&str, &str) {
    key.split_at(key.find('}').map_or(key.len(), |end| end + 1))
}
