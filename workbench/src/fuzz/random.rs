//! Randomness that is the same on every machine and in every version.

use rand_xoshiro::{
    Xoshiro256PlusPlus,
    rand_core::{RngCore, SeedableRng},
};

/// A generator of the published algorithm xoshiro256++. What is made of its numbers is our own, so that no update of a
/// library changes which payloads a seed stands for.
pub(super) struct Random(Xoshiro256PlusPlus);

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Self(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    /// A number below `end`; 0 if that is 0. The bias is below 2⁻³² for the lengths that occur.
    pub(super) fn below(&mut self, end: usize) -> usize {
        let product = u128::from(self.0.next_u64()) * end as u128;
        (product >> 64) as usize
    }

    pub(super) fn byte(&mut self) -> u8 {
        self.0.next_u64() as u8
    }

    /// True once in `times`.
    pub(super) fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    pub(super) fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.byte()).collect()
    }

    /// One of `values`.
    pub(super) fn pick<'a, T>(&mut self, values: &'a [T]) -> Option<&'a T> {
        values.get(self.below(values.len()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_stands_for_the_same_numbers_forever() {
        let mut random = Random::new(1);
        assert_eq!(
            (random.bytes(8), random.below(1000), random.below(0)),
            (vec![155, 141, 32, 214, 164, 69, 7, 33], 96, 0)
        );
    }

    #[test]
    fn numbers_are_below_the_end_and_reach_all() {
        let mut random = Random::new(7);
        let mut seen = [false; 5];
        (0..200).for_each(|_| seen[random.below(5)] = true);
        assert_eq!(seen, [true; 5]);
    }
}
