//! Announcing a component, and changing what it serves.

use std::collections::HashMap;

use aide::{OperationInput, generate::GenContext, openapi::Operation};
use api::{
    discovery as message,
    rest::discovery::{Announcement, Metadata},
};
use axum::{
    extract::{FromRequestParts, Path, Query, State},
    http::request::Parts,
    response::{IntoResponse, Response},
};
use serde_json::Value;
use server::{
    auth::Presented,
    json::{Empty, Json, JsonObject, fill_from_path},
    openapi,
};

use super::{ComponentPath, RestResult, Shared, refuse};
use crate::{Error, error::Result, operations::Assignment};

/// Metadata in the query, with parameters named like the members of a body.
pub(super) struct MetadataQuery(Result<Metadata>);

/// Announces a component. What it serves has calls of its own and is ignored here.
pub(super) async fn announce(
    State(operations): Shared,
    Path(path): Path<ComponentPath>,
    Presented(caller): Presented,
    JsonObject(mut body): JsonObject<Announcement>,
) -> RestResult<Empty> {
    let announced = async {
        fill_from_path("service_name", &mut body.service_name, path.service_name, Error::invalid)?;
        fill_from_path("id", &mut body.id, path.id, Error::invalid)?;
        let announcement = message::Announcement::from(body).try_into()?;
        operations.announce(caller?, &announcement).await
    };
    announced.await.map(|()| Json(Empty {})).map_err(refuse)
}

/// Assigns what the body names to a component.
pub(super) async fn add_metadata(
    State(operations): Shared,
    Path(component): Path<ComponentPath>,
    Presented(caller): Presented,
    JsonObject(metadata): JsonObject<Metadata>,
) -> RestResult<Empty> {
    let added = async {
        let assignment = assignment(&component, metadata)?;
        operations.add_metadata(caller?, &assignment).await
    };
    added.await.map(|()| Json(Empty {})).map_err(refuse)
}

/// Removes what the query names from what a component serves.
pub(super) async fn delete_metadata(
    State(operations): Shared,
    Path(component): Path<ComponentPath>,
    MetadataQuery(metadata): MetadataQuery,
    Presented(caller): Presented,
) -> RestResult<Empty> {
    let deleted = async {
        let assignment = assignment(&component, metadata?)?;
        operations.delete_metadata(caller?, &assignment).await
    };
    deleted.await.map(|()| Json(Empty {})).map_err(refuse)
}

impl<S: Send + Sync> FromRequestParts<S> for MetadataQuery {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> std::result::Result<Self, Response> {
        let query = Query::<HashMap<String, String>>::try_from_uri(&parts.uri).map_err(IntoResponse::into_response)?;
        let members = query.0.into_iter().map(|(name, value)| (name, Value::String(value))).collect();
        let metadata = serde_json::from_value(Value::Object(members));
        Ok(Self(metadata.map_err(|error| Error::invalid("Query", error))))
    }
}

impl OperationInput for MetadataQuery {
    fn operation_input(context: &mut GenContext, operation: &mut Operation) {
        openapi::query_parameters::<Metadata>(context, operation);
    }
}

fn assignment(component: &ComponentPath, metadata: Metadata) -> Result<Assignment> {
    let metadata = message::metadata::Metadata::from(metadata).try_into()?;
    Ok(Assignment { service: component.service_name.parse()?, id: component.id.parse()?, metadata })
}
