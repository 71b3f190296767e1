//! Many devices at once: those that were ticked in the table, or all that contain a text. This page sets and removes
//! attributes.
//!
//! The page names the devices, and the form brings back their ids: it changes those that somebody has seen.

pub(in crate::site) mod delete;
pub(in crate::site) mod deleted;
pub(in crate::site) mod moves;

use std::collections::BTreeSet;

use api::device::{ChangeDevicesRequest, ChangedDevices};
use askama::Template;
use axum::{
    extract::Query as Parameters,
    response::{IntoResponse, Response},
};
use client::handler::HandlerClient;
use types::{DevId, Kind, Kinded};

use super::{
    find::Search,
    steps::{End, Outcome, Shown},
};
use crate::{
    Error, Result,
    form::drafts::Fields,
    site::{
        device::fields::becomes_draft,
        failure::{Failure, Problem},
        page::{Frame, Page},
        viewer::{InApplication, Sent},
    },
};

/// Maximum number of devices that are changed at once.
const MANY_MAX: usize = 10_000;
/// Number of devices whose attribute is changed by one request to the handler.
const CHANGED_TOGETHER: usize = 250;

#[derive(Template)]
#[template(path = "devices_change.html")]
pub(in crate::site) struct Change {
    frame: Frame,
    app_id: String,
    tab: &'static str,
    chosen: Many,
    key: String,
    value: String,
    problem: Option<Problem>,
    /// True if it was sent when the login had expired or a service was away.
    is_draft: bool,
}

#[derive(Template)]
#[template(path = "devices_changed.html")]
struct Changed {
    frame: Frame,
    app_id: String,
    tab: &'static str,
    changed: u32,
    unchanged: u32,
    failed: usize,
    /// The step that was to be done, as the form names it.
    step: &'static str,
    /// The devices that were not changed, for the same form again.
    rest: Vec<DevId>,
    key: String,
    value: String,
    lines: Shown<(DevId, String)>,
}

/// Devices that somebody has chosen, each once.
#[derive(Clone)]
struct Many {
    ids: Vec<DevId>,
}

/// A change of the attributes of devices.
enum AttributeChange {
    Set(String, String),
    Remove(String),
}

impl Many {
    /// The devices that a page or a form names.
    async fn of(request: &InApplication, sent: &Sent) -> Result<Self> {
        if sent.value("all").is_empty() {
            return Self::named(sent);
        }
        let handler = request.handler().await?;
        let _turn = request.console.device_lists.take(&request.owner()).await;
        let search = Search::sent(sent, request.console.clock.now())?;
        let dev_ids = search.all(&handler, request.app_id(), MANY_MAX).await?;
        Self::bounded(dev_ids.into_iter().map(|dev_id| dev_id.parse().map_err(Error::from)))
    }

    fn named(sent: &Sent) -> Result<Self> {
        let must = || Error::Invalid { what: "Devices", must: "must be ids of devices".to_owned() };
        let ids = sent.values("device").chain(sent.values("ids").flat_map(str::split_whitespace));
        Self::bounded(ids.map(|id| id.parse::<DevId>().map_err(|_| must())))
    }

    fn bounded(ids: impl Iterator<Item = Result<DevId>>) -> Result<Self> {
        let ids = ids.collect::<Result<BTreeSet<_>>>()?;
        if ids.len() > MANY_MAX {
            let must = format!("must be at most {MANY_MAX} at once: search for some of them");
            return Err(Error::Invalid { what: "Devices", must });
        }
        Ok(Self { ids: ids.into_iter().collect() })
    }

    fn count(&self) -> usize {
        self.ids.len()
    }

    /// The ids, as forms bring them back.
    fn text(&self) -> String {
        text(&self.ids)
    }

    /// The ids that a page shows.
    fn shown(&self) -> Shown<&DevId> {
        self.ids.iter().collect()
    }
}

impl Changed {
    fn text(&self) -> String {
        text(&self.rest)
    }
}

impl AttributeChange {
    fn sent(sent: &Sent) -> Result<Self> {
        let (key, value) = (sent.value("key").trim().to_owned(), sent.value("value").trim().to_owned());
        match sent.value("step") {
            _ if key.is_empty() => Err(Error::Invalid { what: "Key", must: "must not be empty".to_owned() }),
            "remove" => Ok(Self::Remove(key)),
            _ => Ok(Self::Set(key, value)),
        }
    }

    fn step(&self) -> &'static str {
        match self {
            Self::Set(..) => "set",
            Self::Remove(_) => "remove",
        }
    }

    /// Changes devices. To do it again changes nothing more.
    async fn apply(&self, request: &InApplication, handler: &HandlerClient, ids: &[DevId]) -> Result<ChangedDevices> {
        let (key, value) = match self {
            Self::Set(key, value) => (key.clone(), Some(value.clone())),
            Self::Remove(key) => (key.clone(), None),
        };
        let dev_ids = ids.iter().map(ToString::to_string).collect();
        let change = ChangeDevicesRequest { app_id: request.app_id().to_string(), dev_ids, key, value };
        Ok(handler.change_devices(change).await?)
    }
}

pub(in crate::site) async fn show(
    request: InApplication,
    Parameters(fields): Parameters<Fields>,
) -> Result<Page<Change>, Failure> {
    let sent = Sent(fields);
    let chosen = Many::of(&request, &sent).await?;
    Ok(page(&request, chosen, &sent, None))
}

pub(in crate::site) async fn submit(request: InApplication, sent: Sent) -> Result<Response, Failure> {
    let chosen = Many::named(&sent)?;
    match change(&request, &chosen, &sent).await {
        Ok(response) => Ok(response),
        Err(error) if becomes_draft(&error) || error.kind() == Kind::NotFound => Err(error.into()),
        Err(error) => {
            let status = server::status::http(error.kind());
            Ok(page(&request, chosen, &sent, Some(Problem::of(&error))).with_status(status).into_response())
        }
    }
}

/// The page with a form that was sent when the login had expired, or a service was away.
pub(in crate::site) fn draft(request: &InApplication, sent: &Sent) -> Result<Response, Failure> {
    let mut page = page(request, Many::named(sent)?, sent, None);
    page.template_mut().is_draft = true;
    Ok(page.into_response())
}

async fn change(request: &InApplication, chosen: &Many, sent: &Sent) -> Result<Response> {
    let (change, handler, end) = (AttributeChange::sent(sent)?, request.handler().await?, End::soon());
    let (mut changed, mut unchanged, mut outcomes) = (0, 0, Vec::new());
    for ids in chosen.ids.chunks(CHANGED_TOGETHER) {
        match end.before(change.apply(request, &handler, ids)).await {
            Outcome::Done(done) => {
                (changed, unchanged) = (changed + done.changed, unchanged + done.unchanged);
                let refused = done.refused.into_iter().filter_map(|device| {
                    Some((device.dev_id.parse::<DevId>().ok()?, Outcome::<()>::Failed(device.reason)))
                });
                outcomes.extend(refused);
            }
            Outcome::Failed(reason) => {
                outcomes.extend(ids.iter().map(|dev_id| (dev_id.clone(), Outcome::Failed(reason.clone()))));
            }
            Outcome::Left => outcomes.extend(ids.iter().map(|dev_id| (dev_id.clone(), Outcome::Left))),
        }
    }
    let failed = outcomes.iter().filter(|(_, outcome)| matches!(outcome, Outcome::Failed(_))).count();
    let (rest, lines) = not_done(outcomes);
    let (key, value) = (sent.value("key").trim().to_owned(), sent.value("value").trim().to_owned());
    let (frame, app_id) = (request.frame.clone(), request.app_id().to_string());
    let step = change.step();
    let page = Changed { frame, app_id, tab: "devices", changed, unchanged, failed, step, rest, key, value, lines };
    Ok(Page::new(page).into_response())
}

/// The devices that were not done, and what to say of each.
fn not_done<T>(outcomes: Vec<(DevId, Outcome<T>)>) -> (Vec<DevId>, Shown<(DevId, String)>) {
    let reason = |outcome: Outcome<T>| match outcome {
        Outcome::Done(_) => None,
        Outcome::Failed(reason) => Some(reason),
        Outcome::Left => Some("not begun".to_owned()),
    };
    let lines: Vec<_> = outcomes.into_iter().filter_map(|(dev_id, outcome)| Some((dev_id, reason(outcome)?))).collect();
    (lines.iter().map(|(dev_id, _)| dev_id.clone()).collect(), lines.into_iter().collect())
}

fn page(request: &InApplication, chosen: Many, sent: &Sent, problem: Option<Problem>) -> Page<Change> {
    let (frame, app_id) = (request.frame.clone(), request.app_id().to_string());
    let (key, value) = (sent.value("key").to_owned(), sent.value("value").to_owned());
    Page::new(Change { frame, app_id, tab: "devices", chosen, key, value, problem, is_draft: false })
}

fn text(ids: &[DevId]) -> String {
    ids.iter().map(DevId::as_str).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(pairs: &[(&str, &str)]) -> Result<Many> {
        Many::named(&Sent(pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()))
    }

    #[test]
    fn devices_are_named_one_by_one_or_together_and_each_counts_once() {
        let many = named(&[("device", "dev-2"), ("ids", "dev-3 dev-1\ndev-2"), ("device", "dev-2")]).unwrap();
        assert_eq!((many.count(), many.text().as_str()), (3, "dev-1 dev-2 dev-3"));
        assert!(named(&[("ids", "dev-1 <b>")]).is_err());
    }

    #[test]
    fn so_many_devices_are_changed_at_once_and_no_more() {
        let ids = |count: usize| (0..count).map(|number| format!("dev-{number} ")).collect::<String>();
        assert_eq!(named(&[("ids", &ids(MANY_MAX))]).unwrap().count(), MANY_MAX);
        assert!(named(&[("ids", &ids(MANY_MAX + 1))]).is_err());
    }
}
