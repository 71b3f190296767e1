//! Selects the records that a query wants.

use std::ops::RangeInclusive;

use memchr::memmem::Finder;

use crate::{
    FieldFilter, Kind, Query, RecordId, Revisions,
    directory::removed::Removals,
    query::field_scan::FieldScan,
    record::moment,
    record::{View, device_hash},
};

/// A query, prepared to be compared with many records.
#[derive(Debug)]
pub(crate) struct Filter {
    pub(crate) query: Query,
    /// Ids that are wanted.
    pub(crate) ids: RangeInclusive<RecordId>,
    text: Option<Finder<'static>>,
    field: Option<FieldScan>,
    removals: Removals,
    /// The hash of the device, if one is asked for.
    device: Option<u32>,
}

impl Filter {
    /// Selects the records of `query` that were not removed.
    pub(crate) fn new(query: Query, removals: Removals) -> Self {
        let text = query.text.as_deref().map(|text| Finder::new(text).into_owned());
        let app_id = query.app_id.as_str().as_bytes();
        let device = query.dev_id.as_ref().map(|dev_id| device_hash(app_id, dev_id.as_str().as_bytes()));
        let field = query.field.as_ref().map(FieldScan::new);
        Self { ids: ids(&query), text, field, removals, device, query }
    }

    /// Returns true if there can be wanted records with ids from `first` to `last`.
    pub(crate) fn overlaps(&self, first: RecordId, last: RecordId) -> bool {
        first <= *self.ids.end() && last >= *self.ids.start()
    }

    /// Returns true if all ids from `first` to `last` are wanted.
    pub(crate) fn covers(&self, first: RecordId, last: RecordId) -> bool {
        self.ids.contains(&first) && self.ids.contains(&last)
    }

    /// The text that is wanted, if one is asked for.
    pub(crate) fn text(&self) -> Option<&Finder<'static>> {
        self.text.as_ref()
    }

    /// Returns true if the result has the field with a wanted value. What is no text may have it: whoever reads the row
    /// finds that it is damaged.
    pub(crate) fn may_have_field(&self, field: &FieldFilter, result: &[u8]) -> bool {
        self.field.as_ref().is_none_or(|scan| scan.may_match(field, result))
            && str::from_utf8(result).ok().is_none_or(|result| field.matches(result))
    }

    /// The hash of the device, if one is asked for.
    pub(crate) fn device(&self) -> Option<u32> {
        self.device
    }

    /// Returns true if a record is of the application and device, has a wanted id, and was not removed.
    pub(crate) fn accepts_head(&self, id: RecordId, app_id: &[u8], dev_id: &[u8]) -> bool {
        let query = &self.query;
        self.ids.contains(&id)
            && app_id == query.app_id.as_str().as_bytes()
            && query.dev_id.as_ref().is_none_or(|wanted| wanted.as_str().as_bytes() == dev_id)
            && !self.removals.has(id, app_id, dev_id)
    }

    /// Returns true if the rest of the record is wanted, too.
    pub(crate) fn accepts_rest(&self, view: &View<'_>) -> bool {
        let query = &self.query;
        query.port.is_none_or(|port| port == view.port)
            && query.kind.as_ref().is_none_or(|kind| kind.as_str() == view.kind)
            && !(query.without_changes && Kind::is_change(view.kind.as_bytes()))
            && query.version.is_none_or(|version| Some(version) == view.version)
            && query.revisions.admits(view.corrects)
            && (!query.failed_only || view.outcome.is_failure())
            && self.accepts_text(view)
            && query.field.as_ref().is_none_or(|field| field.matches(view.result))
    }

    fn accepts_text(&self, view: &View<'_>) -> bool {
        let texts = [view.result, view.normalized, view.failure.unwrap_or_default(), view.logs, view.warnings];
        self.text.as_ref().is_none_or(|finder| texts.iter().any(|text| finder.find(text.as_bytes()).is_some()))
    }
}

impl Revisions {
    /// Returns true if they include a record that corrects this one; an original corrects none.
    pub(crate) fn admits(&self, corrects: Option<RecordId>) -> bool {
        match self {
            Self::All => true,
            Self::Originals => corrects.is_none(),
            Self::CorrectionsOf(ids) => corrects.is_some_and(|id| ids.contains(&id)),
        }
    }
}

/// The ids that a query wants.
fn ids(query: &Query) -> RangeInclusive<RecordId> {
    let since = query.since.map_or(RecordId::first(0), |since| RecordId::first(moment::millis_up(since)));
    let until = query.until.map_or(RecordId::last(u64::MAX), |until| {
        let until = moment::millis_up(until);
        until.checked_sub(1).map_or(RecordId::first(0), RecordId::last)
    });
    let after = query.after.map_or(since, |after| after.next().max(since));
    let before = query.before.map_or(until, |before| before.previous().min(until));
    after..=before
}
