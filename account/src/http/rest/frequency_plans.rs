//! `/frequency-plans`: the public list of plans, and packet forwarder configurations.

use std::{collections::BTreeMap, convert::Infallible, str::FromStr};

use api::rest::account::FrequencyPlan;
use axum::{extract::State, http::HeaderMap};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use server::json::Json;

use super::entities::gateways::firmware;
use crate::{
    Account,
    http::{base_url::Address, error::HttpError, path::IdPath},
};

/// The id of the plan.
#[derive(JsonSchema)]
#[schemars(inline, extend("examples" = ["EU_863_870"]))]
pub(super) struct PlanId(#[schemars(length(min = 1))] String);

/// The configuration of a packet forwarder.
#[derive(Serialize, JsonSchema)]
#[serde(transparent)]
#[schemars(extend("type" = "object", "required" = ["SX1301_conf"]))]
pub(super) struct ForwarderConfiguration(Value);

impl FromStr for PlanId {
    type Err = Infallible;

    fn from_str(id: &str) -> Result<Self, Infallible> {
        Ok(Self(id.to_owned()))
    }
}

pub(super) async fn list(State(account): State<Account>, address: Address) -> Json<BTreeMap<String, FrequencyPlan>> {
    let plans = account.frequency_plans.iter().map(|plan| {
        let body = FrequencyPlan {
            id: plan.id.clone(),
            name: plan.name.clone(),
            description: plan.description.clone(),
            url: url(&address, &plan.id),
            base_freq: plan.base_freq,
        };
        (plan.id.clone(), body)
    });
    Json(plans.collect())
}

/// Returns the configuration. The firmware of The Things Gateway has its own gain table.
pub(super) async fn get(
    State(account): State<Account>,
    IdPath(PlanId(id)): IdPath<PlanId>,
    headers: HeaderMap,
) -> Result<Json<ForwarderConfiguration>, HttpError> {
    Ok(Json(ForwarderConfiguration(account.frequency_plans.get(&id)?.forwarder(!firmware::is_sender(&headers)))))
}

pub(super) fn url(address: &Address, id: &str) -> String {
    format!("{address}/api/v2/frequency-plans/{id}")
}
