//! The system's clock, randomness and cryptography.

use std::time::{SystemTime, UNIX_EPOCH};

use types::{Clock, Random, Timestamp};

/// The system clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

/// The system's random number generator.
#[derive(Clone, Copy, Debug, Default)]
pub struct OsRandom;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is the clock that is passed to everything else")]
    fn now(&self) -> Timestamp {
        let elapsed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp::from_nanos(i64::try_from(elapsed.as_nanos()).unwrap_or(i64::MAX))
    }
}

impl Random for OsRandom {
    #[expect(clippy::expect_used, reason = "without randomness, every new secret would be guessable")]
    fn fill(&self, bytes: &mut [u8]) {
        getrandom::fill(bytes).expect("the system has no randomness");
    }
}

/// Installs aws-lc as the crypto provider of TLS and tokens. Calling it again has no effect.
///
/// Call it before the first connection or token, because the libraries refuse to choose if two providers are linked.
pub fn install_crypto() {
    // An error only means that a provider is installed already.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let _ = jsonwebtoken::crypto::aws_lc::DEFAULT_PROVIDER.install_default();
}
