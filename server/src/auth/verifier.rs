//! Tokens, checked against the public keys of the one issuer that they name.

use std::{collections::BTreeMap, fmt};

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use jsonwebtoken::{
    Algorithm, DecodingKey, Validation, decode,
    jwk::{AlgorithmParameters, EllipticCurve, JwkSet},
};
use serde::Deserialize;
use serde_json::{Map, Value};
use types::{Claims, Timestamp};

/// The most bytes that a token may have.
const TOKEN_BYTES_MAX: usize = 16 * 1024;
/// The most bytes that the id of a key may have.
const KEY_ID_BYTES_MAX: usize = 128;
/// How far the clocks of issuer and reader may differ, in seconds.
const LEEWAY_S: u64 = 30;

/// Why a token is not valid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// It is longer than any that is issued.
    #[error("it is longer than {TOKEN_BYTES_MAX} bytes")]
    TooLong,
    /// It is not three parts of base64url with JSON objects in the first two, or has a header that nobody sends here.
    #[error("it is not a signed token of an account service")]
    Malformed,
    /// It is signed in another way than account services sign.
    #[error("it is not signed with ES256")]
    Algorithm,
    /// No account service that is trusted here issued it.
    #[error("its issuer is not trusted here")]
    Issuer,
    /// The issuer has no such key, or not any more.
    #[error("it is signed with a key that its issuer does not have: log in again")]
    Key,
    /// The signature does not fit.
    #[error("its signature does not fit")]
    Signature,
    /// A claim is missing, of the wrong type, or not understood.
    #[error("claim not understood: {0}")]
    Claims(String),
    /// It is over.
    #[error("it has expired: log in again")]
    Expired,
    /// It is not valid yet, by more than clocks differ.
    #[error("it was issued in the future: check the clock")]
    Early,
}

/// The public keys of one issuer, and the rules that its tokens must keep.
pub struct Verifier {
    issuer: String,
    keys: BTreeMap<String, DecodingKey>,
    rules: Validation,
}

/// What a token says about where it comes from: good for finding the key, and for nothing else.
pub(super) struct Origin {
    pub(super) issuer: String,
    pub(super) key_id: String,
}

impl Verifier {
    /// Takes the ES256 keys of `keys` that have an id, and ignores every other.
    pub fn new(issuer: &str, keys: &JwkSet) -> Self {
        let es256 = keys.keys.iter().filter(|key| {
            matches!(&key.algorithm, AlgorithmParameters::EllipticCurve(curve) if curve.curve == EllipticCurve::P256)
        });
        let keys =
            es256.filter_map(|key| Some((key.common.key_id.clone()?, DecodingKey::from_jwk(key).ok()?))).collect();
        Self { issuer: issuer.to_owned(), keys, rules: signature_only() }
    }

    /// Whether the issuer has a key with this id.
    pub fn knows(&self, key_id: &str) -> bool {
        self.keys.contains_key(key_id)
    }

    /// The claims of a token that this issuer signed and that is valid at `now`.
    pub fn verify(&self, token: &str, now: Timestamp) -> Result<Claims, TokenError> {
        let origin = Origin::of(token)?;
        if origin.issuer != self.issuer {
            return Err(TokenError::Issuer);
        }
        let key = self.keys.get(&origin.key_id).ok_or(TokenError::Key)?;
        let signed = decode::<Map<String, Value>>(token, key, &self.rules).map_err(|_| TokenError::Signature)?;
        claims(signed.claims, now)
    }
}

impl fmt::Debug for Verifier {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key_ids: Vec<_> = self.keys.keys().collect();
        out.debug_struct("Verifier").field("issuer", &self.issuer).field("key_ids", &key_ids).finish()
    }
}

impl Origin {
    /// Reads who claims to have signed a token, and with which key; refuses what nobody here would sign.
    pub(super) fn of(token: &str) -> Result<Self, TokenError> {
        if token.len() > TOKEN_BYTES_MAX {
            return Err(TokenError::TooLong);
        }
        let mut parts = token.split('.');
        let (Some(header), Some(payload), Some(_), None) = (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(TokenError::Malformed);
        };
        let header: Header = json(header)?;
        if header.alg != "ES256" {
            return Err(TokenError::Algorithm);
        }
        if header.kid.len() > KEY_ID_BYTES_MAX {
            return Err(TokenError::Key);
        }
        let Issuer { iss } = json(payload)?;
        Ok(Self { issuer: iss, key_id: header.kid })
    }
}

/// The header of a token of ours. Any other member (`jwk`, `jku`, `x5u`, `crit`, `zip` …) makes it somebody else's.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    alg: String,
    kid: String,
    #[serde(rename = "typ")]
    _typ: Option<String>,
}

#[derive(Deserialize)]
struct Issuer {
    iss: String,
}

/// The claims that matter for validity but are not passed on.
#[derive(Deserialize)]
struct Bounds {
    nbf: Option<u64>,
}

fn json<T: for<'de> Deserialize<'de>>(part: &str) -> Result<T, TokenError> {
    let bytes = URL_SAFE_NO_PAD.decode(part).map_err(|_| TokenError::Malformed)?;
    serde_json::from_slice(&bytes).map_err(|_| TokenError::Malformed)
}

/// Rules for the library that leave every claim to [`claims`]: it would read the machine's clock, not ours.
fn signature_only() -> Validation {
    let mut rules = Validation::new(Algorithm::ES256);
    rules.required_spec_claims.clear();
    rules.validate_exp = false;
    rules.validate_aud = false;
    rules
}

fn claims(signed: Map<String, Value>, now: Timestamp) -> Result<Claims, TokenError> {
    let not_understood = |error: serde_json::Error| TokenError::Claims(error.to_string());
    if signed.contains_key("aud") {
        return Err(TokenError::Claims("`aud` names somebody else".to_owned()));
    }
    let signed = Value::Object(signed);
    let Bounds { nbf } = Bounds::deserialize(&signed).map_err(not_understood)?;
    let claims = Claims::deserialize(signed).map_err(not_understood)?;
    let now = now.as_secs();
    if claims.exp.saturating_add(LEEWAY_S) <= now {
        return Err(TokenError::Expired);
    }
    if claims.iat.max(nbf.unwrap_or(0)) > now.saturating_add(LEEWAY_S) {
        return Err(TokenError::Early);
    }
    Ok(claims)
}
