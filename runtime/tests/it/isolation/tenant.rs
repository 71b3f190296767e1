//! Functions that hide a secret wherever they can, end in a given way, and look for secrets of others.

use std::sync::Arc;

use airlock_runtime::{Call, EntryPoint, FailureKind, Functions, Limits, Sandbox, Slot, Sources};

use crate::harness::{Harness, call, settings};

/// The secret. It is part of the message, so that no source contains it.
pub(super) const SECRET: &[u8] = b"k7Qz-9fW2x";
/// Number of times that the time limit may end a message before it hid anything.
const TRIES_MAX: usize = 20;
/// The mask that hides the secret from a memory search in messages that look for it.
const VEIL: u8 = 0x55;
const TEXT: &str = include_str!("tenant.js");

/// A way for a message to end, and the limits for that.
pub(super) struct Ending {
    pub(super) name: &'static str,
    act: u8,
    kind: Option<FailureKind>,
    change: fn(&mut Limits),
}

const fn ending(name: &'static str, act: u8, kind: Option<FailureKind>, change: fn(&mut Limits)) -> Ending {
    Ending { name, act, kind, change }
}

/// All ways for a message to end.
pub(super) const ENDINGS: [Ending; 9] = [
    ending("success", 1, None, |_| {}),
    ending("success in a memory that grew", 7, None, |_| {}),
    ending("a throw", 2, Some(FailureKind::Thrown), |_| {}),
    ending("its fuel", 3, Some(FailureKind::Fuel), |_| {}),
    ending("its heap", 4, Some(FailureKind::Memory), |_| {}),
    ending("its memory", 4, Some(FailureKind::Memory), |limits| {
        limits.memory_bytes_max = 4 << 20;
        limits.heap_bytes_max = 64 << 20;
    }),
    ending("its stack", 5, Some(FailureKind::Stack), |_| {}),
    ending("its output", 6, Some(FailureKind::Output), |_| {}),
    ending("the clock", 3, Some(FailureKind::Time), |limits| {
        limits.fuel = u64::MAX;
        limits.time_ms_max = 20;
    }),
];

impl Ending {
    /// Returns true if the limits leave functions enough time to look for a secret.
    pub(super) fn leaves_time(&self) -> bool {
        self.kind != Some(FailureKind::Time)
    }

    fn limits(&self) -> Arc<Limits> {
        let mut limits = Limits { fuel: 50_000_000, heap_bytes_max: 4 << 20, ..settings().limits };
        (self.change)(&mut limits);
        Arc::new(limits)
    }
}

/// An application whose function in one slot hides and looks.
#[derive(Clone)]
pub(super) struct Tenant {
    pub(super) functions: Functions,
    pub(super) slot: Slot,
    /// End of its messages; its limits match.
    pub(super) ending: &'static Ending,
}

impl Tenant {
    pub(super) fn load(harness: &Harness, name: &str, slot: Slot, ending: &'static Ending) -> Self {
        let functions = harness.engine.load(&sources(name, slot), &ending.limits());
        Self { functions: functions.unwrap_or_else(|failure| panic!("{name}: {failure}")), slot, ending }
    }

    /// Hides `secret` in a message, which must end as specified.
    pub(super) fn hide(&self, sandbox: &mut Sandbox, secret: &[u8], what: &str) {
        // On a busy machine the time limit may come first.
        let tries = if self.ending.leaves_time() { 1 } else { TRIES_MAX };
        let has_hidden = (0..tries).any(|_| {
            let outcome = sandbox.call(&self.functions, &self.hiding(secret));
            let kind = outcome.result.as_ref().err().map(|failure| failure.kind);
            assert_eq!(kind, self.ending.kind, "{what}: {:?}", outcome.result);
            outcome.logs.len() == 1
        });
        assert!(has_hidden, "{what}: nothing was hidden");
    }

    /// Looks for `secret`, and must not find it. Skipped if the time limit is too short.
    pub(super) fn look(&self, sandbox: &mut Sandbox, secret: &[u8], what: &str) {
        let veiled: Vec<u8> = secret.iter().map(|byte| byte ^ VEIL).collect();
        let outcome = sandbox.call(&self.functions, &self.message(0, &veiled));
        if self.ending.leaves_time() {
            assert!(outcome.result.is_ok(), "{what}: {:?}", outcome.result);
            assert!(outcome.logs.is_empty() && outcome.warnings.is_empty(), "{what}: {outcome:?}");
        }
    }

    /// A message that hides `secret`.
    pub(super) fn hiding(&self, secret: &[u8]) -> Call {
        self.message(self.ending.act, secret)
    }

    /// A message that hides the secret and finds it at once.
    pub(super) fn finding(&self) -> Call {
        self.message(8, SECRET)
    }

    fn message(&self, how: u8, text: &[u8]) -> Call {
        let bytes = [&[how], text].concat();
        if self.slot == Slot::Encoder {
            return call(EntryPoint::EncodeDownlink, format!(r#"{{"bytes":{bytes:?}}}"#).as_bytes());
        }
        call(EntryPoint::Uplink, &bytes)
    }
}

/// The sources of an application whose function in `slot` acts.
fn sources(name: &str, slot: Slot) -> Sources {
    let acting = |function: &str| format!("{TEXT}\n{function}\n// {name}");
    let passing = || format!("function Decoder(bytes) {{ return {{ bytes: bytes }}; }}\n// {name}");
    let none = Sources::default();
    match slot {
        Slot::Decoder => Sources { decoder: acting(DECODER), ..none },
        Slot::Converter => Sources { decoder: passing(), converter: acting(CONVERTER), ..none },
        Slot::Validator => Sources { decoder: passing(), validator: acting(VALIDATOR), ..none },
        Slot::Encoder => Sources { encoder: acting(ENCODER), ..none },
    }
}

const DECODER: &str = "function Decoder(bytes) {
    return act(bytes, {}, function (text) { return { text: text.repeat(5000) }; });
}";
const CONVERTER: &str = "function Converter(fields) {
    return act(fields.bytes, {}, function (text) { return { text: text.repeat(5000) }; });
}";
const VALIDATOR: &str = "function Validator(fields) {
    return act(fields.bytes, true, function (text) { return text.repeat(5000); });
}";
const ENCODER: &str = "function Encoder(fields) {
    return act(fields.bytes, [1], function (text) { return text.repeat(50).split('').map(Number); });
}";
