//! Requests to decode stored uplinks again.

use ::history::Query;
use api::rest::handler as body;
use types::AppId;

use super::history::{SentQuery, record_id};
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
        })
    }

    /// Returns true if it changes what others see.
    pub(crate) fn changes(&self) -> bool {
        self.is_written || self.published_per_s.is_some()
    }
}
