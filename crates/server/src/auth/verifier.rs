//! Verifies tokens with the public keys of their issuer.

mod self_signed;
mod unique_members;
mod verified_tokens;

use std::{collections::BTreeMap, fmt, sync::Arc};

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use jsonwebtoken::{
    Algorithm, DecodingKey, Validation, decode,
    jwk::{AlgorithmParameters, EllipticCurve, JwkSet},
};
use serde::{Deserialize, de::IgnoredAny};
use serde_json::{Map, Value};
use types::{CREDENTIAL_BYTES_MAX, Claims, Timestamp};

pub use self::self_signed::SelfSigned;
use self::{
    unique_members::UniqueMembers,
    verified_tokens::{TokenHash, VerifiedTokens},
};

const KEY_ID_BYTES_MAX: usize = 128;
/// Tolerated difference between the issuer's clock and ours, in seconds.
const LEEWAY_S: u64 = 30;

/// Reasons for refusing a token.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// It is longer than any issued token.
    #[error("it is longer than {CREDENTIAL_BYTES_MAX} bytes")]
    TooLong,
    /// It is not three parts of base64url with JSON objects in the first two, or its header has unknown members.
    #[error("it is not a signed token of an account service")]
    Malformed,
    /// Its header or its claims have a member twice, so that two readers could see two tokens.
    #[error("its header or its claims have the same member twice")]
    Duplicate,
    /// Its algorithm is not ES256.
    #[error("it is not signed with ES256")]
    Algorithm,
    /// Its issuer is not trusted here.
    #[error("its issuer is not trusted here")]
    Issuer,
    /// Its issuer has no such key, or no longer.
    #[error("it is signed with a key that its issuer does not have: log in again")]
    Key,
    /// Its signature is wrong.
    #[error("its signature is invalid")]
    Signature,
    /// A claim is missing, or has a wrong type or value.
    #[error("claim not understood: {0}")]
    Claims(String),
    /// It has expired.
    #[error("it has expired: log in again")]
    Expired,
    /// It is not valid yet, beyond the leeway.
    #[error("it was issued in the future: check the clock")]
    Early,
}

/// The public keys of one issuer, and which tokens they have verified.
pub struct Verifier {
    issuer: String,
    set: JwkSet,
    keys: BTreeMap<String, DecodingKey>,
    rules: Validation,
    verified: VerifiedTokens,
}

/// The origin that a token claims, unverified: for finding the key, and for nothing else.
pub(super) struct Origin {
    pub(super) issuer: String,
    pub(super) key_id: String,
    claims: Map<String, Value>,
}

impl Verifier {
    /// Takes the ES256 keys that have an id, and ignores all others.
    pub fn new(issuer: &str, set: &JwkSet) -> Self {
        let es256 = set.keys.iter().filter(|key| {
            matches!(&key.algorithm, AlgorithmParameters::EllipticCurve(curve) if curve.curve == EllipticCurve::P256)
        });
        let keys =
            es256.filter_map(|key| Some((key.common.key_id.clone()?, DecodingKey::from_jwk(key).ok()?))).collect();
        Self {
            issuer: issuer.to_owned(),
            set: set.clone(),
            keys,
            rules: signature_only(),
            verified: VerifiedTokens::default(),
        }
    }

    /// The verifier for the keys that the issuer has now: itself if they are the same, so that no token has to be
    /// verified again.
    pub fn with_keys(self: &Arc<Self>, set: &JwkSet) -> Arc<Self> {
        if self.set == *set { Arc::clone(self) } else { Arc::new(Self::new(&self.issuer, set)) }
    }

    /// Returns true if the issuer has a key with this id.
    pub fn knows(&self, key_id: &str) -> bool {
        self.keys.contains_key(key_id)
    }

    /// The claims of a token of this issuer that is valid at `now`.
    pub fn verify(&self, token: &str, now: Timestamp) -> Result<Claims, TokenError> {
        let (claims, starts) = self.verify_end(token, now)?;
        if starts > now.as_secs().saturating_add(LEEWAY_S) { Err(TokenError::Early) } else { Ok(claims) }
    }

    /// Like [`Self::verify`], for a token that its issuer itself vouches for now: by our clock it may be early.
    pub(super) fn verify_vouched(&self, token: &str, now: Timestamp) -> Result<Claims, TokenError> {
        self.verify_end(token, now).map(|(claims, _)| claims)
    }

    /// The claims of a token that has not expired, and when it starts to be valid.
    fn verify_end(&self, token: &str, now: Timestamp) -> Result<(Claims, u64), TokenError> {
        let origin = Origin::of(token)?;
        if origin.issuer != self.issuer {
            return Err(TokenError::Issuer);
        }
        let key = self.keys.get(&origin.key_id).ok_or(TokenError::Key)?;
        self.verify_signature(token, key)?;
        claims(origin.claims, now)
    }

    fn verify_signature(&self, token: &str, key: &DecodingKey) -> Result<(), TokenError> {
        let hash = TokenHash::of(token);
        if !self.verified.contains(hash) {
            decode::<IgnoredAny>(token, key, &self.rules).map_err(|_| TokenError::Signature)?;
            self.verified.insert(hash);
        }
        Ok(())
    }
}

impl fmt::Debug for Verifier {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key_ids: Vec<_> = self.keys.keys().collect();
        out.debug_struct("Verifier").field("issuer", &self.issuer).field("key_ids", &key_ids).finish()
    }
}

impl Origin {
    /// Reads the issuer and the key id; refuses tokens that no account service would issue.
    pub(super) fn of(token: &str) -> Result<Self, TokenError> {
        if token.len() > CREDENTIAL_BYTES_MAX {
            return Err(TokenError::TooLong);
        }
        let mut parts = token.split('.');
        let (Some(header), Some(payload), Some(_), None) = (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(TokenError::Malformed);
        };
        let header = Header::deserialize(Value::Object(object(header)?)).map_err(|_| TokenError::Malformed)?;
        if header.alg != "ES256" {
            return Err(TokenError::Algorithm);
        }
        if header.kid.len() > KEY_ID_BYTES_MAX {
            return Err(TokenError::Key);
        }
        let claims = object(payload)?;
        let issuer = claims.get("iss").and_then(Value::as_str).ok_or(TokenError::Malformed)?.to_owned();
        Ok(Self { issuer, key_id: header.kid, claims })
    }
}

/// The header of an account service's token. Other members (`jwk`, `jku`, `x5u`, `crit`, `zip` …) are refused.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    alg: String,
    kid: String,
    #[serde(rename = "typ")]
    _typ: Option<String>,
}

/// Claims that are checked but not passed on. `null` is no time: the token is refused.
#[derive(Deserialize)]
struct Bounds {
    #[serde(default)]
    nbf: u64,
}

/// A part of a token: a JSON object without duplicate members at any depth.
fn object(part: &str) -> Result<Map<String, Value>, TokenError> {
    let bytes = URL_SAFE_NO_PAD.decode(part).map_err(|_| TokenError::Malformed)?;
    match serde_json::from_slice(&bytes) {
        Ok(UniqueMembers(Value::Object(members))) => Ok(members),
        // The syntax is right, and any value is accepted but a duplicate.
        Err(error) if error.is_data() => Err(TokenError::Duplicate),
        _ => Err(TokenError::Malformed),
    }
}

/// Has the library check the signature only: it would check times by the machine's clock, not the given one.
fn signature_only() -> Validation {
    let mut rules = Validation::new(Algorithm::ES256);
    rules.required_spec_claims.clear();
    rules.validate_exp = false;
    rules.validate_aud = false;
    rules
}

fn claims(signed: Map<String, Value>, now: Timestamp) -> Result<(Claims, u64), TokenError> {
    let not_understood = |error: serde_json::Error| TokenError::Claims(error.to_string());
    if signed.contains_key("aud") {
        return Err(TokenError::Claims("`aud` names another audience".to_owned()));
    }
    let signed = Value::Object(signed);
    let Bounds { nbf } = Bounds::deserialize(&signed).map_err(not_understood)?;
    let claims = Claims::deserialize(signed).map_err(not_understood)?;
    if claims.exp.saturating_add(LEEWAY_S) <= now.as_secs() {
        return Err(TokenError::Expired);
    }
    let starts = claims.iat.max(nbf);
    Ok((claims, starts))
}
