//! Tokens that components sign themselves, for calls to each other. They say who calls, and give no rights.

use jsonwebtoken::{DecodingKey, decode};
use serde::{Deserialize, de::IgnoredAny};
use serde_json::{Map, Value};
use types::{CREDENTIAL_BYTES_MAX, ComponentId, Secret, Timestamp};

use super::{LEEWAY_S, TokenError, object, signature_only};

/// A token that some component claims to have signed itself.
pub struct SelfSigned {
    token: Secret,
    claims: OwnClaims,
}

#[derive(Deserialize)]
struct OwnClaims {
    iss: String,
    #[serde(default)]
    sub: String,
    #[serde(default)]
    nbf: u64,
    exp: u64,
}

impl SelfSigned {
    /// Recognizes such a token: it names no key, because its issuer has only one. None for any other token.
    pub fn of(token: &Secret) -> Option<Self> {
        if token.expose().len() > CREDENTIAL_BYTES_MAX {
            return None;
        }
        let mut parts = token.expose().split('.');
        let (header, payload, _) = (object(parts.next()?).ok()?, object(parts.next()?).ok()?, parts.next()?);
        let is_plain = |header: &Map<String, Value>| header.keys().all(|name| name == "alg" || name == "typ");
        if parts.next().is_some() || !is_plain(&header) || header.get("alg")?.as_str()? != "ES256" {
            return None;
        }
        let claims = OwnClaims::deserialize(Value::Object(payload)).ok()?;
        Some(Self { token: token.clone(), claims })
    }

    /// Returns the id of the component that claims to have signed it.
    pub fn issuer(&self) -> &str {
        &self.claims.iss
    }

    /// Checks that the owner of this public key signed it for `receiver`, or for nobody in particular, and that it is
    /// valid `now`.
    pub fn verify(&self, public_key_pem: &str, receiver: &ComponentId, now: Timestamp) -> Result<(), TokenError> {
        let key = DecodingKey::from_ec_pem(public_key_pem.as_bytes()).map_err(|_| TokenError::Key)?;
        decode::<IgnoredAny>(self.token.expose(), &key, &signature_only()).map_err(|_| TokenError::Signature)?;
        let OwnClaims { iss, sub, nbf, exp } = &self.claims;
        if !sub.is_empty() && sub != iss && sub != receiver.as_str() {
            return Err(TokenError::Claims(format!("`sub` is not {iss} or {receiver}")));
        }
        let now = now.as_secs();
        if exp.saturating_add(LEEWAY_S) <= now {
            return Err(TokenError::Expired);
        }
        if *nbf > now.saturating_add(LEEWAY_S) { Err(TokenError::Early) } else { Ok(()) }
    }
}
