//! A planted secret: nothing of a message remains for the next one, however the message ended.

mod concurrency;
mod loading;
mod tenant;

use std::path::PathBuf;

use airlock_runtime::{Call, EntryPoint, FailureKind, Limits, Reset, Sandbox, Settings, Slot};
use memchr::memmem;

use self::tenant::{ENDINGS, Ending, SECRET, Tenant};
use crate::harness::{Harness, RESETS, call, fields, settings, ways};

/// Relation between the message that looks for the secret and the one that hides it.
#[derive(Clone, Copy, Debug)]
struct Path {
    /// Number of function sets with a dedicated memory; all others share one.
    hot_max: usize,
    /// True if the looking functions run first, and so get a dedicated memory first.
    looker_first: bool,
    next: Next,
}

/// The functions that look.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Next {
    /// The same functions.
    Same,
    /// The same, evicted from memory and read from disk meanwhile.
    Reloaded,
    /// Those of another application.
    Other,
    /// Those of the same application, with the hiding source in another slot.
    Swapped,
}

#[test]
fn nothing_survives_for_the_same_functions() {
    check(&[Path { hot_max: 9, looker_first: false, next: Next::Same }]);
}

#[test]
fn nothing_survives_for_the_same_functions_in_a_shared_memory() {
    check(&[Path { hot_max: 0, looker_first: false, next: Next::Same }]);
}

#[test]
fn nothing_survives_for_functions_that_were_evicted_and_reloaded() {
    check(&[0, 1].map(|hot_max| Path { hot_max, looker_first: false, next: Next::Reloaded }));
}

#[test]
fn nothing_survives_for_another_application() {
    // Both in the shared memory, one of them in it, and both in dedicated memories.
    let places = [(0, false), (1, false), (1, true), (9, false)];
    check(&places.map(|(hot_max, looker_first)| Path { hot_max, looker_first, next: Next::Other }));
}

#[test]
fn nothing_survives_a_change_of_functions() {
    let places = [(0, false), (1, true), (9, false)];
    check(&places.map(|(hot_max, looker_first)| Path { hot_max, looker_first, next: Next::Swapped }));
}

/// Checks that nothing survives on these paths, for every ending, every hiding function, and every reset method.
fn check(paths: &[Path]) {
    for path in paths {
        for reset in RESETS {
            let walk = Walk { harness: path.harness(reset), path: *path };
            for ending in &ENDINGS {
                Slot::ALL.into_iter().for_each(|slot| walk.check(ending, slot));
            }
        }
    }
}

impl Path {
    /// An engine for this path; it caches functions only if they are to be reloaded.
    fn harness(self, reset: Reset) -> Harness {
        let cache_dir = (self.next == Next::Reloaded).then(|| PathBuf::from(env!("CARGO_TARGET_TMPDIR")));
        Harness::with_way((reset, Settings { hot_max: self.hot_max, hot_after: 1, cache_dir, ..settings() }))
    }
}

/// A path on one engine.
struct Walk {
    harness: Harness,
    path: Path,
}

impl Walk {
    fn check(&self, ending: &'static Ending, slot: Slot) {
        let what =
            format!("{:?}, {:?}, {} ended by {}", self.path, self.harness.engine.reset(), slot.name(), ending.name);
        // A new sandbox, whose memories are unused.
        let mut sandbox = self.harness.engine.sandbox();
        let hider = Tenant::load(&self.harness, "one", slot, ending);
        let looker = self.looker(&hider);
        let first = if self.path.looker_first { &looker } else { &hider };
        first.look(&mut sandbox, b"nothing", &what);
        let clean = sandbox.next_memory(&looker.functions).unwrap();
        assert_eq!(places_of(SECRET, &clean), 0, "{what}: an earlier message left it");

        hider.hide(&mut sandbox, SECRET, &what);
        self.arrive(&mut sandbox, &looker).look(&mut sandbox, SECRET, &what);
        hider.hide(&mut sandbox, SECRET, &what);
        let looker = self.arrive(&mut sandbox, &looker);
        let memory = sandbox.next_memory(&looker.functions).unwrap();
        assert!(memory == clean, "{what}: something is left in the memory");
    }

    fn looker(&self, hider: &Tenant) -> Tenant {
        match self.path.next {
            Next::Same | Next::Reloaded => hider.clone(),
            Next::Other => Tenant::load(&self.harness, "other", hider.slot, &ENDINGS[0]),
            Next::Swapped => Tenant::load(&self.harness, "one", Slot::ALL[(hider.slot as usize + 1) % 4], &ENDINGS[0]),
        }
    }

    /// Evicts and reloads the looking functions if the path says so.
    fn arrive(&self, sandbox: &mut Sandbox, looker: &Tenant) -> Tenant {
        if self.path.next != Next::Reloaded {
            return looker.clone();
        }
        // Busy enough to get the only dedicated memory.
        let busy = self.harness.load_in(Slot::Decoder, "function Decoder() { return {}; }");
        for _ in 0..20 {
            sandbox.call(&busy, &call(EntryPoint::Uplink, b"")).result.unwrap();
        }
        let again = Tenant::load(&self.harness, "one", looker.slot, looker.ending);
        assert_eq!(again.functions.fuel_spent(), 0, "they were not read back");
        again
    }
}

#[test]
fn a_hidden_secret_would_be_found() {
    let mut harness = Harness::new();
    for slot in Slot::ALL {
        let tenant = Tenant::load(&harness, "one", slot, &ENDINGS[0]);
        let failure = harness.sandbox.call(&tenant.functions, &tenant.finding()).result.unwrap_err();
        assert!(failure.message.contains("found it"), "{failure}");
        let clean = harness.sandbox.next_memory(&tenant.functions).unwrap();
        assert_eq!(places_of(SECRET, &clean), 0, "what the others compare with must not have it");
    }
    assert_eq!(places_of(b"ab", b"a ab a\0b\0"), 2);
}

#[test]
fn nothing_survives_a_message_without_page_faults() {
    // From the second equal message on, all pages are resident, so the host skips the page scan.
    for way in ways().filter(|(reset, _)| *reset == Reset::PageScan) {
        let mut harness = Harness::with_way(way);
        let [success, _, throw, ..] = [0, 1, 2].map(|ending| &ENDINGS[ending]);
        let tenant = Tenant::load(&harness, "one", Slot::Decoder, success);
        tenant.look(&mut harness.sandbox, b"nothing", "the first message");
        let clean = harness.sandbox.next_memory(&tenant.functions).unwrap();
        for round in 0..30_u8 {
            let ending = if round % 10 == 9 { throw } else { success };
            let hider = Tenant { ending, ..tenant.clone() };
            hider.hide(&mut harness.sandbox, SECRET, "a message without page faults");
            assert!(harness.sandbox.next_memory(&tenant.functions).unwrap() == clean, "round {round}");
        }
        assert!(harness.sandbox.messages_without_faults() > 10, "nearly every message met a page fault");
    }
}

#[test]
fn nothing_survives_in_a_protected_memory() {
    const PORT_OF_MANY_PAGES: u8 = 2;
    let mut harness = Harness::with_way((Reset::PageScan, Settings { hot_max: 1, hot_after: 1, ..settings() }));
    let functions = harness.load_in(
        Slot::Decoder,
        "function Decoder(bytes, port) {
            var texts = [];
            for (var i = 0; i < (port === 2 ? 20000 : 10); i++) texts.push('text ' + i + bytes);
            return { length: texts.length };
        }",
    );
    let message = |sandbox: &mut Sandbox, port: u8, extra: &str| {
        let call = Call { port, extra: extra.to_owned(), ..call(EntryPoint::Uplink, b"abc") };
        let outcome = sandbox.call(&functions, &call);
        (outcome.fuel, fields(&outcome).to_owned())
    };
    let first = [1, PORT_OF_MANY_PAGES].map(|port| message(&mut harness.sandbox, port, ""));
    let clean = harness.sandbox.next_memory(&functions).unwrap();
    for round in 0..1000 {
        let port = if round % 300 == 299 { PORT_OF_MANY_PAGES } else { 1 };
        assert_eq!(message(&mut harness.sandbox, port, ""), first[usize::from(port) - 1], "round {round}");
        assert!(harness.sandbox.next_memory(&functions).unwrap() == clean, "round {round}");
    }
    assert!(harness.sandbox.messages_protected() > 200, "the memory was hardly ever protected");
    // A request that does not fit onto the pages of ordinary ones, in a memory that is protected again.
    let mut sandbox = harness.engine.sandbox();
    until_protected(&mut sandbox, |sandbox| _ = message(sandbox, 1, ""));
    let protected = sandbox.messages_protected();
    let large = message(&mut sandbox, 1, &format!("{{\"variables\":\"{}\"}}", "long".repeat(3000)));
    assert_eq!((large.1, sandbox.messages_protected()), (first[0].1.clone(), protected + 1));
    assert!(sandbox.next_memory(&functions).unwrap() == clean, "after a large request");
}

#[test]
fn nothing_survives_any_ending_in_a_protected_memory() {
    for ending in ENDINGS.iter().filter(|ending| ending.leaves_time()) {
        let what = ending.name;
        let mut harness = Harness::with_way((Reset::PageScan, Settings { hot_max: 1, hot_after: 1, ..settings() }));
        let hider = Tenant::load(&harness, "one", Slot::Decoder, ending);
        let usual = Tenant { ending: &ENDINGS[0], ..hider.clone() };
        usual.look(&mut harness.sandbox, b"nothing", what);
        let clean = harness.sandbox.next_memory(&hider.functions).unwrap();
        until_protected(&mut harness.sandbox, |sandbox| {
            usual.hide(sandbox, SECRET, what);
            assert!(sandbox.next_memory(&hider.functions).unwrap() == clean, "before {what}");
        });
        hider.hide(&mut harness.sandbox, SECRET, what);
        assert!(harness.sandbox.next_memory(&hider.functions).unwrap() == clean, "after {what}");
        hider.look(&mut harness.sandbox, SECRET, what);
    }
}

#[test]
fn a_trap_in_a_protected_memory_is_reported_in_full() {
    let limits = Limits { fuel: 2_000_000, ..settings().limits };
    let settings = Settings { hot_max: 1, hot_after: 1, limits, ..settings() };
    let harness = Harness::with_way((Reset::PageScan, settings));
    // The more it has logged, the more memory its report needs: in the end more than messages on port 1.
    let functions = harness.load_in(
        Slot::Decoder,
        "function Decoder(bytes, port) {
            var text = 'text';
            if (port === 1) {
                for (var i = 0; i < 5; i++) text += text + i;
                return { length: text.length };
            }
            for (var i = 2; i < port; i++) console.log(text.repeat(25));
            [].reverse.call({ length: 1e9 });
        }",
    );
    let message = |sandbox: &mut Sandbox, port: u8| {
        let outcome = sandbox.call(&functions, &Call { port, ..call(EntryPoint::Uplink, b"abc") });
        (outcome.fuel, outcome.result.err().map(|failure| (failure.kind, failure.line)), outcome.logs)
    };
    for port in 2..40 {
        let mut sandbox = harness.engine.sandbox();
        let expected = message(&mut sandbox, port);
        assert_eq!(expected.1, Some((FailureKind::Fuel, Some(8))));
        assert_eq!(expected.2.len(), usize::from(port) - 2);
        until_protected(&mut sandbox, |sandbox| _ = message(sandbox, 1));
        assert_eq!(message(&mut sandbox, port), expected, "port {port}");
    }
}

#[test]
fn every_reset_method_gives_the_same_results() {
    let mut reports = ways().map(|(reset, settings)| {
        let mut harness = Harness::with_way((reset, settings));
        assert_eq!(harness.engine.reset(), reset);
        ENDINGS
            .iter()
            .filter(|ending| ending.leaves_time())
            .map(|ending| {
                let tenant = Tenant::load(&harness, "one", Slot::Decoder, ending);
                let outcome = harness.sandbox.call(&tenant.functions, &tenant.hiding(SECRET));
                (outcome.fuel, outcome.result.map_err(|failure| failure.to_string()).err(), outcome.logs)
            })
            .collect::<Vec<_>>()
    });
    let first = reports.next().unwrap();
    assert_eq!(first.len(), 8);
    assert!(reports.all(|others| others == first));
}

/// Runs messages until one ran in a protected memory.
fn until_protected(sandbox: &mut Sandbox, mut run: impl FnMut(&mut Sandbox)) {
    let is_protected = (0..10_000).any(|_| {
        run(sandbox);
        sandbox.messages_protected() > 0
    });
    assert!(is_protected, "the memory was never protected");
}

/// Returns the number of times that `memory` contains `secret`, as bytes or as UTF-16.
fn places_of(secret: &[u8], memory: &[u8]) -> usize {
    let wide: Vec<u8> = secret.iter().flat_map(|byte| [*byte, 0]).collect();
    let count = |needle: &[u8]| memmem::find_iter(memory, needle).count();
    count(secret) + count(&wide)
}
