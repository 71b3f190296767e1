//! The applications of each owner, for lists that forget those of owners who have most.

use std::{cmp::Reverse, collections::HashMap};

use server::ledger::Owner;
use types::AppId;

/// The applications of each owner, first of those whose applications take most memory together.
pub(super) fn largest_first<'a>(
    applications: impl Iterator<Item = (&'a AppId, usize)>,
    owner_of: impl Fn(&AppId) -> Owner,
) -> Vec<Vec<AppId>> {
    let mut owners: HashMap<Owner, (usize, Vec<AppId>)> = HashMap::new();
    for (app_id, application_bytes) in applications {
        let (bytes, app_ids) = owners.entry(owner_of(app_id)).or_default();
        *bytes += application_bytes;
        app_ids.push(app_id.clone());
    }
    let mut owners: Vec<_> = owners.into_values().collect();
    owners.sort_by_key(|(bytes, _)| Reverse(*bytes));
    owners.into_iter().map(|(_, app_ids)| app_ids).collect()
}

/// Ids and owners for tests.
#[cfg(test)]
pub(super) mod examples {
    use std::sync::Arc;

    use server::ledger::Owner;
    use types::{AppId, DevId, DevicePath};

    pub(in crate::uplink::last_heard) fn app(text: &str) -> AppId {
        text.parse().unwrap()
    }

    pub(in crate::uplink::last_heard) fn dev(number: usize) -> DevId {
        format!("dev-{number}").parse().unwrap()
    }

    pub(in crate::uplink::last_heard) fn path<'a>(app_id: &'a AppId, dev_id: &'a DevId) -> DevicePath<'a> {
        DevicePath { app_id, dev_id }
    }

    /// Applications whose ids begin alike belong to one user.
    pub(in crate::uplink::last_heard) fn by_first_letter(app_id: &AppId) -> Owner {
        Owner::User(Arc::from(&app_id.as_str()[..1]))
    }
}
