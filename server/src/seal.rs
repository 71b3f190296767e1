//! What keeps the secrets in the store closed: sealing what must be read again, and marks of what must only be found.

mod coded;

use std::{
    fmt,
    fs::{self, OpenOptions},
    io::{ErrorKind, Read, Write},
    os::unix::fs::{OpenOptionsExt, PermissionsExt},
    path::Path,
};

use aws_lc_rs::{
    aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey},
    hmac,
};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use serde::{Deserialize, Serialize};
use types::{Kind, Kinded, Random};
use zeroize::Zeroizing;

pub use self::coded::plain_of;

/// How many bytes the key-encryption key has.
const KEY_BYTES: usize = 32;

/// Why a secret cannot be closed or opened.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file with the key that opens the store's secrets cannot be used.
    #[error("cannot use the key file {path}: {must}")]
    KeyFile {
        /// Where it is.
        path: String,
        /// What it must be.
        must: &'static str,
        /// What the system says.
        source: Option<std::io::Error>,
    },
    /// A secret in the store does not open with our key.
    #[error("cannot open the {0} in the store: the key file is not the one that it was sealed with, restore that one")]
    Sealed(&'static str),
    /// Cryptography failed where it should not.
    #[error("cannot {0}")]
    Crypto(&'static str),
}

type Result<T> = std::result::Result<T, Error>;

impl Kinded for Error {
    fn kind(&self) -> Kind {
        Kind::Internal
    }
}

/// Whose secrets they are: nobody's keys open what another service has closed, be their file the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// The account service.
    Account,
    /// A handler.
    Handler,
}

impl Owner {
    fn as_str(self) -> &'static str {
        match self {
            Self::Account => "account",
            Self::Handler => "handler",
        }
    }
}

/// The keys that are not in the store: what opens its secrets and what marks them.
///
/// Every instance that shares a store must be given the same.
pub struct Keys {
    sealing: LessSafeKey,
    marking: hmac::Key,
}

/// A secret that only [`Keys`] can read again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Sealed(String);

/// What stands for a secret where it must be found but not read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Mark(String);

impl Keys {
    /// Derives the keys from a key-encryption key of 32 random bytes.
    pub fn new(owner: Owner, secret: &[u8; KEY_BYTES]) -> Result<Self> {
        let secret = hmac::Key::new(hmac::HMAC_SHA256, secret);
        let derive = |use_for: &str| hmac::sign(&secret, format!("airlock {} {use_for} 1", owner.as_str()).as_bytes());
        let (sealing, marking) = (derive("seal"), derive("mark"));
        let sealing =
            UnboundKey::new(&AES_256_GCM, sealing.as_ref()).map_err(|_| Error::Crypto("derive the sealing key"))?;
        Ok(Self { sealing: LessSafeKey::new(sealing), marking: hmac::Key::new(hmac::HMAC_SHA256, marking.as_ref()) })
    }

    /// Reads the key-encryption key from a file that only its owner may read; makes the file when there is none.
    pub fn open(owner: Owner, path: &Path, random: &dyn Random) -> Result<Self> {
        let secret = match read(path)? {
            Some(secret) => secret,
            None => make(path, random)?,
        };
        Self::new(owner, &secret)
    }

    /// Closes a secret. `place` says where it belongs; it opens nowhere else.
    pub fn seal(&self, place: &str, secret: &[u8], random: &dyn Random) -> Result<Sealed> {
        let mut nonce = [0; NONCE_LEN];
        random.fill(&mut nonce);
        let mut closed = secret.to_vec();
        self.sealing
            .seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), Aad::from(place.as_bytes()), &mut closed)
            .map_err(|_| Error::Crypto("seal a secret"))?;
        Ok(Sealed(URL_SAFE_NO_PAD.encode([&nonce[..], &closed].concat())))
    }

    /// Opens what was sealed for the same `place`; `what` names it in the error.
    pub fn unseal(&self, what: &'static str, place: &str, sealed: &Sealed) -> Result<Zeroizing<Vec<u8>>> {
        let bytes = URL_SAFE_NO_PAD.decode(&sealed.0).map_err(|_| Error::Sealed(what))?;
        let (nonce, closed) = bytes.split_at_checked(NONCE_LEN).ok_or(Error::Sealed(what))?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).map_err(|_| Error::Sealed(what))?;
        let mut opened = Zeroizing::new(closed.to_vec());
        let length = self
            .sealing
            .open_in_place(nonce, Aad::from(place.as_bytes()), &mut opened)
            .map_err(|_| Error::Sealed(what))?
            .len();
        opened.truncate(length);
        Ok(opened)
    }

    /// Marks a secret, so that it can be recognised later. `place` keeps equal secrets of two places apart.
    pub fn mark(&self, place: &str, secret: &[u8]) -> Mark {
        Mark(URL_SAFE_NO_PAD.encode(self.sign(place, secret)))
    }

    /// Whether `mark` is the mark of this secret, in a time that does not depend on where they differ.
    pub fn recognises(&self, mark: &Mark, place: &str, secret: &[u8]) -> bool {
        self.mark(place, secret).is_that_of(mark)
    }

    /// HMAC-SHA-256 over place and bytes.
    pub fn sign(&self, place: &str, bytes: &[u8]) -> hmac::Tag {
        let mut signing = hmac::Context::with_key(&self.marking);
        // The length keeps a place from running into the bytes after it.
        signing.update(&(place.len() as u64).to_be_bytes());
        signing.update(place.as_bytes());
        signing.update(bytes);
        signing.sign()
    }
}

impl Sealed {
    /// What somebody says was sealed here; opening it shows whether it was.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The sealed secret: letters, digits, dashes and underscores.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Mark {
    /// Whether both stand for the same secret, in a time that does not depend on where they differ.
    pub fn is_that_of(&self, other: &Self) -> bool {
        aws_lc_rs::constant_time::verify_slices_are_equal(self.0.as_bytes(), other.0.as_bytes()).is_ok()
    }

    /// The mark: letters, digits, dashes and underscores.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Keys {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Keys(…)")
    }
}

fn failed(path: &Path, must: &'static str, source: impl Into<Option<std::io::Error>>) -> Error {
    Error::KeyFile { path: path.display().to_string(), must, source: source.into() }
}

fn read(path: &Path) -> Result<Option<Zeroizing<[u8; KEY_BYTES]>>> {
    let mut file = match fs::File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(path, "it must be readable", error)),
    };
    let facts = file.metadata().map_err(|error| failed(path, "it must be readable", error))?;
    if facts.permissions().mode() & 0o077 != 0 {
        return Err(failed(path, "only its owner may read it, set its mode to 600", None));
    }
    if facts.len() != KEY_BYTES as u64 {
        return Err(failed(path, "it must have 32 bytes, restore it from your backup", None));
    }
    let mut secret = Zeroizing::new([0; KEY_BYTES]);
    file.read_exact(secret.as_mut()).map_err(|error| failed(path, "it must be readable", error))?;
    Ok(Some(secret))
}

/// Writes beside the file and links it there, so that two starts at once agree and a crash leaves no half of it.
fn make(path: &Path, random: &dyn Random) -> Result<Zeroizing<[u8; KEY_BYTES]>> {
    let must = "its folder must be writable";
    let mut secret = Zeroizing::new([0; KEY_BYTES]);
    random.fill(secret.as_mut());
    let mut suffix = [0; 8];
    random.fill(&mut suffix);
    let beside = path.with_extension(format!("{:016x}", u64::from_be_bytes(suffix)));
    let written = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&beside)
        .and_then(|mut file| file.write_all(secret.as_ref()).and_then(|()| file.sync_all()));
    let linked = written.and_then(|()| fs::hard_link(&beside, path));
    fs::remove_file(&beside).map_err(|error| failed(path, must, error))?;
    match linked {
        Ok(()) => Ok(secret),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => read(path)?.ok_or_else(|| failed(path, must, error)),
        Err(error) => Err(failed(path, must, error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::system::OsRandom;

    #[test]
    fn what_is_sealed_opens_only_where_it_belongs_and_whole() {
        let keys = Keys::new(Owner::Account, &[7; KEY_BYTES]).unwrap();
        let sealed = keys.seal("here", b"secret", &OsRandom).unwrap();
        assert_eq!(keys.unseal("it", "here", &sealed).unwrap().as_slice(), b"secret");
        assert!(keys.unseal("it", "there", &sealed).is_err());
        assert!(Keys::new(Owner::Account, &[8; KEY_BYTES]).unwrap().unseal("it", "here", &sealed).is_err());
        assert!(Keys::new(Owner::Handler, &[7; KEY_BYTES]).unwrap().unseal("it", "here", &sealed).is_err());
        for broken in ["", "AAAA", &sealed.0[..sealed.0.len() - 4]] {
            assert!(keys.unseal("it", "here", &Sealed(broken.to_owned())).is_err(), "{broken}");
        }
        assert_ne!(keys.seal("here", b"secret", &OsRandom).unwrap(), sealed, "no nonce comes twice");
    }

    #[test]
    fn a_mark_recognises_its_secret_in_its_place() {
        let keys = Keys::new(Owner::Account, &[7; KEY_BYTES]).unwrap();
        let mark = keys.mark("here", b"secret");
        assert!(keys.recognises(&mark, "here", b"secret"));
        assert!(!keys.recognises(&mark, "here", b"secreu") && !keys.recognises(&mark, "there", b"secret"));
        assert_ne!(keys.mark("ab", b"c"), keys.mark("a", b"bc"));
    }
}
