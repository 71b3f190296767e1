//! The devices of an application: a table with search, in pages. Its boxes choose the devices of a chart, or those that
//! are changed together.

mod battery;
pub(super) mod charts;
mod chosen;
pub(super) mod export;
mod find;
pub(super) mod import;
pub(super) mod many;
pub(super) mod new;
mod row;
mod steps;

use std::num::NonZeroUsize;

use askama::Template;
use axum::extract::Query as Parameters;
use types::DevId;

use self::{
    chosen::each_once,
    find::find,
    many::deleted::{Deletion, deletions},
    row::{Row, rows},
};
use super::{
    failure::{Failure, Problem, partly},
    page::{Frame, Page},
    viewer::{InApplication, Sent},
};
use crate::{Result, chart::DEVICES_MAX, form::drafts::Fields, messages::history::time};

/// Parameters of a chart beside its devices: those that stay while devices are chosen for it.
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
    /// The time since which devices are silent that are shown; empty to show all.
    silent: String,
    /// Number of devices that the page has looked at.
    looked_at: usize,
    rows: Vec<Row>,
    /// Devices that are chosen, and not on this page.
    chosen: Vec<DevId>,
    /// Names and values of the parameters of the chart.
    of_chart: Vec<(&'static str, String)>,
    /// The viewer's deletions that can be undone.
    deletions: Vec<Deletion>,
    /// The number of the next page, if there is one.
    next: Option<usize>,
    /// True if there are more devices than are searched.
    is_cut: bool,
    problem: Option<Problem>,
}

pub(super) async fn list(
    request: InApplication,
    Parameters(fields): Parameters<Fields>,
) -> Result<Page<List>, Failure> {
    let sent = Sent(fields);
    let number = sent.value("page").parse::<NonZeroUsize>().map_or(1, NonZeroUsize::get);
    let of_chart = OF_CHART.map(|name| (name, sent.value(name).to_owned())).into_iter();
    let chosen = each_once(sent.values("device").filter_map(|dev_id| dev_id.parse().ok()));
    let (now, silent) = (request.console.clock.now(), sent.value("silent").trim().to_owned());
    let mut page = List {
        frame: request.frame.clone(),
        app_id: request.app_id().to_string(),
        tab: "devices",
        is_served: true,
        search: sent.value("search").trim().to_owned(),
        silent,
        looked_at: 0,
        rows: Vec::new(),
        chosen,
        of_chart: of_chart.filter(|(_, value)| !value.is_empty()).collect(),
        deletions: deletions(&request),
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
    let (since, problem) = partly(time("“Not seen since”", &page.silent, now))?;
    page.problem = problem;
    let Some(since) = since else { return Ok(Page::new(page)) };
    let (found, problem) = partly(find(&request, &handler, &page.search, number).await)?;
    page.problem = problem;
    if let Some(found) = found {
        page.next = found.has_more.then_some(number.saturating_add(1));
        page.is_cut = found.is_cut;
        page.rows = rows(&request, &handler, found.devices).await;
        page.looked_at = page.rows.len();
        if let Some(since) = since {
            page.rows.iter_mut().for_each(|row| row.note_silence(since, now));
            page.rows.retain(|row| row.silence.is_some());
        }
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
