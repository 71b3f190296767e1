//! The devices of an application: a table with search, when each was last seen, in pages. Its boxes choose the devices
//! of a chart, or those that are changed together.

pub(super) mod charts;
mod chosen;
mod find;
pub(super) mod import;
pub(super) mod many;
pub(super) mod new;
mod steps;

use std::num::NonZeroUsize;

use api::{
    handler::{Device, device::Device as Network},
    history::Query,
};
use askama::Template;
use axum::extract::Query as Parameters;
use client::handler::HandlerClient;
use futures::{StreamExt, stream};
use types::DevId;

use self::{
    chosen::each_once,
    find::{dev_eui, find},
};
use super::{
    failure::{Failure, Problem, partly},
    page::{Frame, Page, Time},
    viewer::{InApplication, Sent},
};
use crate::{Result, chart::DEVICES_MAX, form::drafts::Fields};

/// Number of the last messages that are searched for devices.
const MESSAGES: u32 = 1000;
/// Maximum number of devices whose last message is looked up at the same time.
const PARALLEL: usize = 8;
/// What a chart has, beside its devices: the parameters that stay while devices are chosen for it.
const OF_CHART: [&str; 3] = ["since", "until", "field"];

#[derive(Template)]
#[template(path = "devices.html")]
pub(super) struct List {
    frame: Frame,
    app_id: String,
    tab: &'static str,
    /// True if a handler serves the application.
    is_served: bool,
    search: String,
    rows: Vec<Row>,
    /// Devices that are chosen, and not on this page.
    chosen: Vec<DevId>,
    /// Names and values of the parameters of the chart.
    of_chart: Vec<(&'static str, String)>,
    /// The number of the next page, if there is one.
    next: Option<usize>,
    /// True if there are more devices than are searched.
    is_cut: bool,
    problem: Option<Problem>,
}

/// A device in the table.
pub(super) struct Row {
    dev_id: String,
    dev_eui: String,
    description: String,
    attributes: Vec<(String, String)>,
    last_seen: Option<Time>,
    is_chosen: bool,
}

pub(super) async fn list(
    request: InApplication,
    Parameters(fields): Parameters<Fields>,
) -> Result<Page<List>, Failure> {
    let sent = Sent(fields);
    let number = sent.value("page").parse::<NonZeroUsize>().map_or(1, NonZeroUsize::get);
    let of_chart = OF_CHART.map(|name| (name, sent.value(name).to_owned())).into_iter();
    let chosen = each_once(sent.values("device").filter_map(|dev_id| dev_id.parse().ok()));
    let mut page = List {
        frame: request.frame.clone(),
        app_id: request.app_id().to_string(),
        tab: "devices",
        is_served: true,
        search: sent.value("search").trim().to_owned(),
        rows: Vec::new(),
        chosen,
        of_chart: of_chart.filter(|(_, value)| !value.is_empty()).collect(),
        next: None,
        is_cut: false,
        problem: None,
    };
    let (handler, problem) = partly(request.console.handler(&request.access).await)?;
    page.problem = problem;
    let Some(handler) = handler else { return Ok(Page::new(page)) };
    let Some(handler) = handler else {
        page.is_served = false;
        return Ok(Page::new(page));
    };
    let (found, problem) = partly(find(&request, &handler, &page.search, number).await)?;
    page.problem = problem;
    if let Some(found) = found {
        page.next = found.has_more.then_some(number.saturating_add(1));
        page.is_cut = found.is_cut;
        let rows = stream::iter(found.devices).map(|device| row(&request, &handler, device)).buffered(PARALLEL);
        page.rows = rows.collect().await;
        complete(&request, &handler, &mut page.rows).await;
        page.tick();
    }
    Ok(Page::new(page))
}

impl List {
    /// Ticks the rows of devices that are chosen.
    fn tick(&mut self) {
        for row in &mut self.rows {
            row.is_chosen = self.chosen.iter().any(|dev_id| dev_id.as_str() == row.dev_id);
        }
        self.chosen.retain(|dev_id| !self.rows.iter().any(|row| row.dev_id == dev_id.as_str()));
        self.chosen.sort_unstable();
    }

    fn devices_max(&self) -> usize {
        DEVICES_MAX
    }
}

async fn row(request: &InApplication, handler: &HandlerClient, device: Device) -> Row {
    let mut attributes: Vec<_> = device.attributes.clone().into_iter().collect();
    attributes.sort();
    Row {
        dev_eui: dev_eui(&device),
        last_seen: last_seen(request, handler, &device.dev_id).await,
        dev_id: device.dev_id,
        description: device.description,
        attributes,
        is_chosen: false,
    }
}

/// Lists leave it out. None too if the device has just been deleted.
async fn last_seen(request: &InApplication, handler: &HandlerClient, dev_id: &str) -> Option<Time> {
    let dev_id: DevId = dev_id.parse().ok()?;
    let device = handler.get_device(request.app_id(), &dev_id).await.ok()?;
    let Network::LorawanDevice(lorawan) = device.device?;
    (lorawan.last_seen > 0).then_some(Time(lorawan.last_seen))
}

/// Takes from the last messages when devices without frame counters were seen, such as simulated ones. Without history,
/// they stay as they are.
async fn complete(request: &InApplication, handler: &HandlerClient, rows: &mut [Row]) {
    if rows.iter().all(|row| row.last_seen.is_some()) {
        return;
    }
    let (app_id, kind) = (request.app_id().to_string(), "up".to_owned());
    let query = Query { app_id, kind, limit: MESSAGES, ..Query::default() };
    let records = handler.list_records(query).await.map(|list| list.records).unwrap_or_default();
    for row in rows.iter_mut().filter(|row| row.last_seen.is_none()) {
        let newest = records.iter().find(|record| record.dev_id == row.dev_id);
        row.last_seen = newest.map(|record| Time(record.time));
    }
}
