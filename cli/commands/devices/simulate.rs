//! `airlock devices simulate`: sends an uplink as if a device had sent it, and shows what the functions make of it.

use anyhow::Context;
use api::handler::{DryUplinkMessage, SimulatedUplinkMessage};
use client::handler::HandlerClient;
use types::{AppId, DevId, Kind, Kinded};

use crate::{commands::applications::dry_run::print_uplink, terminal::say};

/// Sends the uplink, and then runs the functions once more, because the handler publishes their result and does not
/// return it. An error if they fail.
pub(super) async fn run(
    handler: &HandlerClient,
    (app_id, dev_id): (&AppId, DevId),
    payload: Vec<u8>,
    port: u32,
) -> anyhow::Result<()> {
    let uplink = SimulatedUplinkMessage {
        app_id: app_id.to_string(),
        dev_id: dev_id.to_string(),
        payload: payload.clone(),
        port,
    };
    handler.simulate_uplink(uplink).await?;
    say(format_args!("Simulated uplink of {dev_id} sent"))?;
    let application = match handler.get_application(app_id).await {
        Err(error) if error.kind() == Kind::Denied => {
            return say("What it was decoded to is shown to those who have the right `settings`");
        }
        application => application?,
    };
    let result = handler.dry_uplink(DryUplinkMessage { payload, app: Some(application), port }).await;
    print_uplink(&result.context("the uplink was published without fields")?)
}
