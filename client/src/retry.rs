//! When a call is tried again: only where that cannot do harm, and not for long.

use std::time::Duration;

use tokio::time::{Instant, sleep};
use types::{Kind, Kinded};

use crate::{Error, Result};

/// How long one try may take.
pub(crate) const TRY_TIMEOUT: Duration = Duration::from_secs(10);
/// How often a call is tried in all.
const TRIES_MAX: u32 = 3;
/// No try begins later than this after the first one.
const CALL_MAX: Duration = Duration::from_secs(20);
/// The longest that we wait because the other side asks for it.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(5);
/// How long we wait on our own account before the second try; doubled for each further one.
const PAUSE: Duration = Duration::from_millis(100);

/// Whether a call may be made twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Call {
    /// It changes nothing, or twice the same, so it may.
    Repeatable,
    /// Only when the first one surely did nothing.
    Once,
}

/// Makes a call, and makes it again where that is safe and may help.
pub(crate) async fn retry<T, F>(call: Call, mut make: impl FnMut() -> F) -> Result<T>
where
    F: Future<Output = Result<T>>,
{
    let (began, mut tries) = (Instant::now(), 1);
    loop {
        let error = match make().await {
            Ok(answer) => return Ok(answer),
            Err(error) => error,
        };
        let pause = pause(call, &error, tries).filter(|pause| began.elapsed() + *pause <= CALL_MAX);
        let Some(pause) = pause else { return Err(error) };
        sleep(pause).await;
        tries += 1;
    }
}

/// How long to wait before the next try, or nothing when this error is final.
fn pause(call: Call, error: &Error, tries: u32) -> Option<Duration> {
    if tries >= TRIES_MAX {
        return None;
    }
    match error {
        // Who was called too often has not done anything yet; who is away may have.
        Error::Refused { retry_after: Some(wait), kind: Kind::Exhausted, .. } => {
            (*wait <= RETRY_AFTER_MAX).then_some(*wait)
        }
        Error::Refused { retry_after: Some(wait), kind: Kind::Unavailable, .. } if call == Call::Repeatable => {
            (*wait <= RETRY_AFTER_MAX).then_some(*wait)
        }
        _ if call == Call::Repeatable && error.kind() == Kind::Unavailable => Some(PAUSE * 2_u32.pow(tries - 1)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(kind: Kind, retry_after: Option<u64>) -> Error {
        Error::Refused { kind, message: "no".into(), retry_after: retry_after.map(Duration::from_secs) }
    }

    #[tokio::test(start_paused = true)]
    async fn tries_that_take_long_are_fewer() {
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
    fn a_read_is_tried_again_while_the_other_side_is_away() {
        let away = refused(Kind::Unavailable, None);
        assert_eq!(pause(Call::Repeatable, &away, 1), Some(PAUSE));
        assert_eq!(pause(Call::Repeatable, &away, 2), Some(PAUSE * 2));
        assert_eq!(pause(Call::Repeatable, &away, 3), None);
    }

    #[test]
    fn a_change_is_tried_again_only_when_surely_nothing_was_done() {
        assert_eq!(pause(Call::Once, &refused(Kind::Unavailable, None), 1), None);
        assert_eq!(pause(Call::Once, &refused(Kind::Unavailable, Some(1)), 1), None);
        assert_eq!(pause(Call::Repeatable, &refused(Kind::Unavailable, Some(1)), 1), Some(Duration::from_secs(1)));
        assert_eq!(pause(Call::Once, &refused(Kind::Exhausted, Some(2)), 1), Some(Duration::from_secs(2)));
    }

    #[test]
    fn nobody_waits_for_an_hour_or_after_a_verdict() {
        assert_eq!(pause(Call::Repeatable, &refused(Kind::Exhausted, Some(3600)), 1), None);
        assert_eq!(pause(Call::Repeatable, &refused(Kind::Exhausted, None), 1), None);
        assert_eq!(pause(Call::Repeatable, &refused(Kind::Denied, Some(1)), 1), None);
    }
}
