//! Ways of messages to applications, and the clients that take them.

mod data_client;
pub(crate) mod external_broker;
mod mqtt_access;
mod mqtt_sessions;
mod outputs;
pub(crate) mod third_party_clients;
pub(crate) mod webhooks;

use serde_json::Value;

use crate::harness::{Network, Owner};

/// The state of the newest uplink at the only receiver of this kind.
async fn delivery_to(kind: &str, network: &Network, owner: &Owner) -> Value {
    let app_id = owner.app_id.to_string();
    let query = api::history::Query { app_id, kind: "up".to_owned(), ..Default::default() };
    let id = owner.handler.list_records(query).await.unwrap().records[0].id.clone();
    let url = format!("{}/applications/{}/history/{id}/deliveries", network.handler_http(), owner.app_id);
    let request = reqwest::Client::new().get(url).header("authorization", owner.token.to_header());
    let body: Value = request.send().await.unwrap().json().await.unwrap();
    let mut deliveries = body["deliveries"].as_array().unwrap().iter();
    deliveries.find(|delivery| delivery["kind"] == kind).unwrap().clone()
}
