//! Tokens that components sign themselves.

use std::time::Duration;

use serde_json::{Value, json};
use server::{
    auth::{SelfSigned, TokenError},
    identity::Identity,
};
use types::{ComponentId, Secret, Timestamp};

use crate::auth::signer::Signer;

fn now() -> Timestamp {
    Timestamp::from_millis(1_800_000_000_000)
}

fn verify(token: &str, public_pem: &str) -> Result<(), TokenError> {
    let handler: ComponentId = "handler".parse().unwrap();
    SelfSigned::of(&Secret::new(token)).expect("it is one").verify(public_pem, &handler, now())
}

/// Claims like those of v2's components.
fn claims() -> Value {
    let now = now().as_secs();
    json!({"iss": "broker-1", "sub": "broker-1", "iat": now - 20, "nbf": now - 20, "exp": now + 20})
}

fn header() -> Value {
    json!({"alg": "ES256", "typ": "JWT"})
}

#[test]
fn a_component_proves_who_it_is_with_its_announced_key() {
    server::system::install_crypto();
    let dir = tempfile::tempdir().unwrap();
    let identity = Identity::load_or_create(&dir.path().join("handler.pem")).unwrap();
    let (id, receiver): (ComponentId, ComponentId) = ("handler".parse().unwrap(), "broker-1".parse().unwrap());
    let token = identity.token(&id, now()).unwrap();
    let parsed = SelfSigned::of(&token).unwrap();
    assert_eq!(parsed.issuer(), "handler");
    assert_eq!(parsed.verify(identity.public_key_pem(), &receiver, now()), Ok(()));
    let later = now().plus(Duration::from_secs(60));
    assert_eq!(parsed.verify(identity.public_key_pem(), &receiver, later), Err(TokenError::Expired));
    let other = Signer::new("any");
    assert_eq!(parsed.verify(&other.public_pem, &receiver, now()), Err(TokenError::Signature));
}

// Conformance: The tokens that components sign themselves, verified with the announced key
#[test]
fn what_cannot_be_checked_is_refused() {
    let signer = Signer::new("any");
    let with = |name: &str, value: Value| {
        let mut claims = claims();
        claims[name] = value;
        signer.sign(&header(), &claims)
    };
    assert_eq!(verify(&with("iat", json!(0)), &signer.public_pem), Ok(()));
    for sub in ["", "broker-1", "handler"] {
        assert_eq!(verify(&with("sub", json!(sub)), &signer.public_pem), Ok(()), "{sub}");
    }
    let other = verify(&with("sub", json!("handler-2")), &signer.public_pem);
    assert!(matches!(&other, Err(TokenError::Claims(text)) if text.contains("`sub`")), "{other:?}");
    let (early, late) = (now().as_secs() + 31, now().as_secs() - 31);
    assert_eq!(verify(&with("nbf", json!(early)), &signer.public_pem), Err(TokenError::Early));
    assert_eq!(verify(&with("exp", json!(late)), &signer.public_pem), Err(TokenError::Expired));
    for key in ["", "no key", &Signer::new("other").public_pem] {
        assert!(verify(&signer.sign(&header(), &claims()), key).is_err(), "{key}");
    }
}

#[test]
fn other_tokens_are_not_taken_for_one() {
    let signer = Signer::new("any");
    let mut endless = claims();
    endless.as_object_mut().unwrap().remove("exp");
    for (header, claims) in [
        (signer.header(), claims()),
        (json!({"alg": "none"}), claims()),
        (json!({"alg": "HS256", "typ": "JWT"}), claims()),
        (json!({"alg": "ES256", "jwk": {}}), claims()),
        (header(), endless),
        (header(), json!({"exp": 1})),
    ] {
        let token = signer.sign(&header, &claims);
        assert!(SelfSigned::of(&Secret::new(&token)).is_none(), "{header} {claims}");
        assert!(SelfSigned::of(&Secret::new(format!("{token}.more"))).is_none());
    }
    for text in ["", "a.b.c", "..", "nodots"] {
        assert!(SelfSigned::of(&Secret::new(text)).is_none(), "{text}");
    }
}
