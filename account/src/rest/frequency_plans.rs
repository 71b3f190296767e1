//! `/frequency-plans`: the public list of plans, and packet forwarder configurations.

use std::collections::BTreeMap;

use api::rest::account::FrequencyPlan;
use axum::{Json, extract::State, http::HeaderMap};
use serde_json::Value;

use super::gateways::firmware;
use crate::{
    Account,
    http::{base_url::Address, path::IdPath, reply::Reply},
};

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
    IdPath(id): IdPath<String>,
    headers: HeaderMap,
) -> Result<Json<Value>, Reply> {
    Ok(Json(account.frequency_plans.get(&id)?.forwarder(!firmware::is_sender(&headers))))
}

pub(super) fn url(address: &Address, id: &str) -> String {
    format!("{address}/api/v2/frequency-plans/{id}")
}
