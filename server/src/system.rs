//! What only the machine can give: the time, randomness, and the cryptography that everything shares.

use std::time::{SystemTime, UNIX_EPOCH};

use types::{Clock, Random, Timestamp};

/// The machine's clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

/// The machine's source of randomness.
#[derive(Clone, Copy, Debug, Default)]
pub struct OsRandom;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is the clock that everyone else is given")]
    fn now(&self) -> Timestamp {
        let elapsed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp::from_nanos(i64::try_from(elapsed.as_nanos()).unwrap_or(i64::MAX))
    }
}

impl Random for OsRandom {
    #[expect(clippy::expect_used, reason = "without randomness every secret made from here on would be guessable")]
    fn fill(&self, bytes: &mut [u8]) {
        getrandom::fill(bytes).expect("the machine gives no randomness");
    }
}

/// Makes aws-lc the cryptography of TLS and of tokens in this process; calling it again changes nothing.
///
/// Call it before the first connection or token: where two providers are linked, neither library guesses.
pub fn install_crypto() {
    // An error only says that there is a provider already.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let _ = jsonwebtoken::crypto::aws_lc::DEFAULT_PROVIDER.install_default();
}
