//! `airlock devices personalize`: activation by personalization (ABP).

use api::rest::handler::Device;
use client::{handler::HandlerClient, random_key};
use types::{AppId, AppKey, AppSKey, DevId, NwkSKey};

use super::read;
use crate::{command_context::CommandContext, output::Record};

/// The activation constraint of devices that do not join.
const ABP: &str = "abp";

/// Sets an address that fits the device's activation constraints and new session keys, and resets the frame counters.
pub(super) async fn run(
    context: &CommandContext,
    handler: &HandlerClient,
    (app_id, dev_id): (&AppId, &DevId),
    (nwk_s_key, app_s_key): (Option<NwkSKey>, Option<AppSKey>),
) -> anyhow::Result<()> {
    let random = context.random.as_ref();
    let (device, mut lorawan) = read(handler, app_id, dev_id).await?;
    let nwk_s_key = nwk_s_key.unwrap_or_else(|| NwkSKey::new(random_key(random)));
    let app_s_key = app_s_key.unwrap_or_else(|| AppSKey::new(random_key(random)));
    let constraints =
        lorawan.activation_constraints.split(',').map(str::trim).filter(|constraint| !constraint.is_empty());
    let mut usage: Vec<&str> = constraints.filter(|constraint| *constraint != ABP).collect();
    usage.push(ABP);
    let dev_addr = handler.get_dev_addr(&usage).await?;
    let record = Record::new([
        (("dev_addr", "DevAddr"), dev_addr.to_hex().into()),
        (("nwk_s_key", "NwkSKey"), nwk_s_key.to_hex().into()),
        (("app_s_key", "AppSKey"), app_s_key.to_hex().into()),
    ]);
    lorawan.app_key = Some(AppKey::default());
    (lorawan.dev_addr, lorawan.nwk_s_key, lorawan.app_s_key) = (Some(dev_addr), Some(nwk_s_key), Some(app_s_key));
    (lorawan.f_cnt_up, lorawan.f_cnt_down) = (0, 0);
    handler.set_device(Device { lorawan_device: Some(lorawan), ..device }.into()).await?;
    context.output.message(format_args!("Personalized device {dev_id}"))?;
    context.output.record(record)
}
