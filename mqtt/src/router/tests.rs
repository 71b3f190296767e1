//! Locks of the router.

use std::{thread, time::Instant};

use futures::FutureExt;
use testing::{ManualClock, PATIENCE};

use super::*;
use crate::session::SessionOwner;

/// Every publication needs the applications.
#[test]
fn an_application_that_goes_does_not_keep_the_others_while_the_series_are_locked() {
    let router = Arc::new(Router::new(ManualClock::new()));
    let app_id: AppId = "app-one".parse().unwrap();
    let (expiry, session_owner) = (Duration::ZERO, SessionOwner::default());
    let request = SessionRequest { id: "one".into(), session_owner, clean: true, expiry, may_be_stored: false };
    let attached = router.attach(&app_id, request, Disconnect::default()).now_or_never().unwrap();
    let Ok(attachment) = attached else { panic!("it was refused") };
    let locked = router.series();
    let (other, other_id, started) = (Arc::clone(&router), app_id.clone(), Instant::now());
    let detaching = thread::spawn(move || other.detach(&other_id, &attachment));
    while router.applications.0.try_read().is_none_or(|applications| applications.contains_key(&app_id)) {
        assert!(started.elapsed() < PATIENCE, "the applications are locked");
        thread::yield_now();
    }
    drop(locked);
    detaching.join().unwrap();
}
