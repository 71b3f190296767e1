//! Arbitrary bytes as an application's cached module: they are read or refused.
#![no_main]

use std::fs;
use std::sync::{Arc, OnceLock};

use libfuzzer_sys::fuzz_target;
use runtime::{Engine, Settings, Sources, check_module};

/// Directory for a valid module, written before the seeds are read. It is not committed: it depends on the guest.
const SEEDS: &str = "seeds/module";
const TEXT: &str = "var table = [1, 2, 3].map(String); function Decoder(bytes) { return { t: table[bytes[0]] }; }";

fuzz_target!(
    init: {
        let (_, module) = fixture();
        check_module(module).expect("a module that was just written can be read");
        fs::create_dir_all(SEEDS).expect("the directory of the seeds can be made");
        fs::write(format!("{SEEDS}/true.wasm"), module).expect("a seed can be written");
    },
    |bytes: &[u8]| {
        // Without the seal anything may be read; with it only our own module.
        let _ = check_module(bytes);
        let (engine, module) = fixture();
        assert_eq!(engine.read(bytes, engine.limits()).is_ok(), bytes == &module[..]);
    }
);

/// An engine, and a module that it sealed.
fn fixture() -> &'static (Arc<Engine>, Vec<u8>) {
    static FIXTURE: OnceLock<(Arc<Engine>, Vec<u8>)> = OnceLock::new();
    FIXTURE.get_or_init(|| {
        let engine = Arc::new(Engine::new(&Settings::default()).expect("the engine starts"));
        let sources = Sources { decoder: TEXT.into(), ..Sources::default() };
        let functions = engine.load(&sources, engine.limits()).expect("good functions load");
        (engine, functions.module_bytes().to_vec())
    })
}
