//! One message, whole.

mod deliveries;
mod rerun;

use std::slice::from_ref;

use api::{
    handler::{Application, Device},
    history::{Correction, Record},
    version::Version,
};
use askama::Template;
use axum::{
    http::header,
    response::{IntoResponse, Response},
};
use base64::{Engine, engine::general_purpose::STANDARD};
use client::handler::HandlerClient;
use serde_json::{Value, json};
use server::site::sentence;
use types::{DevId, GatewayMetadata, Kind, Kinded, Metadata, Timestamp};

use self::{deliveries::Deliveries, rerun::Rerun};
use crate::site::{
    failure::Failure,
    functions::candidate::rounded,
    messages::recorded_apart,
    page::{Frame, Page, Time, grouped, hex, pretty, shown, shown_lines},
    viewer::InApplication,
};
use crate::{
    Error, Result,
    functions::failed_line::FailedLine,
    map::Map,
    messages::{example, playground},
};

/// Number of lines that are shown before and after the one that failed.
const LINES_AROUND: usize = 3;

#[derive(Template)]
#[template(path = "message.html")]
pub(in crate::site) struct Show {
    frame: Frame,
    app_id: String,
    tab: &'static str,
    record: Record,
    time: Time,
    recorded: Option<Time>,
    failure: String,
    payload: String,
    payload_base64: String,
    fields: String,
    normalized: String,
    logs: Vec<(String, String)>,
    excerpt: Vec<Line>,
    metadata: Option<Metadata>,
    map: Option<Map>,
    extra: String,
    /// The link that opens it in the playground.
    playground: Option<String>,
    /// The text of a file with it as an example for tests.
    example: Option<String>,
    /// The result of the live functions, if somebody has asked for it.
    rerun: Option<Rerun>,
    deliveries: Deliveries,
    /// The reason why this version ran; empty if it is not known.
    why: String,
}

/// A line of a function.
struct Line {
    number: usize,
    text: String,
    failed: bool,
}

impl Show {
    /// Returns true if other functions may help: they ran on an uplink, or an encoder failed.
    fn is_of_functions(&self) -> bool {
        self.record.kind == "up" || FailedLine::of(&self.record.failure).is_some()
    }

    /// The newest correction of it, and when it was recorded.
    fn corrected(&self) -> Option<(&Correction, Time)> {
        self.record.corrections.first().map(|newest| (newest, Time(newest.recorded)))
    }

    fn fuel(&self) -> String {
        grouped(self.record.fuel)
    }

    fn gateways(&self) -> &[GatewayMetadata] {
        self.metadata.as_ref().map(|metadata| metadata.gateways.as_slice()).unwrap_or_default()
    }
}

pub(in crate::site) async fn show(request: InApplication) -> Result<Page<Show>, Failure> {
    let handler = request.handler().await?;
    let record = record(&request, &handler).await?;
    page(&request, &handler, (record, None)).await
}

/// Runs the live functions on the message, and shows the result beside the stored one. Nothing changes.
pub(in crate::site) async fn run(request: InApplication) -> Result<Page<Show>, Failure> {
    let handler = request.handler().await?;
    let record = record(&request, &handler).await?;
    if record.kind != "up" {
        return Err(Error::NotFound("uplink").into());
    }
    let rerun = Rerun::of(&request, &handler, record.clone()).await?;
    page(&request, &handler, (record, Some(rerun))).await
}

async fn page(
    request: &InApplication,
    handler: &HandlerClient,
    (record, rerun): (Record, Option<Rerun>),
) -> Result<Page<Show>, Failure> {
    let version = version(request, handler, &record).await?;
    let metadata = metadata(request, handler, &record).await?;
    let deliveries = Deliveries::of(request, &record).await;
    let example = example::text(&version, &record);
    let why = why(&version, &record);
    let functions = version.functions.unwrap_or_default();
    let map = metadata.as_ref().and_then(|metadata| Map::of(metadata, request.console.map_tiles.as_deref()));
    let tiles = map.as_ref().and_then(|map| map.tiles.as_ref()).map(|tiles| tiles.origin.clone());
    let logs = record.logs.iter().map(|log| (log.function.clone(), shown_lines(&log.fields.join(" ")))).collect();
    let page = Page::new(Show {
        frame: request.frame.clone(),
        app_id: request.app_id().to_string(),
        tab: "messages",
        time: Time(record.time),
        recorded: recorded_apart(&record),
        failure: shown_lines(&sentence(&record.failure)),
        payload: hex(&record.payload),
        payload_base64: STANDARD.encode(&record.payload),
        fields: pretty(&record.fields),
        normalized: pretty(&record.normalized),
        logs,
        excerpt: excerpt(&functions, &record),
        map,
        metadata,
        extra: pretty(&record.extra),
        playground: playground::link(&functions, from_ref(&record)),
        example,
        rerun,
        deliveries,
        why,
        record: Record { warnings: record.warnings.iter().map(|warning| shown_lines(warning)).collect(), ..record },
    });
    Ok(page.with_images_from(tiles))
}

/// The whole record, for programs and for reports of errors.
pub(in crate::site) async fn json(request: InApplication) -> Result<Response, Failure> {
    let record = record(&request, &request.handler().await?).await?;
    let text = serde_json::to_string_pretty(&body(&record)).unwrap_or_default();
    let headers = [(header::CONTENT_TYPE, "application/json"), (header::CACHE_CONTROL, "no-store")];
    Ok((headers, [(header::X_CONTENT_TYPE_OPTIONS, "nosniff")], text).into_response())
}

/// The message as an example, as a file to keep beside its source.
pub(in crate::site) async fn test(request: InApplication) -> Result<Response, Failure> {
    let handler = request.handler().await?;
    let record = record(&request, &handler).await?;
    let version = version(&request, &handler, &record).await?;
    let text = example::text(&version, &record).ok_or(Error::NotFound("test of this message"))?;
    let name = format!("attachment; filename=\"{}.test.yaml\"", record.dev_id);
    let headers = [(header::CONTENT_TYPE, "application/yaml"), (header::CACHE_CONTROL, "no-store")];
    let file = [(header::CONTENT_DISPOSITION, name), (header::X_CONTENT_TYPE_OPTIONS, "nosniff".to_owned())];
    Ok((headers, file, text).into_response())
}

async fn record(request: &InApplication, handler: &HandlerClient) -> Result<Record> {
    let found = handler.get_record(request.app_id(), request.parameter("id")).await;
    found.map_err(|error| match error.kind() {
        // An id that cannot be one is not found either.
        Kind::Invalid => Error::NotFound("message"),
        _ => Error::hiding("message", error),
    })
}

/// The version that ran on an uplink, or the live one if that is not known; without functions if neither is stored, or if
/// the viewer may not see functions.
async fn version(request: &InApplication, handler: &HandlerClient, record: &Record) -> Result<Version> {
    if record.kind != "up" {
        return Ok(Version::default());
    }
    match handler.get_version(request.app_id(), record.version).await {
        Ok(version) => Ok(version),
        Err(error) if matches!(error.kind(), Kind::NotFound | Kind::Denied) => Ok(Version::default()),
        Err(error) => Err(error.into()),
    }
}

/// Says why a version ran, by what it is now.
fn why(version: &Version, record: &Record) -> String {
    let share = rounded(version.share_percent);
    match version.number == record.version {
        true if version.live => "the one that is live".to_owned(),
        true if share > 0.0 => format!("rolled out to {share}% of the devices, of which this is one"),
        true if version.number > 0 => "live or rolled out to this device then, and not any more".to_owned(),
        _ => String::new(),
    }
}

/// Describes how a message was received, with the location of the device, which few networks send.
async fn metadata(request: &InApplication, handler: &HandlerClient, record: &Record) -> Result<Option<Metadata>> {
    let Ok(mut metadata) = serde_json::from_str::<Metadata>(&record.metadata) else { return Ok(None) };
    metadata.gateways.iter_mut().for_each(|gateway| gateway.gtw_id = shown(&gateway.gtw_id));
    for text in [&mut metadata.data_rate, &mut metadata.coding_rate] {
        *text = shown(text);
    }
    let is_located = metadata.latitude != 0.0 || metadata.longitude != 0.0;
    let dev_id = record.dev_id.parse::<DevId>().ok().filter(|_| !is_located);
    let Some(dev_id) = dev_id else { return Ok(Some(metadata)) };
    match handler.get_device(request.app_id(), &dev_id).await {
        Ok(Device { latitude, longitude, .. }) => Ok(Some(Metadata { latitude, longitude, ..metadata })),
        Err(error) if matches!(error.kind(), Kind::NotFound | Kind::Denied) => Ok(Some(metadata)),
        Err(error) => Err(error.into()),
    }
}

/// The lines of the version that ran around the one that failed; none if it is not known any more.
fn excerpt(functions: &Application, record: &Record) -> Vec<Line> {
    let failed = FailedLine::of(&record.failure).filter(|_| record.version > 0);
    failed.map(|failed| around(failed.source(functions), failed.number)).unwrap_or_default()
}

fn around(source: &str, failed: usize) -> Vec<Line> {
    let lines = source.lines().enumerate().map(|(index, text)| (index + 1, text));
    let near = lines.filter(|(number, _)| number.abs_diff(failed) <= LINES_AROUND);
    near.map(|(number, text)| Line { number, text: shown_lines(text), failed: number == failed }).collect()
}

fn body(record: &Record) -> Value {
    let value = |text: &str| serde_json::from_str::<Value>(text).unwrap_or(Value::Null);
    let logs: Vec<_> = record.logs.iter().map(|log| json!({"function": log.function, "fields": log.fields})).collect();
    let corrections: Vec<_> = record.corrections.iter().map(correction).collect();
    json!({
        "id": record.id,
        "time": Timestamp::from_nanos(record.time).to_rfc3339(),
        "recorded": Timestamp::from_nanos(record.recorded).to_rfc3339(),
        "kind": record.kind,
        "dev_id": record.dev_id,
        "port": record.port,
        "counter": record.counter,
        "confirmed": record.confirmed,
        "is_retry": record.is_retry,
        "payload": STANDARD.encode(&record.payload),
        "outcome": record.outcome,
        "fields": value(&record.fields),
        "normalized": value(&record.normalized),
        "failure": record.failure,
        "warnings": record.warnings,
        "logs": logs,
        "metadata": value(&record.metadata),
        "extra": value(&record.extra),
        "fuel": record.fuel,
        "microseconds": record.microseconds,
        "version": record.version,
        "functions": record.functions,
        "seed": record.seed,
        "revision": record.revision,
        "corrects": record.corrects,
        "corrections": corrections,
        "unreadable_files": record.unreadable_files,
    })
}

fn correction(Correction { id, revision, version, recorded }: &Correction) -> Value {
    let recorded = Timestamp::from_nanos(*recorded).to_rfc3339();
    json!({"id": id, "revision": revision, "version": version, "recorded": recorded})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_ran_because_it_is_live_or_was_or_is_rolled_out() {
        let why = |live, share_percent, number| {
            let version = Version { live, share_percent, number, ..Version::default() };
            why(&version, &Record { version: 2, ..Record::default() })
        };
        assert_eq!(why(true, 0.0, 2), "the one that is live");
        assert!(why(false, 12.5, 2).starts_with("rolled out to 12.5% of the devices"));
        assert!(why(false, 0.0, 2).ends_with("not any more"));
        assert_eq!(why(true, 0.0, 0), "", "whoever may not see functions is told no version");
    }

    #[test]
    fn an_excerpt_has_the_lines_around_and_no_others() {
        let source = (1..=20).map(|number| format!("line {number}\n")).collect::<String>();
        let numbers = |failed| around(&source, failed).iter().map(|line| line.number).collect::<Vec<_>>();
        assert_eq!(numbers(10), [7, 8, 9, 10, 11, 12, 13]);
        assert_eq!(numbers(1), [1, 2, 3, 4]);
        assert_eq!(numbers(40), Vec::<usize>::new());
    }
}
