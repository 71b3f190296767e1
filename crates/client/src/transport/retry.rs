//! Retries of calls: only where repeating is safe, and for a limited time.
//!
//! Not `backon`: each error decides about the retry and its pause, which leaves only the loop to a library.

use std::time::Duration;

use tokio::time::{Instant, sleep};
use types::{Kind, Kinded};

use crate::{Error, Result};

/// Maximum duration of one attempt.
pub(crate) const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum number of attempts per call.
const ATTEMPTS_MAX: u32 = 3;
/// Time after the first attempt within which another one may start.
const RETRY_WINDOW: Duration = Duration::from_secs(20);
/// Maximum `Retry-After` that is obeyed; with a longer one the call fails.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(5);
/// The pause before the second attempt without `Retry-After`; doubled for each further attempt.
const PAUSE: Duration = Duration::from_millis(100);

/// Calls that may be repeated, and calls that may not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Call {
    /// It changes nothing, or repeating it has no further effect.
    Repeatable,
    /// Only when the first attempt certainly had no effect.
    Once,
}

/// Makes a call, and repeats it where that is safe and may help.
pub(crate) async fn retry<T, F>(call: Call, mut make: impl FnMut() -> F) -> Result<T>
where
    F: Future<Output = Result<T>>,
{
    let (started, mut attempts) = (Instant::now(), 1);
    loop {
        let error = match make().await {
            Ok(response) => return Ok(response),
            Err(error) => error,
        };
        let pause = pause(call, &error, attempts).filter(|pause| started.elapsed() + *pause <= RETRY_WINDOW);
        let Some(pause) = pause else { return Err(error) };
        sleep(pause).await;
        attempts += 1;
    }
}

/// The pause before the next attempt; `None` when the error is final.
fn pause(call: Call, error: &Error, attempts: u32) -> Option<Duration> {
    if attempts >= ATTEMPTS_MAX {
        return None;
    }
    match error {
        // A rate-limited call had no effect; one that found the service unavailable may have had one.
        Error::Refused { retry_after: Some(wait), kind: Kind::Exhausted, .. }
        | Error::Foreign { retry_after: Some(wait), kind: Kind::Exhausted, .. } => {
            (*wait <= RETRY_AFTER_MAX).then_some(*wait)
        }
        Error::Refused { retry_after: Some(wait), kind: Kind::Unavailable, .. }
        | Error::Foreign { retry_after: Some(wait), kind: Kind::Unavailable, .. }
            if call == Call::Repeatable =>
        {
            (*wait <= RETRY_AFTER_MAX).then_some(*wait)
        }
        _ if call == Call::Repeatable && error.kind() == Kind::Unavailable => Some(PAUSE * 2_u32.pow(attempts - 1)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(kind: Kind, retry_after: Option<u64>) -> Error {
        Error::Refused { kind, message: "no".into(), retry_after: retry_after.map(Duration::from_secs) }
    }

    // Conformance: Deadlines, and retries that respect `Retry-After`
    #[tokio::test(start_paused = true)]
    async fn makes_fewer_attempts_when_they_take_long() {
        for (try_s, expected) in [(1, 3), (15, 2), (25, 1)] {
            let mut tries = 0;
            let result: Result<()> = retry(Call::Repeatable, || {
                tries += 1;
                async move {
                    sleep(Duration::from_secs(try_s)).await;
                    Err(refused(Kind::Unavailable, None))
                }
            })
            .await;
            assert!(result.is_err());
            assert_eq!(tries, expected, "{try_s}");
        }
    }

    #[test]
    fn repeats_a_read_while_the_server_is_unavailable() {
        let away = refused(Kind::Unavailable, None);
        assert_eq!(pause(Call::Repeatable, &away, 1), Some(PAUSE));
        assert_eq!(pause(Call::Repeatable, &away, 2), Some(PAUSE * 2));
        assert_eq!(pause(Call::Repeatable, &away, 3), None);
    }

    #[test]
    fn repeats_a_write_only_when_it_had_no_effect() {
        assert_eq!(pause(Call::Once, &refused(Kind::Unavailable, None), 1), None);
        assert_eq!(pause(Call::Once, &refused(Kind::Unavailable, Some(1)), 1), None);
        assert_eq!(pause(Call::Repeatable, &refused(Kind::Unavailable, Some(1)), 1), Some(Duration::from_secs(1)));
        assert_eq!(pause(Call::Once, &refused(Kind::Exhausted, Some(2)), 1), Some(Duration::from_secs(2)));
    }

    #[test]
    fn does_not_wait_for_long_or_after_a_final_error() {
        assert_eq!(pause(Call::Repeatable, &refused(Kind::Exhausted, Some(3600)), 1), None);
        assert_eq!(pause(Call::Repeatable, &refused(Kind::Exhausted, None), 1), None);
        assert_eq!(pause(Call::Repeatable, &refused(Kind::Denied, Some(1)), 1), None);
    }
}
