//! What this service counts; no label ever names a user or an application.

use metrics::{counter, describe_counter};

const ISSUED: &str = "airlock_account_tokens_issued_total";
const REFUSED: &str = "airlock_account_credentials_refused_total";

/// Says what each figure means.
pub(crate) fn describe() {
    describe_counter!(ISSUED, "Tokens by what they were issued for: a grant or an exchange");
    describe_counter!(
        REFUSED,
        "Passwords, clients, refresh tokens and access keys that were refused when asking for one"
    );
}

/// A token was issued by this grant or exchange.
pub(crate) fn issued(grant: &'static str) {
    counter!(ISSUED, "grant" => grant).increment(1);
}

/// A credential of this sort was refused.
pub(crate) fn refused(credential: &'static str) {
    counter!(REFUSED, "credential" => credential).increment(1);
}
