//! Authentication while the account service answers.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use axum::http::StatusCode;
use futures::future::join_all;
use serde_json::json;
use server::auth::{AuthError, Purpose};
use types::{ApplicationRight, Credential, GatewayRight, Kind, Kinded, Secret};

use crate::auth::{
    fake_account::{Fixture, app_id},
    signer::{Signer, claims},
};

#[tokio::test]
async fn fetches_keys_once_and_again_after_a_minute() {
    let fixture = Fixture::new().await;
    for _ in 0..3 {
        fixture.with_token(fixture.account.good_token()).await.unwrap();
    }
    assert_eq!(fixture.account.asked(), (1, 0));
    fixture.clock.advance(Duration::from_secs(60));
    fixture.with_token(fixture.account.good_token()).await.unwrap();
    assert_eq!(fixture.account.asked(), (2, 0));
}

#[tokio::test]
async fn looks_for_an_unknown_key_at_most_every_ten_seconds() {
    let fixture = Fixture::new().await;
    fixture.with_token(fixture.account.good_token()).await.unwrap();
    let stranger = Signer::new("k2");
    let token = || Credential::Token(Secret::new(stranger.token(&claims(fixture.clock.secs()))));
    for _ in 0..3 {
        assert_eq!(fixture.with_token(token()).await.unwrap_err().kind(), Kind::Unauthenticated);
    }
    assert_eq!(fixture.account.asked(), (1, 0));
    fixture.clock.advance(Duration::from_secs(10));
    assert_eq!(fixture.with_token(token()).await.unwrap_err().kind(), Kind::Unauthenticated);
    assert_eq!(fixture.account.asked(), (2, 0));
}

#[tokio::test]
async fn trusts_new_keys_and_stops_trusting_removed_ones() {
    let fixture = Fixture::new().await;
    let old = fixture.account.good_token();
    fixture.with_token(old.clone()).await.unwrap();
    *fixture.account.signer.lock().unwrap() = Signer::new("k2");
    fixture.clock.advance(Duration::from_secs(10));
    fixture.with_token(old.clone()).await.unwrap();
    fixture.with_token(fixture.account.good_token()).await.unwrap();
    assert_eq!(fixture.with_token(old).await.unwrap_err().kind(), Kind::Unauthenticated);
}

#[tokio::test]
async fn uses_cached_keys_while_the_account_service_is_unavailable() {
    let fixture = Fixture::new().await;
    fixture.with_token(fixture.account.good_token()).await.unwrap();
    fixture.account.away.store(true, Ordering::SeqCst);
    fixture.clock.advance(Duration::from_secs(3_000));
    fixture.with_token(fixture.account.good_token()).await.unwrap();
    assert_eq!(fixture.with_key("account.good").await.unwrap_err().kind(), Kind::Unavailable);
}

#[tokio::test]
async fn without_cached_keys_fails_as_unavailable_and_retries_soon() {
    let fixture = Fixture::new().await;
    fixture.account.away.store(true, Ordering::SeqCst);
    for _ in 0..2 {
        let error = fixture.with_token(fixture.account.good_token()).await.unwrap_err();
        assert_eq!(error.kind(), Kind::Unavailable);
    }
    assert_eq!(fixture.account.asked(), (1, 0));
    fixture.account.away.store(false, Ordering::SeqCst);
    fixture.clock.advance(Duration::from_secs(1));
    fixture.with_token(fixture.account.good_token()).await.unwrap();
}

#[tokio::test]
async fn caches_an_exchange_for_a_few_seconds() {
    let fixture = Fixture::new().await;
    for _ in 0..3 {
        fixture.with_key("account.good").await.unwrap();
        assert!(matches!(fixture.with_key("account.bad").await, Err(AuthError::Key { .. })));
    }
    assert_eq!(fixture.account.asked(), (1, 2));
    fixture.clock.advance(Duration::from_secs(5));
    fixture.with_key("account.good").await.unwrap();
    assert!(matches!(fixture.with_key("account.bad").await, Err(AuthError::Key { .. })));
    assert_eq!(fixture.account.asked(), (1, 4));
}

// Conformance: An access key without issuer is one of the only account service that is trusted
#[tokio::test]
async fn a_key_without_issuer_is_one_of_the_only_account_service() {
    let fixture = Fixture::new().await;
    fixture.with_key("good").await.unwrap();
    let key = Credential::from_key("good").unwrap();
    fixture.authenticator.token_for(&app_id(), &key).await.unwrap();
    assert!(matches!(fixture.with_key("bad").await, Err(AuthError::Key { .. })));
    assert!(matches!(fixture.with_key("stranger.good").await, Err(AuthError::KeyIssuer)));
}

#[tokio::test]
async fn a_token_loses_rights_that_its_user_lost() {
    let fixture = Fixture::new().await;
    let mut with_devices = claims(fixture.clock.secs());
    with_devices["apps"]["my-app"] = json!(["settings", "messages:up:r"]);
    let token = fixture.account.sign(&with_devices);
    let may = async |right| {
        let claims = fixture.authenticator.authenticate_for(&app_id(), Some(token.clone()), Purpose::Read).await;
        claims.map(|claims| claims.allows(&app_id(), right))
    };
    use ApplicationRight::{Devices, MessagesUpRead, Settings};
    for (right, has) in [(Settings, true), (MessagesUpRead, false), (Devices, false)] {
        assert_eq!(may(right).await.unwrap(), has, "{right:?}: what both the token and the account service say");
    }
    assert_eq!(fixture.account.rights_asked.load(Ordering::SeqCst), 1);

    for (status, expected) in
        [(StatusCode::FORBIDDEN, Some(false)), (StatusCode::NOT_FOUND, Some(false)), (StatusCode::UNAUTHORIZED, None)]
    {
        *fixture.account.rights.lock().unwrap() = (status, json!({"code": status.as_u16(), "error": "no"}));
        fixture.clock.advance(Duration::from_secs(2));
        match may(Settings).await {
            Ok(has) => assert_eq!(Some(has), expected, "{status}"),
            Err(error) => assert!(expected.is_none() && matches!(error, AuthError::Revoked), "{status}: {error}"),
        }
    }
}

#[tokio::test]
async fn concurrent_callers_share_one_exchange() {
    let fixture = Fixture::new().await;
    let results = join_all((0..50).map(|_| fixture.with_key("account.good"))).await;
    assert!(results.into_iter().all(|result| result.is_ok()));
    assert_eq!(fixture.account.asked(), (1, 1));
}

#[tokio::test]
async fn does_not_cache_an_unavailable_account_service() {
    let fixture = Fixture::new().await;
    fixture.account.away.store(true, Ordering::SeqCst);
    assert_eq!(fixture.with_key("account.good").await.unwrap_err().kind(), Kind::Unavailable);
    fixture.account.away.store(false, Ordering::SeqCst);
    fixture.clock.advance(Duration::from_secs(2));
    fixture.with_key("account.good").await.unwrap();
}

#[tokio::test]
async fn a_token_loses_rights_to_a_gateway_that_its_user_lost() {
    let fixture = Fixture::new().await;
    let gateway_id = "my-gateway".parse().unwrap();
    let mut claims = claims(fixture.clock.secs());
    claims["gateways"] = json!({"my-gateway": ["gateway:settings", "gateway:delete"]});
    let token = fixture.account.sign(&claims);
    let rights = async || {
        let authenticator = &fixture.authenticator;
        let claims = authenticator.authenticate_for_gateway(&gateway_id, Some(token.clone()), Purpose::Change).await?;
        Ok::<_, AuthError>(claims.gateways[&gateway_id].clone())
    };
    fixture.account.set_rights(StatusCode::OK, json!(["gateway:delete"]));
    assert_eq!(rights().await.unwrap(), [GatewayRight::Delete]);
    fixture.account.set_rights(StatusCode::NOT_FOUND, json!({"code": 404, "error": "no"}));
    fixture.clock.advance(Duration::from_secs(2));
    assert_eq!(rights().await.unwrap(), []);
    fixture.account.set_rights(StatusCode::UNAUTHORIZED, json!({"code": 401, "error": "no"}));
    fixture.clock.advance(Duration::from_secs(2));
    assert!(matches!(rights().await, Err(AuthError::Revoked)));
}

#[tokio::test]
async fn does_not_ask_the_account_service_about_invalid_credentials() {
    let fixture = Fixture::new().await;
    let none = fixture.authenticator.authenticate(None, Purpose::Read).await.unwrap_err();
    assert!(matches!(none, AuthError::Missing));
    let key = Credential::Key("account.good".parse().unwrap());
    let error = fixture.authenticator.authenticate(Some(key), Purpose::Read).await.unwrap_err();
    assert!(matches!(error, AuthError::KeyWithoutApplication));
    assert!(matches!(fixture.with_key("elsewhere.good").await, Err(AuthError::KeyIssuer)));
    let mut foreign = claims(fixture.clock.secs());
    foreign["iss"] = json!("elsewhere");
    assert_eq!(fixture.with_token(fixture.account.sign(&foreign)).await.unwrap_err().kind(), Kind::Unauthenticated);
    assert_eq!(fixture.account.asked(), (0, 0));
}

#[tokio::test]
async fn errors_do_not_show_the_credential() {
    let fixture = Fixture::new().await;
    for key in ["account.hush", "elsewhere.hush"] {
        let error = fixture.with_key(key).await.unwrap_err();
        assert!(!format!("{error} {error:?}").contains("hush"));
    }
    let error = fixture.with_token(Credential::Token(Secret::new("hush"))).await.unwrap_err();
    assert!(!format!("{error} {error:?}").contains("hush"));
}

#[tokio::test]
async fn wrong_keys_of_one_application_leave_questions_to_others() {
    let fixture = Arc::new(Fixture::new().await);
    fixture.account.answer_further(0);
    let ask = |app_id: &str, key: String| {
        let (fixture, app_id) = (Arc::clone(&fixture), app_id.parse().unwrap());
        let key = Credential::from_key(&key).unwrap();
        tokio::spawn(async move { fixture.authenticator.authenticate_for(&app_id, Some(key), Purpose::Read).await })
    };
    let wrong: Vec<_> = (0..200).map(|number| ask("attacked", format!("account.wrong-{number}"))).collect();
    fixture.account.called(48).await;
    let other = ask("another", "account.good".to_owned());
    fixture.account.called(49).await;
    wrong.into_iter().chain([other]).for_each(|asking| asking.abort());
}
