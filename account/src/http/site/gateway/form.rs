//! The form with the settings of a gateway.

use std::collections::BTreeMap;

use api::rest::account::{GatewayUpdate, Location, Named};
use types::GatewayRight;

use crate::{
    Account, Error, Result,
    entity::gateway::{Gateway, GatewayRights, frequency_plan::FrequencyPlan},
    http::site::page::form::{Fields, Form},
};

/// The attributes with a field in the form. Others stay unchanged.
const ATTRIBUTES: [&str; 6] = ["description", "brand", "model", "antenna_type", "antenna_model", "placement"];

#[derive(Debug)]
pub(in crate::http::site) struct Plan {
    pub(in crate::http::site) id: String,
    pub(in crate::http::site) name: String,
}

pub(in crate::http::site) fn plans(account: &Account) -> Vec<Plan> {
    let plan = |plan: &FrequencyPlan| Plan { id: plan.id.clone(), name: plan.name.clone() };
    account.frequency_plans.iter().map(plan).collect()
}

pub(in crate::http::site) fn read_new(fields: &Fields) -> Result<GatewayUpdate> {
    let attributes = fields.filled("description").map(|text| ("description".to_owned(), Some(text.to_owned())));
    Ok(GatewayUpdate {
        frequency_plan: Some(fields.text("frequency_plan").to_owned()),
        antenna_location: location(fields)?,
        attributes: Some(attributes.into_iter().collect()),
        ..GatewayUpdate::default()
    })
}

/// Reads the form for an existing gateway. Empty fields remove their attribute.
pub(in crate::http::site) fn read(fields: &Fields, rights: &GatewayRights) -> Result<GatewayUpdate> {
    let attribute = |name: &str| (name.to_owned(), fields.filled(name).map(str::to_owned));
    // The form has these checkboxes only for viewers with the right.
    let public = |name: &str, right| rights.contains(&right).then(|| fields.ticked(name));
    let router = fields.filled("router").map(str::parse).transpose()?.map(Named::Id);
    Ok(GatewayUpdate {
        frequency_plan: Some(fields.text("frequency_plan").to_owned()),
        antenna_location: location(fields)?,
        auto_update: Some(fields.ticked("auto_update")),
        beta_updates: Some(fields.ticked("beta_updates")),
        location_public: public("location_public", GatewayRight::Location),
        status_public: public("status_public", GatewayRight::Status),
        owner_public: public("owner_public", GatewayRight::Owner),
        attributes: Some(ATTRIBUTES.into_iter().map(attribute).collect::<BTreeMap<_, _>>()),
        router,
        ..GatewayUpdate::default()
    })
}

pub(in crate::http::site) fn filled(gateway: &Gateway, router: &str, exact: bool) -> Form {
    let location = gateway.antenna_location.filter(|_| exact).unwrap_or_default();
    let number = |number: Option<f64>| number.map(|number| number.to_string()).unwrap_or_default();
    let mut values = vec![
        ("frequency_plan", gateway.frequency_plan.clone()),
        ("latitude", number(location.latitude)),
        ("longitude", number(location.longitude)),
        ("altitude", location.altitude.map(|metres| metres.to_string()).unwrap_or_default()),
        ("router", router.to_owned()),
    ];
    values.extend(ATTRIBUTES.map(|name| (name, gateway.attributes.get(name).cloned().unwrap_or_default())));
    let flags = [
        ("auto_update", gateway.auto_update),
        ("beta_updates", gateway.beta_updates),
        ("location_public", gateway.location_public),
        ("status_public", gateway.status_public),
        ("owner_public", gateway.owner_public),
    ];
    values.extend(flags.into_iter().filter(|(_, set)| *set).map(|(name, _)| (name, "yes".to_owned())));
    Form::with(values)
}

/// A location needs both a latitude and a longitude. If all fields are empty, it stays unchanged.
fn location(fields: &Fields) -> Result<Option<Location>> {
    let degrees = |name: &'static str| -> Result<Option<f64>> {
        let invalid = |_| Error::Invalid { what: name, must: "must be a number of degrees such as 52.3731" };
        fields.filled(name).map(|text| text.parse().map_err(invalid)).transpose()
    };
    let metres = |_| Error::Invalid { what: "altitude", must: "must be a whole number of metres" };
    let (latitude, longitude) = (degrees("latitude")?, degrees("longitude")?);
    let altitude = fields.filled("altitude").map(|text| text.parse().map_err(metres)).transpose()?;
    match (latitude, longitude, altitude) {
        (None, None, None) => Ok(None),
        (Some(_), Some(_), _) => Ok(Some(Location { longitude, latitude, altitude })),
        _ => Err(Error::Invalid { what: "location", must: "must have both a latitude and a longitude" }),
    }
}
