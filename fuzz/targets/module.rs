//! Any bytes as what is kept of an application: whatever the seal says, reading them does not go wrong.
#![no_main]

use std::sync::OnceLock;

use libfuzzer_sys::fuzz_target;
use runtime::{Engine, Settings, is_module};

fuzz_target!(|bytes: &[u8]| {
    // Behind the seal, as if it had been ours; then in front of it, where nothing of a stranger's may pass.
    let _ = is_module(bytes);
    let engine = engine();
    assert!(engine.read(bytes, engine.limits()).is_err());
});

fn engine() -> &'static Engine {
    static ENGINE: OnceLock<Engine> = OnceLock::new();
    ENGINE.get_or_init(|| Engine::new(&Settings::default()).expect("the engine starts"))
}
