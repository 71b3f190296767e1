//! Proof key for code exchange (RFC 7636).

use aws_lc_rs::digest::{SHA256, digest};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use serde::{Deserialize, Serialize};
use types::Secret;

use super::error_code::OAuthErrorCode;
use crate::{Error, Result};

/// The SHA-256 of a verifier, sent with the authorization request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct Challenge(String);

impl Challenge {
    /// Parses a challenge. The method must be S256: a plain challenge would expose the verifier.
    pub(super) fn parse(challenge: &str, method: Option<&str>) -> Result<Self> {
        if method != Some("S256") {
            return Err(Error::oauth(OAuthErrorCode::InvalidRequest, "code_challenge_method must be S256"));
        }
        match URL_SAFE_NO_PAD.decode(challenge) {
            Ok(hash) if hash.len() == SHA256.output_len() => Ok(Self(challenge.to_owned())),
            _ => Err(Error::oauth(
                OAuthErrorCode::InvalidRequest,
                "code_challenge must be the SHA-256 of the verifier in base64url",
            )),
        }
    }

    fn is_of(&self, verifier: &str) -> bool {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
        let whole = (43..=128).contains(&verifier.len()) && verifier.bytes().all(plain);
        let hash = URL_SAFE_NO_PAD.encode(digest(&SHA256, verifier.as_bytes()));
        let fits = aws_lc_rs::constant_time::verify_slices_are_equal(hash.as_bytes(), self.0.as_bytes());
        whole && fits.is_ok()
    }
}

/// Checks the verifier. It must be sent if and only if there was a challenge.
pub(super) fn check(challenge: Option<&Challenge>, verifier: Option<&Secret>) -> Result<()> {
    let fits = match (challenge, verifier) {
        (Some(challenge), Some(verifier)) => challenge.is_of(verifier.expose()),
        (None, None) => true,
        _ => false,
    };
    if fits {
        Ok(())
    } else {
        Err(Error::oauth(OAuthErrorCode::InvalidGrant, "code_verifier does not fit the code_challenge"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accepts_the_example_of_the_rfc_and_nothing_else() {
        let challenge = Challenge::parse("E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM", Some("S256")).unwrap();
        let verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
        let check = |challenge, verifier: Option<&str>| check(challenge, verifier.map(Secret::new).as_ref()).is_ok();
        assert!(check(Some(&challenge), Some(verifier)) && check(None, None));
        assert!(!check(Some(&challenge), None) && !check(None, Some(verifier)));
        assert!(!check(Some(&challenge), Some("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXl")));
    }

    #[test]
    fn refuses_a_plain_challenge() {
        let hash = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";
        for (challenge, method) in [(hash, None), (hash, Some("plain")), (hash, Some("s256")), ("short", Some("S256"))]
        {
            assert!(Challenge::parse(challenge, method).is_err(), "{challenge} {method:?}");
        }
    }
}
