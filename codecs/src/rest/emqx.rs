//! The requests and responses of EMQX's external HTTP schema.
//!
//! EMQX sends `{"payload": BASE64, "type": "decode" | "encode", "schema_name": …, "opts": …}` and takes the body of the
//! response as base64. `opts` is the same for all messages of a schema; here it is the port.

use aide::{NoApi, OperationInput, generate::GenContext, openapi::Operation};
use axum::{
    extract::{FromRequest, Request, State},
    response::Response,
};
use base64::{Engine, engine::general_purpose::STANDARD};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use server::{openapi, usage::Usage};

use super::{
    NamePath, Shared,
    error::RestError,
    run::{parse, read_body},
};
use crate::{
    Error,
    codec::Batch,
    message::{MessageBody, from_base64},
};

/// A request of EMQX. Its other members do not matter here.
#[derive(Deserialize, JsonSchema)]
pub(super) struct EmqxRequest {
    /// The payload in base64. To decode: the bytes of the device, or a message as `POST /codecs/{name}` takes it, which
    /// can have a port of its own. To encode: the fields as JSON.
    payload: String,
    /// What to do.
    #[serde(rename = "type")]
    direction: Direction,
    /// The LoRaWAN port, as a number or a string; 1 by default.
    #[serde(default)]
    opts: Value,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Direction {
    Decode,
    Encode,
}

/// Runs a codec; the response is base64 without anything around it.
pub(super) async fn run(
    State(service): Shared,
    NamePath(name): NamePath,
    usage: Usage,
    request: EmqxRequest,
) -> Result<NoApi<String>, RestError> {
    let codec = service.directory.get(&name)?;
    let is_encoding = matches!(request.direction, Direction::Encode);
    let outcome = service.run(&codec, (request.message()?, Batch::Alone), &usage).await?;
    Ok(NoApi(match (is_encoding, outcome.payload, outcome.fields) {
        (true, Some(payload), _) => payload,
        (_, _, fields) => STANDARD.encode(fields.map_or_else(|| "null".to_owned(), |fields| fields.get().to_owned())),
    }))
}

impl EmqxRequest {
    fn message(&self) -> Result<MessageBody, Error> {
        let payload = from_base64("payload", &self.payload)?;
        let port = self.port()?;
        match self.direction {
            Direction::Encode => {
                let fields = serde_json::from_slice(&payload).map_err(|error| Error::invalid("payload", error))?;
                Ok(MessageBody::of_fields(fields, port))
            }
            // A rule can only pass one value on, so it wraps bytes and port into JSON.
            Direction::Decode => {
                let wrapped = Some(&payload).filter(|payload| payload.starts_with(b"{"));
                let wrapped = wrapped.and_then(|payload| serde_json::from_slice(payload).ok());
                Ok(wrapped.unwrap_or_else(|| MessageBody::of_payload(&payload, port)))
            }
        }
    }

    fn port(&self) -> Result<Option<u8>, Error> {
        let port = match &self.opts {
            Value::Null => return Ok(None),
            Value::String(text) if text.is_empty() => return Ok(None),
            Value::String(text) => text.parse().ok(),
            other => other.as_u64().and_then(|port| port.try_into().ok()),
        };
        port.map(Some).ok_or_else(|| Error::invalid("opts", "it must be the LoRaWAN port, 0 to 255"))
    }
}

impl<S: Send + Sync> FromRequest<S> for EmqxRequest {
    type Rejection = Response;

    async fn from_request(request: Request, state: &S) -> Result<Self, Response> {
        read_body(request, state, parse).await
    }
}

impl OperationInput for EmqxRequest {
    fn operation_input(context: &mut GenContext, operation: &mut Operation) {
        openapi::body::<Self>(context, operation, &["application/json"]);
    }
}
