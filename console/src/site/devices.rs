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

use askama::Template;
use axum::extract::Query as Parameters;
use types::DevId;

use self::{
    chosen::each_once,
    find::Search,
    many::deleted::{Deletion, deletions},
    row::{Row, UPLINKS, rows},
};
use super::{
    failure::{Failure, Problem, partly},
    page::{Frame, Page, grouped},
    viewer::{InApplication, Sent},
};
use crate::{Result, chart::DEVICES_MAX, form::drafts::Fields};

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
    /// `last_seen`, or empty for the order of ids.
    order: String,
    rows: Vec<Row>,
    /// Number of devices that match, on all pages, and of those before this page.
    total: u64,
    position: u64,
    /// Devices that are chosen, and not on this page.
    chosen: Vec<DevId>,
    /// Names and values of the parameters of the chart.
    of_chart: Vec<(&'static str, String)>,
    /// The viewer's deletions that can be undone.
    deletions: Vec<Deletion>,
    /// Where the next page begins; empty on the last one.
    next: String,
    /// True if there are more devices than are searched.
    is_cut: bool,
    /// True if devices may have been seen later than it seems.
    is_partial: bool,
    problem: Option<Problem>,
}

pub(super) async fn list(
    request: InApplication,
    Parameters(fields): Parameters<Fields>,
) -> Result<Page<List>, Failure> {
    let sent = Sent(fields);
    let of_chart = OF_CHART.map(|name| (name, sent.value(name).to_owned())).into_iter();
    let chosen = each_once(sent.values("device").filter_map(|dev_id| dev_id.parse().ok()));
    let now = request.console.clock.now();
    let mut page = List {
        frame: request.frame.clone(),
        app_id: request.app_id().to_string(),
        tab: "devices",
        is_served: true,
        search: sent.value("search").trim().to_owned(),
        silent: sent.value("silent").trim().to_owned(),
        order: sent.value("order").to_owned(),
        rows: Vec::new(),
        total: 0,
        position: 0,
        chosen,
        of_chart: of_chart.filter(|(_, value)| !value.is_empty()).collect(),
        deletions: deletions(&request),
        next: String::new(),
        is_cut: false,
        is_partial: false,
        problem: None,
    };
    let (handler, problem) = partly(request.console.handler(&request.access).await)?;
    page.problem = problem;
    let Some(handler) = handler else { return Ok(Page::new(page)) };
    let Some(handler) = handler else {
        page.is_served = false;
        return Ok(Page::new(page));
    };
    let (search, problem) = partly(Search::sent(&sent, now))?;
    page.problem = problem;
    let Some(search) = search else { return Ok(Page::new(page)) };
    // A place in another order, which was chosen since, would leave devices out.
    let goes_on = sent.values("ordered").all(|ordered| ordered == sent.value("order"));
    let after = if goes_on { sent.value("after") } else { "" };
    let (found, problem) = partly(search.page(&handler, request.app_id(), after).await)?;
    page.problem = problem;
    if let Some(found) = found {
        (page.total, page.position) = (found.total.into(), found.position.into());
        (page.is_cut, page.is_partial) = (found.is_cut, found.is_partial);
        page.next.clone_from(&found.next);
        page.rows = rows(&request, &handler, found, &sent.values("late").collect()).await;
        if let Some(since) = search.not_seen_since {
            page.rows.iter_mut().for_each(|row| row.note_silence(since, now));
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

    /// The place of the page among all devices that match.
    fn place(&self) -> String {
        let (first, last) = (self.position + 1, self.position + self.rows.len() as u64);
        let span = if first == last { grouped(first) } else { format!("{}–{}", grouped(first), grouped(last)) };
        format!("{span} of {}", self.total_text())
    }

    fn total_text(&self) -> String {
        grouped(self.total)
    }

    fn is_search(&self) -> bool {
        !self.search.is_empty() || !self.silent.is_empty()
    }

    /// Number of devices whose uplinks were not found in time.
    fn late(&self) -> usize {
        self.rows.iter().filter(|row| row.is_late).count()
    }

    fn devices_max(&self) -> usize {
        DEVICES_MAX
    }

    fn uplinks(&self) -> u32 {
        UPLINKS
    }
}
