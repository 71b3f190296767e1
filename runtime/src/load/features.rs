//! The WebAssembly features that the engine accepts: only those that the guest needs.
//!
//! Restoring an instance by its memory and two globals relies on this: no accepted instruction can write a table, move
//! memory in bulk without paying fuel, share memory with a thread, or use a second memory. So every start checks it.

use wasmtime::{Engine, Module, WasmFeatures};

use crate::error::Error;

/// The features that the guest may use, on top of WebAssembly 1.0.
pub(crate) const FEATURES: WasmFeatures = WasmFeatures::FLOATS
    .union(WasmFeatures::MUTABLE_GLOBAL)
    .union(WasmFeatures::SATURATING_FLOAT_TO_INT)
    .union(WasmFeatures::SIGN_EXTENSION)
    .union(WasmFeatures::MULTI_VALUE)
    .union(WasmFeatures::SIMD);

/// Sections of modules that must be refused, with the feature that each needs.
const REFUSED: [(&str, &[u8]); 7] = [
    ("threads", &[5, 4, 1, 3, 1, 1]),
    ("64-bit memory", &[5, 3, 1, 4, 1]),
    ("a second memory", &[5, 5, 2, 0, 1, 0, 1]),
    ("bulk memory", FILL),
    ("reference types", &[4, 7, 2, 0x70, 0, 1, 0x70, 0, 1]),
    ("exceptions", &[1, 4, 1, 0x60, 0, 0, 13, 3, 1, 0, 0]),
    ("garbage collection", &[1, 3, 1, 0x5f, 0]),
];

/// A function that fills memory.
const FILL: &[u8] =
    &[1, 4, 1, 0x60, 0, 0, 3, 2, 1, 0, 5, 3, 1, 0, 1, 10, 13, 1, 11, 0, 65, 0, 65, 0, 65, 0, 0xfc, 11, 0, 11];

/// Fails if the engine accepts more than the guest needs.
pub(crate) fn check(engine: &Engine) -> Result<(), Error> {
    let accepted = REFUSED.into_iter().find(|(_, sections)| Module::validate(engine, &module(sections)).is_ok());
    accepted.map_or(Ok(()), |(what, _)| Err(Error::Guest(format!("the engine accepts {what}"))))
}

fn module(sections: &[u8]) -> Vec<u8> {
    [b"\0asm\x01\0\0\0", sections].concat()
}

#[cfg(test)]
mod tests {
    use wasmtime::Config;

    use super::*;

    /// Earlier versions have known vulnerabilities; see their security advisories.
    const WASMTIME_MIN: [u32; 3] = [48, 0, 8];

    fn engine(features: WasmFeatures) -> Engine {
        Engine::new(Config::new().wasm_features(WasmFeatures::all(), false).wasm_features(features, true)).unwrap()
    }

    #[test]
    fn refuses_features_that_the_guest_does_not_need() {
        check(&engine(FEATURES)).unwrap();
        Module::validate(&engine(FEATURES), &module(&[5, 3, 1, 0, 1])).expect("one memory is needed");
        for (feature, what) in [
            (WasmFeatures::THREADS, "threads"),
            (WasmFeatures::MEMORY64, "64-bit"),
            (WasmFeatures::MULTI_MEMORY, "second"),
            (WasmFeatures::BULK_MEMORY, "bulk"),
            (WasmFeatures::REFERENCE_TYPES, "reference"),
        ] {
            let error = check(&engine(FEATURES.union(feature))).expect_err(what).to_string();
            assert!(error.contains(what), "{error}");
        }
    }

    #[test]
    fn the_locked_wasmtime_has_no_known_vulnerabilities() {
        let locked = include_str!("../../../Cargo.lock");
        let (_, rest) = locked.split_once("name = \"wasmtime\"\nversion = \"").unwrap();
        let version: Vec<u32> = rest.split('"').next().unwrap().split('.').map(|part| part.parse().unwrap()).collect();
        assert!(version[..] >= WASMTIME_MIN[..], "{version:?}");
        assert!(!locked.contains("name = \"wasmtime-internal-winch\""), "the baseline compiler must not be built");
        assert_eq!(locked.matches("name = \"wasmtime\"\n").count(), 1);
    }
}
