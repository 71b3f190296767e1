//! Listing, reading, saving and deleting codecs.

use aide::NoApi;
use axum::{
    body::Bytes,
    extract::State,
    http::{StatusCode, header::CONTENT_TYPE},
    response::IntoResponse,
};
use schemars::JsonSchema;
use serde::Serialize;
use server::json::{Empty, Json};

use super::{NamePath, Service, Shared, error::RestError};
use crate::{Error, name::CodecName};

/// All codecs.
#[derive(Serialize, JsonSchema)]
pub(super) struct CodecList {
    codecs: Vec<CodecItem>,
}

/// A codec in the list.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Codec")]
struct CodecItem {
    name: CodecName,
    /// The reason why it cannot be used, or why an older version of it is used.
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
}

pub(super) async fn list(State(service): Shared) -> Json<CodecList> {
    let codecs = service.directory.list().into_iter();
    Json(CodecList { codecs: codecs.map(|listed| CodecItem { name: listed.name, problem: listed.problem }).collect() })
}

pub(super) async fn get(
    State(service): Shared,
    NamePath(name): NamePath,
) -> Result<NoApi<impl IntoResponse>, RestError> {
    let codec = service.directory.get(&name)?;
    Ok(NoApi(([(CONTENT_TYPE, "text/javascript; charset=utf-8")], codec.text().to_owned())))
}

/// Saves a codec: 201 if it is new, 200 if it replaces one.
pub(super) async fn put(
    State(service): Shared,
    NamePath(name): NamePath,
    body: Bytes,
) -> Result<NoApi<impl IntoResponse>, RestError> {
    service.check_writable()?;
    let text = String::from_utf8(body.into()).map_err(|_| Error::invalid("body", "it is not UTF-8"))?;
    let is_new = service.directory.put(name, text).await?;
    Ok(NoApi((if is_new { StatusCode::CREATED } else { StatusCode::OK }, Json(Empty {}))))
}

/// Deletes a codec, once the whole request has come: a client that hangs up has not asked for anything.
pub(super) async fn delete(
    State(service): Shared,
    NamePath(name): NamePath,
    NoApi(_): NoApi<Bytes>,
) -> Result<Json<Empty>, RestError> {
    service.check_writable()?;
    service.directory.delete(&name).await?;
    Ok(Json(Empty {}))
}

impl Service {
    /// Fails if there is no key, because then nobody can show that they may change codecs.
    fn check_writable(&self) -> Result<(), Error> {
        if self.key.is_some() { Ok(()) } else { Err(Error::ReadOnly) }
    }
}
