//! Keeps the compiled guest on disk, so that only the first start compiles it.
#![allow(unsafe_code, reason = "loads machine code that this program wrote itself")]

use std::fs::{self, File};
use std::hash::{Hash, Hasher};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use sha2::{Digest, Sha256};
use wasmtime::{Engine, Module};

use crate::error::Error;
use crate::load::atomic_file::{Beside, remove_abandoned};

const PREFIX: &str = "guest-";
const SUFFIX: &str = ".compiled";
/// A compiled guest takes some MB; a longer file is not one.
const FILE_BYTES_MAX: u64 = 64 << 20;

/// The compiled guest: from `dir` if it is there unharmed, else compiled now and kept there for the next time.
///
/// A folder that cannot be written costs the next start some time, so it is logged and is no error.
pub(crate) fn compiled(engine: &Engine, code: &[u8], dir: Option<&Path>) -> Result<Module, Error> {
    let Some(dir) = dir else { return compile(engine, code) };
    let path = dir.join(format!("{PREFIX}{}{SUFFIX}", key(engine, code)));
    if let Some(module) = load(engine, &path) {
        tracing::debug!(path = %path.display(), "loaded the compiled guest");
        return Ok(module);
    }
    let module = compile(engine, code)?;
    if let Err(source) = keep(&module, dir, &path) {
        let error = Error::Cache { path, source };
        tracing::warn!(error = &error as &dyn std::error::Error, "the next start will compile the guest again");
    }
    Ok(module)
}

fn compile(engine: &Engine, code: &[u8]) -> Result<Module, Error> {
    Module::new(engine, code).map_err(|error| Error::Compile(error.into()))
}

/// Names the outcome of compiling `code`: another guest, wasmtime, configuration or processor gives another name.
fn key(engine: &Engine, code: &[u8]) -> String {
    let mut sha = Sha(Sha256::new_with_prefix(code));
    engine.precompile_compatibility_hash().hash(&mut sha);
    sha.0.finalize()[..16].iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Loads a kept module; `None` when it is missing, damaged, or could have been written by somebody else.
fn load(engine: &Engine, path: &Path) -> Option<Module> {
    let mut file = File::open(path).ok()?;
    let about = file.metadata().ok()?;
    let ours = about.uid() == rustix::process::geteuid().as_raw() && about.mode() & 0o077 == 0;
    if !ours || about.len() > FILE_BYTES_MAX {
        tracing::warn!(path = %path.display(), "ignored a compiled guest that others may have written");
        return None;
    }
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).ok()?;
    let (digest, machine_code) = bytes.split_at_checked(32)?;
    if Sha256::digest(machine_code).as_slice() != digest {
        tracing::warn!(path = %path.display(), "ignored a damaged compiled guest");
        return None;
    }
    // SAFETY: machine code is as trusted as this program. The file lies in a folder of the user's own, belongs to the
    // user, nobody else may read or write it, and it is whole: its content matches the digest that was written with it.
    unsafe { Module::deserialize(engine, machine_code) }.ok()
}

/// Writes the module beside its place and moves it there, so that a start next to us never sees half of it.
fn keep(module: &Module, dir: &Path, path: &Path) -> io::Result<()> {
    let machine_code = module.serialize().map_err(io::Error::other)?;
    fs::create_dir_all(dir)?;
    remove_abandoned(dir);
    Beside::write(path, &[&Sha256::digest(&machine_code), &machine_code])?.replace(path)?;
    remove_others(dir, path)
}

/// Removes what earlier versions kept: the folder holds one guest.
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

/// SHA-256 as the standard library wants its hashers.
struct Sha(Sha256);

impl Hasher for Sha {
    fn write(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    fn finish(&self) -> u64 {
        // Asked for by the trait only; the whole digest is what `key` takes.
        0
    }
}
