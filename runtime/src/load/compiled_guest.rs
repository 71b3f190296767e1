//! The guest as machine code: built in for x86-64, so that no start compiles it, and no build needs the compiler.
#![allow(unsafe_code, reason = "loads machine code that is part of this program, or that it wrote itself")]

#[cfg(feature = "compiler")]
mod compile;

use std::path::Path;

use sha2::{Digest, Sha256};
use wasmtime::{Engine, Module};

#[cfg(feature = "compiler")]
pub(crate) use compile::built_in_file;

use crate::error::Error;

/// The guest, and the one that counts steps, as [`built_in_file`] wrote them when the guest was built.
#[cfg(target_arch = "x86_64")]
const BUILT_IN: [&[u8]; 2] =
    [include_bytes!("../../guest-x86_64.bin"), include_bytes!("../../counting-guest-x86_64.bin")];
#[cfg(not(target_arch = "x86_64"))]
const BUILT_IN: [&[u8]; 0] = [];

/// Machine code takes a few MB; more is a mistake.
const MACHINE_CODE_BYTES_MAX: usize = 64 << 20;

/// Loads the machine code of a guest: what is built in for it, or else what a build with a compiler finds in
/// `cache_dir` or compiles.
pub(crate) fn load(engine: &Engine, code: &[u8], cache_dir: Option<&Path>) -> Result<Module, Error> {
    let digest = Sha256::digest(code);
    let Some(packed) = BUILT_IN.into_iter().find_map(|file| file.strip_prefix(digest.as_slice())) else {
        return compile(engine, code, cache_dir);
    };
    let machine_code = miniz_oxide::inflate::decompress_to_vec_with_limit(packed, MACHINE_CODE_BYTES_MAX)
        .map_err(|error| Error::Compile(error.to_string().into()))?;
    deserialize(engine, &machine_code).map_err(|error| Error::Compile(error.into()))
}

#[cfg(feature = "compiler")]
use compile::load_or_compile as compile;

#[cfg(not(feature = "compiler"))]
fn compile(_: &Engine, _: &[u8], _: Option<&Path>) -> Result<Module, Error> {
    Err(Error::Guest("this program has no machine code for it, and no compiler".into()))
}

/// `machine_code` must be part of this program, or written by it.
fn deserialize(engine: &Engine, machine_code: &[u8]) -> wasmtime::Result<Module> {
    // SAFETY: the machine code is as trusted as this program, as both callers ensure.
    unsafe { Module::deserialize(engine, machine_code) }
}
