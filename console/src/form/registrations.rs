//! Forms that have registered devices, or may have without an answer. Sent again when a device was deleted, they must
//! not bring it back.
//!
//! They are in memory, as drafts are: it is for the reload of a page, which comes soon, and to the same console.

use std::{collections::VecDeque, time::Duration};

use parking_lot::Mutex;
use types::{Timestamp, UserId};

/// Time for which a form is known. Later, it would not make up the same keys.
const LIFETIME: Duration = Duration::from_secs(24 * 3600);
/// Maximum number of forms of all users, and of one; the oldest go first.
const FORMS_MAX: usize = 10_000;
const PER_USER_MAX: usize = 200;

/// The forms of all users.
#[derive(Debug, Default)]
pub(crate) struct Registrations {
    /// By the time at which they were noted.
    done: Mutex<VecDeque<Registration>>,
}

#[derive(Debug)]
struct Registration {
    user_id: UserId,
    form: String,
    expires: Timestamp,
}

impl Registrations {
    /// Notes a form of this user that has registered a device, or may have.
    pub(crate) fn note(&self, user_id: &UserId, form: &str, now: Timestamp) {
        keep(&mut self.done.lock(), user_id, form, now);
    }

    /// Notes a form that is about to change something; false if it was noted before.
    pub(crate) fn begin(&self, user_id: &UserId, form: &str, now: Timestamp) -> bool {
        let mut done = self.done.lock();
        let is_known = is_known(&done, form, now);
        keep(&mut done, user_id, form, now);
        !is_known
    }

    /// Returns true if a form has registered a device, or may have.
    pub(crate) fn contain(&self, form: &str, now: Timestamp) -> bool {
        is_known(&self.done.lock(), form, now)
    }
}

fn keep(done: &mut VecDeque<Registration>, user_id: &UserId, form: &str, now: Timestamp) {
    done.retain(|registration| registration.expires > now && registration.form != form);
    while done.iter().filter(|registration| registration.user_id == *user_id).count() >= PER_USER_MAX {
        let Some(oldest) = done.iter().position(|registration| registration.user_id == *user_id) else { break };
        done.remove(oldest);
    }
    while done.len() >= FORMS_MAX {
        done.pop_front();
    }
    let (user_id, form) = (user_id.clone(), form.to_owned());
    done.push_back(Registration { user_id, form, expires: now.plus(LIFETIME) });
}

fn is_known(done: &VecDeque<Registration>, form: &str, now: Timestamp) -> bool {
    done.iter().any(|registration| registration.form == form && registration.expires > now)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(number: u8) -> UserId {
        UserId::from_bytes([number; 12])
    }

    #[test]
    fn a_form_is_known_for_as_long_as_it_makes_up_the_same_keys() {
        let (forms, now) = (Registrations::default(), Timestamp::from_millis(1_000_000));
        forms.note(&user(1), "a", now);
        assert!(forms.contain("a", now) && !forms.contain("b", now));
        assert!(!forms.contain("a", now.plus(LIFETIME)));
        assert_eq!(["b", "b", "a"].map(|form| forms.begin(&user(1), form, now)), [true, false, false]);
        assert!(forms.begin(&user(1), "b", now.plus(LIFETIME)));
    }

    #[test]
    fn only_so_many_forms_are_known() {
        let (forms, now) = (Registrations::default(), Timestamp::from_millis(1_000_000));
        for number in 0..=FORMS_MAX {
            let user = user(u8::try_from(number / PER_USER_MAX).unwrap());
            forms.note(&user, &number.to_string(), now);
        }
        assert!(!forms.contain("0", now) && forms.contain("1", now), "the oldest one goes");
        forms.note(&user(0), "5", now);
        assert!(forms.contain("1", now), "a form that is sent again is the same one");
    }

    #[test]
    fn nobody_makes_the_forms_of_others_unknown() {
        let (forms, now) = (Registrations::default(), Timestamp::from_millis(1_000_000));
        forms.note(&user(1), "theirs", now);
        for number in 0..=FORMS_MAX {
            forms.note(&user(2), &number.to_string(), now);
        }
        assert!(forms.contain("theirs", now));
        let newest = [0, 1].map(|more| (FORMS_MAX - PER_USER_MAX + more).to_string());
        assert_eq!(newest.map(|form| forms.contain(&form, now)), [false, true], "the oldest of one's own go");
    }
}
