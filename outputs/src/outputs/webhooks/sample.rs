//! Sends a sample message to a webhook, once and past its queue, so that whoever sets one up sees what it answers.

use std::time::Duration;

use serde_json::{json, value::to_raw_value};
use tokio::time::timeout;
use types::{AppId, DevId, Timestamp, WebhookId};

use super::{Webhooks, destination};
use crate::{
    Error,
    message::{Outgoing, OutputMessage},
};

/// The event of a sample, and its device: receivers can tell it from what happened.
const EVENT: &str = "test";
const DEVICE: &str = "test-device";
/// Time that a sample waits for its turn. The attempt has the time that the webhook sets.
const TURN_WAIT_MAX: Duration = Duration::from_secs(10);

impl Webhooks {
    /// Sends a sample uplink to a webhook. What is inside is why the receiver did not take it.
    pub async fn send_sample(&self, app_id: &AppId, id: &WebhookId) -> Result<Result<(), String>, Error> {
        self.get(app_id, id).await?;
        let sender = self.destinations.sender(&destination(app_id, id)).await?;
        let sender = sender.ok_or_else(|| Error::NotFound(id.to_string()))?;
        let context = self.workers.context();
        let owner = context.owners.of(app_id).await;
        let message = sample(app_id, context.clock.now())?;
        let outgoing = Outgoing { id: self.queues.next_id(), app_id: app_id.clone(), owner: owner.clone(), message };
        let turn = timeout(TURN_WAIT_MAX, async {
            sender.ready(&owner).await;
            context.turns.take(&owner).await
        });
        let _turn = turn.await.map_err(|_| Error::Busy)?;
        Ok(sender.send(&outgoing).await.map(drop).map_err(|error| error.to_string()))
    }
}

/// An uplink with fields, as subscribers get them.
fn sample(app_id: &AppId, time: Timestamp) -> Result<OutputMessage, Error> {
    let body = json!({
        "app_id": app_id,
        "dev_id": DEVICE,
        "hardware_serial": "0000000000000000",
        "port": 1,
        "counter": 0,
        "payload_raw": "AQI=",
        "payload_fields": {"sample": true},
        "metadata": {"time": time},
    });
    let dev_id: Option<DevId> = DEVICE.parse().ok();
    Ok(OutputMessage { dev_id, event: EVENT.to_owned(), time, identity: 0, body: to_raw_value(&body)? })
}
