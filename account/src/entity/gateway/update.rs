//! Partial updates of a gateway: members that are not sent stay as they are.

use std::collections::BTreeMap;

use api::rest::account::GatewayUpdate;
use types::{GatewayRight, is_line};

use super::{Gateway, GatewayRights, location};
use crate::{Account, Error, Result, entity::Entity};

const ATTRIBUTES_MAX: usize = 20;
const NAME_CHARACTERS_MAX: usize = 40;
const VALUE_CHARACTERS_MAX: usize = 200;
const ROUTERS_MAX: usize = 10;

impl Account {
    /// Applies an update, except for a new owner, with the caller's rights.
    ///
    /// On failure the gateway may be half updated and must be discarded.
    pub(super) fn update(&self, gateway: &mut Gateway, update: &GatewayUpdate, held: &GatewayRights) -> Result<()> {
        if let Some(plan) = &update.frequency_plan {
            gateway.frequency_plan = self.frequency_plans.id_of(plan)?.to_owned();
        }
        if let Some(sent) = update.antenna_location {
            location::check(&sent)?;
            gateway.antenna_location = Some(location::merge(gateway.antenna_location, sent));
        }
        if let Some(sent) = &update.attributes {
            update_attributes(&mut gateway.attributes, sent)?;
        }
        self.update_routers(gateway, update)?;
        update_flags(gateway, update);
        publish(gateway, update, held)
    }

    fn update_routers(&self, gateway: &mut Gateway, update: &GatewayUpdate) -> Result<()> {
        if let Some(router) = &update.router {
            self.check_router(router.id())?;
            gateway.router = Some(router.id().clone());
        }
        if let Some(routers) = &update.fallback_routers {
            if routers.len() > ROUTERS_MAX {
                return Err(Error::Invalid { what: "fallback_routers", must: "must have at most 10 entries" });
            }
            routers.iter().try_for_each(|router| self.check_router(router.id()))?;
            gateway.fallback_routers = routers.iter().map(|router| router.id().clone()).collect();
        }
        Ok(())
    }
}

fn update_flags(gateway: &mut Gateway, update: &GatewayUpdate) {
    let flags = [(&mut gateway.auto_update, update.auto_update), (&mut gateway.beta_updates, update.beta_updates)];
    for (flag, sent) in flags {
        *flag = sent.unwrap_or(*flag);
    }
}

/// Changes what is public. Publishing something requires the right to see it.
fn publish(gateway: &mut Gateway, update: &GatewayUpdate, held: &GatewayRights) -> Result<()> {
    let flags = [
        (&mut gateway.location_public, update.location_public, GatewayRight::Location),
        (&mut gateway.status_public, update.status_public, GatewayRight::Status),
        (&mut gateway.owner_public, update.owner_public, GatewayRight::Owner),
    ];
    for (flag, sent, right) in flags {
        let sent = sent.unwrap_or(*flag);
        if sent && !*flag && !held.contains(&right) {
            let id = gateway.id.to_string();
            return Err(Error::MissingRight { what: Gateway::NOUN, id, right: right.into() });
        }
        *flag = sent;
    }
    Ok(())
}

fn update_attributes(known: &mut BTreeMap<String, String>, sent: &BTreeMap<String, Option<String>>) -> Result<()> {
    for (name, value) in sent {
        check_attribute(name, value.as_deref().unwrap_or_default())?;
        match value {
            Some(value) => known.insert(name.clone(), value.clone()),
            None => known.remove(name),
        };
    }
    if known.len() <= ATTRIBUTES_MAX {
        Ok(())
    } else {
        Err(Error::Full { what: "attribute", count_max: ATTRIBUTES_MAX })
    }
}

fn check_attribute(name: &str, value: &str) -> Result<()> {
    if !is_line(name, 1..=NAME_CHARACTERS_MAX) || !is_line(value, 0..=VALUE_CHARACTERS_MAX) {
        let must = "must have names of 1 to 40 and values of at most 200 characters, without control characters";
        return Err(Error::Invalid { what: "attributes", must });
    }
    if name == "placement" && !matches!(value, "" | "indoor" | "outdoor") {
        return Err(Error::Invalid { what: "attribute `placement`", must: "must be indoor or outdoor" });
    }
    Ok(())
}
