//! Proof that a code is redeemed by who asked for it (RFC 7636).

use aws_lc_rs::digest::{SHA256, digest};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use types::{Random, Secret};

use crate::random_bytes;

/// What only the program knows that asks for a code; it is shown when the code is redeemed.
#[derive(Clone, Debug)]
pub struct Verifier(Secret);

impl Verifier {
    /// Draws one of 32 bytes.
    pub fn new(random: &dyn Random) -> Self {
        Self(Secret::new(URL_SAFE_NO_PAD.encode(random_bytes::<32>(random))))
    }

    /// Takes the one that was kept since the code was asked for.
    pub fn from_secret(secret: Secret) -> Self {
        Self(secret)
    }

    /// The text to keep until the code comes.
    pub fn secret(&self) -> &Secret {
        &self.0
    }

    /// Its hash, which is shown when the code is asked for.
    pub(super) fn challenge(&self) -> String {
        URL_SAFE_NO_PAD.encode(digest(&SHA256, self.0.expose().as_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_the_rfc_has_its_challenge() {
        let verifier = Verifier::from_secret(Secret::new("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"));
        assert_eq!(verifier.challenge(), "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM");
    }
}
