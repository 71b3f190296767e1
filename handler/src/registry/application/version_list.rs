//! The versions of one application's functions, and which texts have to be stored for them.

use std::{cmp::Reverse, collections::BTreeMap};

use runtime::SourcesHash;
use serde::{Deserialize, Serialize};

use super::{
    model::ApplicationSummary,
    version::{Abandonment, FunctionsVersion, VersionBounds, VersionLabel, VersionOrigin},
};

/// The versions that are kept. The last one is live; the others, of which one may be the candidate, are in order of
/// their numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct VersionList(Vec<FunctionsVersion>);

/// The texts of older versions: their sizes in bytes, by hash.
pub(super) type Texts = BTreeMap<[u8; 32], usize>;

impl VersionList {
    /// Makes the list end with the live functions, which have `bytes`; none if they are missing.
    ///
    /// An Airlock without versions may have set it, before there was a list or since. What it replaced then is lost.
    pub(super) fn follow(&mut self, live: &ApplicationSummary, bytes: Option<usize>) {
        let Some(bytes) = bytes else { return self.forget(live.functions_hash) };
        let number = self.next_number();
        match self.0.last() {
            Some(last) if last.is_of(live) => return,
            Some(last) if last.hash != live.functions_hash => self.forget(last.hash),
            Some(_) => {}
            None if !live.is_set_up() => return,
            None => {}
        }
        self.0.push(FunctionsVersion::new(number, live, bytes, VersionOrigin::default()));
    }

    /// Adds the version that becomes live, and drops the oldest beyond `bounds`.
    pub(super) fn add(
        &mut self,
        live: &ApplicationSummary,
        bytes: usize,
        origin: VersionOrigin,
        bounds: VersionBounds,
    ) {
        self.0.sort_by_key(|version| version.number);
        self.0.push(FunctionsVersion::new(self.next_number(), live, bytes, origin));
        self.drop_oldest(bounds, None);
    }

    /// Adds a version beside the one that is live, which stays so, drops the oldest others beyond `bounds`, and returns
    /// it.
    pub(super) fn add_candidate(
        &mut self,
        candidate: &ApplicationSummary,
        bytes: usize,
        origin: VersionOrigin,
        bounds: VersionBounds,
    ) -> FunctionsVersion {
        let version = FunctionsVersion::new(self.next_number(), candidate, bytes, origin);
        self.0.insert(self.0.len().saturating_sub(1), version.clone());
        self.drop_oldest(bounds, Some(version.number));
        version
    }

    /// Makes another version live, and drops the oldest beyond `bounds`. Returns none if there is no such version.
    pub(super) fn make_live(&mut self, number: u32, bounds: VersionBounds) -> Option<FunctionsVersion> {
        let position = self.0.iter().position(|version| version.number == number)?;
        let version = self.0.remove(position);
        self.0.sort_by_key(|version| version.number);
        self.0.push(version.clone());
        self.drop_oldest(bounds, None);
        Some(version)
    }

    /// Drops the oldest versions beyond `bounds`, but neither the live one nor this candidate.
    fn drop_oldest(&mut self, bounds: VersionBounds, candidate: Option<u32>) {
        while self.0.len() > bounds.count_max() || self.older_bytes() > bounds.bytes_max {
            let older = self.0.len().saturating_sub(1);
            let oldest = self.0.iter().take(older).position(|version| Some(version.number) != candidate);
            let Some(oldest) = oldest else { return };
            self.0.remove(oldest);
        }
    }

    /// Replaces a label. Returns false if there is no such version.
    pub(super) fn label(&mut self, number: u32, label: VersionLabel) -> bool {
        let version = self.0.iter_mut().find(|version| version.number == number);
        version.map(|version| version.origin.label = label).is_some()
    }

    /// Notes that a version was abandoned. Returns false if there is no such version.
    pub(super) fn abandon(&mut self, number: u32, abandonment: Abandonment) -> bool {
        let version = self.0.iter_mut().find(|version| version.number == number);
        version.map(|version| version.abandoned = Some(abandonment)).is_some()
    }

    pub(super) fn get(&self, number: u32) -> Option<&FunctionsVersion> {
        self.0.iter().find(|version| version.number == number)
    }

    /// The last version.
    pub(super) fn live(&self) -> Option<&FunctionsVersion> {
        self.0.last()
    }

    pub(super) fn into_newest_first(mut self) -> Vec<FunctionsVersion> {
        self.0.sort_by_key(|version| Reverse(version.number));
        self.0
    }

    /// The texts of all versions.
    pub(super) fn texts(&self) -> Texts {
        self.0.iter().map(|version| (*version.hash.as_bytes(), version.bytes)).collect()
    }

    /// The texts of those versions that are not live.
    pub(super) fn older_texts(&self) -> Texts {
        let mut texts = self.texts();
        if let Some(live) = self.live() {
            texts.remove(live.hash.as_bytes());
        }
        texts
    }

    /// Names the versions that are kept, for the error about one that is not.
    pub(super) fn describe(&self) -> String {
        let numbers = self.0.iter().map(|version| version.number);
        match (numbers.clone().min(), numbers.max()) {
            (Some(first), Some(last)) if first < last => format!("versions {first} to {last} are kept"),
            (Some(only), _) => format!("only version {only} is kept"),
            (None, _) => "it has no versions".to_owned(),
        }
    }

    fn older_bytes(&self) -> usize {
        self.older_texts().into_values().sum()
    }

    fn next_number(&self) -> u32 {
        self.0.iter().map(|version| version.number).max().map_or(1, |last| last.saturating_add(1))
    }

    fn forget(&mut self, hash: SourcesHash) {
        self.0.retain(|version| version.hash != hash);
    }
}

impl FunctionsVersion {
    fn new(number: u32, live: &ApplicationSummary, bytes: usize, origin: VersionOrigin) -> Self {
        let payload_format = live.payload_format.clone();
        Self { number, hash: live.functions_hash, payload_format, bytes, origin, abandoned: None }
    }

    /// Returns true if it has this application's functions and payload format.
    pub(super) fn is_of(&self, live: &ApplicationSummary) -> bool {
        self.hash == live.functions_hash && self.payload_format == live.payload_format
    }
}

#[cfg(test)]
mod tests {
    use runtime::Sources;

    use super::*;
    use crate::registry::application::Application;

    fn summary(decoder: &str) -> ApplicationSummary {
        let sources = Sources { decoder: decoder.to_owned(), ..Sources::default() };
        let format = if decoder.is_empty() { "" } else { "custom" };
        Application::with_functions("my-app".parse().unwrap(), format.to_owned(), sources).into_parts().0
    }

    /// Adds versions with these decoders, each of 10 bytes.
    fn list(decoders: &[&str], count_max: usize, bytes_max: usize) -> VersionList {
        let mut list = VersionList::default();
        for decoder in decoders {
            list.add(&summary(decoder), 10, VersionOrigin::default(), VersionBounds { count_max, bytes_max });
        }
        list
    }

    fn numbers(list: &VersionList) -> Vec<u32> {
        list.0.iter().map(|version| version.number).collect()
    }

    #[test]
    fn the_oldest_are_dropped_and_never_the_live_one() {
        assert_eq!(numbers(&list(&["a", "b", "c"], 100, 1000)), [1, 2, 3]);
        assert_eq!(numbers(&list(&["a", "b", "c"], 2, 1000)), [2, 3]);
        assert_eq!(numbers(&list(&["a", "b", "c", "d"], 100, 20)), [2, 3, 4]);
        for (count_max, bytes_max) in [(0, 1000), (1, 1000), (100, 0), (100, 9)] {
            assert_eq!(numbers(&list(&["a", "b", "c"], count_max, bytes_max)), [3]);
        }
        let many: Vec<String> = (0..600).map(|number| number.to_string()).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert_eq!(list(&many, usize::MAX, usize::MAX).0.len(), 500);
    }

    #[test]
    fn equal_texts_count_once_and_stay_while_a_version_has_them() {
        let equal = list(&["a", "b", "a", "b", "c"], 100, 20);
        assert_eq!(numbers(&equal), [1, 2, 3, 4, 5]);
        assert_eq!(equal.older_texts().len(), 2);
        let fewer = list(&["a", "b", "a", "c"], 3, 1000);
        assert_eq!(numbers(&fewer), [2, 3, 4]);
        assert!(fewer.older_texts().contains_key(summary("a").functions_hash.as_bytes()), "version 3 has it");
        assert!(!fewer.older_texts().contains_key(summary("c").functions_hash.as_bytes()), "it is live");
    }

    #[test]
    fn what_was_set_without_a_version_becomes_one() {
        let mut none = VersionList::default();
        none.follow(&summary(""), Some(2));
        assert_eq!(numbers(&none), [0; 0], "an application that was only registered has no version");
        none.follow(&summary("a"), Some(10));
        none.follow(&summary("a"), Some(10));
        assert_eq!((numbers(&none), &none.0[0].origin), (vec![1], &VersionOrigin::default()));
        // An older Airlock replaces b, whose text is nowhere else.
        let mut some = list(&["a", "b"], 100, 1000);
        some.follow(&summary("c"), Some(10));
        assert_eq!(numbers(&some), [1, 3]);
        some.follow(&summary("c"), None);
        assert_eq!(numbers(&some), [1], "functions that are missing are of no version");
    }

    #[test]
    fn a_candidate_is_kept_beside_the_live_version_until_it_has_ended() {
        let bounds = VersionBounds { count_max: 3, bytes_max: 1000 };
        let mut kept = list(&["a", "b", "c"], 3, 1000);
        assert_eq!(kept.add_candidate(&summary("d"), 10, VersionOrigin::default(), bounds).number, 4);
        assert_eq!((numbers(&kept), kept.live().unwrap().number), (vec![2, 4, 3], 3));
        let mut alone = kept.clone();
        alone.drop_oldest(VersionBounds { count_max: 1, bytes_max: 0 }, Some(4));
        assert_eq!(numbers(&alone), [4, 3]);
        let mut promoted = kept.clone();
        assert_eq!(promoted.make_live(4, bounds).unwrap().number, 4);
        assert_eq!((numbers(&promoted), promoted.make_live(9, bounds)), (vec![2, 3, 4], None));
        // It was abandoned.
        kept.add(&summary("e"), 10, VersionOrigin::default(), bounds);
        assert_eq!((numbers(&kept), kept.describe().as_str()), (vec![3, 4, 5], "versions 3 to 5 are kept"));
    }

    #[test]
    fn says_what_is_kept() {
        assert_eq!(list(&[], 9, 99).describe(), "it has no versions");
        assert_eq!(list(&["a"], 9, 99).describe(), "only version 1 is kept");
        assert_eq!(list(&["a", "b", "c"], 2, 99).describe(), "versions 2 to 3 are kept");
    }
}
