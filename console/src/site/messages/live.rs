//! The live view: a page, and the stream of events that fills it. Right after the first application was created, it has
//! that one's uplink from the beginning.

use std::convert::Infallible;

use api::history::{Query as RecordQuery, RecordList};
use askama::Template;
use axum::{
    extract::Query,
    http::{StatusCode, header},
    response::{
        IntoResponse, Response,
        sse::{Event, Sse},
    },
};
use futures::{Stream, stream};
use server::ledger::Charge;
use tokio_util::sync::CancellationToken;
use types::DevId;

use super::Row;
use crate::{
    Error, Result,
    form::drafts::Fields,
    messages::{
        history::{CHANGES, Filter, parameters},
        live::{Feed, LiveFilter},
    },
    site::{
        failure::{Failure, Problem, partly},
        page::{Frame, Page},
        viewer::{InApplication, Sent},
    },
};

#[derive(Template)]
#[template(path = "live.html")]
pub(in crate::site) struct Show {
    frame: Frame,
    app_id: String,
    tab: &'static str,
    filter: Filter,
    /// URL of the events.
    events: String,
    /// The same filter in history.
    history: String,
    /// The reason why nothing is shown.
    problem: Option<Problem>,
    first: Option<First>,
}

/// The first uplink of an application.
struct First {
    dev_id: DevId,
    /// None if history does not have it.
    row: Option<Row>,
    problem: Option<Problem>,
}

/// An open stream, with its place among those that may be open.
struct Open {
    feed: Feed,
    stop: CancellationToken,
    _place: Charge,
}

pub(in crate::site) async fn show(request: InApplication, Query(fields): Query<Fields>) -> Result<Page<Show>, Failure> {
    let asked = Sent(fields);
    let first = match asked.value("first").parse::<DevId>() {
        Ok(dev_id) => Some(First::of(&request, dev_id).await?),
        Err(_) => None,
    };
    Ok(page(&request, asked.0, first))
}

fn page(request: &InApplication, fields: Fields, first: Option<First>) -> Page<Show> {
    let problem = LiveFilter::new(&fields).err().map(|error| Problem::of(&error));
    let status = if problem.is_some() { StatusCode::BAD_REQUEST } else { StatusCode::OK };
    let filter = Filter::new(fields);
    let given = ["device", "failed", "text", "kind", "port", CHANGES].map(|name| (name, filter.value(name)));
    let given = parameters(given.into_iter().filter(|(_, value)| !value.is_empty()));
    let page = Page::new(Show {
        frame: request.frame.clone(),
        app_id: request.app_id().to_string(),
        tab: "live",
        filter,
        events: format!("{}/live/events?{given}", request.path()),
        history: format!("{}/messages?{given}", request.path()),
        problem,
        first,
    });
    page.with_status(status)
}

impl First {
    async fn of(request: &InApplication, dev_id: DevId) -> Result<Self> {
        let (list, problem) = partly(newest(request, &dev_id).await)?;
        let row = list.and_then(|list| list.records.into_iter().next()).map(Row::new);
        Ok(Self { dev_id, row, problem })
    }
}

/// The newest uplink of a device.
async fn newest(request: &InApplication, dev_id: &DevId) -> Result<RecordList> {
    let (app_id, dev_id) = (request.app_id().to_string(), dev_id.to_string());
    let query = RecordQuery { app_id, dev_id, kind: "up".to_owned(), limit: 1, ..RecordQuery::default() };
    request.handler().await?.list_records(query).await.map_err(Error::from)
}

/// Batches of messages as they arrive. The last event says whether the server stops, or the broker has refused the login.
/// Proxies must not gather them.
pub(in crate::site) async fn events(request: InApplication, Query(fields): Query<Fields>) -> Result<Response, Failure> {
    let console = &request.console;
    let place = console.live_views.charge(&request.owner(), 1)?;
    let feed = console.feed(&request.access, LiveFilter::new(&fields)?).await?;
    let open = Open { feed, stop: console.stop.clone(), _place: place };
    let headers = [(header::CACHE_CONTROL, "no-store"), (header::HeaderName::from_static("x-accel-buffering"), "no")];
    Ok((headers, Sse::new(batches(open))).into_response())
}

fn batches(open: Open) -> impl Stream<Item = Result<Event, Infallible>> {
    let first = Event::default().event("open").data("");
    let rest = stream::unfold(Some(open), |open| async move {
        let mut open = open?;
        let stop = open.stop.clone();
        match stop.run_until_cancelled(open.feed.next()).await {
            Some(Some(batch)) if batch.is_empty() => Some((Ok(Event::default().comment("")), Some(open))),
            Some(Some(batch)) => Some((Ok(Event::default().json_data(&batch).unwrap_or_default()), Some(open))),
            Some(None) => Some((Ok(last("end")), None)),
            None => Some((Ok(last("stop")), None)),
        }
    });
    futures::StreamExt::chain(stream::iter([Ok(first)]), rest)
}

/// An event that ends a stream. Browsers ignore events without data.
fn last(name: &str) -> Event {
    Event::default().event(name).data(name)
}
