//! Chooses partitions as Kafka's own clients do, so that all producers agree where a key belongs.

const SEED: u32 = 0x9747_b28c;
const FACTOR: u32 = 0x5bd1_e995;
const SHIFT: u32 = 24;

/// The index of the partition of a key, among `partitions`.
pub(super) fn index(key: &[u8], partitions: usize) -> usize {
    let positive = murmur2(key) & (u32::MAX >> 1);
    positive as usize % partitions.max(1)
}

/// MurmurHash2 with 32 bits.
fn murmur2(bytes: &[u8]) -> u32 {
    let (words, rest) = bytes.as_chunks::<4>();
    // Only the low bits of the length count, and keys are short.
    let mut hash = SEED ^ bytes.len() as u32;
    for word in words {
        let mixed = u32::from_le_bytes(*word).wrapping_mul(FACTOR);
        let mixed = (mixed ^ (mixed >> SHIFT)).wrapping_mul(FACTOR);
        hash = hash.wrapping_mul(FACTOR) ^ mixed;
    }
    if !rest.is_empty() {
        let word = rest.iter().rev().fold(0, |word, byte| word << 8 | u32::from(*byte));
        hash = (hash ^ word).wrapping_mul(FACTOR);
    }
    hash = (hash ^ (hash >> 13)).wrapping_mul(FACTOR);
    hash ^ (hash >> 15)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_those_of_other_clients() {
        for (key, expected) in [
            ("21", -973_932_308),
            ("foobar", -790_332_482),
            ("a-little-bit-long-string", -985_981_536),
            ("a-little-bit-longer-string", -1_486_304_829),
            ("lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58_897_971),
            ("abc", 479_470_107),
        ] {
            assert_eq!(murmur2(key.as_bytes()).cast_signed(), expected, "{key}");
        }
    }

    #[test]
    fn every_partition_is_used_and_no_other() {
        let mut used = [false; 5];
        (0..100_u32).for_each(|n| used[index(&n.to_le_bytes(), 5)] = true);
        assert_eq!(used, [true; 5]);
    }
}
