//! Metrics of the account service. No label names a user or an application.

use metrics::{counter, describe_counter};

const ISSUED: &str = "airlock_account_tokens_issued_total";
const REFUSED: &str = "airlock_account_credentials_refused_total";
const THROTTLED: &str = "airlock_account_throttled_total";
const MAILS: &str = "airlock_account_mails_total";

/// Registers the description of each metric.
pub(crate) fn describe() {
    describe_counter!(ISSUED, "Issued tokens, by grant or exchange");
    describe_counter!(
        REFUSED,
        "Passwords, clients, codes, refresh tokens and access keys that were refused when asking for one"
    );
    describe_counter!(THROTTLED, "Rate-limited attempts, by limit");
    describe_counter!(MAILS, "Mails, by outcome: sent, failed or dropped");
}

/// Counts a token issued by this grant or exchange.
pub(crate) fn issued(grant: &'static str) {
    counter!(ISSUED, "grant" => grant).increment(1);
}

/// Counts a rejected credential of this kind.
pub(crate) fn refused(credential: &'static str) {
    counter!(REFUSED, "credential" => credential).increment(1);
}

/// A try was stopped by this limit.
pub(crate) fn rate_limited(policy: &'static str) {
    counter!(THROTTLED, "policy" => policy).increment(1);
}

/// Counts a mail by its outcome.
pub(crate) fn mail(outcome: &'static str) {
    counter!(MAILS, "outcome" => outcome).increment(1);
}
