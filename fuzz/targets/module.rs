//! Any bytes as what is kept of an application: whatever the seal says, reading them does not go wrong.
#![no_main]

use std::fs;
use std::sync::{Arc, OnceLock};

use libfuzzer_sys::fuzz_target;
use runtime::{Engine, Settings, Sources, is_module};

/// Where a true module is put before the seeds are read. It is not one of ours to keep: each guest makes another.
const SEEDS: &str = "seeds/module";
const TEXT: &str = "var table = [1, 2, 3].map(String); function Decoder(bytes) { return { t: table[bytes[0]] }; }";

fuzz_target!(
    init: {
        let (_, module) = stage();
        is_module(module).expect("a module that was just written can be read");
        fs::create_dir_all(SEEDS).expect("the folder of the seeds can be made");
        fs::write(format!("{SEEDS}/true.wasm"), module).expect("a seed can be written");
    },
    |bytes: &[u8]| {
        // Behind the seal, as if it had been ours; then in front of it, where nothing of a stranger's may pass.
        let _ = is_module(bytes);
        let (engine, module) = stage();
        assert_eq!(engine.read(bytes, engine.limits()).is_ok(), bytes == &module[..]);
    }
);

/// An engine, and a module of which it has the key.
fn stage() -> &'static (Arc<Engine>, Vec<u8>) {
    static STAGE: OnceLock<(Arc<Engine>, Vec<u8>)> = OnceLock::new();
    STAGE.get_or_init(|| {
        let engine = Arc::new(Engine::new(&Settings::default()).expect("the engine starts"));
        let sources = Sources { decoder: TEXT.into(), ..Sources::default() };
        let functions = engine.load(&sources, engine.limits()).expect("good functions load");
        (engine, functions.module_bytes().to_vec())
    })
}
