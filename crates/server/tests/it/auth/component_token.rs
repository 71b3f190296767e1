//! The component's own token: renewed in time, and at once when it is refused.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use async_trait::async_trait;
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use serde_json::json;
use server::auth::{AuthError, AuthSettings, ComponentToken, Purpose, RenewError, TokenSource};
use testing::ManualClock;
use types::{Clock, Credential, Kind, Kinded, Secret};

use crate::auth::{
    fake_account::Fixture,
    signer::{Signer, claims},
};

/// A source with one token to give, or none; counts what is asked of it.
#[derive(Clone, Default)]
struct Source {
    next: Arc<Mutex<Option<String>>>,
    asked: Arc<Mutex<usize>>,
}

#[async_trait]
impl TokenSource for Source {
    async fn renew(&self, _: Option<&Secret>) -> Result<Secret, RenewError> {
        *self.asked.lock().unwrap() += 1;
        let next = self.next.lock().unwrap().clone();
        next.map(Secret::new).ok_or_else(|| RenewError("copy the file again".to_owned()))
    }

    /// Only an exchange shows it.
    async fn accepts(&self, _: &Secret) -> Option<bool> {
        None
    }
}

impl Source {
    fn asked(&self) -> usize {
        *self.asked.lock().unwrap()
    }

    fn gives(&self, token: &str) {
        *self.next.lock().unwrap() = Some(token.to_owned());
    }
}

struct Component {
    fixture: Fixture,
    token: Arc<ComponentToken>,
    source: Source,
}

impl Component {
    /// A component whose token is `first`; the account service accepts `accepted`.
    async fn start(first: &str, accepted: &str) -> Self {
        let (clock, source) = (ManualClock::new(), Source::default());
        let token = ComponentToken::new(Some(Secret::new(first)), source.clone(), clock.clone());
        let token = Arc::new(token);
        let fixture = Fixture::with(AuthSettings::default(), clock.clone(), clock, Some(&token)).await;
        *fixture.account.component.lock().unwrap() = Some(accepted.to_owned());
        Self { fixture, token, source }
    }

    async fn kind(&self, key: &str) -> Option<Kind> {
        self.fixture.with_key(key).await.err().map(|error| error.kind())
    }
}

#[tokio::test]
async fn a_refused_token_is_renewed_at_once() {
    let component = Component::start("old", "new").await;
    component.source.gives("new");
    assert_eq!(component.kind("account.good").await, None);
    assert_eq!(component.kind("account.bad").await, Some(Kind::Unauthenticated), "this key is wrong");
    assert_eq!(component.token.check(), Ok(()));
    assert_eq!(component.source.asked(), 1);
}

#[tokio::test]
async fn not_being_accepted_is_not_the_fault_of_the_key() {
    let component = Component::start("old", "new").await;
    let error = component.fixture.with_key("account.good").await.unwrap_err();
    assert_eq!(error.kind(), Kind::Unavailable);
    assert!(error.to_string().contains("this component is not accepted by account service `account`"), "{error}");
    let failing = component.token.check().unwrap_err();
    assert!(failing.contains("does not accept this component's token: copy the file again"), "{failing}");

    // It is tried again after a pause that grows, and only then.
    for (pause_s, asked) in [(0, 1), (1, 2), (1, 2), (1, 3), (3, 3), (1, 4)] {
        component.fixture.clock.advance(Duration::from_secs(pause_s));
        assert_eq!(component.kind("account.good").await, Some(Kind::Unavailable));
        assert_eq!(component.source.asked(), asked);
    }
    component.source.gives("new");
    component.fixture.clock.advance(Duration::from_secs(60));
    assert_eq!(component.kind("account.good").await, None);
    assert_eq!(component.token.check(), Ok(()));
}

#[tokio::test]
async fn a_new_token_counts_as_accepted_only_when_the_account_service_says_so() {
    let component = Component::start("old", "other").await;
    component.source.gives("also refused");
    component.token.replace_refused(&Secret::new("old")).await.unwrap();
    assert!(component.token.check().is_err(), "nobody has accepted it");
    assert_eq!(component.kind("account.good").await, Some(Kind::Unavailable));
    assert!(component.token.check().is_err());
}

#[tokio::test]
async fn silence_does_not_make_a_refused_token_accepted() {
    let component = Component::start("old", "new").await;
    assert_eq!(component.kind("account.good").await, Some(Kind::Unavailable));
    component.fixture.account.set_away(true);
    component.fixture.clock.advance(Duration::from_secs(2));
    assert_eq!(component.kind("account.good").await, Some(Kind::Unavailable));
    assert!(component.token.check().is_err());
}

#[tokio::test]
async fn without_a_token_it_shows_that_the_client_credentials_are_refused() {
    let clock = ManualClock::new();
    let token = Arc::new(ComponentToken::new(None, Source::default(), clock.clone()));
    let fixture = Fixture::with(AuthSettings::default(), clock.clone(), clock, Some(&token)).await;
    *fixture.account.component.lock().unwrap() = Some("somebody else".to_owned());
    assert_eq!(fixture.with_key("account.good").await.unwrap_err().kind(), Kind::Unavailable);
    assert!(token.check().unwrap_err().contains("client.auth_server"), "{:?}", token.check());
    *fixture.account.component.lock().unwrap() = None;
    fixture.with_key("account.good").await.unwrap();
    assert_eq!(token.check(), Ok(()));
}

#[tokio::test]
async fn another_service_does_not_decide_whether_a_token_is_accepted() {
    let component = Component::start("old", "old").await;
    component.source.gives("new");
    assert_eq!(component.token.replace_if_refused(&Secret::new("old")).await, None);
    assert_eq!((component.token.check(), component.source.asked()), (Ok(()), 0));
}

#[tokio::test]
async fn confirmed_keys_go_on_while_the_component_is_not_accepted() {
    let component = Component::start("first", "first").await;
    assert_eq!(component.kind("account.good").await, None);
    *component.fixture.account.component.lock().unwrap() = Some("second".to_owned());
    component.fixture.clock.advance(Duration::from_secs(2));
    assert_eq!(component.kind("account.good").await, None);
    assert!(component.token.check().is_err());
    assert_eq!(component.kind("account.never-asked").await, Some(Kind::Unavailable));
    let key = Credential::Key("account.good".parse().unwrap());
    let error = component.fixture.ask(&key, Purpose::Change).await.unwrap_err();
    assert!(matches!(error, AuthError::Unconfirmed { .. }), "{error}");
}

#[tokio::test]
async fn concurrent_calls_share_one_renewal() {
    let component = Component::start("old", "new").await;
    component.source.gives("new");
    let keys = (0..20).map(|number| format!("account.bad-{number}")).collect::<Vec<_>>();
    let kinds = futures::future::join_all(keys.iter().map(|key| component.kind(key))).await;
    assert_eq!(kinds, vec![Some(Kind::Unauthenticated); 20]);
    assert_eq!(component.source.asked(), 1);
}

/// A token with these times, as far as its owner reads it.
fn token_until(clock: &ManualClock, days: u64) -> String {
    let now = clock.now().as_secs();
    let claims = serde_json::json!({"iss": "account", "iat": now - 60, "exp": now + days * 86_400});
    format!("e30.{}.c2ln", URL_SAFE_NO_PAD.encode(claims.to_string()))
}

#[tokio::test]
async fn a_token_is_renewed_long_before_it_ends() {
    let clock = ManualClock::new();
    let first = token_until(&clock, 93);
    let component = Component::start(&first, "any").await;
    component.source.gives("second");
    component.fixture.authenticator.keep_component_accepted().await;
    assert_eq!(component.token.current(), Some(Secret::new(first.as_str())));
    component.fixture.clock.set_back(Duration::from_secs(300));
    component.fixture.authenticator.keep_component_accepted().await;
    assert_eq!(component.token.current(), Some(Secret::new(first)), "a clock that was set back changes nothing");
    component.fixture.clock.advance(Duration::from_secs(32 * 86_400));
    component.fixture.authenticator.keep_component_accepted().await;
    assert_eq!(component.token.current(), Some(Secret::new("second")));
}

#[tokio::test]
async fn a_token_whose_key_was_withdrawn_is_renewed_without_any_call() {
    let component = Component::start("none yet", "any").await;
    let now = component.fixture.clock.secs();
    let signed = |signer: &Signer| signer.token(&claims(now));
    let first = signed(&component.fixture.account.signer.lock().unwrap());
    component.source.gives(&first);
    component.token.replace_refused(&Secret::new("none yet")).await.unwrap();
    component.fixture.authenticator.keep_component_accepted().await;
    assert_eq!(component.token.current(), Some(Secret::new(first)));

    let signer = Signer::new("k2");
    let second = signed(&signer);
    *component.fixture.account.signer.lock().unwrap() = signer;
    component.source.gives(&second);
    component.fixture.clock.advance(Duration::from_secs(60));
    component.fixture.authenticator.keep_component_accepted().await;
    assert_eq!(component.token.current(), Some(Secret::new(second)));
}

#[tokio::test]
async fn every_question_says_which_component_asks_but_only_to_the_issuer_of_its_token() {
    for (issuer, is_sent) in [("account", true), ("elsewhere", false)] {
        let claims_of =
            |kind: &str| json!({"iss": issuer, "sub": "handler-1", "type": kind, "iat": 0, "exp": u32::MAX});
        let own = Signer::new("k1").token(&claims_of("handler"));
        let component = Component::start(&own, &own).await;
        let fixture = &component.fixture;
        fixture.ask(&fixture.account.good_token(), Purpose::Read).await.unwrap();
        assert_eq!(component.kind("account.good").await, None);
        let sent = fixture.account.callers.lock().unwrap().clone();
        assert_eq!(sent, [is_sent.then_some(own)].into());
    }
}
