//! Compiles guests, for builds with a compiler, and caches them on disk, so that only the first start compiles.

use std::fs::{self, File};
use std::hash::{Hash, Hasher};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use miniz_oxide::deflate;
use sha2::{Digest, Sha256};
use wasmtime::{Engine, Module};

use super::{MACHINE_CODE_BYTES_MAX, deserialize};
use crate::error::Error;
use crate::load::atomic_file::{self, remove_abandoned};

const PREFIX: &str = "guest-";
const SUFFIX: &str = ".compiled";
/// The best compression.
const DEFLATE_LEVEL: u8 = 10;

/// The file to build in for a guest: the SHA-256 of its code, and the machine code, deflated.
pub(crate) fn built_in_file(engine: &Engine, code: &[u8]) -> Result<Vec<u8>, Error> {
    let machine_code = engine.precompile_module(code).map_err(|error| Error::Compile(error.into()))?;
    let mut file = Sha256::digest(code).to_vec();
    file.extend(deflate::compress_to_vec(&machine_code, DEFLATE_LEVEL));
    Ok(file)
}

/// Loads the compiled guest from `dir`, or compiles it and saves it there.
///
/// Failing to save it only slows down the next start, because the guest is compiled again; it is logged and not an
/// error.
pub(super) fn load_or_compile(engine: &Engine, code: &[u8], dir: Option<&Path>) -> Result<Module, Error> {
    let compile = || {
        tracing::info!("compiling the sandbox");
        Module::new(engine, code).map_err(|error| Error::Compile(error.into()))
    };
    let Some(dir) = dir else { return compile() };
    let path = dir.join(format!("{PREFIX}{}{SUFFIX}", key(engine, code)));
    if let Some(module) = load(engine, &path) {
        tracing::debug!(path = %path.display(), "loaded the compiled guest");
        return Ok(module);
    }
    let module = compile()?;
    if let Err(source) = save(&module, dir, &path) {
        tracing::warn!(path = %path.display(), error = %source, "cannot save the compiled guest: check the cache directory");
    }
    Ok(module)
}

/// The cache key: differs for another guest, Wasmtime version, configuration or processor.
fn key(engine: &Engine, code: &[u8]) -> String {
    let mut sha = Sha(Sha256::new_with_prefix(code));
    engine.precompile_compatibility_hash().hash(&mut sha);
    sha.0.finalize()[..16].iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Loads a saved module; `None` if it is missing, damaged, or another user could have written it.
fn load(engine: &Engine, path: &Path) -> Option<Module> {
    let mut file = File::open(path).ok()?;
    let metadata = file.metadata().ok()?;
    let ours = metadata.uid() == rustix::process::geteuid().as_raw() && metadata.mode() & 0o077 == 0;
    if !ours || metadata.len() > MACHINE_CODE_BYTES_MAX as u64 {
        tracing::warn!(path = %path.display(), "ignored a compiled guest that another user may have written");
        return None;
    }
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).ok()?;
    let (digest, machine_code) = bytes.split_at_checked(32)?;
    if Sha256::digest(machine_code).as_slice() != digest {
        tracing::warn!(path = %path.display(), "ignored a damaged compiled guest");
        return None;
    }
    // This program wrote it: the file belongs to the user, nobody else may read or write it, and it is intact, because
    // its content matches the digest that was written with it.
    deserialize(engine, machine_code).ok()
}

/// Saves the module atomically, so that a process that starts meanwhile never sees half of it.
fn save(module: &Module, dir: &Path, path: &Path) -> io::Result<()> {
    let machine_code = module.serialize().map_err(io::Error::other)?;
    fs::create_dir_all(dir)?;
    remove_abandoned(dir);
    atomic_file::write(path, &[&Sha256::digest(&machine_code), &machine_code])?.persist(path)?;
    remove_others(dir, path)
}

fn remove_others(dir: &Path, path: &Path) -> io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if name.starts_with(PREFIX) && name.ends_with(SUFFIX) && entry.path() != path {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// SHA-256 as a `Hasher`.
struct Sha(Sha256);

impl Hasher for Sha {
    fn write(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    fn finish(&self) -> u64 {
        // Required by the trait; `key` uses the whole digest.
        0
    }
}
