//! A record whose texts are in a buffer of the caller.

use types::Timestamp;

use crate::{Kind, NewRecord, Outcome, Record, RecordId};

/// A record whose texts are in a buffer of the caller.
#[derive(Clone, Copy, Debug)]
pub(crate) struct View<'a> {
    pub(crate) id: RecordId,
    pub(crate) received: Timestamp,
    pub(crate) app_id: &'a str,
    pub(crate) dev_id: &'a str,
    pub(crate) kind: &'a str,
    pub(crate) port: u8,
    pub(crate) counter: u32,
    pub(crate) confirmed: bool,
    pub(crate) is_retry: bool,
    pub(crate) payload: &'a [u8],
    pub(crate) metadata: &'a str,
    pub(crate) extra: &'a str,
    pub(crate) seed: Option<u64>,
    pub(crate) functions: Option<&'a [u8; 32]>,
    pub(crate) version: Option<u32>,
    pub(crate) limits: Option<&'a [u8; 8]>,
    pub(crate) outcome: Outcome,
    pub(crate) result: &'a str,
    pub(crate) normalized: &'a str,
    pub(crate) failure: Option<&'a str>,
    pub(crate) logs: &'a str,
    pub(crate) warnings: &'a str,
    pub(crate) fuel: u64,
    pub(crate) microseconds: Option<u32>,
    pub(crate) revision: u32,
    pub(crate) corrects: Option<RecordId>,
}

/// Copies the members that have the same type on both sides.
macro_rules! view {
    ($id:expr, $record:expr, ($functions:expr, $limits:expr), { $($texts:tt)* }) => {
        View {
            id: $id,
            received: $record.received,
            app_id: $record.app_id.as_str(),
            dev_id: $record.dev_id.as_str(),
            kind: $record.kind.as_str(),
            port: $record.port,
            counter: $record.counter,
            confirmed: $record.confirmed,
            is_retry: $record.is_retry,
            seed: $record.seed,
            functions: $functions,
            version: $record.version,
            limits: $limits,
            outcome: $record.outcome,
            fuel: $record.fuel,
            microseconds: $record.microseconds,
            revision: $record.revision,
            corrects: $record.corrects,
            $($texts)*
        }
    };
}

impl<'a> View<'a> {
    pub(crate) fn of_new(id: RecordId, new: &'a NewRecord<'a>) -> Self {
        view!(id, new, (new.functions.as_ref(), new.limits.as_ref()), {
            payload: new.payload,
            metadata: new.metadata,
            extra: new.extra,
            result: new.result,
            normalized: new.normalized,
            failure: new.failure,
            logs: new.logs,
            warnings: new.warnings,
        })
    }

    /// A copy of it. None if its ids are not valid, which the caller reports.
    pub(crate) fn to_record(self) -> Option<Record> {
        Some(Record {
            id: self.id,
            received: self.received,
            app_id: self.app_id.parse().ok()?,
            dev_id: self.dev_id.parse().ok()?,
            kind: Kind::from(self.kind),
            port: self.port,
            counter: self.counter,
            confirmed: self.confirmed,
            is_retry: self.is_retry,
            payload: self.payload.to_vec(),
            metadata: self.metadata.to_owned(),
            extra: self.extra.to_owned(),
            seed: self.seed,
            functions: self.functions.copied(),
            version: self.version,
            limits: self.limits.copied(),
            outcome: self.outcome,
            result: self.result.to_owned(),
            normalized: self.normalized.to_owned(),
            failure: self.failure.map(ToOwned::to_owned),
            logs: self.logs.to_owned(),
            warnings: self.warnings.to_owned(),
            fuel: self.fuel,
            microseconds: self.microseconds,
            revision: self.revision,
            corrects: self.corrects,
        })
    }
}

impl Record {
    /// The same record, borrowed.
    pub(crate) fn view(&self) -> View<'_> {
        view!(self.id, self, (self.functions.as_ref(), self.limits.as_ref()), {
            payload: &self.payload,
            metadata: &self.metadata,
            extra: &self.extra,
            result: &self.result,
            normalized: &self.normalized,
            failure: self.failure.as_deref(),
            logs: &self.logs,
            warnings: &self.warnings,
        })
    }
}
