//! Records of history on the wire.

use ::history::{Kind, LIMIT_MAX, Page, Query, Record, RecordId};
use api::{handler::LogEntry as LogEntryMessage, history as message, rest::handler as body};
use outputs::EVENTS;
use runtime::LimitsByName;
use schemars::JsonSchema;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::value::RawValue;
use types::{AppId, DevId, Timestamp};

use crate::{
    Error,
    uplink::{seed, stored::file_name},
};

/// Default number of records of a page.
const LIMIT: usize = 50;
/// Maximum size of the records of a page in bytes, so that it fits into a response.
const PAGE_BYTES_MAX: usize = 2 << 20;

/// Which records of an application are wanted, as it was sent: everything that is empty or zero does not matter.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(inline)]
pub(crate) struct SentQuery {
    /// The device.
    pub(crate) dev_id: String,
    /// Recorded at this time or later.
    pub(crate) since: Option<Timestamp>,
    /// Recorded before this time.
    pub(crate) until: Option<Timestamp>,
    /// `up`, or the name of an event such as `down/sent`.
    pub(crate) kind: String,
    /// The LoRaWAN port.
    #[schemars(range(max = 255))]
    pub(crate) port: Option<u32>,
    /// Only uplinks whose functions failed, or whose validator refused them; of events, failed downlinks and joins.
    pub(crate) failed: bool,
    /// Text in the fields, the failure, the logs or the warnings, as JSON has it.
    pub(crate) text: String,
    /// A condition on a field, such as `fields.temperature > 30`.
    pub(crate) field: String,
    /// The number of the version of the functions that ran.
    pub(crate) version: u32,
    /// Maximum number of records to list: 1000, or 50 if it is omitted or 0.
    pub(crate) limit: usize,
    /// Where the page begins: `next` of the page before.
    pub(crate) before: String,
    /// Leave out the events `create`, `update` and `delete`, of which a change of many devices makes as many.
    pub(crate) without_changes: bool,
}

impl SentQuery {
    /// The query for an application's records. Refuses kinds that the handler does not record.
    pub(crate) fn into_query(self, app_id: AppId) -> Result<Query, Error> {
        self.into_query_with(app_id, &[])
    }

    /// The same where there may be records of more kinds.
    fn into_query_with(self, app_id: AppId, more_kinds: &[&str]) -> Result<Query, Error> {
        check_kind(&self.kind, more_kinds)?;
        let Self { dev_id, since, until, kind, port, failed, text, field, version, limit, before, without_changes } =
            self;
        let field = unless_empty(&field).map(|field| field.parse().map_err(|error| Error::invalid("Field", error)));
        if limit > LIMIT_MAX {
            return Err(Error::invalid("Limit", format_args!("it must be at most {LIMIT_MAX}")));
        }
        Ok(Query {
            dev_id: unless_empty(&dev_id).map(str::parse::<DevId>).transpose()?,
            since,
            until,
            port: port.map(port_number).transpose()?,
            kind: unless_empty(&kind).map(Kind::from),
            without_changes,
            failed_only: failed,
            text: Some(text).filter(|text| !text.is_empty()),
            field: field.transpose()?,
            version: Some(version).filter(|version| *version > 0),
            bytes_max: PAGE_BYTES_MAX,
            limit: if limit == 0 { LIMIT } else { limit },
            before: unless_empty(&before).map(record_id).transpose()?,
            ..Query::of(app_id)
        })
    }
}

/// The query of an application's records that a message asks for, in a directory that may be a bridge's: those have the
/// kinds of their network, too.
pub fn record_query(app_id: AppId, query: message::Query, network_kinds: &[&str]) -> Result<Query, Error> {
    SentQuery::from(query).into_query_with(app_id, network_kinds)
}

/// Refuses a kind of which there are no records, unless it is empty.
fn check_kind(kind: &str, more_kinds: &[&str]) -> Result<(), Error> {
    if kind.is_empty() || EVENTS.contains(&kind) || more_kinds.contains(&kind) {
        return Ok(());
    }
    let known: Vec<&str> = [&EVENTS[..], more_kinds].concat();
    Err(Error::invalid("Kind", format_args!("`{kind}` is unknown: there are {}", known.join(", "))))
}

impl From<message::Query> for SentQuery {
    fn from(query: message::Query) -> Self {
        Self {
            dev_id: query.dev_id,
            since: query.since.map(Timestamp::from_nanos),
            until: query.until.map(Timestamp::from_nanos),
            kind: query.kind,
            port: query.port,
            failed: query.failed,
            text: query.text,
            field: query.field,
            version: query.version,
            limit: query.limit as usize,
            before: query.before,
            without_changes: query.without_changes,
        }
    }
}

pub(crate) fn port_number(number: u32) -> Result<u8, Error> {
    u8::try_from(number).map_err(|_| Error::invalid("Port", "it must be at most 255"))
}

pub(crate) fn record_id(text: &str) -> Result<RecordId, Error> {
    text.parse().map_err(|_| Error::invalid("Record", "its id has 28 hexadecimal digits"))
}

fn unless_empty(text: &str) -> Option<&str> {
    Some(text).filter(|text| !text.is_empty())
}

/// A record, with what lists leave out.
#[derive(Debug)]
pub struct WholeRecord {
    /// The record.
    pub record: Record,
    /// The limits of its functions, as far as they are known.
    pub limits: LimitsByName,
    /// Its corrections.
    pub corrections: Page,
}

/// A record with its limits and corrections as JSON.
pub(crate) fn whole_record_body(whole: WholeRecord) -> body::Record {
    let WholeRecord { record, limits, corrections: Page { records, skipped, .. } } = whole;
    body::Record {
        limits,
        corrections: records.iter().map(correction).collect(),
        unreadable_files: skipped.iter().map(|skipped| file_name(&skipped.path)).collect(),
        ..record_body(record)
    }
}

fn correction(record: &Record) -> body::Correction {
    body::Correction {
        id: record.id.to_string(),
        revision: record.revision,
        version: record.version.unwrap_or_default(),
        recorded: record.id.recorded(),
    }
}

/// The same as a message.
pub fn whole_record_message(whole: WholeRecord) -> message::Record {
    as_message(whole_record_body(whole))
}

/// A record as lists have it, as JSON.
fn record_body(record: Record) -> body::Record {
    let is_event = matches!(record.kind, Kind::Event(_));
    let seed = record.seed.unwrap_or_else(|| seed(&record.app_id, &record.dev_id, record.counter));
    let result = json::<Box<RawValue>>(&record.result);
    let (event, payload_fields) = if is_event { (result, None) } else { (None, result) };
    body::Record {
        id: record.id.to_string(),
        time: record.received,
        recorded: record.id.recorded(),
        kind: record.kind.to_string(),
        dev_id: record.dev_id.to_string(),
        port: record.port.into(),
        counter: record.counter,
        confirmed: record.confirmed,
        is_retry: record.is_retry,
        payload_raw: record.payload,
        payload_fields,
        normalized_payload: json(&record.normalized),
        event,
        metadata: json(&record.metadata),
        extra: json(&record.extra),
        outcome: record.outcome.as_str().to_owned(),
        failure: record.failure.unwrap_or_default(),
        logs: json(&record.logs).unwrap_or_default(),
        warnings: json(&record.warnings).unwrap_or_default(),
        fuel: record.fuel,
        microseconds: record.microseconds.unwrap_or_default().into(),
        functions: record.functions.map(hex::encode).unwrap_or_default(),
        version: record.version.unwrap_or_default(),
        limits: LimitsByName::new(),
        seed: if record.functions.is_some() { seed } else { 0 },
        revision: record.revision,
        corrects: record.corrects.map(|id| id.to_string()).unwrap_or_default(),
        corrections: Vec::new(),
        unreadable_files: Vec::new(),
    }
}

/// The same as a message.
fn record_message(record: Record) -> message::Record {
    as_message(record_body(record))
}

fn as_message(body: body::Record) -> message::Record {
    let text = |json: Option<Box<RawValue>>| json.map(|json| json.get().to_owned()).unwrap_or_default();
    let logs = body.logs.into_iter();
    message::Record {
        id: body.id,
        time: body.time.as_nanos(),
        recorded: body.recorded.as_nanos(),
        kind: body.kind,
        dev_id: body.dev_id,
        port: body.port,
        counter: body.counter,
        confirmed: body.confirmed,
        is_retry: body.is_retry,
        payload: body.payload_raw,
        fields: text(body.payload_fields.or(body.event)),
        normalized: text(body.normalized_payload),
        metadata: text(body.metadata),
        extra: text(body.extra),
        outcome: body.outcome,
        failure: body.failure,
        logs: logs.map(|body::LogEntry { function, fields }| LogEntryMessage { function, fields }).collect(),
        warnings: body.warnings,
        fuel: body.fuel,
        microseconds: body.microseconds,
        functions: body.functions,
        version: body.version,
        seed: body.seed,
        revision: body.revision,
        corrects: body.corrects,
        limits: body.limits,
        corrections: body.corrections.into_iter().map(correction_message).collect(),
        unreadable_files: body.unreadable_files,
    }
}

fn correction_message(body: body::Correction) -> message::Correction {
    let body::Correction { id, revision, version, recorded } = body;
    message::Correction { id, revision, version, recorded: recorded.as_nanos() }
}

/// Parses recorded JSON; none if it is empty, or cannot be parsed any more.
fn json<T: DeserializeOwned>(text: &str) -> Option<T> {
    unless_empty(text).and_then(|text| serde_json::from_str(text).ok())
}

/// A page as JSON.
pub(crate) fn list_body(page: Page) -> body::RecordList {
    let Page { records, next, skipped, .. } = page;
    body::RecordList {
        records: records.into_iter().map(record_body).collect(),
        next: next.map(|id| id.to_string()).unwrap_or_default(),
        unreadable: skipped.iter().map(|skipped| file_name(&skipped.path)).collect(),
    }
}

/// The same as a message.
pub(crate) fn list_message(page: Page) -> message::RecordList {
    let Page { records, next, skipped, .. } = page;
    message::RecordList {
        records: records.into_iter().map(record_message).collect(),
        next: next.map(|id| id.to_string()).unwrap_or_default(),
        unreadable: skipped.iter().map(|skipped| file_name(&skipped.path)).collect(),
    }
}
