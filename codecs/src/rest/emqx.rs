//! The requests and responses of EMQX's external HTTP schema.
//!
//! EMQX sends `{"payload": BASE64, "type": "decode" | "encode", "schema_name": …, "opts": …}` and takes the body of the
//! response as base64. `opts` is the same for all messages of a schema; here it is the port, or says that payloads are
//! messages as `POST /codecs/{name}` takes them.

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
    /// The payload in base64. To decode: the bytes of the device, or with `opts` `json` a message as
    /// `POST /codecs/{name}` takes it. To encode: the fields as JSON.
    payload: String,
    /// The direction of the message.
    #[serde(rename = "type")]
    direction: Direction,
    /// The LoRaWAN port, as a number or a string, 1 by default; or `json`.
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
        let json = |error| Error::invalid("payload", error);
        match (&self.direction, &self.opts) {
            // A rule can pass on only one value, so it puts bytes and port into an object.
            (Direction::Decode, Value::String(opts)) if opts == "json" => {
                let message: MessageBody = serde_json::from_slice(&payload).map_err(json)?;
                if message.has_fields() {
                    return Err(Error::invalid("payload", "`fields` are for encoding; send `payload` or `hex`"));
                }
                Ok(message)
            }
            (Direction::Decode, _) => Ok(MessageBody::of_payload(&payload, self.port()?)),
            (Direction::Encode, _) => {
                Ok(MessageBody::of_fields(serde_json::from_slice(&payload).map_err(json)?, self.port()?))
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
        port.map(Some)
            .ok_or_else(|| Error::invalid("opts", "it must be the LoRaWAN port, 0 to 255, or `json` to decode"))
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
