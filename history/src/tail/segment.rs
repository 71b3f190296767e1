//! A file of the tail, and the index of its blocks.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::Read,
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
    sync::{PoisonError, RwLock},
};

use bytes::Bytes;

use crate::{
    Error, RecordId,
    directory::{if_there, remove, sync},
    record::device_hash,
    tail::{
        block::{self, Block, MAGIC},
        codec,
    },
};

/// A file of the tail. It can be read while it grows, and after it was deleted.
#[derive(Debug)]
pub(crate) struct Segment {
    /// Its name without the extension, unique among all processes.
    pub(crate) name: String,
    path: PathBuf,
    pub(crate) file: File,
    index: RwLock<Index>,
}

/// Index of the blocks of a segment.
#[derive(Clone, Debug, Default)]
pub(crate) struct Index {
    pub(crate) blocks: Vec<BlockPlace>,
    /// Bytes of each application.
    pub(crate) applications: BTreeMap<String, u64>,
    /// The length of all blocks.
    pub(crate) bytes: u64,
    /// The length of all records, which may be much more.
    pub(crate) record_bytes: u64,
    pub(crate) records: u64,
}

/// Place of a block, with the ids and devices in it.
#[derive(Clone, Debug)]
pub(crate) struct BlockPlace {
    offset: u64,
    length: usize,
    /// The lowest id in it.
    pub(crate) first: RecordId,
    /// The highest id in it.
    pub(crate) last: RecordId,
    /// Hashes of the devices, in order.
    devices: Box<[u32]>,
}

impl BlockPlace {
    pub(crate) fn may_have(&self, device: u32) -> bool {
        self.devices.binary_search(&device).is_ok()
    }
}

impl Index {
    /// Adds a block that follows the others in the file: its length there, and its records.
    pub(crate) fn add(&mut self, writer: u32, length: usize, records: &[u8]) {
        let mut devices = Vec::new();
        let mut run: (&[u8], usize) = (&[], 0);
        let (mut first, mut last) = (RecordId::last(u64::MAX), RecordId::first(0));
        for record in codec::records(records) {
            let Some(head) = codec::decode_head(writer, record) else { continue };
            devices.push(device_hash(head.app_id, head.dev_id));
            first = first.min(head.id);
            last = last.max(head.id);
            if run.0 != head.app_id {
                self.charge(run.0, run.1);
                run = (head.app_id, 0);
            }
            run.1 += record.len() * length / records.len().max(1);
        }
        self.charge(run.0, run.1);
        self.records += devices.len() as u64;
        devices.sort_unstable();
        devices.dedup();
        self.blocks.push(BlockPlace { offset: self.bytes, length, first, last, devices: devices.into() });
        self.bytes += length as u64;
        self.record_bytes += records.len() as u64;
    }

    fn charge(&mut self, app_id: &[u8], bytes: usize) {
        let (app_id, bytes) = (String::from_utf8_lossy(app_id), bytes as u64);
        match self.applications.get_mut(app_id.as_ref()) {
            Some(charged) => *charged += bytes,
            None if app_id.is_empty() => {}
            None => _ = self.applications.insert(app_id.into_owned(), bytes),
        }
    }

    /// The lowest id of all blocks.
    pub(crate) fn first(&self) -> Option<RecordId> {
        self.blocks.iter().map(|block| block.first).min()
    }

    /// The highest id of all blocks.
    pub(crate) fn last(&self) -> Option<RecordId> {
        self.blocks.iter().map(|block| block.last).max()
    }
}

impl Segment {
    /// A segment that is new and empty, in a file that does not exist.
    pub(crate) fn create(dir: &Path, name: String) -> Result<Self, Error> {
        let path = dir.join(&name).with_extension(EXTENSION);
        let file = File::options().read(true).append(true).create_new(true).open(&path);
        let file = file.map_err(Error::file("create", &path))?;
        sync(dir)?;
        Ok(Self { name, path, file, index: RwLock::default() })
    }

    /// Reads a segment that was written before, and cuts off an incomplete block at its end. Blocks that have changed
    /// since are left out; a file without any block is not one of ours.
    pub(crate) fn recover(path: PathBuf) -> Result<Self, Error> {
        let file = File::options().read(true).append(true).open(&path).map_err(Error::file("open", &path))?;
        let bytes: Bytes = fs::read(&path).map_err(Error::file("read", &path))?.into();
        let (index, changed) = read_index(&bytes, &path)?;
        if changed > 0 {
            tracing::error!(path = %path.display(), bytes = changed, "records of history have changed and are lost");
        }
        let lost = bytes.len() as u64 - index.bytes;
        if lost > 0 {
            tracing::warn!(path = %path.display(), bytes = lost, "the end of history was not written before the stop");
            file.set_len(index.bytes).map_err(Error::file("shorten", &path))?;
        }
        Ok(Self::with_index(path, file, index))
    }

    /// Reads the whole blocks of a segment that may be of a running process, and changes nothing. Returns how many bytes
    /// have changed since they were written, too. None if its records have moved to Parquet files meanwhile.
    pub(crate) fn look(path: &Path) -> Result<Option<(Self, u64)>, Error> {
        // It is renamed once when that begins.
        for path in [path.to_owned(), path.with_extension(SEALING)] {
            if let Some(mut file) = if_there(File::open(&path).map(Some).map_err(Error::file("open", &path)))? {
                let mut bytes = Vec::new();
                file.read_to_end(&mut bytes).map_err(Error::file("read", &path))?;
                let bytes = Bytes::from(bytes);
                let (index, changed) = read_index(&bytes, &path)?;
                let rest = bytes.get(index.bytes as usize..).unwrap_or_default();
                let changed = changed + if is_begun(rest) { 0 } else { rest.len() as u64 };
                return Ok(Some((Self::with_index(path, file, index), changed)));
            }
        }
        Ok(None)
    }

    fn with_index(path: PathBuf, file: File, index: Index) -> Self {
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        Self { name, path, file, index: RwLock::new(index) }
    }

    /// Marks it as one that does not grow any more, also after a restart: the names of its Parquet files follow from
    /// what is in it.
    pub(crate) fn begin_seal(&self) -> Result<(), Error> {
        let sealing = self.sealing();
        if sealing.exists() {
            return Ok(());
        }
        fs::rename(&self.path, &sealing).map_err(Error::file("rename", &self.path))?;
        self.path.parent().map_or(Ok(()), sync)
    }

    /// Returns true if it does not grow any more because sealing has begun.
    pub(crate) fn is_sealing(&self) -> bool {
        self.sealing().exists()
    }

    /// Deletes it once its records are elsewhere.
    pub(crate) fn delete(&self) -> Result<(), Error> {
        remove(&self.sealing())
    }

    fn sealing(&self) -> PathBuf {
        self.path.with_extension(SEALING)
    }

    /// Returns the path of the file.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Reads all of its blocks but those that have changed.
    pub(crate) fn read_all(&self) -> Result<Vec<Block>, Error> {
        let places = self.index(|index| index.blocks.clone());
        let unless_damaged = |read| match read {
            Err(Error::Damaged { path, .. }) => {
                tracing::error!(path = %path.display(), "records of history have changed and are lost");
                None
            }
            read => Some(read),
        };
        places.iter().map(|place| self.read(place)).filter_map(unless_damaged).collect()
    }

    /// Reads the index of its blocks as it is now.
    pub(crate) fn index<T>(&self, read: impl FnOnce(&Index) -> T) -> T {
        read(&self.index.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Adds blocks that were written to the file.
    pub(crate) fn extend(&self, add: impl FnOnce(&mut Index)) {
        add(&mut self.index.write().unwrap_or_else(PoisonError::into_inner));
    }

    /// Reads one of its blocks.
    pub(crate) fn read(&self, place: &BlockPlace) -> Result<Block, Error> {
        let mut bytes = vec![0; place.length];
        self.file.read_exact_at(&mut bytes, place.offset).map_err(Error::file("read", &self.path))?;
        let damaged = || Error::Damaged { path: self.path.clone(), source: "a block has changed".into() };
        block::decode(&bytes.into()).ok_or_else(damaged)
    }
}

/// The index of the whole blocks in these bytes, and how many bytes before the last of them have changed. A file without
/// any block is not one of ours.
fn read_index(bytes: &Bytes, path: &Path) -> Result<(Index, u64), Error> {
    let (mut index, mut changed) = (Index::default(), 0);
    while let Some((gap, block)) = next_block(&bytes.slice(index.bytes as usize..)) {
        index.bytes += gap as u64;
        changed += gap as u64;
        index.add(block.writer, block.length, &block.records);
    }
    if index.blocks.is_empty() && !is_start(bytes) {
        return Err(Error::damaged(path, "it does not begin with a block"));
    }
    Ok((index, changed))
}

/// The next block that is whole, and how many bytes are before it, which have changed.
fn next_block(bytes: &Bytes) -> Option<(usize, Block)> {
    let whole = |place: usize| {
        let block = if place <= bytes.len() { block::decode(&bytes.slice(place..)) } else { None };
        block.map(|block| (place, block))
    };
    // A device may send what looks like a block. In a block that is not whole, it would be found: it counts only if what
    // follows it does.
    let is_followed = |(place, block): &(usize, Block)| {
        let rest = bytes.slice(place + block.length..);
        rest.is_empty() || block::decode(&rest).is_some()
    };
    let found = || memchr::memmem::find_iter(bytes, &MAGIC).filter_map(whole).find(is_followed);
    whole(0).or_else(|| block::claimed_length(bytes).and_then(whole)).or_else(found)
}

/// Returns true if a block may begin with these bytes, of which the rest is still being written.
fn is_begun(bytes: &[u8]) -> bool {
    is_start(bytes) && block::claimed_length(bytes).is_none_or(|length| length > bytes.len())
}

/// Returns true if a block, or the first bytes of one, can begin with these bytes.
fn is_start(bytes: &[u8]) -> bool {
    bytes.starts_with(&MAGIC[..bytes.len().min(MAGIC.len())])
}

/// Extension of the names of segments.
const EXTENSION: &str = "tail";
/// Extension of the names of segments while they are sealed.
const SEALING: &str = "sealing";

/// Returns true if the name of a file is that of a segment.
pub(crate) fn is_segment(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == EXTENSION || extension == SEALING)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(records: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        block::encode(9, 1, records, &mut Vec::new(), &mut bytes);
        bytes
    }

    /// The place and the length of each block that is read, and how many bytes have changed.
    fn read(bytes: &[u8]) -> (Vec<(u64, usize)>, u64) {
        let (index, changed) = read_index(&Bytes::copy_from_slice(bytes), Path::new("some-file")).unwrap();
        (index.blocks.iter().map(|place| (place.offset, place.length)).collect(), changed)
    }

    #[test]
    fn a_block_in_another_that_is_not_whole_is_no_block() {
        let payload = encoded(b"sent by a device");
        let outer = encoded(&[b"before".as_slice(), &payload, b"after"].concat());
        let (length, last) = (outer.len(), encoded(b"last"));
        let file = [&outer[..], &last].concat();
        assert_eq!(read(&file), (vec![(0, length), (length as u64, last.len())], 0));
        assert_eq!(read(&outer[..length - 1]), (Vec::new(), 0));
        // Also if it does not say any more how long it is.
        for place in [0, 8, length - 1] {
            let mut changed = file.clone();
            changed[place] ^= 1;
            assert_eq!(read(&changed), (vec![(length as u64, last.len())], length as u64), "{place}");
        }
    }

    #[test]
    fn only_what_is_left_of_a_block_may_be_written_later() {
        let block = encoded(b"records");
        assert!((0..block.len()).all(|length| is_begun(&block[..length])));
        assert!(!is_begun(&block));
        assert!(!is_begun(b"AHC1"));
    }
}
