//! PKCE (RFC 7636): proves that the client that redeems a code requested it.

use aws_lc_rs::digest::{SHA256, digest};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use types::{Random, Secret};

/// The code verifier: a secret that is revealed when redeeming the code.
#[derive(Clone, Debug)]
pub struct CodeVerifier(Secret);

impl CodeVerifier {
    /// Generates a verifier from 32 random bytes.
    pub fn new(random: &dyn Random) -> Self {
        Self(Secret::new(URL_SAFE_NO_PAD.encode(random.array::<32>())))
    }

    /// Restores a verifier that was saved when requesting the code.
    pub fn from_secret(secret: Secret) -> Self {
        Self(secret)
    }

    /// The secret to save until the code arrives.
    pub fn secret(&self) -> &Secret {
        &self.0
    }

    /// The hash that is sent when requesting the code.
    pub(crate) fn challenge(&self) -> String {
        URL_SAFE_NO_PAD.encode(digest(&SHA256, self.0.expose().as_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matches_the_example_of_the_rfc() {
        let verifier = CodeVerifier::from_secret(Secret::new("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"));
        assert_eq!(verifier.challenge(), "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM");
    }
}
