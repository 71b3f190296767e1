//! Decides what a credential may do, by the account service's current or last response about it.
//!
//! `docs/operating.md` shows the same table to operators.

use std::time::Duration;

/// Time before an outage within which a credential must have been confirmed for live traffic to go on with it.
const CONFIRMED_BEFORE_MAX: Duration = Duration::from_secs(24 * 3600);

/// Purposes of calls, as far as they matter in an outage of the account service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Reads, dry runs, MQTT connections with what is published on them.
    Read,
    /// Passes on live traffic: uplinks, and joins of registered devices.
    Live,
    /// Changes functions, keys, devices, their queues of downlinks, or who serves what.
    Change,
}

/// The account service's response now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Now {
    Confirmed,
    Refused,
    /// It cannot be asked, for this long.
    Silent(Duration),
}

/// The account service's last response before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Before {
    /// It confirmed the credential this long ago.
    Confirmed(Duration),
    Refused,
    Never,
}

/// The decision about a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Decision {
    Allowed,
    Refused,
    Unavailable(Unconfirmed),
}

/// Reasons why a credential does not count while the account service cannot be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unconfirmed {
    /// It was never confirmed here.
    #[error("this credential was never confirmed here, and cannot be checked now")]
    Never,
    /// It was refused.
    #[error("this credential was refused when it was last checked, and cannot be checked now")]
    Refused,
    /// It was confirmed longer ago than the grace time.
    #[error("this credential was last confirmed longer ago than `auth.grace_time_s` allows, and cannot be checked now")]
    TooLongAgo,
    /// It was confirmed long before the outage began.
    #[error(
        "this credential was last confirmed more than a day before the account service stopped answering, and cannot be \
         checked now"
    )]
    LongUnused,
    /// It was confirmed, but not just now.
    #[error("changes need a credential that was just confirmed, and this one cannot be checked now")]
    Change,
}

/// The table. What the account service says now always counts; what it said before counts only while it is silent.
pub(super) fn decision(now: Now, before: Before, purpose: Purpose, grace_time: Duration) -> Decision {
    use Decision::{Allowed, Unavailable};
    let silent_for = match now {
        Now::Confirmed => return Allowed,
        Now::Refused => return Decision::Refused,
        Now::Silent(silent_for) => silent_for,
    };
    match (before, purpose) {
        (Before::Never, _) => Unavailable(Unconfirmed::Never),
        (Before::Refused, _) => Unavailable(Unconfirmed::Refused),
        (Before::Confirmed(age), Purpose::Live) if age < silent_for + CONFIRMED_BEFORE_MAX => Allowed,
        (Before::Confirmed(_), Purpose::Live) => Unavailable(Unconfirmed::LongUnused),
        (Before::Confirmed(age), Purpose::Read) if age < grace_time => Allowed,
        (Before::Confirmed(_), Purpose::Read) => Unavailable(Unconfirmed::TooLongAgo),
        (Before::Confirmed(_), Purpose::Change) => Unavailable(Unconfirmed::Change),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_holds_for_every_case() {
        use Decision::{Allowed, Refused, Unavailable};
        use Purpose::{Change, Live, Read};
        let grace_time = Duration::from_secs(600);
        let (recent, old) = (Duration::from_secs(599), Duration::from_secs(600));
        let silent = Now::Silent(Duration::from_secs(600));
        let unavailable = |reason| [Unavailable(reason); 3];
        let table = [
            (Now::Confirmed, Before::Never, [Allowed; 3]),
            (Now::Confirmed, Before::Refused, [Allowed; 3]),
            (Now::Confirmed, Before::Confirmed(old), [Allowed; 3]),
            (Now::Refused, Before::Never, [Refused; 3]),
            (Now::Refused, Before::Refused, [Refused; 3]),
            (Now::Refused, Before::Confirmed(recent), [Refused; 3]),
            (silent, Before::Never, unavailable(Unconfirmed::Never)),
            (silent, Before::Refused, unavailable(Unconfirmed::Refused)),
            (silent, Before::Confirmed(recent), [Allowed, Allowed, Unavailable(Unconfirmed::Change)]),
            (
                silent,
                Before::Confirmed(old),
                [Unavailable(Unconfirmed::TooLongAgo), Allowed, Unavailable(Unconfirmed::Change)],
            ),
        ];
        for (now, before, expected) in table {
            let decisions = [Read, Live, Change].map(|purpose| decision(now, before, purpose, grace_time));
            assert_eq!(decisions, expected, "{now:?}, {before:?}");
        }
    }

    #[test]
    fn without_a_grace_time_only_live_traffic_goes_on() {
        let before = Before::Confirmed(Duration::ZERO);
        let decision = |purpose| decision(Now::Silent(Duration::ZERO), before, purpose, Duration::ZERO);
        assert_eq!(decision(Purpose::Read), Decision::Unavailable(Unconfirmed::TooLongAgo));
        assert_eq!(decision(Purpose::Live), Decision::Allowed);
        assert_eq!(decision(Purpose::Change), Decision::Unavailable(Unconfirmed::Change));
    }

    #[test]
    fn live_traffic_goes_on_however_long_the_outage_is_if_it_was_confirmed_within_a_day_before() {
        let (hour, day) = (Duration::from_secs(3600), Duration::from_secs(24 * 3600));
        let decision = |silent_for, age| decision(Now::Silent(silent_for), Before::Confirmed(age), Purpose::Live, hour);
        assert_eq!(decision(day * 30, day * 30), Decision::Allowed);
        assert_eq!(decision(day * 30, day * 31 - hour), Decision::Allowed);
        assert_eq!(decision(day * 30, day * 31), Decision::Unavailable(Unconfirmed::LongUnused));
        assert_eq!(decision(Duration::ZERO, day), Decision::Unavailable(Unconfirmed::LongUnused));
    }
}
