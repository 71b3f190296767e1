//! Signs valid and invalid tokens as an account service would.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use jsonwebtoken::{
    Algorithm, EncodingKey, crypto,
    jwk::{Jwk, JwkSet},
};
use serde_json::{Value, json};

/// An ES256 key with an id.
pub(crate) struct Signer {
    pub(crate) key_id: String,
    pub(crate) key: EncodingKey,
    pub(crate) public_pem: String,
    jwk: Jwk,
}

impl Signer {
    pub(crate) fn new(key_id: &str) -> Self {
        server::system::install_crypto();
        let pair = rcgen::KeyPair::generate().unwrap();
        let key = EncodingKey::from_ec_pem(pair.serialize_pem().as_bytes()).unwrap();
        let mut jwk = Jwk::from_encoding_key(&key, Algorithm::ES256).unwrap();
        jwk.common.key_id = Some(key_id.to_owned());
        Self { key_id: key_id.to_owned(), key, public_pem: pair.public_key_pem(), jwk }
    }

    pub(crate) fn key_set(&self) -> JwkSet {
        JwkSet { keys: vec![self.jwk.clone()] }
    }

    /// The header of every valid token.
    pub(crate) fn header(&self) -> Value {
        json!({ "typ": "JWT", "alg": "ES256", "kid": self.key_id })
    }

    /// A valid token with these claims.
    pub(crate) fn token(&self, claims: &Value) -> String {
        self.sign(&self.header(), claims)
    }

    /// A token with any header, signed with ES256 regardless.
    pub(crate) fn sign(&self, header: &Value, claims: &Value) -> String {
        self.sign_text(&header.to_string(), &claims.to_string())
    }

    /// A token with any text as header and claims.
    pub(crate) fn sign_text(&self, header: &str, claims: &str) -> String {
        let message = format!("{}.{}", URL_SAFE_NO_PAD.encode(header), URL_SAFE_NO_PAD.encode(claims));
        let signature = crypto::sign(message.as_bytes(), &self.key, Algorithm::ES256).unwrap();
        format!("{message}.{signature}")
    }
}

/// Header and claims, without a signature.
pub(crate) fn unsigned(header: &Value, claims: &Value) -> String {
    format!("{}.{}", URL_SAFE_NO_PAD.encode(header.to_string()), URL_SAFE_NO_PAD.encode(claims.to_string()))
}

/// The claims of a user's token that is valid at `now`.
pub(crate) fn claims(now: u64) -> Value {
    json!({
        "iss": "account", "sub": "5c0ffee5c0ffee5c0ffee5c0", "type": "user", "iat": now - 60, "exp": now + 3600,
        "scope": ["apps:my-app"], "apps": { "my-app": ["settings"] },
    })
}
