//! Requests to send stored messages again, and reports on them.

use ::history::{Query, RecordId};
use api::{
    history::{self as message, send_again::To},
    rest::handler as body,
};
use types::{AppId, Timestamp};

use super::history::{SentQuery, port_number, record_id};
use crate::{Error, output::Receivers};

/// Default number of messages sent each second, and the maximum.
const PER_S: u32 = 200;
const PER_S_MAX: u32 = 10_000;
/// Maximum number of levels between application and `devices`, so that filters may have all levels of a topic, and
/// the maximum length of each.
const PREFIX_LEVELS_MAX: usize = 2;
const PREFIX_LEVEL_BYTES_MAX: usize = 36;

/// A request to send stored messages again.
pub(crate) struct SentSendAgain {
    pub(crate) query: Query,
    /// The only message that is meant.
    pub(crate) id: Option<RecordId>,
    pub(crate) to: Receivers,
    pub(crate) per_s: u32,
    pub(crate) is_dry_run: bool,
}

impl SentSendAgain {
    pub(crate) fn parse(app_id: AppId, body: body::SendAgain) -> Result<Self, Error> {
        if body.per_s > PER_S_MAX {
            return Err(Error::invalid("PerS", format_args!("it must be at most {PER_S_MAX}")));
        }
        let after = Some(&body.after).filter(|after| !after.is_empty());
        let id = Some(&body.id).filter(|id| !id.is_empty());
        let query = SentQuery {
            dev_id: body.dev_id,
            since: body.since,
            until: body.until,
            kind: body.kind,
            port: body.port.map(u32::from),
            failed: body.failed,
            text: body.text,
            field: body.field,
            version: body.version,
            ..SentQuery::default()
        };
        Ok(Self {
            query: Query { after: after.map(|id| record_id(id)).transpose()?, ..query.into_query(app_id)? },
            id: id.map(|id| record_id(id)).transpose()?,
            to: body.to.map_or(Ok(Receivers::All), receivers)?,
            per_s: if body.per_s == 0 { PER_S } else { body.per_s },
            is_dry_run: body.dry_run,
        })
    }

    /// The same from its message.
    pub(crate) fn parse_message(message: message::SendAgain) -> Result<Self, Error> {
        let app_id = message.app_id.parse()?;
        let to = message.to.map(|to| match to {
            To::Mqtt(()) => body::SendTo::Mqtt,
            To::Topic(prefix) => body::SendTo::Topic(prefix),
            To::Webhook(id) => body::SendTo::Webhook(id),
            To::Output(name) => body::SendTo::Output(name),
        });
        let body = body::SendAgain {
            id: message.id,
            dev_id: message.dev_id,
            since: message.since.map(Timestamp::from_nanos),
            until: message.until.map(Timestamp::from_nanos),
            kind: message.kind,
            port: message.port.map(port_number).transpose()?,
            failed: message.failed,
            text: message.text,
            field: message.field,
            version: message.version,
            after: message.after,
            to,
            per_s: message.per_s,
            dry_run: message.dry_run,
        };
        Self::parse(app_id, body)
    }
}

/// A report as a message. What ended it too early is not in it, but the status of the stream.
pub(crate) fn report_message(report: body::SendReport) -> message::SendReport {
    let receivers = report.receivers.into_iter();
    message::SendReport {
        examined: report.examined,
        sent: report.sent,
        refused: report.refused,
        unwanted: report.unwanted,
        device_gone: report.device_gone,
        never_published: report.never_published,
        unreadable: report.unreadable,
        receivers: receivers.map(|(name, refused)| (name, refused_message(refused))).collect(),
        unreadable_files: report.unreadable_files.into_iter().collect(),
        next: report.next,
        done: report.done,
    }
}

pub(crate) fn refused_message(refused: body::RefusedMessages) -> message::RefusedMessages {
    let body::RefusedMessages { count, reason, id } = refused;
    message::RefusedMessages { count, reason, id }
}

fn receivers(to: body::SendTo) -> Result<Receivers, Error> {
    Ok(match to {
        body::SendTo::Mqtt => Receivers::Mqtt,
        body::SendTo::Topic(prefix) if is_prefix(&prefix) => Receivers::Topic(prefix),
        body::SendTo::Topic(_) => {
            let rule =
                "it has one or two levels of lowercase letters, digits, - and _, which are not `devices`, `events`";
            return Err(Error::invalid("Topic", rule));
        }
        body::SendTo::Webhook(id) => Receivers::Webhook(id.parse()?),
        body::SendTo::Output(name) => Receivers::Output(name),
    })
}

/// Returns true if no other topic of an application has such levels.
fn is_prefix(prefix: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_".contains(&byte);
    let is_level = |level: &str| {
        (1..=PREFIX_LEVEL_BYTES_MAX).contains(&level.len())
            && level.bytes().all(is_allowed)
            && !["devices", "events"].contains(&level)
    };
    prefix.split('/').count() <= PREFIX_LEVELS_MAX && prefix.split('/').all(is_level)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_topic_has_levels_that_no_other_topics_have() {
        for (prefix, expected) in [
            ("replay", true),
            ("replay/2026-11", true),
            ("", false),
            ("a/b/c", false),
            ("a//b", false),
            ("replay/", false),
            ("+", false),
            ("#", false),
            ("Replay", false),
            ("devices", false),
            ("a/events", false),
        ] {
            assert_eq!(is_prefix(prefix), expected, "{prefix}");
        }
        assert!(is_prefix(&"x".repeat(36)) && !is_prefix(&"x".repeat(37)));
    }
}
