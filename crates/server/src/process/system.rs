//! The system's clock and randomness, and the process-wide crypto provider.

use std::time::{SystemTime, UNIX_EPOCH};

use types::{Clock, Random, Timestamp};

/// The system's clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

/// The system's random source.
#[derive(Clone, Copy, Debug, Default)]
pub struct OsRandom;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "the one place that reads the system's clock")]
    fn now(&self) -> Timestamp {
        let elapsed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp::from_nanos(i64::try_from(elapsed.as_nanos()).unwrap_or(i64::MAX))
    }
}

impl Random for OsRandom {
    #[expect(clippy::expect_used, reason = "without randomness every new secret could be guessed")]
    fn fill(&self, bytes: &mut [u8]) {
        getrandom::fill(bytes).expect("the system has no randomness");
    }
}

/// Lets other threads of the process go before this one, by this niceness.
pub fn lower_priority(niceness: i32) {
    // Linux has a niceness per thread. A system that refuses only schedules it like the others.
    _ = rustix::process::nice(niceness);
}

/// Makes aws-lc-rs the crypto provider of rustls and jsonwebtoken; calling it again has no effect.
///
/// Call it before the first connection or token: with two providers linked, neither library picks one.
pub fn install_crypto() {
    // The only error is that a provider is installed already.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let _ = jsonwebtoken::crypto::aws_lc::DEFAULT_PROVIDER.install_default();
}
