//! Expected fuel of an uplink.

use std::collections::HashMap;

use parking_lot::Mutex;
use runtime::SourcesHash;

/// Maximum number of sets of functions that are remembered: an application has the live ones and those of a candidate.
const SETS_MAX: usize = 64;

/// The most fuel that an uplink used lately, a slowly decaying maximum for each set of functions: the first run of
/// others may take long.
#[derive(Debug, Default)]
pub(crate) struct ExpectedFuel(Mutex<HashMap<SourcesHash, u64>>);

impl ExpectedFuel {
    /// None before these functions have run.
    pub(crate) fn expected(&self, functions: SourcesHash) -> Option<u64> {
        self.0.lock().get(&functions).copied()
    }

    /// Adds what several uplinks used.
    pub(crate) fn add(&self, functions: SourcesHash, used: impl Iterator<Item = u64>) {
        let mut all = self.0.lock();
        if all.len() >= SETS_MAX && !all.contains_key(&functions) {
            all.clear();
        }
        let most = all.entry(functions).or_default();
        *most = used.max().unwrap_or_default().max(*most - *most / 8);
    }
}

#[cfg(test)]
mod tests {
    use runtime::Sources;

    use super::*;

    #[test]
    fn what_functions_use_is_expected_of_them_and_of_no_others() {
        let [one, other] = ["1", "2"].map(|text| Sources::single_file(text).hash());
        let fuel = ExpectedFuel::default();
        assert_eq!(fuel.expected(one), None);
        fuel.add(one, [10, 800, 20].into_iter());
        assert_eq!((fuel.expected(one), fuel.expected(other)), (Some(800), None));
        fuel.add(one, [30].into_iter());
        assert_eq!(fuel.expected(one), Some(700));
    }
}
