//! What this service counts; no label ever names a user or an application.

use metrics::{counter, describe_counter};

const ISSUED: &str = "airlock_account_tokens_issued_total";
const REFUSED: &str = "airlock_account_credentials_refused_total";
const THROTTLED: &str = "airlock_account_throttled_total";
const MAILS: &str = "airlock_account_mails_total";

/// Says what each figure means.
pub(crate) fn describe() {
    describe_counter!(ISSUED, "Tokens by what they were issued for: a grant or an exchange");
    describe_counter!(
        REFUSED,
        "Passwords, clients, codes, refresh tokens and access keys that were refused when asking for one"
    );
    describe_counter!(THROTTLED, "Tries that came too soon, by the limit that stopped them");
    describe_counter!(MAILS, "Mails by what became of them: sent, failed or dropped");
}

/// A token was issued by this grant or exchange.
pub(crate) fn issued(grant: &'static str) {
    counter!(ISSUED, "grant" => grant).increment(1);
}

/// A credential of this sort was refused.
pub(crate) fn refused(credential: &'static str) {
    counter!(REFUSED, "credential" => credential).increment(1);
}

/// A try was stopped by this limit.
pub(crate) fn throttled(policy: &'static str) {
    counter!(THROTTLED, "policy" => policy).increment(1);
}

/// This became of a mail.
pub(crate) fn mail(outcome: &'static str) {
    counter!(MAILS, "outcome" => outcome).increment(1);
}
