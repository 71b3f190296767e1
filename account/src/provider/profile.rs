//! A person's profile at a provider.

use serde::Deserialize;
use serde_json::Value;

/// The standard claims that a new account needs, in an ID token or from the place of profiles.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Profile {
    pub(super) sub: String,
    pub(super) email: Option<String>,
    email_verified: Value,
    pub(super) preferred_username: Option<String>,
}

impl Profile {
    /// Returns true if the provider has verified the e-mail address; anything but `true` is a no.
    pub(super) fn has_verified_email(&self) -> bool {
        self.email.is_some() && self.email_verified == Value::Bool(true)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_true_is_verified() {
        let is_verified = |profile: Value| Profile::deserialize(profile).unwrap().has_verified_email();
        assert!(is_verified(json!({"sub": "1", "email": "a@example.com", "email_verified": true})));
        for other in [json!("true"), json!(1), json!(false), Value::Null, json!([true])] {
            assert!(!is_verified(json!({"sub": "1", "email": "a@example.com", "email_verified": other})));
        }
        assert!(!is_verified(json!({"sub": "1", "email": "a@example.com"})));
        assert!(!is_verified(json!({"sub": "1", "email_verified": true})));
    }
}
