//! Blocks of records in a file of the tail: checksummed, so that one that was written in part is recognized, and
//! compressed where that pays.

use bytes::Bytes;

use crate::tail::varint::Input;

/// First bytes of a block.
pub(crate) const MAGIC: [u8; 4] = *b"AHB1";
/// The length of what precedes the records: magic, checksum of what follows it, length as stored, length as it was,
/// number of records, writer.
pub(crate) const HEADER_BYTES: usize = 24;
/// Below this, compression saves less than it costs.
const COMPRESSED_BYTES_MIN: usize = 4096;
/// So does it when the records are shorter on average: a tail is short, and the files are compressed anyway.
const RECORD_BYTES_MIN: usize = 512;
/// Maximum size of the records of one block in bytes; a longer one is damaged.
const RECORDS_BYTES_MAX: usize = 16 << 20;

/// A block that was read.
#[derive(Debug)]
pub(crate) struct Block {
    /// Random number of the process that wrote it, new at each start.
    pub(crate) writer: u32,
    /// Its records, as `codec` has them.
    pub(crate) records: Bytes,
    /// Size in the file, in bytes.
    pub(crate) length: usize,
}

/// Appends a block with these records. `scratch` is kept for its room.
pub(crate) fn encode(writer: u32, count: u32, records: &[u8], scratch: &mut Vec<u8>, out: &mut Vec<u8>) {
    let start = out.len();
    out.extend_from_slice(&[0; HEADER_BYTES]);
    let is_worth_it = records.len() >= COMPRESSED_BYTES_MIN.max(count as usize * RECORD_BYTES_MIN);
    let stored = compress(records, is_worth_it, scratch, out);
    let header = [stored, records.len() as u32, count, writer].map(u32::to_le_bytes);
    if let Some(fields) = out.get_mut(start + 8..start + HEADER_BYTES) {
        fields.copy_from_slice(header.as_flattened());
    }
    let checksum = crc32fast::hash(out.get(start + 8..).unwrap_or_default());
    if let Some(fields) = out.get_mut(start..start + 8) {
        fields.copy_from_slice([MAGIC, checksum.to_le_bytes()].as_flattened());
    }
}

/// Appends the records, compressed if that is shorter, and returns the length.
fn compress(records: &[u8], is_worth_it: bool, scratch: &mut Vec<u8>, out: &mut Vec<u8>) -> u32 {
    if is_worth_it {
        let length_max = lz4_flex::block::get_maximum_output_size(records.len());
        if scratch.len() < length_max {
            scratch.resize(length_max, 0);
        }
        let length = lz4_flex::block::compress_into(records, scratch).unwrap_or(usize::MAX);
        if let Some(compressed) = scratch.get(..length).filter(|compressed| compressed.len() < records.len()) {
            out.extend_from_slice(compressed);
            return length as u32;
        }
    }
    out.extend_from_slice(records);
    records.len() as u32
}

/// The length that the block at the start of `bytes` claims to have in the file. None if no block begins there, or it
/// claims more than a block has, or more than its records have: stored, they are never longer.
pub(crate) fn claimed_length(bytes: &[u8]) -> Option<usize> {
    let mut input = Input(bytes);
    if input.array()? != MAGIC {
        return None;
    }
    let _checksum = input.array::<4>()?;
    let [stored, length] = [input.array()?, input.array()?].map(|bytes| u32::from_le_bytes(bytes) as usize);
    (stored <= length.min(RECORDS_BYTES_MAX)).then_some(HEADER_BYTES + stored)
}

/// Reads the block at the start of `bytes`. None if it is not whole.
pub(crate) fn decode(bytes: &Bytes) -> Option<Block> {
    let mut input = Input(bytes);
    if input.array()? != MAGIC {
        return None;
    }
    let checksum = u32::from_le_bytes(input.array()?);
    let checked = input.0;
    let [stored, length, _count, writer] =
        [input.array()?, input.array()?, input.array()?, input.array()?].map(u32::from_le_bytes);
    let (stored, length) = (stored as usize, length as usize);
    let checked = checked.get(..HEADER_BYTES - 8 + stored)?;
    if crc32fast::hash(checked) != checksum || length > RECORDS_BYTES_MAX {
        return None;
    }
    let body = bytes.slice(HEADER_BYTES..HEADER_BYTES + stored);
    let records = if stored == length { body } else { lz4_flex::block::decompress(&body, length).ok()?.into() };
    Some(Block { writer, records, length: HEADER_BYTES + stored })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_read_back_and_never_from_a_part() {
        for records in [Vec::new(), vec![7; 10], b"{\"temperature\":21}".repeat(1000)] {
            let mut bytes = Vec::new();
            encode(9, 1, &records, &mut Vec::new(), &mut bytes);
            let length = bytes.len();
            for part in (0..length.min(100)).chain([length - 1]) {
                assert!(decode(&Bytes::copy_from_slice(&bytes[..part])).is_none(), "{part} of {length}");
            }
            bytes.extend_from_slice(&[0; 50]);
            let block = decode(&bytes.into()).unwrap();
            assert_eq!((block.writer, &block.records[..], block.length), (9, &records[..], length));
        }
    }

    #[test]
    fn a_block_with_a_changed_bit_is_not_whole() {
        let mut bytes = Vec::new();
        encode(9, 1, b"records", &mut Vec::new(), &mut bytes);
        for position in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[position] ^= 1;
            assert!(decode(&changed.into()).is_none(), "byte {position}");
        }
    }
}
