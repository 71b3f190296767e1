//! Verifying tokens: a valid one, and every way to make it invalid.

use std::{sync::Arc, time::Duration};

use jsonwebtoken::{Algorithm, EncodingKey, crypto};
use serde_json::{Value, json};
use server::auth::{AuthError, TokenError, Verifier};
use testing::ManualClock;
use types::{Claims, Clock, Kind, Kinded};

use crate::auth::signer::{Signer, claims, unsigned};

/// Verifies at a fixed time with the keys of `signer`.
fn verify(signer: &Signer, token: &str) -> Result<Claims, TokenError> {
    Verifier::new("account", &signer.key_set()).verify(token, ManualClock::new().now())
}

/// Valid claims with one member changed; null removes it.
fn changed(member: &str, value: Value) -> Value {
    let mut claims = claims(ManualClock::new().secs());
    match value {
        Value::Null => claims.as_object_mut().unwrap().remove(member),
        value => claims.as_object_mut().unwrap().insert(member.to_owned(), value),
    };
    claims
}

/// Fails unless the token is refused as unauthenticated.
#[track_caller]
fn refused(signer: &Signer, what: &str, token: &str) {
    match verify(signer, token) {
        Ok(_) => panic!("accepted: {what}"),
        Err(error) => assert_eq!(AuthError::from(error).kind(), Kind::Unauthenticated, "{what}"),
    }
}

#[test]
fn returns_the_claims_of_a_valid_token() {
    let signer = Signer::new("k1");
    let claims = verify(&signer, &signer.token(&changed("jti", json!("t1")))).unwrap();
    assert_eq!(claims.sub, "5c0ffee5c0ffee5c0ffee5c0");
    assert!(claims.allows(&"my-app".parse().unwrap(), types::ApplicationRight::Settings));
    assert!(!claims.allows(&"my-app".parse().unwrap(), types::ApplicationRight::Delete));
}

#[test]
fn refuses_other_algorithms() {
    let signer = Signer::new("k1");
    for alg in ["none", "None", "NONE", "HS256", "RS256", "PS256", "ES384", "EdDSA", "es256", ""] {
        let header = json!({ "typ": "JWT", "alg": alg, "kid": "k1" });
        assert_eq!(
            verify(&signer, &signer.sign(&header, &changed("jti", json!("t1")))),
            Err(TokenError::Algorithm),
            "{alg}"
        );
    }
    for alg in [json!(256), json!(["ES256"]), json!({}), Value::Null] {
        let header = json!({ "typ": "JWT", "alg": alg, "kid": "k1" });
        refused(&signer, "an algorithm that is no text", &signer.sign(&header, &changed("jti", json!("t1"))));
    }
    let header = json!({ "typ": "JWT", "alg": "none", "kid": "k1" });
    refused(&signer, "no signature", &format!("{}.", unsigned(&header, &changed("jti", json!("t1")))));
    refused(&signer, "no algorithm", &signer.sign(&json!({ "kid": "k1" }), &changed("jti", json!("t1"))));
}

#[test]
fn refuses_the_public_key_as_a_shared_secret() {
    let signer = Signer::new("k1");
    let header = json!({ "typ": "JWT", "alg": "HS256", "kid": "k1" });
    let pem = signer.public_pem.as_str();
    let der = rustls_pki_types::pem::PemObject::from_pem_slice(pem.as_bytes());
    let der: rustls_pki_types::SubjectPublicKeyInfoDer<'_> = der.unwrap();
    let point = &der[der.len() - 65..];
    for secret in [pem.as_bytes(), pem.trim_end().as_bytes(), &der[..], point] {
        let message = unsigned(&header, &changed("jti", json!("t1")));
        let signature = crypto::sign(message.as_bytes(), &EncodingKey::from_secret(secret), Algorithm::HS256);
        refused(&signer, "HS256 with the public key", &format!("{message}.{}", signature.unwrap()));
    }
}

#[test]
fn accepts_only_keys_of_the_issuer_with_their_ids() {
    let (signer, stranger) = (Signer::new("k1"), Signer::new("k1"));
    refused(&signer, "another key of the same id", &stranger.token(&changed("jti", json!("t1"))));
    let long = "k".repeat(64 * 1024);
    for key_id in ["k2", "", "../k1", "http://example.com/k1", "k1' or '1'='1", "k*", "k1\0", long.as_str()] {
        let header = json!({ "typ": "JWT", "alg": "ES256", "kid": key_id });
        refused(&signer, key_id, &signer.sign(&header, &changed("jti", json!("t1"))));
    }
    let header = json!({ "typ": "JWT", "alg": "ES256" });
    refused(&signer, "no key id", &signer.sign(&header, &changed("jti", json!("t1"))));
}

#[test]
fn refuses_headers_with_keys_or_extensions() {
    let (signer, stranger) = (Signer::new("k1"), Signer::new("k1"));
    let members = [
        ("jwk", serde_json::to_value(&stranger.key_set().keys[0]).unwrap()),
        ("jku", json!("http://127.0.0.1:1/keys")),
        ("x5u", json!("http://127.0.0.1:1/chain")),
        ("x5c", json!(["AAAA"])),
        ("crit", json!(["exp"])),
        ("b64", json!(false)),
        ("zip", json!("DEF")),
    ];
    for (member, value) in members {
        let mut header = signer.header();
        header.as_object_mut().unwrap().insert(member.to_owned(), value);
        refused(&signer, member, &signer.sign(&header, &changed("jti", json!("t1"))));
        refused(&signer, member, &stranger.sign(&header, &changed("jti", json!("t1"))));
    }
}

#[test]
fn refuses_changed_and_malformed_tokens() {
    let signer = Signer::new("k1");
    let good = signer.token(&changed("jti", json!("t1")));
    assert!(verify(&signer, &good).is_ok());
    let (message, signature) = good.rsplit_once('.').unwrap();
    let richer = unsigned(&signer.header(), &changed("apps", json!({ "my-app": ["settings", "delete"] })));
    refused(&signer, "other claims", &format!("{richer}.{signature}"));
    refused(&signer, "a shorter signature", &good[..good.len() - 4]);
    refused(&signer, "no signature", &format!("{message}."));
    refused(&signer, "a missing segment", message);
    refused(&signer, "a segment too many", &format!("{good}.e30"));
    refused(&signer, "five segments, as encrypted tokens have", &format!("{good}.e30.e30"));
    refused(&signer, "padding", &format!("{good}="));
    refused(&signer, "spaces", &format!(" {good}"));
    for text in ["", ".", "..", "...", "e30.e30.e30", "%%%.%%%.%%%", "null"] {
        refused(&signer, text, text);
    }
    let long = signer.token(&changed("name", json!({ "first": "x".repeat(16 * 1024) })));
    assert_eq!(verify(&signer, &long), Err(TokenError::TooLong));
}

#[test]
fn checks_all_but_the_signature_of_a_token_that_it_verified_before() {
    let (signer, clock) = (Signer::new("k1"), ManualClock::new());
    let verifier = Verifier::new("account", &signer.key_set());
    let good = signer.token(&changed("exp", json!(clock.secs() + 60)));
    for _ in 0..2 {
        assert!(verifier.verify(&good, clock.now()).is_ok());
    }
    let (message, signature) = good.rsplit_once('.').unwrap();
    let stranger = Signer::new("k1").token(&changed("exp", json!(clock.secs() + 60)));
    let (_, other) = stranger.rsplit_once('.').unwrap();
    let richer = unsigned(&signer.header(), &changed("apps", json!({ "my-app": ["settings", "delete"] })));
    let forged = [format!("{message}.{other}"), format!("{richer}.{signature}")];
    for token in forged.iter().chain(&forged) {
        assert_eq!(verifier.verify(token, clock.now()), Err(TokenError::Signature));
    }
    clock.advance(Duration::from_secs(90));
    assert_eq!(verifier.verify(&good, clock.now()), Err(TokenError::Expired));
}

#[test]
fn verifies_all_tokens_again_when_a_key_was_replaced() {
    let (signer, stranger, now) = (Signer::new("k1"), Signer::new("k1"), ManualClock::new().now());
    let verifier = Arc::new(Verifier::new("account", &signer.key_set()));
    let token = signer.token(&changed("jti", json!("t1")));
    assert!(verifier.verify(&token, now).is_ok());
    assert!(Arc::ptr_eq(&verifier, &verifier.with_keys(&signer.key_set())), "the keys are the same");
    let replaced = verifier.with_keys(&stranger.key_set());
    assert_eq!(replaced.verify(&token, now), Err(TokenError::Signature));
}

#[test]
fn allows_30_seconds_of_clock_difference() {
    let (signer, now) = (Signer::new("k1"), ManualClock::new().secs());
    let checks = [
        ("exp", now - 29, Ok(())),
        ("exp", now - 30, Err(TokenError::Expired)),
        ("exp", 0, Err(TokenError::Expired)),
        ("iat", now + 30, Ok(())),
        ("iat", now + 31, Err(TokenError::Early)),
        ("nbf", now + 30, Ok(())),
        ("nbf", now + 31, Err(TokenError::Early)),
        ("nbf", 0, Ok(())),
        ("exp", u64::MAX, Ok(())),
    ];
    for (member, value, expected) in checks {
        let verdict = verify(&signer, &signer.token(&changed(member, json!(value)))).map(|_| ());
        assert_eq!(verdict, expected, "{member} {value}, now {now}");
    }
}

#[test]
fn refuses_claims_of_the_wrong_type() {
    let (signer, now) = (Signer::new("k1"), ManualClock::new().secs());
    let values = [
        ("exp", json!((now + 3600).to_string())),
        ("exp", json!(now as f64 + 3600.5)),
        ("exp", json!(-1)),
        ("exp", Value::Null),
        ("iat", json!((now - 60).to_string())),
        ("iat", Value::Null),
        ("nbf", json!((now - 60).to_string())),
        ("sub", json!(1)),
        ("sub", Value::Null),
        ("jti", json!(1)),
        ("type", json!(["user"])),
        ("scope", json!("apps:my-app")),
        ("scope", json!(["everything"])),
        ("apps", json!({ "my-app": "settings" })),
        ("apps", json!({ "my-app": ["everything"] })),
        ("apps", json!({ "Not An Id": ["settings"] })),
        ("name", json!("Ada")),
        ("interchangeable", json!("yes")),
    ];
    for (member, value) in values {
        refused(&signer, &format!("{member} {value}"), &signer.token(&changed(member, value)));
    }
}

#[test]
fn refuses_null_as_the_start_of_validity() {
    let (signer, now) = (Signer::new("k1"), ManualClock::new().secs());
    let mut claims = claims(now);
    claims["nbf"] = Value::Null;
    let verdict = verify(&signer, &signer.token(&claims));
    assert!(matches!(&verdict, Err(TokenError::Claims(_))), "{verdict:?}");
}

#[test]
fn refuses_duplicate_members() {
    let (signer, now) = (Signer::new("k1"), ManualClock::new().secs());
    let (header, payload) = (signer.header().to_string(), claims(now).to_string());
    assert!(verify(&signer, &signer.sign_text(&header, &payload)).is_ok());
    let twice = |object: &str, member: &str| object.replacen('{', &format!("{{{member},"), 1);
    let iss = json!("account");
    let payloads = [
        twice(&payload, &format!("\"iss\":{iss}")),
        twice(&payload, &format!("\"exp\":{}", now + 3600)),
        twice(&payload, "\"sub\":\"somebody else\""),
        twice(&payload, "\"\\u0073ub\":\"somebody else\""),
        twice(&payload, "\"nbf\":1,\"nbf\":2"),
        twice(&payload, "\"unknown\":1,\"unknown\":1"),
        payload.replace("{\"my-app\"", "{\"my-app\":[\"delete\"],\"my-app\""),
        twice(&payload, "\"unknown\":[{\"a\":1,\"a\":1}]"),
    ];
    for payload in payloads {
        let verdict = verify(&signer, &signer.sign_text(&header, &payload));
        assert_eq!(verdict, Err(TokenError::Duplicate), "{payload}");
    }
    for member in ["\"alg\":\"none\"", "\"alg\":\"ES256\"", "\"kid\":\"k2\"", "\"typ\":\"JWT\""] {
        let header = twice(&header, member);
        let verdict = verify(&signer, &signer.sign_text(&header, &payload));
        assert_eq!(verdict, Err(TokenError::Duplicate), "{header}");
    }
}

#[test]
fn refuses_another_issuer_or_audience() {
    let signer = Signer::new("k1");
    for issuer in [json!("other"), json!("Account"), json!(["account"]), json!(""), Value::Null] {
        refused(&signer, &format!("issuer {issuer}"), &signer.token(&changed("iss", issuer)));
    }
    for audience in [json!("somebody"), json!(["account"]), json!("")] {
        refused(&signer, &format!("audience {audience}"), &signer.token(&changed("aud", audience)));
    }
}
