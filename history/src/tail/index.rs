//! The index of the blocks of a segment.

use std::collections::BTreeMap;

use crate::{RecordId, record::device_hash, tail::codec};

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
    pub(super) offset: u64,
    pub(super) length: usize,
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
