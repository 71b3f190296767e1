//! Protects secrets in the store: seals those that must be read again, hashes those that are only compared.

mod signed_text;

use std::{
    fmt, fs,
    io::{ErrorKind, Read},
    os::unix::fs::PermissionsExt,
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

pub use self::signed_text::unverified_payload;
use crate::secrets::private_file::create_private;

const KEY_BYTES: usize = 32;

/// Reasons why a secret cannot be sealed or opened.
#[derive(Debug, thiserror::Error)]
pub enum SealError {
    /// The key file cannot be used.
    #[error("cannot use the key file {path}: {must}")]
    KeyFile {
        /// The path of the key file.
        path: String,
        /// The rule that it breaks.
        must: &'static str,
        /// The system's error, if there is one.
        source: Option<std::io::Error>,
    },
    /// A sealed secret is damaged, or was sealed with another key or other associated data.
    #[error("cannot open the {0} in the store: it was sealed with a different key file, restore the original")]
    Sealed(&'static str),
    /// Unexpected failure in the crypto library.
    #[error("cannot {0}")]
    Crypto(&'static str),
}

type Result<T> = std::result::Result<T, SealError>;

impl Kinded for SealError {
    fn kind(&self) -> Kind {
        Kind::Internal
    }
}

/// The service that owns the secrets; keys of one cannot open secrets of the other, even from the same key file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyOwner {
    /// The account service.
    Account,
    /// A handler.
    Handler,
    /// The console.
    Console,
}

impl KeyOwner {
    fn as_str(self) -> &'static str {
        match self {
            Self::Account => "account",
            Self::Handler => "handler",
            Self::Console => "console",
        }
    }
}

/// The keys that seal and hash secrets; they are derived from a key file outside the store.
///
/// Every process that shares a store needs the same key file.
pub struct SealingKeys {
    sealing: LessSafeKey,
    hashing: hmac::Key,
}

/// A secret sealed with AES-256-GCM: nonce, ciphertext and tag in base64url.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Sealed(String);

/// An HMAC of a secret, in base64url: it recognizes the secret but cannot be turned back into it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct KeyedHash(String);

impl SealingKeys {
    /// Derives the keys from a key-encryption key of 32 random bytes.
    pub fn new(owner: KeyOwner, secret: &[u8; KEY_BYTES]) -> Result<Self> {
        let secret = hmac::Key::new(hmac::HMAC_SHA256, secret);
        let derive = |use_for: &str| hmac::sign(&secret, format!("airlock {} {use_for} 1", owner.as_str()).as_bytes());
        let (sealing, hashing) = (derive("seal"), derive("mark"));
        let sealing =
            UnboundKey::new(&AES_256_GCM, sealing.as_ref()).map_err(|_| SealError::Crypto("derive the sealing key"))?;
        Ok(Self { sealing: LessSafeKey::new(sealing), hashing: hmac::Key::new(hmac::HMAC_SHA256, hashing.as_ref()) })
    }

    /// Reads the key-encryption key from a file that only its owner may read; creates a missing file.
    pub fn load_or_create(owner: KeyOwner, path: &Path, random: &dyn Random) -> Result<Self> {
        let secret = match read(path)? {
            Some(secret) => secret,
            None => create(path, random)?,
        };
        Self::new(owner, &secret)
    }

    /// Seals a secret; opening it takes the same associated data `aad`, which ties it to one place in the store.
    pub fn seal(&self, aad: &str, secret: &[u8], random: &dyn Random) -> Result<Sealed> {
        Ok(Sealed(URL_SAFE_NO_PAD.encode(self.seal_bytes(aad, secret, random)?)))
    }

    /// The same as bytes: nonce, ciphertext and tag.
    pub fn seal_bytes(&self, aad: &str, secret: &[u8], random: &dyn Random) -> Result<Vec<u8>> {
        let nonce = random.array::<NONCE_LEN>();
        let mut ciphertext = secret.to_vec();
        self.sealing
            .seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), Aad::from(aad.as_bytes()), &mut ciphertext)
            .map_err(|_| SealError::Crypto("seal a secret"))?;
        Ok([&nonce[..], &ciphertext].concat())
    }

    /// Opens a secret that was sealed with the same `aad`; `what` names it in the error.
    pub fn open(&self, what: &'static str, aad: &str, sealed: &Sealed) -> Result<Zeroizing<Vec<u8>>> {
        self.open_bytes(what, aad, &URL_SAFE_NO_PAD.decode(&sealed.0).map_err(|_| SealError::Sealed(what))?)
    }

    /// The same for one that was sealed as bytes.
    pub fn open_bytes(&self, what: &'static str, aad: &str, sealed: &[u8]) -> Result<Zeroizing<Vec<u8>>> {
        let (nonce, ciphertext) = sealed.split_at_checked(NONCE_LEN).ok_or(SealError::Sealed(what))?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).map_err(|_| SealError::Sealed(what))?;
        let mut opened = Zeroizing::new(ciphertext.to_vec());
        let length = self
            .sealing
            .open_in_place(nonce, Aad::from(aad.as_bytes()), &mut opened)
            .map_err(|_| SealError::Sealed(what))?
            .len();
        opened.truncate(length);
        Ok(opened)
    }

    /// Hashes a secret; equal secrets have different hashes in different contexts.
    pub fn hash(&self, context: &str, secret: &[u8]) -> KeyedHash {
        KeyedHash(URL_SAFE_NO_PAD.encode(self.mac(context, secret)))
    }

    /// Returns true if `hash` is that of this secret, in constant time.
    pub fn verify_hash(&self, hash: &KeyedHash, context: &str, secret: &[u8]) -> bool {
        self.hash(context, secret).equals(hash)
    }

    /// HMAC-SHA-256 over the context and the bytes.
    pub fn mac(&self, context: &str, bytes: &[u8]) -> hmac::Tag {
        let mut mac = hmac::Context::with_key(&self.hashing);
        // The length keeps the end of the context apart from the beginning of the bytes.
        mac.update(&(context.len() as u64).to_be_bytes());
        mac.update(context.as_bytes());
        mac.update(bytes);
        mac.sign()
    }
}

impl Sealed {
    /// Takes a text that may be a sealed secret; opening it shows whether it is.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The sealed secret in base64url.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl KeyedHash {
    /// Returns true if both are hashes of the same secret, in constant time.
    pub fn equals(&self, other: &Self) -> bool {
        aws_lc_rs::constant_time::verify_slices_are_equal(self.0.as_bytes(), other.0.as_bytes()).is_ok()
    }

    /// The hash in base64url.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for SealingKeys {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("SealingKeys(…)")
    }
}

fn failed(path: &Path, must: &'static str, source: impl Into<Option<std::io::Error>>) -> SealError {
    SealError::KeyFile { path: path.display().to_string(), must, source: source.into() }
}

fn read(path: &Path) -> Result<Option<Zeroizing<[u8; KEY_BYTES]>>> {
    let mut file = match fs::File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(path, "it must be readable", error)),
    };
    let metadata = file.metadata().map_err(|error| failed(path, "it must be readable", error))?;
    if metadata.permissions().mode() & 0o077 != 0 {
        return Err(failed(path, "only its owner may read it, set its mode to 600", None));
    }
    if metadata.len() != KEY_BYTES as u64 {
        return Err(failed(path, "it must have 32 bytes, restore it from your backup", None));
    }
    let mut secret = Zeroizing::new([0; KEY_BYTES]);
    file.read_exact(secret.as_mut()).map_err(|error| failed(path, "it must be readable", error))?;
    Ok(Some(secret))
}

/// Creates the key file; of two processes that start at once, one creates it and both use it.
fn create(path: &Path, random: &dyn Random) -> Result<Zeroizing<[u8; KEY_BYTES]>> {
    let must = "its directory must be writable";
    let mut secret = Zeroizing::new([0; KEY_BYTES]);
    random.fill(secret.as_mut());
    match create_private(path, secret.as_ref()) {
        Ok(()) => Ok(secret),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => read(path)?.ok_or_else(|| failed(path, must, error)),
        Err(error) => Err(failed(path, must, error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::system::OsRandom;

    #[test]
    fn opens_a_secret_only_whole_and_with_its_own_key_and_aad() {
        let keys = SealingKeys::new(KeyOwner::Account, &[7; KEY_BYTES]).unwrap();
        let sealed = keys.seal("here", b"secret", &OsRandom).unwrap();
        assert_eq!(keys.open("it", "here", &sealed).unwrap().as_slice(), b"secret");
        assert!(keys.open("it", "there", &sealed).is_err());
        assert!(SealingKeys::new(KeyOwner::Account, &[8; KEY_BYTES]).unwrap().open("it", "here", &sealed).is_err());
        assert!(SealingKeys::new(KeyOwner::Handler, &[7; KEY_BYTES]).unwrap().open("it", "here", &sealed).is_err());
        for broken in ["", "AAAA", &sealed.0[..sealed.0.len() - 4]] {
            assert!(keys.open("it", "here", &Sealed(broken.to_owned())).is_err(), "{broken}");
        }
        assert_ne!(keys.seal("here", b"secret", &OsRandom).unwrap(), sealed, "the nonce must differ");
    }

    #[test]
    fn a_hash_recognizes_its_secret_in_its_context() {
        let keys = SealingKeys::new(KeyOwner::Account, &[7; KEY_BYTES]).unwrap();
        let hash = keys.hash("here", b"secret");
        assert!(keys.verify_hash(&hash, "here", b"secret"));
        assert!(!keys.verify_hash(&hash, "here", b"secreu") && !keys.verify_hash(&hash, "there", b"secret"));
        assert_ne!(keys.hash("ab", b"c"), keys.hash("a", b"bc"));
    }
}
