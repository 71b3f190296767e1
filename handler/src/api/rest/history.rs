//! History of messages over HTTP, with paths of our own.

use std::{marker::PhantomData, sync::Arc};

use ::history::{ExportPart, Format};
use aide::{
    OperationOutput,
    axum::{
        ApiRouter,
        routing::{get_with, post_with},
    },
    generate::GenContext,
    openapi::{MediaType, Operation, Response as Description, SchemaObject, StatusCode},
};
use api::rest::handler as body;
use axum::{
    body::Body,
    extract::{Path, Query, State, rejection::QueryRejection},
    http::{HeaderName, HeaderValue},
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use futures::{Stream, StreamExt, TryStreamExt};
use http_body::Frame;
use http_body_util::StreamBody;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use server::{
    auth::Presented,
    json::{Json, JsonObject},
    openapi::OperationExt,
    serve::PartTurns,
    status::ErrorChain,
};
use types::{AppId, Kind, Kinded};

use super::{ApplicationPath, HttpResult, Shared};
use crate::{
    Error,
    api::{
        operations::Operations,
        wire::{
            app_id,
            chart::SentChart,
            decode_again::SentDecodeAgain,
            export::format,
            history::{SentQuery, list_body, record_id, whole_record_body},
            send_again::SentSendAgain,
        },
    },
    uplink::stored::file_names,
};

/// A record, as its path names it.
#[derive(Deserialize, JsonSchema)]
#[schemars(inline)]
struct RecordPath {
    /// The application.
    #[schemars(with = "AppId")]
    app_id: String,
    /// The id of the record.
    id: String,
}

/// A file of records, as its path names it.
#[derive(Deserialize, JsonSchema)]
#[schemars(inline)]
struct ExportPath {
    /// The application.
    #[schemars(with = "AppId")]
    app_id: String,
    /// `jsonl`, `csv` or `parquet`.
    format: String,
}

/// A file of records, with a trailer if some are missing.
struct ExportResponse {
    format: Format,
    body: Body,
}

/// Reports, a line each.
struct ReportLines<R> {
    lines: Body,
    reports: PhantomData<R>,
}

pub(super) fn routes() -> ApiRouter<Arc<Operations>> {
    let list = get_with(list, |op| {
        op.doc("ListRecords", "List the uplinks and events of an application that were kept, the newest first")
            .fails(&[Kind::NotFound])
    });
    let export = get_with(export, |op| {
        op.doc(
            "ExportRecords",
            "Get the uplinks and events of an application that were kept as a file: `jsonl`, `csv` or `parquet`. \
             `limit` does not matter. If a file of history cannot be read, the trailer `airlock-unreadable-files` names it, \
             for clients that send `te: trailers`",
        )
        .fails(&[Kind::NotFound])
    });
    let chart = get_with(chart, |op| {
        op.doc(
            "GetChart",
            "Get the numeric fields of a device over time, as so many points: the least, mean and greatest value of each \
             part of the time",
        )
        .fails(&[Kind::NotFound])
    });
    let decode = post_with(decode_again, |op| {
        op.doc(
            "DecodeAgain",
            "Run functions on stored uplinks again, and compare the results with those that are stored. The response \
             is a report per line, each with what was found since the one before; the last one is `done`, or has an \
             `error`. Nothing changes without `write`, and nothing is published without `publish`. Needs the right \
             messages:up:r, and settings or devices; with `write` settings, with `publish` messages:up:w",
        )
        .fails(&[Kind::NotFound])
    });
    let send = post_with(send_again, |op| {
        op.doc(
            "SendAgain",
            "Send stored messages again, the oldest first, with `is_retry`. They wait for room behind live messages. The \
             response is a report per line, each with what became of messages since the one before; the last one is \
             `done`, or has an `error`. If the message with the `id` was not found, but may be in a file of history \
             that cannot be read, the status is 503, and the error names the file. Needs the rights messages:up:r and \
             messages:up:w",
        )
        .fails(&[Kind::NotFound])
    });
    ApiRouter::new()
        .api_route("/applications/{app_id}/history", list)
        .api_route("/applications/{app_id}/history/export/{format}", export)
        .api_route("/applications/{app_id}/history/chart", chart)
        .api_route("/applications/{app_id}/history/decode", decode)
        .api_route("/applications/{app_id}/history/replay", send)
        .merge(routes_of_record())
}

fn routes_of_record() -> ApiRouter<Arc<Operations>> {
    let record = get_with(get, |op| {
        op.doc(
            "GetRecord",
            "Get an uplink or event that was kept. If it was not found, but may be in a file of history that cannot be \
             read, the status is 503, and the error names the file",
        )
        .fails(&[Kind::NotFound])
    });
    let deliveries = get_with(list_deliveries, |op| {
        op.doc(
            "ListDeliveries",
            "Say what became of a kept uplink or event at each receiver that gets such messages now: whether it waits, with \
             the attempts to deliver it, was delivered, or was given up. The handler that delivers remembers the newest \
             deliveries of each receiver. With the right settings, webhooks are among them",
        )
        .fails(&[Kind::NotFound])
    });
    ApiRouter::new()
        .api_route("/applications/{app_id}/history/{id}", record)
        .api_route("/applications/{app_id}/history/{id}/deliveries", deliveries)
}

async fn list(
    State(operations): Shared,
    Path(path): Path<ApplicationPath>,
    query: Result<Query<SentQuery>, QueryRejection>,
    Presented(caller): Presented,
) -> HttpResult<Json<body::RecordList>> {
    let app_id = app_id(&path.app_id)?;
    let page = operations.list_records(caller?, sent(query)?.into_query(app_id)?).await?;
    Ok(Json(list_body(page)))
}

async fn chart(
    State(operations): Shared,
    Path(path): Path<ApplicationPath>,
    query: Result<Query<SentChart>, QueryRejection>,
    Presented(caller): Presented,
) -> HttpResult<Json<body::Chart>> {
    let Query(sent) = query.map_err(|error| Error::invalid("Query", error.body_text()))?;
    let query = sent.into_query(app_id(&path.app_id)?, operations.clock.now())?;
    Ok(Json(operations.chart(caller?, query).await?))
}

async fn export(
    State(operations): Shared,
    Path(path): Path<ExportPath>,
    query: Result<Query<SentQuery>, QueryRejection>,
    Presented(caller): Presented,
) -> HttpResult<ExportResponse> {
    let app_id = app_id(&path.app_id)?;
    let format = format(&path.format)?;
    let query = sent(query)?.into_query(app_id)?;
    let parts = operations.export_records(caller?, query, format).await?;
    let frames = parts.map_ok(frame).inspect_err(|error| {
        tracing::warn!(error = %ErrorChain(error), "an export of history was cut off");
    });
    Ok(ExportResponse { format, body: Body::new(StreamBody::new(frames)) })
}

fn frame(part: ExportPart) -> Frame<Bytes> {
    match part {
        ExportPart::Bytes(bytes) => Frame::data(bytes),
        ExportPart::Unreadable(files) => {
            let name = HeaderName::from_static(body::UNREADABLE_TRAILER);
            let names = HeaderValue::try_from(file_names(&files)).ok();
            Frame::trailers(names.map(|names| (name, names)).into_iter().collect())
        }
    }
}

async fn get(
    State(operations): Shared,
    Path(path): Path<RecordPath>,
    Presented(caller): Presented,
) -> HttpResult<Json<body::Record>> {
    let (app_id, id) = (app_id(&path.app_id)?, record_id(&path.id)?);
    Ok(Json(whole_record_body(operations.get_record(caller?, &app_id, id).await?)))
}

async fn list_deliveries(
    State(operations): Shared,
    Path(path): Path<RecordPath>,
    Presented(caller): Presented,
) -> HttpResult<Json<body::DeliveryList>> {
    let (app_id, id) = (app_id(&path.app_id)?, record_id(&path.id)?);
    Ok(Json(body::DeliveryList { deliveries: operations.list_deliveries(caller?, &app_id, id).await? }))
}

async fn decode_again(
    State(operations): Shared,
    Path(path): Path<ApplicationPath>,
    Presented(caller): Presented,
    turns: PartTurns,
    JsonObject(body): JsonObject<body::DecodeAgain>,
) -> HttpResult<ReportLines<body::DecodeReport>> {
    let sent = SentDecodeAgain::parse(app_id(&path.app_id)?, body)?;
    let reports = operations.decode_again(caller?, sent, turns).await?;
    Ok(ReportLines::new(reports.map(|report| {
        report.unwrap_or_else(|error| {
            tracing::warn!(error = %ErrorChain(&error), "decoding again was cut off");
            let temporary = error.kind() == Kind::Unavailable;
            body::DecodeReport { error: error.to_string(), temporary, ..body::DecodeReport::default() }
        })
    })))
}

async fn send_again(
    State(operations): Shared,
    Path(path): Path<ApplicationPath>,
    Presented(caller): Presented,
    JsonObject(body): JsonObject<body::SendAgain>,
) -> HttpResult<ReportLines<body::SendReport>> {
    let sent = SentSendAgain::parse(app_id(&path.app_id)?, body)?;
    let reports = operations.send_again(caller?, sent).await?;
    Ok(ReportLines::new(reports.map(|report| {
        report.unwrap_or_else(|error| {
            tracing::warn!(error = %ErrorChain(&error), "sending again was cut off");
            let temporary = error.kind() == Kind::Unavailable;
            body::SendReport { error: error.to_string(), temporary, ..body::SendReport::default() }
        })
    })))
}

fn sent(query: Result<Query<SentQuery>, QueryRejection>) -> Result<SentQuery, Error> {
    query.map(|Query(query)| query).map_err(|error| Error::invalid("Query", error.body_text()))
}

impl<R: Serialize> ReportLines<R> {
    fn new(reports: impl Stream<Item = R> + Send + 'static) -> Self {
        let lines = reports.map(|report| {
            let mut line = serde_json::to_vec(&report)?;
            line.push(b'\n');
            Ok::<_, serde_json::Error>(line)
        });
        Self { lines: Body::from_stream(lines), reports: PhantomData }
    }
}

impl<R> IntoResponse for ReportLines<R> {
    fn into_response(self) -> Response {
        ([("content-type", Format::JsonLines.media_type())], self.lines).into_response()
    }
}

impl<R: JsonSchema> OperationOutput for ReportLines<R> {
    type Inner = Self;

    fn inferred_responses(context: &mut GenContext, _: &mut Operation) -> Vec<(Option<StatusCode>, Description)> {
        let schema = context.schema.subschema_for::<R>();
        let schema = Some(SchemaObject { json_schema: schema, example: None, external_docs: None });
        let line = MediaType { schema, ..MediaType::default() };
        let content = [(Format::JsonLines.media_type().to_owned(), line)].into_iter().collect();
        let description = "A report per line".to_owned();
        vec![(Some(StatusCode::Code(200)), Description { description, content, ..Description::default() })]
    }
}

impl IntoResponse for ExportResponse {
    fn into_response(self) -> Response {
        let Self { format, body } = self;
        let disposition = format!("attachment; filename=\"history.{}\"", format.extension());
        let headers = [
            ("content-type", format.media_type()),
            ("content-disposition", &disposition),
            ("trailer", body::UNREADABLE_TRAILER),
        ];
        (headers, body).into_response()
    }
}

impl OperationOutput for ExportResponse {
    type Inner = Self;

    fn inferred_responses(_: &mut GenContext, _: &mut Operation) -> Vec<(Option<StatusCode>, Description)> {
        let formats = [Format::JsonLines, Format::Csv, Format::Parquet];
        let content = formats.map(|format| (format.media_type().to_owned(), MediaType::default()));
        let description = "The file".to_owned();
        let response = Description { description, content: content.into_iter().collect(), ..Description::default() };
        vec![(Some(StatusCode::Code(200)), response)]
    }
}
