//! JSON bodies that describe themselves in OpenAPI documents by their types.

use aide::{
    OperationInput, OperationOutput,
    generate::GenContext,
    openapi::{Operation, Response as Description, StatusCode},
};
use axum::{
    body::Bytes,
    extract::{FromRequest, Request},
    response::{IntoResponse, Response},
};
use schemars::JsonSchema;
use serde::{Serialize, de::DeserializeOwned};
use types::Kind;

use crate::{
    http::{
        error_response::{ErrorFormat, ErrorResponse},
        openapi,
    },
    usage::Usage,
};

/// A JSON object as the body of a request, whatever its content type says.
///
/// An array would be read member by member, and nothing at all as defaults: both would empty what they were meant to
/// change.
#[derive(Clone, Copy, Debug)]
pub struct JsonObject<T>(pub T);

/// A JSON body of a response with status 200.
#[derive(Clone, Copy, Debug, Default)]
pub struct Json<T>(pub T);

/// Number of entries after which the length of a list is estimated.
const ESTIMATED_FROM: usize = 16;

/// A JSON object with one member, a list, as `serde_json` writes it; `{}` if the list is empty.
///
/// Made in pieces, because a large list takes a processor for long.
pub async fn list_in_pieces<T, E: Serialize>(
    member: &str,
    entries: Vec<T>,
    usage: &Usage,
    convert: impl Fn(T) -> E,
) -> Result<Bytes, serde_json::Error> {
    if entries.is_empty() {
        return Ok(Bytes::from_static(b"{}"));
    }
    let mut text = serde_json::to_vec(member)?;
    text.insert(0, b'{');
    let mut turn = usage.turn_for_entries().await;
    let count = entries.len();
    for (number, entry) in entries.into_iter().enumerate() {
        turn.next_entry().await;
        let length = text.len();
        text.extend_from_slice(if number == 0 { b":[" } else { b"," });
        serde_json::to_writer(&mut text, &convert(entry))?;
        turn.add_bytes(text.len() - length);
        if number == ESTIMATED_FROM {
            // Text of megabytes that grows is copied, which takes a processor for milliseconds.
            text.reserve(text.len() / ESTIMATED_FROM * (count - number));
        }
    }
    text.extend_from_slice(b"]}");
    Ok(text.into())
}

/// Nothing: `{}`.
#[derive(Clone, Copy, Debug, Default, Serialize, JsonSchema)]
#[schemars(extend("maxProperties" = 0))]
pub struct Empty {}

/// Fills in from the path a field that the body omits. If both have it, they must agree; otherwise `refuse` makes the
/// error from the name and the reason.
pub fn fill_from_path<E>(
    what: &'static str,
    body: &mut String,
    path: String,
    refuse: impl FnOnce(&'static str, String) -> E,
) -> Result<(), E> {
    if body.is_empty() || *body == path {
        *body = path;
        return Ok(());
    }
    Err(refuse(what, format!("the path says `{path}`, the body says `{body}`")))
}

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for JsonObject<T> {
    type Rejection = Response;

    async fn from_request(request: Request, state: &S) -> Result<Self, Response> {
        let usage = Usage::in_extensions(request.extensions());
        let bytes = Bytes::from_request(request, state).await.map_err(IntoResponse::into_response)?;
        let refuse = |reason: &dyn std::fmt::Display| {
            ErrorResponse::new(ErrorFormat::GrpcGateway, Kind::Invalid, format!("Body not valid: {reason}"))
                .into_response()
        };
        if bytes.trim_ascii_start().first() != Some(&b'{') {
            return Err(refuse(&"it must be a JSON object"));
        }
        let _turn = usage.turn_for_bytes(bytes.len()).await;
        serde_json::from_slice(&bytes).map(Self).map_err(|error| refuse(&error))
    }
}

impl<T: JsonSchema> OperationInput for JsonObject<T> {
    fn operation_input(context: &mut GenContext, operation: &mut Operation) {
        openapi::body::<T>(context, operation, &["application/json"]);
    }
}

impl<T: Serialize> IntoResponse for Json<T> {
    fn into_response(self) -> Response {
        axum::Json(self.0).into_response()
    }
}

impl<T: JsonSchema> OperationOutput for Json<T> {
    type Inner = T;

    fn operation_response(context: &mut GenContext, _: &mut Operation) -> Option<Description> {
        Some(openapi::response::<T>(context))
    }

    fn inferred_responses(context: &mut GenContext, _: &mut Operation) -> Vec<(Option<StatusCode>, Description)> {
        vec![(Some(StatusCode::Code(200)), openapi::response::<T>(context))]
    }
}

#[cfg(test)]
mod tests {
    use std::{cell::Cell, pin::pin, sync::Arc, task::Poll};

    use futures::poll;
    use serde_json::{Value, json};

    use super::*;
    use crate::ledger::{BudgetSettings, Ledger, Owner};

    const PIECE_ENTRIES_MAX: usize = 32;

    fn usage_of(ledger: &Ledger, name: &str) -> Usage {
        Usage::of(None, Some((Arc::clone(&ledger.long_work), Owner::User(name.into()))))
    }

    /// Some 450 kB, as JSON.
    fn devices() -> Vec<u32> {
        (0..1000).collect()
    }

    fn device(number: u32) -> Value {
        json!({ "dev_id": format!("dev-{number}"), "description": "x".repeat(400) })
    }

    #[tokio::test]
    async fn a_large_list_lets_others_go_first_after_each_piece() {
        let ledger = Ledger::new(&BudgetSettings::default());
        let (usage, written, small) = (usage_of(&ledger, "large"), Cell::new(0), usage_of(&ledger, "small"));
        let mut list = pin!(list_in_pieces("devices", devices(), &usage, |number| {
            written.set(written.get() + 1);
            device(number)
        }));
        let mut turns = 0;
        let bytes = loop {
            let before = written.get();
            let list = poll!(list.as_mut());
            assert!(written.get() - before <= PIECE_ENTRIES_MAX, "{} in one piece", written.get() - before);
            match list {
                Poll::Ready(bytes) => break bytes.unwrap(),
                Poll::Pending => turns += 1,
            }
            // Whoever comes while the list is written is done before it ends.
            let other = list_in_pieces("devices", vec![1], &small, device).await.unwrap();
            assert!(other.len() < 500);
        };
        assert!(turns >= 1000 / PIECE_ENTRIES_MAX, "{turns}");
        assert!(bytes.len() > 400_000);
        let expected = json!({ "devices": devices().into_iter().map(device).collect::<Vec<_>>() });
        assert_eq!(bytes, serde_json::to_vec(&expected).unwrap());
    }
}
