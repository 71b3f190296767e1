//! Verifies ID tokens.

use jsonwebtoken::{Algorithm, DecodingKey, Header, Validation};
use serde::Deserialize;
use serde_json::Value;
use types::{Secret, Timestamp};

use super::{ProviderResult, error::ProviderError, profile::Profile};

/// Signatures with a public key. With HMAC, everybody who knows the client's secret could sign.
const ALGORITHMS: [Algorithm; 5] =
    [Algorithm::RS256, Algorithm::PS256, Algorithm::ES256, Algorithm::ES384, Algorithm::EdDSA];
/// Tolerated difference between the provider's clock and ours, in seconds.
const LEEWAY_S: u64 = 60;
/// The limit of the specification.
const SUBJECT_BYTES_MAX: usize = 255;

/// The claims that a token must have.
#[derive(Clone, Copy, Debug)]
pub(super) struct Expected<'a> {
    pub(super) issuer: &'a str,
    pub(super) client_id: &'a str,
    pub(super) nonce: &'a str,
    pub(super) now: Timestamp,
}

/// A verified token.
#[derive(Debug)]
pub(super) struct IdToken {
    pub(super) subject: String,
    pub(super) profile: Profile,
}

#[derive(Deserialize)]
struct Claims {
    iss: String,
    sub: String,
    aud: Audience,
    #[serde(default)]
    azp: Option<String>,
    // Some providers write times with a fraction.
    exp: f64,
    iat: f64,
    #[serde(default)]
    nonce: Option<String>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Audience {
    One(String),
    Several(Vec<String>),
}

/// The header, which names the key. Nothing is verified yet.
pub(super) fn header(token: &Secret) -> ProviderResult<Header> {
    let header = jsonwebtoken::decode_header(token.expose()).map_err(|_| ProviderError::Algorithm)?;
    // What is critical is not understood here.
    let is_accepted = ALGORITHMS.contains(&header.alg) && header.crit.is_none();
    if is_accepted { Ok(header) } else { Err(ProviderError::Algorithm) }
}

/// Verifies the signature, then every claim.
pub(super) fn verify(
    token: &Secret,
    (header, key): (&Header, &DecodingKey),
    expected: Expected<'_>,
) -> ProviderResult<IdToken> {
    let mut rules = Validation::new(header.alg);
    // The library would check times by the machine's clock, not the given one.
    rules.required_spec_claims.clear();
    rules.validate_exp = false;
    rules.validate_aud = false;
    let signed = jsonwebtoken::decode::<Value>(token.expose(), key, &rules);
    let signed = signed.map_err(|_| ProviderError::Signature)?.claims;
    let claims = Claims::deserialize(&signed).map_err(ProviderError::Claims)?;
    let profile = Profile::deserialize(&signed).map_err(ProviderError::Claims)?;
    check(&claims, expected)?;
    Ok(IdToken { subject: claims.sub, profile })
}

fn check(claims: &Claims, expected: Expected<'_>) -> ProviderResult<()> {
    let wrong = |claim, must| Err(ProviderError::Claim { claim, must });
    if claims.iss != expected.issuer {
        return wrong("iss", "must be the issuer of the settings");
    }
    let (is_for_us, is_for_others) = match &claims.aud {
        Audience::One(one) => (one == expected.client_id, false),
        Audience::Several(all) => (all.iter().any(|one| one == expected.client_id), all.len() > 1),
    };
    if !is_for_us {
        return wrong("aud", "must name this client");
    }
    match &claims.azp {
        Some(azp) if azp != expected.client_id => return wrong("azp", "must be this client"),
        None if is_for_others => return wrong("azp", "must say which of the audiences asked"),
        _ => {}
    }
    let (now, leeway) = (expected.now.as_secs() as f64, LEEWAY_S as f64);
    if claims.exp + leeway <= now {
        return Err(ProviderError::Expired);
    }
    if claims.iat > now + leeway {
        return Err(ProviderError::Early);
    }
    if claims.nonce.as_deref() != Some(expected.nonce) {
        return wrong("nonce", "must be that of this login");
    }
    if claims.sub.is_empty() || claims.sub.len() > SUBJECT_BYTES_MAX {
        return wrong("sub", "must have 1 to 255 bytes");
    }
    Ok(())
}
