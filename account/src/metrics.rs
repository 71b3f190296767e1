//! Prometheus metrics. No label names a user or an application.

use metrics::{counter, describe_counter};

const ISSUED: &str = "airlock_account_tokens_issued_total";
const REFUSED: &str = "airlock_account_credentials_refused_total";
const THROTTLED: &str = "airlock_account_throttled_total";
const MAILS: &str = "airlock_account_mails_total";

pub(crate) fn describe() {
    describe_counter!(ISSUED, "Issued tokens, by grant or exchange");
    describe_counter!(
        REFUSED,
        "Passwords, logins at providers, clients, codes, refresh tokens and access keys that were refused"
    );
    describe_counter!(THROTTLED, "Rate-limited attempts, by limit");
    describe_counter!(MAILS, "Mails, by outcome: sent, failed or dropped");
}

/// Counts a token issued for a grant or an exchange.
pub(crate) fn issued(grant: &'static str) {
    counter!(ISSUED, "grant" => grant).increment(1);
}

pub(crate) fn refused(credential: &'static str) {
    counter!(REFUSED, "credential" => credential).increment(1);
}

/// Counts an attempt refused by a rate limit.
pub(crate) fn rate_limited(policy: &'static str) {
    counter!(THROTTLED, "policy" => policy).increment(1);
}

/// Counts a mail that was sent, failed or dropped.
pub(crate) fn mail(outcome: &'static str) {
    counter!(MAILS, "outcome" => outcome).increment(1);
}
