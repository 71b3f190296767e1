//! Requests to decode stored uplinks again, and reports on them.

use std::{collections::BTreeMap, time::Duration};

use ::history::Query;
use api::{history as message, rest::handler as body};
use serde_json::value::RawValue;
use types::{AppId, Timestamp};

use super::{
    history::{SentQuery, port_number, record_id},
    send_again::refused_message,
};
use crate::{Error, registry::application::SentApplication};

/// Default number of messages published each second, and the maximum.
const PUBLISHED_PER_S: u32 = 200;
const PUBLISHED_PER_S_MAX: u32 = 10_000;

/// A request to decode stored uplinks again.
pub(crate) struct SentDecodeAgain {
    pub(crate) query: Query,
    pub(crate) functions: SentFunctions,
    pub(crate) has_recorded_limits: bool,
    pub(crate) compares_live: bool,
    pub(crate) per_device: Option<usize>,
    pub(crate) is_written: bool,
    pub(crate) published_per_s: Option<u32>,
    pub(crate) time_max: Option<Duration>,
}

/// Selects the functions to run.
pub(crate) enum SentFunctions {
    /// Those that came with the request.
    Sent(Box<SentApplication>),
    /// Those of a version; none for the one that is live.
    Version(Option<u32>),
    /// Those that ran then.
    Recorded,
}

impl SentDecodeAgain {
    pub(crate) fn parse(app_id: AppId, body: body::DecodeAgain) -> Result<Self, Error> {
        let body::DecodeAgain { functions, version, verify, compare_live, per_device, write, publish, .. } = body;
        if body.recorded_limits && (compare_live || write) {
            let rule = "they go without `compare_live` and `write`, which run functions within the limits of now";
            return Err(Error::invalid("RecordedLimits", rule));
        }
        if verify && (functions.is_some() || version > 0 || compare_live || write || publish) {
            return Err(Error::invalid("Verify", "it goes without other functions, `write` and `publish`"));
        }
        if publish && !write {
            return Err(Error::invalid("Publish", "it needs `write`: what is kept has a revision that no other has"));
        }
        if per_device > 0 && (write || publish) {
            return Err(Error::invalid("PerDevice", "it is for a preview: it goes without `write` and `publish`"));
        }
        if body.publish_per_s > PUBLISHED_PER_S_MAX {
            return Err(Error::invalid("PublishPerS", format_args!("it must be at most {PUBLISHED_PER_S_MAX}")));
        }
        let per_s = if body.publish_per_s == 0 { PUBLISHED_PER_S } else { body.publish_per_s };
        let functions = match functions {
            Some(mut application) => {
                application.app_id = app_id.to_string();
                SentFunctions::Sent(Box::new(application.try_into()?))
            }
            None if verify => SentFunctions::Recorded,
            None => SentFunctions::Version(Some(version).filter(|version| *version > 0)),
        };
        let after = Some(&body.after).filter(|after| !after.is_empty());
        let query = SentQuery {
            dev_id: body.dev_id,
            since: body.since,
            until: body.until,
            port: body.port.map(u32::from),
            failed: body.failed,
            text: body.text,
            field: body.field,
            ..SentQuery::default()
        };
        Ok(Self {
            query: Query { after: after.map(|id| record_id(id)).transpose()?, ..query.into_query(app_id)? },
            functions,
            has_recorded_limits: body.recorded_limits,
            compares_live: compare_live,
            per_device: (per_device > 0).then_some(per_device as usize),
            is_written: write,
            published_per_s: publish.then_some(per_s),
            time_max: (body.seconds_max > 0).then(|| Duration::from_secs(body.seconds_max.into())),
        })
    }

    /// The same from its message.
    pub(crate) fn parse_message(message: message::DecodeAgain) -> Result<Self, Error> {
        let app_id = message.app_id.parse()?;
        let body = body::DecodeAgain {
            dev_id: message.dev_id,
            since: message.since.map(Timestamp::from_nanos),
            until: message.until.map(Timestamp::from_nanos),
            port: message.port.map(port_number).transpose()?,
            failed: message.failed,
            text: message.text,
            field: message.field,
            after: message.after,
            functions: message.functions.map(body::HandlerApplication::from),
            version: message.version,
            verify: message.verify,
            recorded_limits: message.recorded_limits,
            compare_live: message.compare_live,
            per_device: message.per_device,
            write: message.write,
            publish: message.publish,
            publish_per_s: message.publish_per_s,
            seconds_max: message.seconds_max,
        };
        Self::parse(app_id, body)
    }

    /// Returns true if it changes what others see.
    pub(crate) fn changes(&self) -> bool {
        self.is_written || self.published_per_s.is_some()
    }
}

/// A report as a message. What ended it too early is not in it, but the status of the stream.
pub(crate) fn report_message(report: body::DecodeReport) -> message::DecodeReport {
    message::DecodeReport {
        examined: report.examined,
        verdicts: Some(verdicts_message(report.verdicts)),
        not_repeatable: report.not_repeatable,
        limited: report.limited,
        lower_limits: by_name(report.lower_limits, |body::LowerLimit { count, then, now }| message::LowerLimit {
            count,
            then,
            now,
        }),
        written: report.written,
        published: report.published,
        refused: report.refused,
        unwanted: report.unwanted,
        receivers: by_name(report.receivers, refused_message),
        not_published: report.not_published,
        fuel_before: report.fuel_before,
        fuel_after: report.fuel_after,
        fields: by_name(report.fields, field_message),
        failures: by_name(report.failures, |body::NewFailure { count, id, dev_id }| message::NewFailure {
            count,
            id,
            dev_id,
        }),
        days: by_name(report.days, verdicts_message),
        unreadable_files: report.unreadable_files.into_iter().collect(),
        unchecked_files: report.unchecked_files,
        is_cut: report.is_cut,
        next: report.next,
        done: report.done,
    }
}

fn verdicts_message(verdicts: body::Verdicts) -> message::Verdicts {
    let body::Verdicts { equal, already_corrected, changed, newly_failing, newly_decoded, still_failing } = verdicts;
    message::Verdicts { equal, already_corrected, changed, newly_failing, newly_decoded, still_failing }
}

fn field_message(body::ChangedField { count, example }: body::ChangedField) -> message::ChangedField {
    let json = |value: Option<Box<RawValue>>| value.map(|value| value.get().to_owned()).unwrap_or_default();
    let body::FieldExample { id, dev_id, before, after } = example;
    let example = message::FieldExample { id, dev_id, before: json(before), after: json(after) };
    message::ChangedField { count, example: Some(example) }
}

fn by_name<T, U>(entries: BTreeMap<String, T>, message: impl Fn(T) -> U) -> BTreeMap<String, U> {
    entries.into_iter().map(|(name, entry)| (name, message(entry))).collect()
}
