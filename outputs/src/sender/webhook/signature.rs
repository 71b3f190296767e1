//! Signatures as <https://www.standardwebhooks.com> defines them, for which libraries exist in many languages.

use aws_lc_rs::hmac;
use base64::{Engine, engine::general_purpose::STANDARD};
use types::{Secret, Timestamp};

use crate::Error;

const PREFIX: &str = "whsec_";
/// Length of the key in bytes.
const KEY_BYTES: std::ops::RangeInclusive<usize> = 24..=64;

/// Signs requests.
pub(super) struct Signer(hmac::Key);

impl Signer {
    /// The signer with a secret such as `whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw`.
    pub(super) fn new(secret: &Secret) -> Result<Self, Error> {
        let key = secret.expose().strip_prefix(PREFIX).and_then(|text| STANDARD.decode(text).ok());
        let key = key.filter(|key| KEY_BYTES.contains(&key.len())).ok_or_else(|| {
            let rule =
                "it must be whsec_ and 24 to 64 bytes in base64, as `echo whsec_$(openssl rand -base64 32)` prints";
            Error::invalid("Secret", rule)
        })?;
        Ok(Self(hmac::Key::new(hmac::HMAC_SHA256, &key)))
    }

    /// The header `webhook-signature` for one attempt.
    pub(super) fn sign(&self, id: &str, time: Timestamp, body: &str) -> String {
        let mac = hmac::sign(&self.0, format!("{id}.{}.{body}", time.as_secs()).as_bytes());
        format!("v1,{}", STANDARD.encode(mac.as_ref()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example that the libraries of the standard test themselves with.
    #[test]
    fn signs_as_the_standard_says() {
        let signer = Signer::new(&Secret::new("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")).unwrap();
        let time = Timestamp::from_millis(1_614_265_330_000);
        let signature = signer.sign("msg_p5jXN8AQM9LWM0D4loKWxJek", time, r#"{"test": 2432232314}"#);
        assert_eq!(signature, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }

    #[test]
    fn refuses_secrets_that_are_no_keys() {
        for secret in ["", "password", "whsec_", "whsec_c2hvcnQ=", "whsec_%%%", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"] {
            assert!(Signer::new(&Secret::new(secret)).is_err(), "{secret}");
        }
    }
}
