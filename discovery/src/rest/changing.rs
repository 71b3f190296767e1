//! Announcing a component, and changing what it serves.

use std::collections::HashMap;

use api::{
    discovery as message,
    rest::discovery::{Announcement, Metadata},
};
use axum::{
    Json,
    body::Bytes,
    extract::{Path, Query, State},
    http::HeaderMap,
};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use server::auth::credential_of;
use types::Credential;

use super::{Answer, Shared, refuse};
use crate::{Error, error::Result, operations::Service};

type Empty = Map<String, Value>;

/// Announces a component. What it serves has calls of its own and is ignored here.
pub(super) async fn announce(
    State(operations): Shared,
    Path((service_name, id)): Path<(String, String)>,
    headers: HeaderMap,
    bytes: Bytes,
) -> Answer<Empty> {
    let announced = async {
        let mut body: Announcement = parse(&bytes)?;
        agree("service_name", &mut body.service_name, service_name)?;
        agree("id", &mut body.id, id)?;
        let announcement = message::Announcement::from(body).try_into()?;
        operations.announce(caller(&headers)?, &announcement).await
    };
    announced.await.map(|()| Json(Empty::new())).map_err(refuse)
}

/// Assigns what the body names to a component.
pub(super) async fn add_metadata(
    State(operations): Shared,
    Path(component): Path<(String, String)>,
    headers: HeaderMap,
    bytes: Bytes,
) -> Answer<Empty> {
    let added = async {
        let service = service(component, parse(&bytes)?)?;
        operations.add_metadata(caller(&headers)?, &service).await
    };
    added.await.map(|()| Json(Empty::new())).map_err(refuse)
}

/// Removes what the query names from what a component serves; parameters are named like in the body of
/// [`add_metadata`].
pub(super) async fn delete_metadata(
    State(operations): Shared,
    Path(component): Path<(String, String)>,
    Query(query): Query<HashMap<String, String>>,
    headers: HeaderMap,
) -> Answer<Empty> {
    let deleted = async {
        let query = query.into_iter().map(|(name, value)| (name, Value::String(value))).collect();
        let metadata = serde_json::from_value(Value::Object(query)).map_err(|error| Error::invalid("Query", error))?;
        let service = service(component, metadata)?;
        operations.delete_metadata(caller(&headers)?, &service).await
    };
    deleted.await.map(|()| Json(Empty::new())).map_err(refuse)
}

fn service((service_name, id): (String, String), metadata: Metadata) -> Result<Service> {
    let metadata = message::metadata::Metadata::from(metadata).try_into()?;
    Ok(Service { name: service_name.parse()?, id: id.parse()?, metadata })
}

fn caller(headers: &HeaderMap) -> Result<Option<Credential>> {
    Ok(credential_of(headers)?)
}

/// Parses a JSON object, whatever its content type. An array is rejected: serde would read it field by field.
fn parse<T: DeserializeOwned>(bytes: &Bytes) -> Result<T> {
    if bytes.trim_ascii_start().first() != Some(&b'{') {
        return Err(Error::invalid("Body", "must be a JSON object"));
    }
    serde_json::from_slice(bytes).map_err(|error| Error::invalid("Body", error))
}

/// Fills in what the body omits from the path; if both are given, they must agree.
fn agree(what: &'static str, body: &mut String, path: String) -> Result<()> {
    if body.is_empty() || *body == path {
        *body = path;
        return Ok(());
    }
    Err(Error::invalid(what, format!("the path says `{path}`, the body says `{body}`")))
}
