//! Devices of a file whose EUIs another application has, as far as the user can see.

use std::collections::HashMap;

use api::rest::handler::{Device, LorawanDevice};
use device_file::{BadField, BadRow, Plan, Planned, Step};
use types::{AppEui, AppId, DevEui};

use crate::{command_context::CommandContext, commands::devices::all};

/// Maximum number of applications that are looked at.
const APPLICATIONS_MAX: usize = 20;

type Euis = (AppEui, DevEui);

/// The rows that the handler would refuse, because another application of the user has a device with the same EUIs.
/// Applications whose devices the user may not list are left out, as are those of others.
pub(super) async fn taken(context: &CommandContext, app_id: &AppId, plan: &Plan) -> anyhow::Result<Vec<BadRow>> {
    let new = plan.planned.iter().filter(|planned| has_new_euis(planned));
    let mut rows: HashMap<Euis, usize> =
        new.filter_map(|planned| Some((euis(&planned.device)?, planned.number))).collect();
    let mut taken = Vec::new();
    if rows.is_empty() {
        return Ok(taken);
    }
    let applications = context.account()?.applications(&context.credential().await?).await?;
    let others = applications.into_iter().map(|application| application.id).filter(|other| other != app_id);
    for other in others.take(APPLICATIONS_MAX) {
        for device in devices(context, &other).await.unwrap_or_default() {
            let Some(number) = euis(&device).and_then(|euis| rows.remove(&euis)) else { continue };
            let dev_id = device.dev_id;
            let reason =
                format!("device {dev_id} of application {other} has the same EUIs: move it from there, or delete it");
            taken.push(BadRow { number, field: BadField { name: "dev_eui", reason } });
        }
    }
    taken.sort_by_key(|bad| bad.number);
    Ok(taken)
}

async fn devices(context: &CommandContext, app_id: &AppId) -> anyhow::Result<Vec<Device>> {
    all(&context.handler_for(app_id).await?, app_id).await
}

fn has_new_euis(planned: &Planned) -> bool {
    planned.step == Step::Created || planned.changed.iter().any(|name| ["app_eui", "dev_eui"].contains(name))
}

/// Its EUIs; none if both are zero, which many devices may have.
fn euis(device: &Device) -> Option<Euis> {
    let LorawanDevice { app_eui, dev_eui, .. } = device.lorawan_device.as_ref()?;
    (!app_eui.is_zero() || !dev_eui.is_zero()).then_some((*app_eui, *dev_eui))
}
