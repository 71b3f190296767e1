//! The checks of the fuzz target `packet`, on its seeds and on small changes of them.

use bytes::Bytes;
use proptest::prelude::*;

/// The first byte of an input chooses the version. Returns what was read of each message, and what is passed on.
fn relayed(input: &[u8]) -> Vec<[(String, Bytes); 2]> {
    let (version, packets) = input.split_first().unwrap();
    mqtt::relay(packets, 3 + version % 3)
}

fn seeds() -> Vec<Vec<u8>> {
    let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/../fuzz/seeds/packet");
    std::fs::read_dir(dir).unwrap().map(|entry| std::fs::read(entry.unwrap().path()).unwrap()).collect()
}

#[test]
fn the_seeds_have_messages() {
    let seeds = seeds();
    let relayed: Vec<_> = seeds.iter().flat_map(|seed| relayed(seed)).collect();
    assert!(seeds.len() > 10 && relayed.len() >= 3, "{relayed:?}");
}

proptest! {
    // Conformance: Truncated packets, wrong identifiers, flags, QoS and text: closed
    #[test]
    fn what_is_passed_on_is_what_was_read(
        seed in prop::sample::select(seeds()),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
    ) {
        let mut input = seed;
        for (at, byte) in changes {
            let at = at.index(input.len());
            input[at] = byte;
        }
        for [read, passed_on] in relayed(&input) {
            // A topic that is left out stands for an alias.
            prop_assert!(read == passed_on || read.0.is_empty(), "{read:?} became {passed_on:?}");
        }
    }
}
