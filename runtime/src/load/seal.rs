//! The key that authenticates cached modules.

use aws_lc_rs::{error::Unspecified, hmac, rand};

use crate::error::ModuleError;

/// The size of a key.
pub(crate) const KEY_BYTES: usize = 32;
pub(crate) const SEAL_BYTES: usize = 32;

/// An HMAC-SHA-256 key.
pub(crate) struct SealKey {
    key: hmac::Key,
}

impl SealKey {
    /// Generates a key.
    pub(crate) fn random() -> Result<[u8; KEY_BYTES], Unspecified> {
        let mut bytes = [0; KEY_BYTES];
        rand::fill(&mut bytes)?;
        Ok(bytes)
    }

    /// The key with these bytes.
    pub(crate) fn new(bytes: &[u8; KEY_BYTES]) -> Self {
        Self { key: hmac::Key::new(hmac::HMAC_SHA256, bytes) }
    }

    /// Computes the seal of `bytes`.
    pub(crate) fn seal(&self, bytes: &[u8]) -> [u8; SEAL_BYTES] {
        let mut seal = [0; SEAL_BYTES];
        seal.iter_mut().zip(hmac::sign(&self.key, bytes).as_ref()).for_each(|(to, from)| *to = *from);
        seal
    }

    /// Verifies the seal of `bytes` in constant time.
    pub(crate) fn check(&self, bytes: &[u8], seal: &[u8]) -> Result<(), ModuleError> {
        hmac::verify(&self.key, bytes, seal).map_err(|_| ModuleError::Unauthentic)
    }
}
