//! `airlock gateways edit`: the update that the options describe.

use std::collections::BTreeMap;

use anyhow::ensure;
use api::rest::account::{GatewayUpdate, Location, Named};

use super::args::GatewayChange;
use crate::{commands::flag, exit::CommandError};

/// An error when no option is given.
pub(super) fn update(change: GatewayChange) -> anyhow::Result<GatewayUpdate> {
    let attributes: BTreeMap<String, Option<String>> = [
        ("description", change.description),
        ("brand", change.brand),
        ("model", change.model),
        ("antenna_type", change.antenna_type),
        ("antenna_model", change.antenna_model),
    ]
    .into_iter()
    .filter_map(|(name, value)| Some((name.to_owned(), Some(value?))))
    .collect();
    let update = GatewayUpdate {
        frequency_plan: change.frequency_plan,
        antenna_location: change.location.map(antenna_location),
        location_public: flag(change.location_public, change.location_private),
        status_public: flag(change.status_public, change.status_private),
        owner_public: flag(change.owner_public, change.owner_private),
        attributes: (!attributes.is_empty()).then_some(attributes),
        router: change.router.map(Named::Id),
        owner: change.owner.map(Named::Id),
        ..GatewayUpdate::default()
    };
    ensure!(
        update != GatewayUpdate::default(),
        CommandError::invalid("nothing to change: see `airlock gateways edit --help`")
    );
    Ok(update)
}

/// The location as the account service's API has it.
pub(super) fn antenna_location(location: crate::values::location::Location) -> Location {
    Location { latitude: Some(location.latitude), longitude: Some(location.longitude), altitude: location.altitude }
}
