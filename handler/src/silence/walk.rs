//! A walk over the names of all applications whose devices are watched. It goes on in the next pass if a pass ends
//! before it does.

use std::collections::VecDeque;

use store::Entry;
use types::AppId;

use super::clock::TimeLimit;
use crate::{
    Error,
    registry::application::{Applications, store_keys},
};

/// A walk over the names of applications, in their order.
#[derive(Default)]
pub(super) struct Walk {
    last: Option<AppId>,
    /// Those that were read after that one.
    names: VecDeque<Entry>,
    is_done: bool,
}

impl Walk {
    /// A walk that has ended.
    pub(super) fn done() -> Self {
        Self { is_done: true, ..Self::default() }
    }

    pub(super) fn is_done(&self) -> bool {
        self.is_done
    }

    /// Begins anew, unless it has ended.
    pub(super) fn restart(&mut self) {
        if !self.is_done {
            *self = Self::default();
        }
    }

    /// The next application with its name; none if that was the last, or if no time is left.
    pub(super) async fn next(
        &mut self,
        applications: &Applications,
        limit: &TimeLimit,
    ) -> Result<Option<(AppId, Entry)>, Error> {
        if self.is_done || limit.is_over() {
            // By the next pass, they may be others.
            self.names.clear();
            return Ok(None);
        }
        if self.names.is_empty() {
            self.names = applications.watched(self.last.as_ref()).await?.into();
        }
        let Some(name) = self.names.pop_front() else {
            self.is_done = true;
            return Ok(None);
        };
        let app_id = store_keys::watched_app_of(&name.key)?;
        self.last = Some(app_id.clone());
        Ok(Some((app_id, name)))
    }
}
