//! The message that a delivery was of, or will be. Handlers do not remember its record: it is sought among the messages of
//! the device at that time.

use std::time::Duration;

use api::{
    history::{Query as RecordQuery, Record},
    rest::handler::{Delivery, DeliveryState},
};
use axum::{extract::Query, response::Redirect};
use types::Timestamp;

use crate::{
    Error, Result,
    form::drafts::Fields,
    messages::history::parameters,
    site::{
        failure::Failure,
        viewer::{InApplication, Sent},
    },
};

/// The kind of receivers that belong to the application.
const WEBHOOK: &str = "webhook";
/// Time before and after outputs have taken a message in which it was recorded.
const RECORDED_BEFORE: Duration = Duration::from_secs(5);
const RECORDED_AFTER: Duration = Duration::from_secs(1);
/// Maximum time between the last attempt to send a message and the end of the round in which it was given up.
const GIVEN_UP_WITHIN: Duration = Duration::from_secs(60);
/// Maximum number of messages that are compared.
const COMPARED_MAX: u32 = 10;

/// A delivery whose message is sought.
struct Sought<'a> {
    webhook: &'a str,
    dev_id: &'a str,
    event: &'a str,
    accepted: Timestamp,
    end: End,
}

/// The end of a delivery, with its time.
#[derive(Clone, Copy)]
pub(super) enum End {
    /// It has not been delivered yet.
    Waiting,
    Delivered(Timestamp),
    GivenUp(Timestamp),
}

/// The parameters of a link to the message of a delivery: its device and event, when it was accepted, and when it was
/// delivered or given up, or that it waits. Empty if nothing is recorded of it.
pub(super) fn query((dev_id, event): (&str, &str), accepted: Timestamp, end: End) -> String {
    if dev_id.is_empty() || event.is_empty() || accepted == Timestamp::default() {
        return String::new();
    }
    let (name, at) = match end {
        End::Waiting => ("waiting", "1".to_owned()),
        End::Delivered(at) => ("delivered", at.to_rfc3339()),
        End::GivenUp(at) => ("given-up", at.to_rfc3339()),
    };
    let accepted = accepted.to_rfc3339();
    parameters([("device", dev_id), ("event", event), ("accepted", accepted.as_str()), (name, at.as_str())])
}

/// Leads to the page of the message, or to the messages of the device up to then if none can be told to be it.
pub(in crate::site) async fn show(request: InApplication, Query(fields): Query<Fields>) -> Result<Redirect, Failure> {
    let sent = Sent(fields);
    let sought = Sought::of(&request, &sent).ok_or(Error::NotFound("message"))?;
    let path = match sought.find(&request).await? {
        Some(id) => format!("{}/messages/{id}", request.path()),
        None => format!("{}/messages?{}", request.path(), sought.others()),
    };
    Ok(Redirect::to(&path))
}

impl<'a> Sought<'a> {
    fn of(request: &'a InApplication, sent: &'a Sent) -> Option<Self> {
        let time = |name: &str| sent.value(name).parse::<Timestamp>().ok();
        let given_up = || time("given-up").map(End::GivenUp);
        let waiting = || (!sent.value("waiting").is_empty()).then_some(End::Waiting);
        Some(Self {
            webhook: request.parameter("webhook_id"),
            dev_id: sent.value("device"),
            event: sent.value("event"),
            accepted: time("accepted")?,
            end: time("delivered").map(End::Delivered).or_else(given_up).or_else(waiting)?,
        })
    }

    /// The id of the record of the message.
    async fn find(&self, request: &InApplication) -> Result<Option<String>> {
        let query = RecordQuery {
            app_id: request.app_id().to_string(),
            dev_id: self.dev_id.to_owned(),
            kind: self.event.to_owned(),
            since: Some(self.accepted.minus(RECORDED_BEFORE).as_nanos()),
            until: Some(self.until().as_nanos()),
            limit: COMPARED_MAX,
            ..RecordQuery::default()
        };
        let records = request.handler().await?.list_records(query).await?.records;
        let Some(client) = request.console.deliveries(&request.access).await? else { return Ok(None) };
        let mut nearest: Option<(Duration, String)> = None;
        for Record { id, recorded, .. } in records {
            let apart = self.apart(Timestamp::from_nanos(recorded), &client.of(&id).await?);
            nearest = nearest.into_iter().chain(apart.map(|apart| (apart, id))).min();
        }
        Ok(nearest.map(|(_, id)| id))
    }

    /// The time between this delivery and that of a message, if they may be the same; of one that waits, between its
    /// acceptance and the record.
    fn apart(&self, recorded: Timestamp, deliveries: &[Delivery]) -> Option<Duration> {
        let here = deliveries.iter().find(|delivery| delivery.kind == WEBHOOK && delivery.name == self.webhook)?;
        match self.end {
            End::Waiting => (here.state == DeliveryState::Waiting).then(|| recorded.apart(self.accepted)),
            End::Delivered(end) => here.delivered_at.filter(|at| *at == end).map(|_| Duration::ZERO),
            End::GivenUp(end) => {
                let apart = here.failed_at.map(|at| at.apart(end));
                apart.filter(|apart| *apart <= GIVEN_UP_WITHIN)
            }
        }
    }

    /// A filter of messages.
    fn others(&self) -> String {
        let until = self.until().to_rfc3339();
        parameters([("device", self.dev_id), ("kind", self.event), ("until", until.as_str())])
    }

    fn until(&self) -> Timestamp {
        self.accepted.plus(RECORDED_AFTER)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    fn delivery(delivered: Option<i64>, failed: Option<i64>) -> Delivery {
        Delivery {
            kind: WEBHOOK.to_owned(),
            name: "my-hook".to_owned(),
            delivered_at: delivered.map(at),
            failed_at: failed.map(at),
            ..Delivery::default()
        }
    }

    #[test]
    fn a_message_that_was_delivered_at_another_time_is_not_the_one() {
        let apart = |end: End, delivery: Delivery| {
            let sought = Sought { webhook: "my-hook", dev_id: "dev-1", event: "up", accepted: at(1000), end };
            sought.apart(at(990), &[delivery]).map(|apart| apart.as_millis())
        };
        let delivered = End::Delivered(at(2000));
        assert_eq!(apart(delivered, delivery(Some(2000), None)), Some(0));
        for other in [delivery(Some(2001), None), delivery(None, Some(2000)), delivery(None, None)] {
            assert_eq!(apart(delivered, other), None);
        }
        let elsewhere = Delivery { name: "other".to_owned(), ..delivery(Some(2000), None) };
        assert_eq!(apart(delivered, elsewhere), None);
        let given_up = End::GivenUp(at(2000));
        assert_eq!(apart(given_up, delivery(None, Some(2004))), Some(4), "a round takes some time");
        assert_eq!(apart(given_up, delivery(None, Some(90_000))), None);
        assert_eq!(apart(given_up, delivery(Some(2000), None)), None);
        let waiting = Delivery { state: DeliveryState::Waiting, ..delivery(None, None) };
        assert_eq!(apart(End::Waiting, waiting), Some(10), "it was recorded a moment before");
        assert_eq!(apart(End::Waiting, delivery(None, None)), None);
    }

    #[test]
    fn what_is_about_no_device_has_no_link() {
        let end = End::GivenUp(at(2000));
        assert_eq!(query(("", "dropped"), at(1000), end), "");
        assert_eq!(query(("dev-1", ""), at(1000), end), "");
        assert_eq!(query(("dev-1", "up"), Timestamp::default(), end), "", "an older handler does not say when");
        assert!(query(("dev-1", "up"), at(1000), end).starts_with("device=dev%2D1&event=up&accepted=1970"));
    }
}
