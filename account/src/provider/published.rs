//! A provider's description and keys, cached for a while.

use std::{sync::Arc, time::Duration};

use client::openid::{OpenIdClient, ProviderDescription};
use jsonwebtoken::{
    Algorithm, AlgorithmFamily, DecodingKey, Header,
    jwk::{AlgorithmParameters, EllipticCurve, Jwk, JwkSet, KeyAlgorithm, PublicKeyUse},
};
use tokio::sync::Mutex;
use types::{Clock, Timestamp};

use super::{
    ProviderResult,
    error::{ProviderError, shortened},
};

/// Time for which description and keys are used before they are read again.
const LIFETIME: Duration = Duration::from_secs(3600);
/// Minimum time between two readings of the keys, whatever keys tokens name.
const KEYS_INTERVAL: Duration = Duration::from_secs(30);
/// Time after a failure for which the provider is not called again.
const PAUSE: Duration = Duration::from_secs(5);

/// A provider's description and keys.
pub(super) struct Published {
    client: OpenIdClient,
    clock: Arc<dyn Clock>,
    /// Locked during calls: those who come meanwhile share the result.
    known: Mutex<ProviderDocuments>,
}

#[derive(Default)]
struct ProviderDocuments {
    description: Option<(Arc<ProviderDescription>, Timestamp)>,
    keys: Option<(JwkSet, Timestamp)>,
    failed: Option<Timestamp>,
}

impl Published {
    pub(super) fn new(client: OpenIdClient, clock: Arc<dyn Clock>) -> Self {
        Self { client, clock, known: Mutex::default() }
    }

    /// The description, which must be that of this issuer.
    pub(super) async fn description(&self, issuer: &str) -> ProviderResult<Arc<ProviderDescription>> {
        let mut known = self.known.lock().await;
        self.read_description(&mut known, issuer).await
    }

    /// The key that signed a token with this header.
    pub(super) async fn key(&self, issuer: &str, header: &Header) -> ProviderResult<DecodingKey> {
        let mut known = self.known.lock().await;
        let now = self.clock.now();
        if let Some((keys, read)) = &known.keys {
            let fitting = fitting(keys, header);
            if let Some(key) = fitting.filter(|_| is_within(LIFETIME, *read, now)) {
                return Ok(key);
            }
            if is_within(KEYS_INTERVAL, *read, now) {
                return Err(ProviderError::UnknownKey);
            }
        }
        let description = self.read_description(&mut known, issuer).await?;
        let keys = self.call(&mut known, "its keys", self.client.keys(&description)).await?;
        let key = fitting(&keys, header);
        known.keys = Some((keys, self.clock.now()));
        key.ok_or(ProviderError::UnknownKey)
    }

    async fn read_description(
        &self,
        known: &mut ProviderDocuments,
        issuer: &str,
    ) -> ProviderResult<Arc<ProviderDescription>> {
        if let Some((description, read)) = &known.description
            && is_within(LIFETIME, *read, self.clock.now())
        {
            return Ok(Arc::clone(description));
        }
        let description = self.call(known, "its description", self.client.description()).await?;
        if description.issuer != issuer {
            known.failed = Some(self.clock.now());
            return Err(ProviderError::Description { found: shortened(&description.issuer) });
        }
        let description = Arc::new(description);
        known.description = Some((Arc::clone(&description), self.clock.now()));
        Ok(description)
    }

    /// Makes a call for `what`, unless one has just failed.
    ///
    /// The pause begins when a call has failed, and not when it was made: otherwise each of those who wait meanwhile
    /// would wait for another call to time out, one after the other.
    async fn call<T>(
        &self,
        known: &mut ProviderDocuments,
        what: &'static str,
        call: impl Future<Output = client::Result<T>>,
    ) -> ProviderResult<T> {
        if known.failed.is_some_and(|failed| is_within(PAUSE, failed, self.clock.now())) {
            return Err(ProviderError::Away);
        }
        let called = call.await;
        known.failed = called.is_err().then(|| self.clock.now());
        called.map_err(|error| ProviderError::of(what, error))
    }
}

/// Returns true if `read` is not older than this. A time in the future is one from before the clock was set back.
fn is_within(lifetime: Duration, read: Timestamp, now: Timestamp) -> bool {
    read <= now && now.since(read) < lifetime
}

/// The key that the header names; without a name, the only one that fits.
fn fitting(keys: &JwkSet, header: &Header) -> Option<DecodingKey> {
    let is_named = |key: &&Jwk| header.kid.is_none() || key.common.key_id == header.kid;
    let mut fitting = keys.keys.iter().filter(is_named).filter(|key| fits(key, header.alg));
    let key = fitting.next()?;
    if fitting.next().is_some() { None } else { DecodingKey::from_jwk(key).ok() }
}

fn fits(key: &Jwk, algorithm: Algorithm) -> bool {
    let is_of_kind = match &key.algorithm {
        AlgorithmParameters::RSA(_) => algorithm.family() == AlgorithmFamily::Rsa,
        AlgorithmParameters::EllipticCurve(key) => matches!(
            (&key.curve, algorithm),
            (EllipticCurve::P256, Algorithm::ES256) | (EllipticCurve::P384, Algorithm::ES384)
        ),
        AlgorithmParameters::OctetKeyPair(_) => algorithm == Algorithm::EdDSA,
        _ => false,
    };
    let is_for_it = key.common.key_algorithm.is_none_or(|known| known == KeyAlgorithm::from(algorithm));
    let signs = key.common.public_key_use.as_ref().is_none_or(|public_use| *public_use == PublicKeyUse::Signature);
    is_of_kind && is_for_it && signs
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const RSA: (&str, Algorithm) = ("RSA", Algorithm::RS256);

    fn key(kind: &str, more: Value) -> Value {
        let mut key = match kind {
            "RSA" => json!({"kty": "RSA", "n": "AQAB", "e": "AQAB"}),
            "oct" => json!({"kty": "oct", "k": "AQAB"}),
            "Ed25519" | "X25519" => json!({"kty": "OKP", "crv": kind, "x": "AQAB"}),
            curve => json!({"kty": "EC", "crv": curve, "x": "AQAB", "y": "AQAB"}),
        };
        let Value::Object(more) = more else { unreachable!("members are an object") };
        key.as_object_mut().unwrap().extend(more);
        key
    }

    fn finds(keys: &[Value], algorithm: Algorithm, id: Option<&str>) -> bool {
        let keys: JwkSet = serde_json::from_value(json!({"keys": keys})).unwrap();
        let header = Header { kid: id.map(str::to_owned), ..Header::new(algorithm) };
        fitting(&keys, &header).is_some()
    }

    #[test]
    fn a_key_verifies_only_what_it_is_for() {
        let algorithms = [
            Algorithm::RS256,
            Algorithm::PS256,
            Algorithm::ES256,
            Algorithm::ES384,
            Algorithm::EdDSA,
            Algorithm::HS256,
        ];
        for (kind, own) in [
            ("RSA", &algorithms[..2]),
            ("P-256", &algorithms[2..3]),
            ("P-384", &algorithms[3..4]),
            ("Ed25519", &algorithms[4..5]),
            ("P-521", &algorithms[..0]),
            ("secp256k1", &algorithms[..0]),
            ("X25519", &algorithms[..0]),
            ("oct", &algorithms[..0]),
        ] {
            for algorithm in algorithms {
                let found = finds(&[key(kind, json!({"kid": "1"}))], algorithm, Some("1"));
                assert_eq!(found, own.contains(&algorithm), "{kind} {algorithm:?}");
            }
        }
        let (kind, algorithm) = RSA;
        for (more, expected) in [
            (json!({"use": "sig", "alg": "RS256"}), true),
            (json!({"use": "enc"}), false),
            (json!({"alg": "PS256"}), false),
            (json!({"use": "enc", "alg": "RSA-OAEP"}), false),
            (json!({"alg": "of the next decade"}), false),
        ] {
            assert_eq!(finds(&[key(kind, more.clone())], algorithm, None), expected, "{more}");
        }
    }

    #[test]
    fn a_key_is_found_by_its_id_or_because_no_other_fits() {
        let (kind, algorithm) = RSA;
        let [first, second] = ["1", "2"].map(|id| key(kind, json!({"kid": id})));
        let nameless = key(kind, json!({}));
        let elliptic = key("P-256", json!({"kid": "1"}));
        assert!(finds(&[first.clone(), second.clone(), elliptic.clone()], algorithm, Some("1")));
        assert!(finds(&[first.clone(), elliptic], algorithm, None));
        assert!(finds(std::slice::from_ref(&nameless), algorithm, None));
        assert!(!finds(&[nameless], algorithm, Some("1")), "another name is none");
        assert!(!finds(&[first.clone(), second], algorithm, Some("3")));
        assert!(!finds(&[first.clone(), first], algorithm, Some("1")), "either may be meant");
        assert!(!finds(&[], algorithm, None));
    }
}
