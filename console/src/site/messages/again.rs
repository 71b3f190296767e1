//! Sends one message again, to all who get live messages.

use api::rest::handler::{SendAgain, SendReport};
use axum::response::Redirect;
use client::history::SendReports;

use crate::{
    Error, Result,
    site::{failure::Failure, viewer::InApplication},
};

pub(in crate::site) async fn send(request: InApplication) -> Result<Redirect, Failure> {
    let id = request.parameter("id").to_owned();
    let done = outcome(report(&request, id.clone()).await?)?;
    Ok(Redirect::to(&format!("{}/messages/{id}?done={done}", request.path())))
}

/// Sends the message, and returns the handler's report.
async fn report(request: &InApplication, id: String) -> Result<SendReport> {
    let announcement = request.console.announcement(&request.access).await?.ok_or(Error::NotServed)?;
    let body = SendAgain { id, ..SendAgain::default() };
    let reports = SendReports::start(&announcement, request.app_id(), &request.access.credential, &body).await;
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
