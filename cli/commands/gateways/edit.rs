//! What `airlock gateways edit` changes, as the account service reads it.

use std::collections::BTreeMap;

use anyhow::ensure;
use api::rest::account::{GatewayUpdate, Location, Named};

use super::args::GatewayChange;
use crate::commands::location;

/// The update that the options ask for; without any it is an error.
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
        antenna_location: change.location.map(location),
        location_public: either(change.location_public, change.location_private),
        status_public: either(change.status_public, change.status_private),
        owner_public: either(change.owner_public, change.owner_private),
        attributes: (!attributes.is_empty()).then_some(attributes),
        router: change.router.map(Named::Id),
        owner: change.owner.map(Named::Id),
        ..GatewayUpdate::default()
    };
    ensure!(update != GatewayUpdate::default(), "nothing to change: see `airlock gateways edit --help`");
    Ok(update)
}

/// A place as the account service keeps it.
pub(super) fn location(place: location::Location) -> Location {
    Location { latitude: Some(place.latitude), longitude: Some(place.longitude), altitude: place.altitude }
}

/// What two flags that exclude each other say; nothing when neither is there.
fn either(on: bool, off: bool) -> Option<bool> {
    (on || off).then_some(on)
}
