//! A planted secret: nothing that a message brought is there for the next, however the message ended.

mod crowd;
mod loading;
mod tenant;

use airlock_runtime::{EntryPoint, Reset, Sandbox, Settings, Slot};

use self::tenant::{ENDINGS, Ending, SECRET, Tenant};
use crate::rig::{RESETS, Rig, call, settings, ways};

/// The way from a message that hides the secret to the one that looks for it.
#[derive(Clone, Copy, Debug)]
struct Path {
    /// How many function sets have a memory of their own; all others share one.
    hot_max: usize,
    /// Whether those that look were there first, and got such a memory before those that hide.
    looker_first: bool,
    next: Next,
}

/// Who looks.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Next {
    /// The same functions.
    Same,
    /// The same, which meanwhile lost their memory and were read back from disk.
    Reloaded,
    /// Those of another application.
    Other,
    /// Those of the same application, of which another one now has the text that hid.
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
fn nothing_survives_for_functions_that_were_put_out_and_read_back() {
    check(&[0, 1].map(|hot_max| Path { hot_max, looker_first: false, next: Next::Reloaded }));
}

#[test]
fn nothing_survives_for_another_application() {
    // Both in one shared memory, one of them there and the other not, and both in memories of their own.
    let places = [(0, false), (1, false), (1, true), (9, false)];
    check(&places.map(|(hot_max, looker_first)| Path { hot_max, looker_first, next: Next::Other }));
}

#[test]
fn nothing_survives_a_change_of_functions() {
    let places = [(0, false), (1, true), (9, false)];
    check(&places.map(|(hot_max, looker_first)| Path { hot_max, looker_first, next: Next::Swapped }));
}

/// Sees that nothing gets over these paths: after every ending, whichever function hid it, by every way of resetting.
fn check(paths: &[Path]) {
    for path in paths {
        for reset in RESETS {
            let walk = Walk { rig: path.rig(reset), path: *path };
            for ending in &ENDINGS {
                Slot::ALL.into_iter().for_each(|slot| walk.check(ending, slot));
            }
        }
    }
}

impl Path {
    /// An engine for it, which keeps functions only where they are to be read back.
    fn rig(self, reset: Reset) -> Rig {
        let cache_bytes_max = if self.next == Next::Reloaded { 64 << 20 } else { 0 };
        Rig::with_way((reset, Settings { hot_max: self.hot_max, hot_after: 1, cache_bytes_max, ..settings() }))
    }
}

/// A path on one engine.
struct Walk {
    rig: Rig,
    path: Path,
}

impl Walk {
    fn check(&self, ending: &'static Ending, slot: Slot) {
        let what = format!("{:?}, {:?}, {} ended by {}", self.path, self.rig.engine.reset(), slot.name(), ending.name);
        // A worker of its own, in whose memories nobody was before.
        let mut sandbox = self.rig.engine.sandbox();
        let hider = Tenant::load(&self.rig, "one", slot, ending);
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

    /// Those who will look.
    fn looker(&self, hider: &Tenant) -> Tenant {
        match self.path.next {
            Next::Same | Next::Reloaded => hider.clone(),
            Next::Other => Tenant::load(&self.rig, "other", hider.slot, &ENDINGS[0]),
            Next::Swapped => Tenant::load(&self.rig, "one", Slot::ALL[(hider.slot as usize + 1) % 4], &ENDINGS[0]),
        }
    }

    /// What happens to those who look before they do.
    fn arrive(&self, sandbox: &mut Sandbox, looker: &Tenant) -> Tenant {
        if self.path.next != Next::Reloaded {
            return looker.clone();
        }
        // Busy enough to be given the one memory of its own.
        let busy = self.rig.load_in(Slot::Decoder, "function Decoder() { return {}; }");
        for _ in 0..20 {
            sandbox.call(&busy, &call(EntryPoint::Uplink, b"")).result.unwrap();
        }
        let again = Tenant::load(&self.rig, "one", looker.slot, looker.ending);
        assert_eq!(again.functions.fuel_spent(), 0, "they were not read back");
        again
    }
}

#[test]
fn what_is_hidden_would_be_found() {
    let mut rig = Rig::new();
    for slot in Slot::ALL {
        let tenant = Tenant::load(&rig, "one", slot, &ENDINGS[0]);
        let failure = rig.sandbox.call(&tenant.functions, &tenant.finding()).result.unwrap_err();
        assert!(failure.message.contains("found it"), "{failure}");
        let clean = rig.sandbox.next_memory(&tenant.functions).unwrap();
        assert_eq!(places_of(SECRET, &clean), 0, "what the others compare with must not have it");
    }
    assert_eq!(places_of(b"ab", b"a ab a\0b\0"), 2);
}

#[test]
fn nothing_survives_a_message_that_met_no_page_fault() {
    // From the second equal message on, all pages are there already, and the host need not ask which have changed.
    for way in ways().filter(|(reset, _)| *reset == Reset::PageScan) {
        let mut rig = Rig::with_way(way);
        let [success, _, throw, ..] = [0, 1, 2].map(|ending| &ENDINGS[ending]);
        let tenant = Tenant::load(&rig, "one", Slot::Decoder, success);
        tenant.look(&mut rig.sandbox, b"nothing", "the first message");
        let clean = rig.sandbox.next_memory(&tenant.functions).unwrap();
        for round in 0..30_u8 {
            let ending = if round % 10 == 9 { throw } else { success };
            let hider = Tenant { ending, ..tenant.clone() };
            hider.hide(&mut rig.sandbox, SECRET, "a message without page faults");
            assert!(rig.sandbox.next_memory(&tenant.functions).unwrap() == clean, "round {round}");
        }
        assert!(rig.sandbox.messages_without_faults() > 10, "nearly every message met a page fault");
    }
}

#[test]
fn every_way_of_putting_back_gives_the_same_results() {
    let mut reports = ways().map(|(reset, settings)| {
        let mut rig = Rig::with_way((reset, settings));
        assert_eq!(rig.engine.reset(), reset);
        ENDINGS
            .iter()
            .filter(|ending| ending.leaves_time())
            .map(|ending| {
                let tenant = Tenant::load(&rig, "one", Slot::Decoder, ending);
                let report = rig.sandbox.call(&tenant.functions, &tenant.hiding(SECRET));
                (report.fuel, report.result.map_err(|failure| failure.to_string()).err(), report.logs)
            })
            .collect::<Vec<_>>()
    });
    let first = reports.next().unwrap();
    assert_eq!(first.len(), 8);
    assert!(reports.all(|others| others == first));
}

/// How often `secret` is in `memory`, as bytes or as UTF-16.
fn places_of(secret: &[u8], memory: &[u8]) -> usize {
    let wide: Vec<u8> = secret.iter().flat_map(|byte| [*byte, 0]).collect();
    let count = |needle: &[u8]| memory.windows(needle.len()).filter(|window| *window == needle).count();
    count(secret) + count(&wide)
}
