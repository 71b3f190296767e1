//! The clock of all services is put forward by hours and days.

use std::{sync::Arc, time::Duration};

use client::{account::AccountClient, mqtt::MqttClient};
use server::system::SystemClock;
use testing::ManualClock;
use types::{Clock, Credential};

use super::{Caller, component_token::log_in_again, soon};
use crate::harness::{Network, next};

const HOUR: Duration = Duration::from_secs(3600);
const DAY: Duration = Duration::from_secs(24 * 3600);

#[tokio::test(flavor = "multi_thread")]
async fn keys_outlive_tokens_when_the_clock_is_put_forward() {
    let clock = ManualClock::at(SystemClock.now());
    let network = Network::at(clock.clone() as Arc<dyn Clock>, |settings| {
        settings.broker.check_interval_ms = 100;
    });
    let network = network.await;
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
        soon(true, async || MqttClient::connect(&network.mqtt(), &owner.app_id, &key).await.is_ok()).await;
        let mut listener = owner.listen(&network).await;
        let uplink = serde_json::json!({"payload": "Bw==", "port": 1}).to_string();
        let simulate = format!("{url}/devices/dev-1/simulate");
        assert_eq!(Caller::new(&new).ask("POST", &simulate, uplink).await.0, 200, "{what}");
        assert_eq!(next(&mut listener).await.0, "dev-1/up", "{what}");
        old = new;
    }
    network.stack.stop().await;
}
