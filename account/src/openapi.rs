//! The description of the HTTP API: an OpenAPI document for programs, and a page of it for people.
//!
//! It is data beside this file, one part for each sort of path. Tests compare it with the routes that are served and
//! with what they answer, so neither can drift.

mod page;

use axum::body::Bytes;
use serde_json::{Map, Value};

use crate::{Error, Result};

/// Everything but the paths and the schemas.
const FRAME: &str = include_str!("openapi/frame.json");
/// What bodies look like.
const SCHEMAS: &str = include_str!("openapi/schemas.json");
/// The paths.
const PATHS: [&str; 5] = [
    include_str!("openapi/users.json"),
    include_str!("openapi/oauth.json"),
    include_str!("openapi/applications.json"),
    include_str!("openapi/gateways.json"),
    include_str!("openapi/components.json"),
];

/// The description, ready to be sent.
#[derive(Debug)]
pub(crate) struct Description {
    /// The OpenAPI document, as JSON.
    pub(crate) document: Bytes,
    /// The page, as HTML.
    pub(crate) page: Bytes,
}

impl Description {
    /// Reads the description that this program was built with.
    pub(crate) fn read() -> Result<Self> {
        let document = assemble().map_err(Error::Description)?;
        let json = serde_json::to_vec(&document).map_err(Error::Description)?;
        Ok(Self { page: page::render(&document).into(), document: json.into() })
    }
}

fn assemble() -> serde_json::Result<Value> {
    let mut document: Value = serde_json::from_str(FRAME)?;
    document["components"]["schemas"] = serde_json::from_str(SCHEMAS)?;
    let mut paths = Map::new();
    for part in PATHS {
        paths.extend(serde_json::from_str::<Map<String, Value>>(part)?);
    }
    document["paths"] = paths.into();
    Ok(document)
}
