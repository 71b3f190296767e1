//! The live view: a page, and the stream of events that fills it.

use std::convert::Infallible;

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

use crate::{
    form::drafts::Fields,
    messages::{
        history::{Filter, parameters},
        live::{Feed, LiveFilter},
    },
    site::{
        failure::{Failure, Problem},
        page::{Frame, Page},
        viewer::InApplication,
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
}

/// An open stream, with its place among those that may be open.
struct Open {
    feed: Feed,
    stop: CancellationToken,
    _place: Charge,
}

pub(in crate::site) async fn show(request: InApplication, Query(fields): Query<Fields>) -> Page<Show> {
    let problem = LiveFilter::new(&fields).err().map(|error| Problem::of(&error));
    let status = if problem.is_some() { StatusCode::BAD_REQUEST } else { StatusCode::OK };
    let filter = Filter::new(fields);
    let given = ["device", "failed", "text", "kind", "port"].map(|name| (name, filter.value(name)));
    let given = parameters(given.into_iter().filter(|(_, value)| !value.is_empty()));
    let page = Page::new(Show {
        frame: request.frame.clone(),
        app_id: request.app_id().to_string(),
        tab: "live",
        filter,
        events: format!("{}/live/events?{given}", request.path()),
        history: format!("{}/messages?{given}", request.path()),
        problem,
    });
    page.with_status(status)
}

/// Batches of messages as they arrive. Proxies must not gather them.
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
        match stop.run_until_cancelled(open.feed.next()).await.flatten() {
            Some(batch) if batch.is_empty() => Some((Ok(Event::default().comment("")), Some(open))),
            Some(batch) => Some((Ok(Event::default().json_data(&batch).unwrap_or_default()), Some(open))),
            None => Some((Ok(Event::default().event("end").data("")), None)),
        }
    });
    futures::StreamExt::chain(stream::iter([Ok(first)]), rest)
}
