//! The clock is moved by minutes, hours and days, at the handler alone or for all services.

use std::{sync::Arc, time::Duration};

use client::{account::AccountClient, data::DataClient};
use server::system::SystemClock;
use testing::ManualClock;
use types::{Clock, Credential};

use super::{Caller, account::Services, component_token::log_in_again, soon};
use crate::harness::{Network, next};

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3600);
const DAY: Duration = Duration::from_secs(24 * 3600);

/// Checks that everything works: a key that was seen before and one that was not, live uplinks, changes and MQTT.
async fn works(services: &Services, clock: &ManualClock, what: &str) {
    let key = services.new_key(what, &services.owner.token).await;
    // Rate limits count as used up after the clock was set back, and fill again.
    let read = async |credential: &Credential| {
        let status = services.read(credential).await;
        clock.advance(MINUTE);
        status
    };
    soon(200, async || read(&key).await).await;
    let known = Credential::Key(services.owner.key.clone());
    // It may read messages only, which the handler learns from the account service.
    soon(403, async || read(&known).await).await;
    // The user's tokens are from the future now, and the account service vouches for them.
    soon(200, async || read(&services.owner.token).await).await;
    let connect = async || {
        clock.advance(MINUTE);
        DataClient::connect(&services.network.mqtt(), &services.owner.app_id, &known).await.is_ok()
    };
    soon(true, connect).await;
    assert_eq!(services.readiness().await, (200, "ok".to_owned()), "{what}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_handler_whose_clock_was_set_back_goes_on() {
    let clock = ManualClock::at(SystemClock.now());
    let services = Services::start_at(clock.clone() as Arc<dyn Clock>, 600).await;
    for (back, what) in [(5 * MINUTE, "minutes"), (7 * HOUR, "hours"), (3 * DAY, "days")] {
        clock.set_back(back);
        works(&services, &clock, what).await;
        clock.advance(MINUTE);
        let mut listener = services.owner.listen(&services.network).await;
        assert_eq!((services.uplink().await, services.change().await), (200, 200), "{what}");
        assert_eq!(next(&mut listener).await.0, "dev-1/up");
    }
    // The grace time has started again, so what was confirmed goes on.
    services.account.freeze();
    let change = async || {
        // The last answer counts as fresh for two seconds.
        clock.advance(Duration::from_secs(3));
        services.change().await
    };
    soon(503, change).await;
    assert_eq!((services.read(&services.owner.token).await, services.uplink().await), (200, 200));
    services.account.thaw();
    services.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_outlive_tokens_when_the_clock_is_put_forward() {
    let (network, clock) = Network::with_clock(|settings| settings.broker.check_interval_ms = 100).await;
    let owner = network.owner("forward").await;
    owner.add_device("dev-1").await;
    let account = AccountClient::new(&network.stack.settings().client.auth_server).unwrap();
    let url = format!("{}/applications/forward-app", network.handler_http());
    let key = Credential::Key(owner.key.clone());
    let mut old = owner.token.clone();
    // The handler's own token lives for 93 days, and is renewed also after that.
    for (forward, what) in [(2 * HOUR, "hours"), (40 * DAY, "days"), (200 * DAY, "months")] {
        clock.advance(forward);
        soon(401, async || Caller::new(&old).ask("GET", &url, String::new()).await.0).await;
        let new = log_in_again(&account, "forward", &owner.app_id).await;
        soon(200, async || Caller::new(&new).ask("GET", &url, String::new()).await.0).await;
        soon(true, async || DataClient::connect(&network.mqtt(), &owner.app_id, &key).await.is_ok()).await;
        let mut listener = owner.listen(&network).await;
        let uplink = serde_json::json!({"payload": "Bw==", "port": 1}).to_string();
        let simulate = format!("{url}/devices/dev-1/simulate");
        assert_eq!(Caller::new(&new).ask("POST", &simulate, uplink).await.0, 200, "{what}");
        assert_eq!(next(&mut listener).await.0, "dev-1/up", "{what}");
        old = new;
    }
    network.stack.stop().await;
}
