//! Authentication with an account service in the same process, which is not asked over HTTP.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use async_trait::async_trait;
use serde_json::json;
use server::auth::{AuthSettings, Authenticator, LocalAccount, Purpose, TrustedAccount};
use testing::ManualClock;
use types::{AccessKey, AppId, ApplicationRight, Claims, Credential, GatewayId, GatewayRight, Kind, Kinded, Secret};

use crate::auth::{
    fake_account::{Fixture, app_id},
    signer::claims,
};

/// Answers about every credential the same.
#[derive(Default)]
struct Local {
    refusal: Mutex<Option<Kind>>,
}

impl Local {
    fn answer<T>(&self, answer: T) -> client::Result<T> {
        match *self.refusal.lock().unwrap() {
            Some(kind) => Err(client::Error::Refused { kind, message: "no".to_owned(), retry_after: None }),
            None => Ok(answer),
        }
    }
}

#[async_trait]
impl LocalAccount for Local {
    async fn application_rights(&self, _: &Secret, _: &AppId) -> client::Result<Vec<ApplicationRight>> {
        self.answer(vec![ApplicationRight::Settings])
    }

    async fn gateway_rights(&self, _: &Secret, _: &GatewayId) -> client::Result<Vec<GatewayRight>> {
        self.answer(vec![GatewayRight::Status])
    }

    async fn key_claims(&self, _: &AppId, _: &AccessKey) -> client::Result<Claims> {
        self.answer(serde_json::from_value(claims(1_000)).unwrap())
    }
}

/// An authenticator that fetches its keys from the fixture's account service, and asks the local one.
fn authenticator(fixture: &Fixture, local: &Arc<Local>) -> Authenticator {
    let local: Arc<dyn LocalAccount> = local.clone();
    let trusted = TrustedAccount { client: fixture.client.clone(), local: Some(local) };
    let (issuers, clock) =
        (BTreeMap::from([("account".to_owned(), trusted)]), Arc::<ManualClock>::clone(&fixture.clock));
    Authenticator::new(issuers, None, AuthSettings::default(), clock)
}

#[tokio::test]
async fn nothing_but_the_keys_is_asked_over_http() {
    let fixture = Fixture::new().await;
    let authenticator = authenticator(&fixture, &Arc::default());
    let key = Credential::from_key("account.good").unwrap();
    for credential in [fixture.account.good_token(), key] {
        let claims = authenticator.authenticate_for(&app_id(), Some(credential), Purpose::Change).await.unwrap();
        assert!(claims.allows(&app_id(), ApplicationRight::Settings));
    }
    let gateway_id = "my-gateway".parse().unwrap();
    let mut about_gateway = claims(fixture.clock.secs());
    about_gateway["gateways"] = json!({ "my-gateway": ["gateway:status"] });
    let token = Some(fixture.account.sign(&about_gateway));
    let claims = authenticator.authenticate_for_gateway(&gateway_id, token, Purpose::Read).await.unwrap();
    assert!(claims.gateways[&gateway_id].contains(&GatewayRight::Status));
    assert_eq!((fixture.account.asked(), fixture.account.rights_asked()), ((1, 0), 0));
}

#[tokio::test]
async fn what_it_cannot_say_goes_on_and_what_it_refuses_ends() {
    let fixture = Fixture::new().await;
    let local = Arc::<Local>::default();
    let authenticator = authenticator(&fixture, &local);
    let (token, key) = (fixture.account.good_token(), Credential::from_key("account.good").unwrap());
    let rights = async |credential: &Credential| {
        let asked = authenticator.authenticate_for(&app_id(), Some(credential.clone()), Purpose::Live).await;
        asked.map(|claims| claims.apps[&app_id()].len()).map_err(|error| error.kind())
    };
    let answer = |refusal| {
        *local.refusal.lock().unwrap() = refusal;
        fixture.clock.advance(Duration::from_secs(2));
    };
    assert_eq!((rights(&token).await, rights(&key).await), (Ok(1), Ok(1)));
    answer(Some(Kind::Unavailable));
    assert_eq!((rights(&token).await, rights(&key).await), (Ok(1), Ok(1)), "the store cannot be read");
    answer(Some(Kind::NotFound));
    assert_eq!(rights(&token).await, Ok(0), "the application was deleted");
    answer(Some(Kind::Unauthenticated));
    let refused = Err(Kind::Unauthenticated);
    assert_eq!((rights(&token).await, rights(&key).await), (refused, refused));
}
