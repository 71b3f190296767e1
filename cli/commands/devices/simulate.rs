//! `airlock devices simulate`: sends an uplink as if a device had sent it, and shows what the functions make of it.

use anyhow::Context;
use api::handler::{DryUplinkMessage, DryUplinkResult, SimulatedUplinkMessage};
use client::handler::HandlerClient;
use types::{AppId, DevId, Kind, Kinded};

use crate::{commands::applications::dry_run::print_uplink, network::Network};

/// Sends the uplink, and then runs the functions once more, because the handler publishes their result and returns only
/// its cost. An error if they fail.
pub(super) async fn run(
    network: &Network,
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
    let cost = handler.simulate_uplink(uplink).await?;
    network.output.message(format_args!("Simulated uplink of {dev_id} sent"))?;
    let application = match handler.get_application(app_id).await {
        Err(error) if error.kind() == Kind::Denied => {
            return network.output.message("What it was decoded to is shown to those who have the right `settings`");
        }
        application => application?,
    };
    let result = handler.dry_uplink(DryUplinkMessage { payload, app: Some(application), port }).await;
    let result = result.context("the uplink was published without fields")?;
    let published = DryUplinkResult { fuel: cost.fuel, microseconds: cost.microseconds, ..result };
    print_uplink(&network.output, &published)
}
