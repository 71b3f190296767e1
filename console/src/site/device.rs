//! A device: its facts, its last messages, its downlinks.

pub(super) mod change;
pub(super) mod delete;
pub(super) mod downlinks;
pub(super) mod fields;
mod form;
pub(super) mod generated;
mod sent;
pub(super) mod uplinks;

use api::{
    downlink::Downlink,
    handler::{Device, device::Device as Network},
    history::{Query, RecordList},
};
use askama::Template;
use axum::{
    http::StatusCode,
    response::{IntoResponse, Redirect, Response},
};
use client::handler::{DeviceActivity, HandlerClient};
use types::{AppId, DevId};

use self::{form::Forms, sent::DownlinkRow};
use super::{
    failure::{Failure, Problem, partly},
    messages::Row,
    page::{Frame, Page, Time, hex, shown},
    viewer::InApplication,
};
use crate::{Error, Result};

/// Number of messages on the page.
const MESSAGES: u32 = 10;

#[derive(Template)]
#[template(path = "device.html")]
pub(super) struct Show {
    frame: Frame,
    app_id: String,
    tab: &'static str,
    facts: Facts,
    rows: Vec<Row>,
    /// Files of history that the handler cannot read.
    unreadable: Vec<String>,
    messages_problem: Option<Problem>,
    queue: Vec<Queued>,
    queue_problem: Option<Problem>,
    /// The last downlinks; none if history did not answer in time.
    sent: Option<Vec<DownlinkRow>>,
    forms: Forms,
}

/// Ids, attributes and state of a device.
#[derive(Default)]
struct Facts {
    dev_id: String,
    description: String,
    identifiers: Vec<(&'static str, String)>,
    attributes: Vec<(String, String)>,
    counters: String,
    last_seen: Option<Time>,
}

/// A downlink that waits.
struct Queued {
    port: u32,
    payload: String,
    confirmed: bool,
}

pub(super) async fn show(request: InApplication) -> Result<Page<Show>, Failure> {
    page(&request, Forms::default()).await
}

/// The page of the device that the path names, with forms of which one may have been refused.
async fn page(request: &InApplication, forms: Forms) -> Result<Page<Show>, Failure> {
    let dev_id = dev_id(request)?;
    let handler = request.handler().await?;
    let device = handler.get_device(request.app_id(), &dev_id).await;
    let device = device.map_err(|error| Error::hiding("device", error))?;
    let (facts, messages, queue, mut sent) = tokio::join!(
        facts(&handler, (request.app_id(), &dev_id), device),
        messages(request, &handler, &dev_id),
        queue(request, &handler, &dev_id),
        sent::rows(request, &handler, &dev_id)
    );
    let ((messages, messages_problem), (queue, queue_problem)) = (partly(messages)?, partly(queue)?);
    if let (Some(sent), Some(queue)) = (&mut sent, &queue) {
        sent::compare(sent, queue);
    }
    let RecordList { records, unreadable, .. } = messages.unwrap_or_default();
    let status = if forms.problem.is_some() { StatusCode::BAD_REQUEST } else { StatusCode::OK };
    let page = Page::new(Show {
        frame: request.frame.clone(),
        app_id: request.app_id().to_string(),
        tab: "devices",
        facts,
        rows: records.into_iter().map(Row::new).collect(),
        unreadable,
        messages_problem,
        queue: queue.unwrap_or_default(),
        queue_problem,
        sent,
        forms,
    });
    Ok(page.with_status(status))
}

/// The page with what was entered, and why nothing came of it.
async fn refused(request: &InApplication, forms: Forms, error: &Error) -> Result<Response, Failure> {
    let forms = Forms { problem: Some(Problem::of(error)), ..forms };
    Ok(page(request, forms).await?.into_response())
}

/// The way back to the page, with a notice.
fn done(request: &InApplication, notice: &str) -> Response {
    let path = format!("{}/devices/{}?done={notice}", request.path(), request.parameter("dev_id"));
    Redirect::to(&path).into_response()
}

/// The device that the path names.
fn dev_id(request: &InApplication) -> Result<DevId> {
    request.parameter("dev_id").parse().map_err(|_| Error::NotFound("device"))
}

/// The facts in a device's record, and where that lacks uplinks, in history.
async fn facts(handler: &HandlerClient, (app_id, dev_id): (&AppId, &DevId), device: Device) -> Facts {
    let attributes = device.attributes.iter().map(|(key, value)| (shown(key), shown(value)));
    let mut attributes: Vec<_> = attributes.collect();
    attributes.sort();
    let facts =
        Facts { dev_id: device.dev_id, description: shown(&device.description), attributes, ..Facts::default() };
    let Some(Network::LorawanDevice(lorawan)) = device.device else { return facts };
    let heard = handler.device_activity(app_id, dev_id, lorawan.last_seen).await;
    // What is wrong with history, the messages say.
    let heard = heard.unwrap_or(DeviceActivity { last_seen: lorawan.last_seen, f_cnt_up: None });
    let identifiers =
        [("DevEUI", hex(&lorawan.dev_eui)), ("AppEUI", hex(&lorawan.app_eui)), ("DevAddr", hex(&lorawan.dev_addr))];
    Facts {
        identifiers: identifiers.into_iter().filter(|(_, value)| value.bytes().any(|byte| byte != b'0')).collect(),
        counters: match heard.f_cnt_up {
            Some(f_cnt_up) => format!("{f_cnt_up} up; its network counts downlinks"),
            None => format!("{} up, {} down", lorawan.f_cnt_up, lorawan.f_cnt_down),
        },
        last_seen: (heard.last_seen > 0).then_some(Time(heard.last_seen)),
        ..facts
    }
}

async fn messages(request: &InApplication, handler: &HandlerClient, dev_id: &DevId) -> Result<RecordList> {
    let (app_id, dev_id) = (request.app_id().to_string(), dev_id.to_string());
    let query = Query { app_id, dev_id, limit: MESSAGES, without_changes: true, ..Query::default() };
    Ok(handler.list_records(query).await?)
}

async fn queue(request: &InApplication, handler: &HandlerClient, dev_id: &DevId) -> Result<Vec<Queued>> {
    let downlinks = handler.list_downlinks(request.app_id(), dev_id).await?;
    let queued = |Downlink { port, payload_raw, confirmed, .. }| Queued { port, payload: hex(&payload_raw), confirmed };
    Ok(downlinks.into_iter().map(queued).collect())
}
