//! What this service counts.

use metrics::counter;

/// A token was issued by this grant or exchange.
pub(crate) fn issued(grant: &'static str) {
    counter!("airlock_account_tokens_issued_total", "grant" => grant).increment(1);
}

/// A credential of this sort was refused.
pub(crate) fn refused(credential: &'static str) {
    counter!("airlock_account_credentials_refused_total", "credential" => credential).increment(1);
}
