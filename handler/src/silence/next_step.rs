//! The next step for a device's alarm.

use types::{SilentAfter, Timestamp};

use crate::registry::{alarm::Alarm, device::Device};

/// The next step for a device's alarm.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum NextStep {
    /// Nothing.
    Keep,
    /// It is set in this way.
    Set(Alarm),
    /// The device never counts as silent.
    Delete,
    /// It is due, and the device was not heard as far as is known here.
    Due(SilentAfter),
}

/// Judges a device of an application with this time; `heard` is when this process last heard it.
pub(super) fn judge(
    device: &Device,
    alarm: Option<&Alarm>,
    after: SilentAfter,
    heard: Option<Timestamp>,
    now: Timestamp,
) -> NextStep {
    let Some(after) = after.of_device(&device.attributes) else {
        return alarm.map_or(NextStep::Keep, |_| NextStep::Delete);
    };
    // What was heard in the future says nothing: the clock was set back, or that of another handler is ahead.
    let recorded = Some(device.lorawan.last_seen).filter(|nanos| *nanos > 0).map(Timestamp::from_nanos);
    let last = heard.into_iter().chain(recorded).filter(|last| *last <= now).max();
    let Some(alarm) = alarm else {
        // A template sends nothing.
        let may_send = !device.is_template() || last.is_some();
        // Of the silence before, nobody wanted to be told, and nobody may have listened.
        return if may_send { NextStep::Set(Alarm::set(now, last, after)) } else { NextStep::Keep };
    };
    if alarm.since > now {
        return NextStep::Set(Alarm::set(now, last, after));
    }
    if let Some(last) = last.filter(|last| *last > alarm.since) {
        return NextStep::Set(Alarm::heard(last, after));
    }
    let due = alarm.since.plus(after.duration());
    match alarm.due {
        // It was reported, and is to be once more only by a longer time.
        None if due <= now => NextStep::Keep,
        Some(set) if set == due && due > now => NextStep::Keep,
        None => NextStep::Set(alarm.clone().due_at(due)),
        Some(_) if due > now => NextStep::Set(alarm.clone().due_at(due)),
        // The time became shorter.
        Some(set) if set > now => NextStep::Set(alarm.clone().due_at(now)),
        Some(_) => NextStep::Due(after),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;
    use types::SILENT_AFTER;

    use super::*;
    use crate::registry::device::Lorawan;

    fn at(secs: i64) -> Timestamp {
        Timestamp::from_millis(secs * 1000)
    }

    fn hour() -> SilentAfter {
        "1h".parse().unwrap()
    }

    /// A device with its own time, if it is not empty, that its record has last seen at this second.
    fn device(own: &str, last_seen: i64) -> Device {
        let attributes = Some((SILENT_AFTER.to_owned(), own.to_owned())).filter(|_| !own.is_empty());
        Device {
            app_id: "my-app".parse().unwrap(),
            dev_id: "dev-1".parse().unwrap(),
            description: String::new(),
            latitude: 0.0,
            longitude: 0.0,
            altitude: 0,
            attributes: attributes.into_iter().collect::<BTreeMap<_, _>>(),
            lorawan: Lorawan {
                dev_eui: "0102030405060708".parse().unwrap(),
                last_seen: at(last_seen).as_nanos(),
                ..Lorawan::default()
            },
        }
    }

    #[test]
    fn an_alarm_is_due_once_the_time_is_over_and_is_set_again_if_the_device_was_heard() {
        let alarm = Alarm::heard(at(1000), hour());
        let judge =
            |device: &Device, heard: Option<i64>, now: i64| judge(device, Some(&alarm), hour(), heard.map(at), at(now));
        assert_eq!(judge(&device("", 0), None, 4599), NextStep::Keep);
        assert_eq!(judge(&device("", 1000), Some(1000), 4600), NextStep::Due(hour()));
        let heard = NextStep::Set(Alarm::heard(at(2000), hour()));
        assert_eq!(
            [judge(&device("", 0), Some(2000), 4600), judge(&device("", 2000), None, 4600)],
            [heard.clone(), heard.clone()]
        );
        assert_eq!(judge(&device("", 9000), Some(9000), 4600), NextStep::Due(hour()), "it was heard in the future");
        assert_eq!(
            [judge(&device("", 9000), Some(2000), 4600), judge(&device("", 2000), Some(9000), 4600)],
            [heard.clone(), heard],
            "one time in the future hides no other"
        );
    }

    #[test]
    fn a_device_without_an_alarm_gets_one_unless_it_is_a_template() {
        let judge = |device: &Device, heard: Option<i64>| judge(device, None, hour(), heard.map(at), at(9000));
        assert_eq!(judge(&device("", 0), None), NextStep::Set(Alarm::set(at(9000), None, hour())));
        assert_eq!(judge(&device("", 70), None), NextStep::Set(Alarm::set(at(9000), Some(at(70)), hour())));
        assert_eq!(judge(&device("", 70), Some(8999)), NextStep::Set(Alarm::set(at(9000), Some(at(8999)), hour())));
        assert_eq!(judge(&device("off", 70), Some(8999)), NextStep::Keep);
        let mut template = device("", 0);
        template.lorawan.dev_eui = Default::default();
        assert_eq!(judge(&template, None), NextStep::Keep);
        assert_eq!(judge(&template, Some(9000)), NextStep::Set(Alarm::set(at(9000), Some(at(9000)), hour())));
    }

    #[test]
    fn another_time_counts_from_the_same_moment() {
        let alarm = Alarm::heard(at(1000), hour());
        let judge = |alarm: &Alarm, own: &str, now: i64| judge(&device(own, 0), Some(alarm), hour(), None, at(now));
        let two: SilentAfter = "2h".parse().unwrap();
        assert_eq!(judge(&alarm, "2h", 4600), NextStep::Set(Alarm::heard(at(1000), two)));
        assert_eq!(judge(&alarm, "30m", 2000), NextStep::Set(Alarm::heard(at(1000), "30m".parse().unwrap())));
        assert_eq!(judge(&alarm, "1m", 2000), NextStep::Set(alarm.clone().due_at(at(2000))));
        assert_eq!(judge(&alarm, "off", 2000), NextStep::Delete);
        let reported = alarm.clone().reported();
        assert_eq!(judge(&reported, "", 1_000_000), NextStep::Keep, "each silence is reported once");
        assert_eq!(judge(&reported, "2h", 8000), NextStep::Set(Alarm::heard(at(1000), two)));
    }

    proptest! {
        /// Whatever the clock does, nothing is due before its time, and doing what is said is enough.
        #[test]
        fn a_verdict_is_never_early_and_comes_to_rest(
            since in 0_i64..10_000, heard in prop::option::of(0_i64..20_000), now in 0_i64..20_000, reported: bool,
        ) {
            let set = Alarm::heard(at(since), hour());
            let mut alarm = if reported { set.reported() } else { set };
            for _ in 0..3 {
                match judge(&device("", 0), Some(&alarm), hour(), heard.map(at), at(now)) {
                    NextStep::Set(next) => {
                        prop_assert!(next.since <= at(now));
                        alarm = next;
                    }
                    NextStep::Due(_) => {
                        prop_assert!(alarm.since.plus(hour().duration()) <= at(now));
                        prop_assert!(heard.is_none_or(|heard| at(heard) <= alarm.since || heard > now));
                        return Ok(());
                    }
                    NextStep::Keep => return Ok(()),
                    NextStep::Delete => prop_assert!(false, "it has a time"),
                }
            }
            prop_assert!(false, "it is set again and again");
        }
    }
}
