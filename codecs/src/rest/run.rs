//! Running a codec on one message or several.

use aide::{OperationInput, generate::GenContext, openapi::Operation};
use axum::{
    body::Bytes,
    extract::{FromRequest, Request, State},
    response::{IntoResponse, Response},
};
use futures::{StreamExt, stream};
use schemars::JsonSchema;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::value::{RawValue, to_raw_value};
use server::{json::Json, openapi, usage::Usage};

use super::{NamePath, Service, Shared, error::RestError};
use crate::{
    Error,
    codec::{Batch, Codec},
    message::{CodecResult, FailedMessage, FunctionFailure, Message, MessageBody},
};

/// Maximum number of messages of one request that run at the same time.
const CONCURRENT_MAX: usize = 16;

/// Once the results of a request have this size, further messages are not run.
const RESPONSE_BYTES_MAX: usize = 1 << 20;

/// The body of a request.
pub(super) enum Messages {
    One(Box<MessageBody>),
    /// Each is read on its own, so that one with a mistake does not stop the others.
    Several(Vec<Box<RawValue>>),
}

/// The schema of [`Messages`].
#[derive(JsonSchema)]
#[schemars(untagged, rename = "Messages")]
#[expect(dead_code, reason = "only its schema is used")]
enum MessagesSchema {
    One(MessageBody),
    Several(Vec<MessageBody>),
}

/// The body of a response.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
pub(super) enum Results {
    One(Box<CodecResult>),
    #[schemars(with = "Vec<Item>")]
    Several(Vec<Box<RawValue>>),
}

/// The result of one of several messages.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
pub(super) enum Item {
    Done(Box<CodecResult>),
    Failed(Box<FailedMessage>),
}

/// Runs a codec.
pub(super) async fn run(
    State(service): Shared,
    NamePath(name): NamePath,
    usage: Usage,
    messages: Messages,
) -> Result<Json<Results>, RestError> {
    let codec = service.directory.get(&name)?;
    match messages {
        Messages::One(body) => {
            Ok(Json(Results::One(Box::new(service.run(&codec, (*body, Batch::Alone), &usage).await?))))
        }
        Messages::Several(bodies) if bodies.len() > service.batch_max => {
            let reason = format_args!("{} messages; at most {} may come at once", bodies.len(), service.batch_max);
            Err(Error::invalid("body", reason).into())
        }
        Messages::Several(bodies) => Ok(Json(Results::Several(service.run_all(&codec, bodies, &usage).await?))),
    }
}

impl Item {
    fn failed(error: String, failure: Option<FunctionFailure>) -> Self {
        Self::Failed(Box::new(FailedMessage { error, failure }))
    }
}

impl Service {
    /// Runs a codec on one message, and charges the caller for it.
    pub(super) async fn run(
        &self,
        codec: &Codec,
        (body, batch): (MessageBody, Batch),
        usage: &Usage,
    ) -> Result<CodecResult, Error> {
        let message = Message::try_from(body)?;
        let result = codec.run((&message, batch), self.clock.now(), self.random.as_ref()).await;
        usage.add_fuel(match &result {
            Ok(outcome) => outcome.fuel(),
            Err(Error::Codec { cost, .. }) => cost.fuel,
            Err(_) => 0,
        });
        result
    }

    /// Runs a codec on several messages, until the results are too large for one response.
    async fn run_all(
        &self,
        codec: &Codec,
        bodies: Vec<Box<RawValue>>,
        usage: &Usage,
    ) -> Result<Vec<Box<RawValue>>, Error> {
        let count = bodies.len();
        let mut items = stream::iter(bodies).map(|body| self.run_item(codec, body, usage)).buffered(CONCURRENT_MAX);
        let (mut results, mut bytes) = (Vec::with_capacity(count), 0);
        while bytes < RESPONSE_BYTES_MAX
            && let Some(item) = items.next().await
        {
            let result = to_raw_value(&item).map_err(|error| Error::invalid("result", error))?;
            bytes += result.get().len();
            results.push(result);
        }
        drop(items);
        let full = Item::failed("the response is full: send fewer messages at once".to_owned(), None);
        let full = to_raw_value(&full).map_err(|error| Error::invalid("result", error))?;
        results.resize(count, full);
        Ok(results)
    }

    async fn run_item(&self, codec: &Codec, body: Box<RawValue>, usage: &Usage) -> Item {
        let read = serde_json::from_str(body.get()).map_err(|error| Error::invalid("message", error));
        let result = match read {
            Ok(body) => self.run(codec, (body, Batch::Several), usage).await,
            Err(error) => Err(error),
        };
        match result {
            Ok(outcome) => Item::Done(Box::new(outcome)),
            Err(error) => Item::failed(error.to_string(), FunctionFailure::of(&error)),
        }
    }
}

impl<S: Send + Sync> FromRequest<S> for Messages {
    type Rejection = Response;

    async fn from_request(request: Request, state: &S) -> Result<Self, Response> {
        read_body(request, state, |body| match body.trim_ascii_start().first() {
            Some(b'[') => parse(body).map(Self::Several),
            _ => parse(body).map(Self::One),
        })
        .await
    }
}

impl OperationInput for Messages {
    fn operation_input(context: &mut GenContext, operation: &mut Operation) {
        openapi::body::<MessagesSchema>(context, operation, &["application/json"]);
    }
}

/// Reads the body of a request.
pub(super) async fn read_body<S: Send + Sync, T>(
    request: Request,
    state: &S,
    read: impl FnOnce(&[u8]) -> Result<T, Error>,
) -> Result<T, Response> {
    let body = Bytes::from_request(request, state).await.map_err(IntoResponse::into_response)?;
    read(&body).map_err(|error| RestError::from(error).into_response())
}

/// Reads a JSON body.
pub(super) fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T, Error> {
    serde_json::from_slice(body).map_err(|error| Error::invalid("body", error))
}
