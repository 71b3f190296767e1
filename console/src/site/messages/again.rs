//! Sends one message again, to all who get live messages or to one receiver.

use api::rest::handler::{SendAgain, SendReport, SendTo};
use axum::response::Redirect;
use client::history::SendReports;

use crate::{
    Error, Result,
    site::{
        failure::Failure,
        viewer::{InApplication, Sent},
    },
};

pub(in crate::site) async fn send(request: InApplication, sent: Sent) -> Result<Redirect, Failure> {
    let (id, to) = (request.parameter("id").to_owned(), receiver(sent.value("to"))?);
    let is_for_all = to.is_none();
    let done = match outcome(report(&request, &SendAgain { id: id.clone(), to, ..SendAgain::default() }).await?)? {
        "sent" if !is_for_all => "sent-there",
        done => done,
    };
    Ok(Redirect::to(&format!("{}/messages/{id}?done={done}", request.path())))
}

/// The receiver with this name; none for all.
fn receiver(name: &str) -> Result<Option<SendTo>> {
    match name.split_once(':').unwrap_or((name, "")) {
        ("", "") => Ok(None),
        ("mqtt", "") => Ok(Some(SendTo::Mqtt)),
        ("webhook", id) => Ok(Some(SendTo::Webhook(id.to_owned()))),
        ("output", name) => Ok(Some(SendTo::Output(name.to_owned()))),
        _ => Err(Error::NotFound("receiver")),
    }
}

/// Sends the message, and returns the handler's report.
async fn report(request: &InApplication, body: &SendAgain) -> Result<SendReport> {
    let announcement = request.console.announcement(&request.access).await?.ok_or(Error::NotServed)?;
    let reports = SendReports::start(&announcement, request.app_id(), &request.access.credential, body).await;
    let mut reports = reports?;
    let lost = || Error::NotSent("the handler did not respond, so it may or may not have been sent".to_owned());
    reports.next().await?.ok_or_else(lost)
}

/// The name of the notice that says so.
fn outcome(report: SendReport) -> Result<&'static str> {
    let refused = report.receivers.into_iter().next();
    match refused {
        _ if !report.error.is_empty() => Err(Error::NotSent(report.error)),
        Some((receiver, refused)) => {
            Err(Error::NotSent(format!("{receiver} did not take it, but others may have: {}", refused.reason)))
        }
        None if report.sent > 0 => Ok("sent"),
        None if report.unwanted > 0 => Ok("unwanted"),
        None if report.device_gone > 0 => Err(Error::NotSent("its device no longer exists".to_owned())),
        None if report.never_published > 0 => {
            Err(Error::NotSent("the validator rejected it, so it was never published".to_owned()))
        }
        None if report.examined == 0 => Err(Error::NotSent("it is no longer stored".to_owned())),
        None => Err(Error::NotSent("its stored record cannot be read".to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use api::rest::handler::RefusedMessages;

    use super::*;

    #[test]
    fn a_receiver_is_named_or_all_are_meant() {
        assert_eq!(receiver("").unwrap(), None);
        assert_eq!(receiver("mqtt").unwrap(), Some(SendTo::Mqtt));
        assert_eq!(receiver("webhook:my-hook").unwrap(), Some(SendTo::Webhook("my-hook".to_owned())));
        assert_eq!(receiver("output:backup").unwrap(), Some(SendTo::Output("backup".to_owned())));
        assert!(receiver("others").is_err() && receiver("mqtt:x").is_err());
    }

    #[test]
    fn whatever_became_of_a_message_is_said() {
        let none = SendReport::default;
        assert_eq!(outcome(SendReport { sent: 1, ..none() }).unwrap(), "sent");
        assert_eq!(outcome(SendReport { unwanted: 1, ..none() }).unwrap(), "unwanted");
        let refused = RefusedMessages { count: 1, reason: "it is full".to_owned(), id: String::new() };
        let receivers = [("webhook one".to_owned(), refused)].into_iter().collect();
        for (report, expected) in [
            (SendReport { error: "no room".to_owned(), ..none() }, "no room"),
            (SendReport { refused: 1, receivers, ..none() }, "webhook one did not take it"),
            (SendReport { device_gone: 1, ..none() }, "device no longer exists"),
            (SendReport { never_published: 1, ..none() }, "validator rejected it"),
            (SendReport { examined: 1, unreadable: 1, ..none() }, "cannot be read"),
            (none(), "no longer stored"),
        ] {
            let text = outcome(report).unwrap_err().to_string();
            assert!(text.contains(expected), "{text}");
        }
    }
}
