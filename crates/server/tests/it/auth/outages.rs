//! Authentication while the account service cannot be asked: the rule, case by case.

use std::{sync::Arc, time::Duration};

use axum::http::StatusCode;
use serde_json::json;
use server::auth::{AuthError, AuthSettings, Purpose, Unconfirmed};
use testing::ManualClock;
use types::{Credential, Kind, Kinded, Secret};

use crate::auth::{
    fake_account::{Fixture, app_id},
    signer::{Signer, claims},
};

/// Time for which a response counts as fresh.
const FRESH: Duration = Duration::from_secs(2);
const GRACE_TIME: Duration = Duration::from_secs(600);

fn key() -> Credential {
    Credential::Key("account.good".parse().unwrap())
}

/// Returns the reason why each purpose is refused; `None` if it is allowed.
async fn refusals(fixture: &Fixture, credential: &Credential) -> [Option<Unconfirmed>; 3] {
    let mut refusals = [None; 3];
    for (refusal, purpose) in refusals.iter_mut().zip([Purpose::Read, Purpose::Live, Purpose::Change]) {
        match fixture.ask(credential, purpose).await {
            Ok(_) => {}
            Err(error @ AuthError::Unconfirmed { why, .. }) => {
                assert_eq!(error.kind(), Kind::Unavailable);
                *refusal = Some(why);
            }
            Err(error) => panic!("{error}"),
        }
    }
    refusals
}

#[tokio::test]
async fn what_was_confirmed_goes_on_for_the_grace_time() {
    let fixture = Fixture::new().await;
    for credential in [key(), fixture.account.good_token()] {
        fixture.account.set_away(false);
        fixture.ask(&credential, Purpose::Read).await.unwrap();
        fixture.account.set_away(true);
        assert_eq!(refusals(&fixture, &credential).await, [None; 3], "confirmed just now");
        fixture.clock.advance(FRESH);
        assert_eq!(refusals(&fixture, &credential).await, [None, None, Some(Unconfirmed::Change)]);
        fixture.clock.advance(GRACE_TIME - FRESH - Duration::from_secs(1));
        assert_eq!(refusals(&fixture, &credential).await, [None, None, Some(Unconfirmed::Change)]);
        fixture.clock.advance(Duration::from_secs(1));
        let over = [Some(Unconfirmed::TooLongAgo), None, Some(Unconfirmed::Change)];
        assert_eq!(refusals(&fixture, &credential).await, over);
        fixture.account.set_away(false);
        fixture.clock.advance(FRESH);
        assert_eq!(refusals(&fixture, &credential).await, [None; 3], "it answers again");
    }
}

#[tokio::test]
async fn without_a_grace_time_only_live_traffic_goes_on() {
    let clock = ManualClock::new();
    let settings = AuthSettings { grace_time_s: 0 };
    let fixture = Fixture::with(settings, Arc::clone(&clock), clock, None).await;
    fixture.ask(&key(), Purpose::Read).await.unwrap();
    fixture.account.set_away(true);
    fixture.clock.advance(FRESH);
    let strict = [Some(Unconfirmed::TooLongAgo), None, Some(Unconfirmed::Change)];
    assert_eq!(refusals(&fixture, &key()).await, strict);
}

#[tokio::test]
async fn what_was_never_confirmed_is_unavailable() {
    let fixture = Fixture::new().await;
    // Its keys are known, so that the token itself verifies.
    fixture.with_token(fixture.account.good_token()).await.unwrap();
    fixture.account.set_away(true);
    for credential in [key(), fixture.account.good_token()] {
        assert_eq!(refusals(&fixture, &credential).await, [Some(Unconfirmed::Never); 3]);
    }
    fixture.clock.advance(FRESH);
    let error = fixture.ask(&key(), Purpose::Read).await.unwrap_err().to_string();
    assert!(error.contains("never confirmed") && error.contains("cannot be reached: try again later"), "{error}");
}

#[tokio::test]
async fn a_refusal_is_remembered_until_the_account_service_says_otherwise() {
    let fixture = Fixture::new().await;
    let token = fixture.account.good_token();
    // A disabled user, a removed collaborator, and one who is left without rights.
    for (status, body) in [
        (StatusCode::UNAUTHORIZED, json!({"code": 401, "error": "no"})),
        (StatusCode::NOT_FOUND, json!({"code": 404, "error": "no"})),
        (StatusCode::OK, json!([])),
    ] {
        fixture.account.set_rights(StatusCode::OK, json!(["settings"]));
        fixture.ask(&token, Purpose::Read).await.unwrap();
        fixture.account.set_rights(status, body);
        fixture.clock.advance(FRESH);
        _ = fixture.ask(&token, Purpose::Read).await;
        fixture.account.set_away(true);
        for _ in 0..2 {
            fixture.clock.advance(FRESH);
            assert_eq!(refusals(&fixture, &token).await, [Some(Unconfirmed::Refused); 3], "{status}");
        }
        fixture.account.set_away(false);
        fixture.clock.advance(FRESH);
    }
    fixture.account.set_rights(StatusCode::OK, json!(["settings"]));
    assert_eq!(refusals(&fixture, &token).await, [None; 3]);
}

#[tokio::test]
async fn every_way_of_not_answering_is_the_same() {
    for status in [503, 502, 500, 429, 400, 504] {
        let fixture = Fixture::new().await;
        let token = fixture.account.good_token();
        fixture.ask(&token, Purpose::Read).await.unwrap();
        fixture.account.set_rights(StatusCode::from_u16(status).unwrap(), json!({"code": status, "error": "not now"}));
        fixture.clock.advance(FRESH);
        assert_eq!(refusals(&fixture, &token).await, [None, None, Some(Unconfirmed::Change)], "{status}");
    }
}

#[tokio::test]
async fn what_a_proxy_answers_is_not_the_word_of_the_account_service() {
    for status in [400, 401, 403, 404, 410] {
        for text in ["404 page not found", "<html>", r#"{"error": "no route"}"#, r#"{"code": 5, "error": "no route"}"#]
        {
            let fixture = Fixture::new().await;
            for credential in [key(), fixture.account.good_token()] {
                fixture.account.set_proxy(None);
                fixture.clock.advance(FRESH);
                fixture.ask(&credential, Purpose::Read).await.unwrap();
                fixture.account.set_proxy(Some((StatusCode::from_u16(status).unwrap(), text)));
                fixture.clock.advance(FRESH);
                let refusals = refusals(&fixture, &credential).await;
                assert_eq!(refusals, [None, None, Some(Unconfirmed::Change)], "{status} {text}");
            }
        }
    }
}

#[tokio::test]
async fn a_refusal_that_comes_late_counts() {
    let fixture = Fixture::new().await;
    let token = fixture.account.good_token();
    fixture.ask(&token, Purpose::Live).await.unwrap();
    fixture.account.set_rights(StatusCode::NOT_FOUND, json!({"code": 404, "error": "no"}));
    fixture.account.answer_further(0);
    fixture.clock.advance(FRESH);
    fixture.ask(&token, Purpose::Live).await.expect("it goes on while there is no answer");
    // No call waits any more when the answer comes, and no other question is ever answered.
    fixture.account.answer_one();
    let mut tick = tokio::time::interval(Duration::from_millis(10));
    let refused = async {
        while fixture.ask(&token, Purpose::Live).await.is_ok_and(|claims| !claims.apps[&app_id()].is_empty()) {
            tick.tick().await;
        }
    };
    testing::soon("the refusal", refused).await;
    fixture.clock.advance(FRESH);
    fixture.account.set_away(true);
    assert_eq!(refusals(&fixture, &token).await, [Some(Unconfirmed::Refused); 3]);
}

#[tokio::test]
async fn while_it_is_silent_one_call_in_each_pause_waits_for_it() {
    let fixture = Fixture::new().await;
    fixture.account.set_away(true);
    let ask = async |number| fixture.with_key(&format!("account.{number}")).await.unwrap_err().kind();
    assert_eq!(ask(0).await, Kind::Unavailable);
    let (_, asked) = fixture.account.asked();
    for number in 1..50 {
        assert_eq!(ask(number).await, Kind::Unavailable);
    }
    assert_eq!(fixture.account.asked().1, asked, "none of them was asked about");
    fixture.clock.advance(FRESH);
    for number in 1..50 {
        assert_eq!(ask(number).await, Kind::Unavailable);
    }
    assert_eq!(fixture.account.asked().1, asked + 1);
}

#[tokio::test]
async fn garbage_does_not_keep_others_from_asking_whether_it_answers_again() {
    let fixture = Fixture::new().await;
    fixture.with_token(fixture.account.good_token()).await.unwrap();
    fixture.account.set_away(true);
    _ = fixture.ask(&key(), Purpose::Read).await;
    fixture.account.set_away(false);
    fixture.clock.advance(FRESH);
    let stranger = Credential::Token(Secret::new(Signer::new("k1").token(&claims(fixture.clock.secs()))));
    assert_eq!(fixture.ask(&stranger, Purpose::Read).await.unwrap_err().kind(), Kind::Unauthenticated);
    fixture.ask(&key(), Purpose::Read).await.unwrap();
}

#[tokio::test]
async fn live_traffic_goes_on_with_what_was_confirmed_within_a_day_before_the_outage() {
    let day = Duration::from_secs(24 * 3600);
    let fixture = Fixture::new().await;
    fixture.ask(&key(), Purpose::Live).await.unwrap();
    fixture.account.set_away(true);
    fixture.clock.advance(FRESH);
    fixture.ask(&key(), Purpose::Live).await.unwrap();
    fixture.clock.advance(day * 30);
    fixture.ask(&key(), Purpose::Live).await.expect("the outage may last");

    fixture.account.set_away(false);
    fixture.clock.advance(FRESH);
    fixture.ask(&key(), Purpose::Live).await.unwrap();
    fixture.clock.advance(day);
    fixture.account.set_away(true);
    assert_eq!(refusals(&fixture, &key()).await[1], Some(Unconfirmed::LongUnused));
}

#[tokio::test]
async fn a_token_ends_with_its_time_or_its_key_although_it_was_confirmed() {
    let fixture = Fixture::new().await;
    let (token, later) = (fixture.account.good_token(), fixture.clock.secs() + 7200);
    fixture.ask(&token, Purpose::Read).await.unwrap();
    // Another call learns that the key was withdrawn, just before the outage.
    *fixture.account.signer.lock().unwrap() = Signer::new("k2");
    fixture.clock.advance(Duration::from_secs(60));
    fixture.with_token(fixture.account.good_token()).await.unwrap();
    fixture.account.set_away(true);
    for purpose in [Purpose::Read, Purpose::Live] {
        let error = fixture.ask(&token, purpose).await.unwrap_err();
        assert_eq!(error.kind(), Kind::Unauthenticated, "{error}");
    }

    fixture.account.set_away(false);
    fixture.clock.advance(FRESH);
    let token = fixture.account.good_token();
    fixture.ask(&token, Purpose::Live).await.unwrap();
    fixture.account.set_away(true);
    fixture.clock.advance(Duration::from_secs(later - fixture.clock.secs()));
    assert_eq!(fixture.ask(&token, Purpose::Live).await.unwrap_err().kind(), Kind::Unauthenticated, "it has expired");
}

#[tokio::test]
async fn tokens_without_an_application_go_by_the_age_of_the_keys() {
    let fixture = Fixture::new().await;
    let mut claims = claims(fixture.clock.secs());
    claims["exp"] = json!(fixture.clock.secs() + 86_400);
    let token = fixture.account.sign(&claims);
    let allowed = async |purpose| fixture.authenticator.authenticate(Some(token.clone()), purpose).await.is_ok();
    assert!(allowed(Purpose::Change).await);
    fixture.account.set_away(true);
    fixture.clock.advance(FRESH);
    assert!(allowed(Purpose::Read).await && allowed(Purpose::Live).await && !allowed(Purpose::Change).await);
    fixture.clock.advance(Duration::from_secs(60) - FRESH);
    assert!(allowed(Purpose::Read).await && allowed(Purpose::Live).await && !allowed(Purpose::Change).await);
    fixture.clock.advance(GRACE_TIME);
    assert!(!allowed(Purpose::Read).await && allowed(Purpose::Live).await && !allowed(Purpose::Change).await);
}

#[tokio::test]
async fn asks_rarely_while_there_is_no_response() {
    let fixture = Fixture::new().await;
    let token = fixture.account.good_token();
    fixture.ask(&token, Purpose::Read).await.unwrap();
    fixture.account.set_away(true);
    fixture.clock.advance(FRESH);
    fixture.ask(&token, Purpose::Live).await.unwrap();
    let asked = fixture.account.rights_asked();
    for _ in 0..10 {
        fixture.ask(&token, Purpose::Live).await.unwrap();
    }
    assert_eq!(fixture.account.rights_asked(), asked);
}

#[tokio::test]
async fn a_clock_that_is_behind_locks_nobody_out() {
    let (behind, right) = (ManualClock::new(), ManualClock::new());
    behind.set_back(Duration::from_secs(300));
    let fixture = Fixture::with(AuthSettings::default(), Arc::clone(&behind), right, None).await;
    fixture.ask(&key(), Purpose::Change).await.unwrap();
    fixture.ask(&fixture.account.good_token(), Purpose::Change).await.unwrap();
}

#[tokio::test]
async fn a_clock_that_is_set_back_neither_ends_nor_extends_the_grace_time() {
    let fixture = Fixture::new().await;
    fixture.ask(&key(), Purpose::Read).await.unwrap();
    fixture.account.set_away(true);
    fixture.clock.set_back(Duration::from_secs(3600));
    fixture.ask(&key(), Purpose::Read).await.unwrap();
    fixture.clock.advance(GRACE_TIME);
    assert_eq!(fixture.ask(&key(), Purpose::Read).await.unwrap_err().kind(), Kind::Unavailable);
}
