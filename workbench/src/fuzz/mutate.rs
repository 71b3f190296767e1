//! Changes payloads at random.

use super::random::Random;

/// Bytes at which codecs change their mind: signs, maxima, and the ends of ASCII.
const BYTES: [u8; 10] = [0x00, 0x01, 0x02, 0x10, 0x20, 0x40, 0x7f, 0x80, 0xfe, 0xff];
/// Numbers of more bytes for which the same holds.
const NUMBERS: [u32; 8] = [0x7fff, 0x8000, 0xffff, 0x0100, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff, 0x7f80_0000];
/// Up to how many changes are made at once, as a power of two.
const CHANGES_POWER: usize = 4;
/// Length of random payloads, most of the time: longer ones are rare in the field.
const SHORT: usize = 24;

/// A random payload of at most `length_max` bytes.
pub(super) fn random(random: &mut Random, length_max: usize) -> Vec<u8> {
    let most = if random.once_in(8) { length_max } else { length_max.min(SHORT) };
    let length = random.below(most + 1);
    random.bytes(length)
}

/// `payload` with a few changes, of at most `length_max` bytes; some take a part of `other`.
pub(super) fn mutate(random: &mut Random, payload: &[u8], other: &[u8], length_max: usize) -> Vec<u8> {
    let mut mutated = payload.to_vec();
    for _ in 0..1 << random.below(CHANGES_POWER) {
        change(random, &mut mutated, other);
    }
    mutated.truncate(length_max);
    mutated
}

fn change(random: &mut Random, payload: &mut Vec<u8>, other: &[u8]) {
    let at = random.below(payload.len());
    match random.below(12) {
        0 | 1 => set(payload, at, |byte| byte ^ (1 << random.below(8))),
        2 | 3 => set(payload, at, |_| random.pick(&BYTES).copied().unwrap_or_default()),
        4 => set(payload, at, |_| random.byte()),
        5 => set(payload, at, |byte| byte.wrapping_add(1).wrapping_sub(2 * (random.byte() & 1))),
        6 => payload.truncate(random.below(payload.len() + 1)),
        7 => {
            let count = 1 + random.below(8);
            payload.extend(random.bytes(count));
        }
        8 => remove(random, payload),
        9 => number(random, payload),
        10 => swap(random, payload),
        _ => splice(random, payload, other),
    }
}

fn set(payload: &mut [u8], at: usize, new: impl FnOnce(u8) -> u8) {
    if let Some(byte) = payload.get_mut(at) {
        *byte = new(*byte);
    }
}

fn swap(random: &mut Random, payload: &mut [u8]) {
    let (one, other) = (random.below(payload.len()), random.below(payload.len()));
    if one < payload.len() {
        payload.swap(one, other);
    }
}

fn remove(random: &mut Random, payload: &mut Vec<u8>) {
    let from = random.below(payload.len());
    let count = random.below((payload.len() - from).min(8) + 1);
    payload.drain(from..from + count);
}

/// Overwrites bytes with a number of two or four, or inserts them.
fn number(random: &mut Random, payload: &mut Vec<u8>) {
    let number = random.pick(&NUMBERS).copied().unwrap_or_default();
    let mut bytes = number.to_be_bytes().to_vec();
    if number <= 0xffff {
        bytes.drain(..2);
    }
    if random.once_in(2) {
        bytes.reverse();
    }
    let at = random.below(payload.len() + 1);
    let end = if random.once_in(2) { at } else { (at + bytes.len()).min(payload.len()) };
    payload.splice(at..end, bytes);
}

/// Continues with the end of another payload, from the same place or any.
fn splice(random: &mut Random, payload: &mut Vec<u8>, other: &[u8]) {
    let at = random.below(payload.len() + 1);
    let from = if random.once_in(2) { at.min(other.len()) } else { random.below(other.len() + 1) };
    payload.truncate(at);
    payload.extend_from_slice(&other[from..]);
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn payloads_change_within_the_length_and_can_become_anything() {
        let mut random = Random::new(1);
        let mut lengths = BTreeSet::new();
        let mut changed = 0;
        for _ in 0..2000 {
            let mutated = mutate(&mut random, &[1, 2, 3, 4], &[9; 20], 12);
            lengths.insert(mutated.len());
            changed += usize::from(mutated != [1, 2, 3, 4]);
        }
        assert_eq!(lengths, (0..=12).collect());
        assert!(changed > 1600, "{changed}");
    }

    #[test]
    fn nothing_is_too_short_to_change() {
        let mut random = Random::new(2);
        assert!((0..500).any(|_| !mutate(&mut random, &[], &[], 4).is_empty()));
        assert!((0..500).all(|_| mutate(&mut random, &[1], &[2], 0).is_empty()));
    }
}
