//! Many simulated uplinks at once, over HTTP: a line of JSON for each, and for what became of it.

mod lines;

use std::{pin::Pin, sync::Arc, time::Duration};

use aide::{
    OperationInput, OperationOutput,
    axum::{ApiRouter, routing::post_with},
    generate::GenContext,
    openapi::{MediaType, Operation, Response as Description, SchemaObject, StatusCode},
};
use api::rest::handler as body;
use axum::{
    body::{Body, Bytes},
    extract::{FromRequest, Path, Request, State},
    http::header::EXPECT,
    response::{IntoResponse, Response},
};
use futures::{StreamExt, stream};
use server::{
    auth::Presented,
    openapi::{self, OperationExt},
    serve::PartTurns,
};
use tokio::time::timeout;

use self::lines::Lines;
use super::{ApplicationPath, HttpResult, Shared};
use crate::{
    api::{
        operations::Operations,
        wire::{app_id, uplinks},
    },
    uplink::batch::{BatchAnswer, Event, GroupAnswers},
};

const MEDIA_TYPE: &str = "application/x-ndjson";
/// Time for telling a client that it may send.
const CONTINUE_TIME: Duration = Duration::from_millis(50);
/// Size of the parts of a response that are handed over at once, in bytes.
const PIECE_BYTES: usize = 16 * 1024;

/// The body of a request that is read while it is answered.
pub(super) struct UplinkLines {
    body: Body,
    turns: PartTurns,
    /// True if the client asks first whether it may send.
    expects_continue: bool,
}

/// A response with a line for each uplink.
pub(super) struct AnswerLines(Body);

pub(super) fn routes() -> ApiRouter<Arc<Operations>> {
    let simulate = post_with(simulate_uplinks, |op| {
        op.doc(
            "SimulateUplinks",
            "Handle many uplinks as if devices had sent them: one per line. Each gets a line in the response, in the \
             same order, which begins before the last uplink has come. Read it while you send: no more is read while \
             it waits. The body may have any length, and each line 16 KiB.",
        )
    });
    ApiRouter::new().api_route("/applications/{app_id}/uplinks", simulate)
}

/// Returns true if a request of this path takes a body of any length.
pub(crate) fn is_stream(path: &str) -> bool {
    let mut parts = path.trim_start_matches('/').split('/');
    (parts.next(), parts.nth(1), parts.next()) == (Some("applications"), Some("uplinks"), None)
}

async fn simulate_uplinks(
    State(operations): Shared,
    Path(path): Path<ApplicationPath>,
    Presented(caller): Presented,
    UplinkLines { body, turns, expects_continue }: UplinkLines,
) -> HttpResult<AnswerLines> {
    let app_id = app_id(&path.app_id)?;
    let batch = operations.simulate_uplinks(caller?, app_id.clone(), turns).await?;
    let mut lines = Lines::new(body, app_id, operations.clock.clone()).peekable();
    if expects_continue {
        // It is told so when the body is first read, unless the response has begun. What comes may take longer.
        _ = timeout(CONTINUE_TIME, Pin::new(&mut lines).peek()).await;
    }
    let pieces = batch.handle(lines).flat_map(|event| stream::iter(pieces(event)));
    Ok(AnswerLines(Body::from_stream(pieces)))
}

/// The answers to some uplinks, as pieces of text. Their memory is charged until the last piece is taken.
fn pieces(event: Event) -> impl Iterator<Item = Result<Bytes, serde_json::Error>> + Send {
    let (answers, charge) = match event {
        Event::Answers(GroupAnswers { answers, charge, .. }) => (answers, charge),
        Event::Ended(number, error) => (vec![BatchAnswer { number, result: Err(error) }], None),
    };
    let mut answers = answers.into_iter();
    std::iter::from_fn(move || {
        let _held = &charge;
        let mut piece = Vec::new();
        while piece.len() < PIECE_BYTES
            && let Some(answer) = answers.next()
        {
            if let Err(error) = serde_json::to_writer(&mut piece, &uplinks::body(answer)) {
                return Some(Err(error));
            }
            piece.push(b'\n');
        }
        (!piece.is_empty()).then(|| Ok(piece.into()))
    })
}

impl<S: Send + Sync> FromRequest<S> for UplinkLines {
    type Rejection = std::convert::Infallible;

    async fn from_request(request: Request, _: &S) -> Result<Self, Self::Rejection> {
        let turns = PartTurns::in_extensions(request.extensions());
        let expects_continue = request.headers().contains_key(EXPECT);
        Ok(Self { body: request.into_body(), turns, expects_continue })
    }
}

impl OperationInput for UplinkLines {
    fn operation_input(context: &mut GenContext, operation: &mut Operation) {
        openapi::body::<body::SimulatedUplink>(context, operation, &[MEDIA_TYPE]);
    }
}

impl IntoResponse for AnswerLines {
    fn into_response(self) -> Response {
        ([("content-type", MEDIA_TYPE)], self.0).into_response()
    }
}

impl OperationOutput for AnswerLines {
    type Inner = body::UplinkAnswer;

    fn inferred_responses(context: &mut GenContext, _: &mut Operation) -> Vec<(Option<StatusCode>, Description)> {
        let schema = context.schema.subschema_for::<body::UplinkAnswer>();
        let schema = Some(SchemaObject { json_schema: schema, example: None, external_docs: None });
        let line = MediaType { schema, ..MediaType::default() };
        let content = [(MEDIA_TYPE.to_owned(), line)].into_iter().collect();
        let description = "What became of each uplink, one per line".to_owned();
        vec![(Some(StatusCode::Code(200)), Description { description, content, ..Description::default() })]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_batches_have_bodies_of_any_length() {
        assert!(is_stream("/applications/a/uplinks"));
        for path in ["/applications/a/devices", "/applications/a/uplinks/x", "/applications/uplinks", "/", "//uplinks"]
        {
            assert!(!is_stream(path), "{path}");
        }
    }
}
