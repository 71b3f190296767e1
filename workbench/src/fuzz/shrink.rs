//! Makes payloads smaller: first shorter, then with smaller bytes.

/// Lengths up to which payloads of zeros are tried first: most faults are of messages that are too short.
const ZEROS_MAX: usize = 32;

/// A payload that is not longer than `payload`, and as small as can be found, for which `holds` is still true. It is up
/// to `holds` to say no when it has been asked too often.
pub(super) fn shrink(payload: Vec<u8>, mut holds: impl FnMut(&[u8]) -> bool) -> Vec<u8> {
    let zeros = (0..payload.len().min(ZEROS_MAX)).map(|length| vec![0; length]).find(|zeros| holds(zeros));
    let mut smallest = zeros.unwrap_or(payload);
    loop {
        let before = smallest.clone();
        shorten(&mut smallest, &mut holds);
        lower(&mut smallest, &mut holds);
        if smallest == before {
            return smallest;
        }
    }
}

/// Removes parts, large ones first, from the end to the beginning.
fn shorten(payload: &mut Vec<u8>, holds: &mut impl FnMut(&[u8]) -> bool) {
    let mut length = payload.len();
    while length > 0 {
        let mut end = payload.len();
        while end > 0 {
            let start = end.saturating_sub(length);
            let shorter = [&payload[..start], &payload[end..]].concat();
            if holds(&shorter) {
                *payload = shorter;
            }
            end = start.min(payload.len());
        }
        length /= 2;
    }
}

/// Lowers each byte as far as it goes.
fn lower(payload: &mut [u8], holds: &mut impl FnMut(&[u8]) -> bool) {
    for index in 0..payload.len() {
        while let Some(lower) = lowered(payload, index, holds) {
            payload[index] = lower;
        }
    }
}

/// A value for the byte at `index` that is lower and still holds.
fn lowered(payload: &[u8], index: usize, holds: &mut impl FnMut(&[u8]) -> bool) -> Option<u8> {
    let byte = payload[index];
    let bits = (0..8).map(|bit| 1 << bit);
    let without_bits = (0..8).rev().map(|bit| byte & !(1 << bit));
    let mut tried = payload.to_vec();
    [0].into_iter().chain(bits).chain(without_bits).chain([byte / 2, byte.saturating_sub(1)]).find(|lower| {
        tried[index] = *lower;
        *lower < byte && holds(&tried)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_shortest_and_then_the_lowest() {
        let from = || vec![9, 200, 7, 33, 250, 1, 2, 3, 4, 5, 6, 77, 8];
        assert_eq!(shrink(from(), |_| true), [0; 0]);
        assert_eq!(shrink(from(), |payload| payload.len() >= 4), [0; 4]);
        assert_eq!(shrink(from(), |payload| payload.contains(&77)), [77]);
        assert_eq!(shrink(from(), |payload| payload.iter().any(|byte| *byte >= 130)), [130]);
        let after_200 = |payload: &[u8]| payload.windows(2).any(|pair| pair[0] > 190 && pair[1] > 5);
        assert_eq!(shrink(from(), after_200), [191, 6]);
    }

    #[test]
    fn keeps_what_it_has_when_there_is_no_more_time() {
        let mut left = 20;
        let mut smallest = vec![5; 40];
        smallest = shrink(smallest, |payload| {
            left -= 1;
            left > 0 && payload.len() > 30
        });
        assert!(smallest.len() > 30, "{smallest:?}");
    }
}
