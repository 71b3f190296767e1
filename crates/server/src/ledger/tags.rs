//! Size of each tag of the store in bytes, and its owner.

use std::{
    collections::{HashMap, HashSet},
    sync::Weak,
};

use store::Tag;
use types::AppId;

use super::{Budget, Exceeded, Owner, Owners, owners::Entity};

/// Sizes of all tags that belong to somebody, in bytes, as they are charged to their owners in the budget.
#[derive(Default)]
pub(super) struct Tags {
    counted: HashMap<Box<str>, Counted>,
    /// Those that have changed since they were counted.
    changed: HashSet<Box<str>>,
    /// Size of all tags, in bytes.
    total: u64,
    /// Size of the tags that belong to the service itself, in bytes: there may be one for each device.
    of_service: u64,
    /// Size of these tags, as far as they were counted in this pass.
    of_service_counted: u64,
    /// Number of times that all tags were counted.
    pass: u64,
}

struct Counted {
    bytes: u64,
    owner: Owner,
    /// The last time that all tags were counted and this one was there.
    pass: u64,
}

impl Tags {
    /// Charges the owner of a tag, unless that exceeds its share.
    pub(super) fn take(
        &mut self,
        tag: &str,
        bytes: u64,
        budget: &Budget,
        owners: &Weak<Owners>,
    ) -> Result<(), Exceeded> {
        match self.know(tag, owners) {
            Some(counted) => {
                budget.take(&counted.owner, bytes)?;
                counted.bytes += bytes;
            }
            None => self.of_service += bytes,
        }
        self.total += bytes;
        Ok(())
    }

    /// Gives back the charge for a batch that was not stored.
    pub(super) fn give_back(&mut self, tag: &str, bytes: u64, budget: &Budget) {
        match self.counted.get_mut(tag) {
            Some(counted) => {
                let left = counted.bytes.saturating_sub(bytes);
                counted.set(left, &mut self.total, budget);
            }
            None => {
                self.of_service = self.of_service.saturating_sub(bytes);
                self.total = self.total.saturating_sub(bytes);
            }
        }
    }

    /// Returns the size of all tags, in bytes.
    pub(super) fn total(&self) -> u64 {
        self.total
    }

    /// Notes that a tag is to be counted again, if somebody is charged for it.
    pub(super) fn changed(&mut self, tag: &str) {
        if self.counted.contains_key(tag) && !self.changed.contains(tag) {
            self.changed.insert(tag.into());
        }
    }

    /// The tags that are to be counted again.
    pub(super) fn take_changed(&mut self) -> Vec<Tag> {
        let taken = std::mem::take(&mut self.changed).into_iter();
        taken.filter_map(|tag| Tag::try_from(tag.into_string()).ok()).collect()
    }

    /// Puts back tags that could not be counted.
    pub(super) fn put_back(&mut self, tags: &[Tag]) {
        self.changed.extend(tags.iter().map(|tag| tag.as_str().into()));
    }

    /// Replaces the size of a tag by the one that the store has counted.
    pub(super) fn set(&mut self, tag: &Tag, bytes: u64, budget: &Budget, owners: &Weak<Owners>) {
        let pass = self.pass;
        let Some(counted) = self.know(tag.as_str(), owners) else {
            self.of_service_counted += bytes;
            return;
        };
        counted.pass = pass;
        let before = counted.bytes;
        counted.replace(bytes, budget);
        self.total = self.total.saturating_sub(before).saturating_add(bytes);
        if let Some(Entity::Application(app_id)) = entity(tag.as_str())
            // A user who is no longer remembered is not an unknown one.
            && let owner @ Owner::User(_) = last_owner(&app_id, owners)
        {
            self.charge_to(tag.as_str(), owner, budget);
        }
    }

    /// Begins to count all tags.
    pub(super) fn begin(&mut self) -> u64 {
        self.pass += 1;
        self.of_service_counted = 0;
        self.pass
    }

    /// All tags have been counted: those that were not there have nothing.
    pub(super) fn end(&mut self, pass: u64, budget: &Budget) {
        self.total = self.total.saturating_sub(self.of_service).saturating_add(self.of_service_counted);
        self.of_service = self.of_service_counted;
        let changed = &self.changed;
        self.counted.retain(|tag, counted| {
            let is_there = counted.pass >= pass || changed.contains(tag);
            if !is_there {
                counted.set(0, &mut self.total, budget);
            }
            is_there
        });
    }

    /// Some applications and gateways that have something, and whose users are not known, after the first `skipped` of
    /// them.
    pub(super) fn unknown(&self, skipped: usize, limit: usize) -> Vec<Entity> {
        let is_unknown = |counted: &Counted| matches!(counted.owner, Owner::Application(_) | Owner::Gateway(_));
        let unknown: Vec<_> =
            self.counted.iter().filter(|(_, counted)| is_unknown(counted)).map(|(tag, _)| &**tag).collect();
        let first = skipped.checked_rem(unknown.len()).unwrap_or_default();
        unknown[first..].iter().chain(&unknown[..first]).filter_map(|tag| entity(tag)).take(limit).collect()
    }

    /// Charges the owner of an application or gateway that is known now instead of the former one.
    pub(super) fn move_to(&mut self, entity: &Entity, owner: Owner, budget: &Budget) {
        match entity {
            Entity::Application(id) => self.charge_to(&format!("{{a:{id}}}"), owner, budget),
            Entity::Gateway(id) => self.charge_to(&format!("{{g:{id}}}"), owner, budget),
        }
    }

    /// Has the user of a gateway asked for again, since a change of it may have been a transfer. Nobody else says when
    /// that happens, as callers' tokens do of applications.
    pub(super) fn forget_user(&mut self, tag: &Tag, budget: &Budget) {
        if let Some(Entity::Gateway(gateway_id)) = entity(tag.as_str()) {
            self.charge_to(tag.as_str(), Owner::Gateway(gateway_id.as_str().into()), budget);
        }
    }

    fn charge_to(&mut self, tag: &str, owner: Owner, budget: &Budget) {
        let Some(counted) = self.counted.get_mut(tag).filter(|counted| counted.owner != owner) else { return };
        let bytes = counted.bytes;
        counted.replace(0, budget);
        counted.owner = owner;
        counted.replace(bytes, budget);
    }

    /// Remembers the owner of a tag; `None` if that is the service itself.
    fn know(&mut self, tag: &str, owners: &Weak<Owners>) -> Option<&mut Counted> {
        if !self.counted.contains_key(tag) {
            let counted = Counted { bytes: 0, owner: owner_of(tag, owners)?, pass: self.pass };
            self.counted.insert(tag.into(), counted);
        }
        self.counted.get_mut(tag)
    }
}

impl Counted {
    fn set(&mut self, bytes: u64, total: &mut u64, budget: &Budget) {
        *total = total.saturating_sub(self.bytes).saturating_add(bytes);
        self.replace(bytes, budget);
    }

    fn replace(&mut self, bytes: u64, budget: &Budget) {
        budget.replace(&self.owner, self.bytes, bytes);
        self.bytes = bytes;
    }
}

/// Returns the owner of a tag; `None` if that is the service itself.
fn owner_of(tag: &str, owners: &Weak<Owners>) -> Option<Owner> {
    match entity(tag) {
        Some(Entity::Application(app_id)) => Some(last_owner(&app_id, owners)),
        Some(Entity::Gateway(gateway_id)) => Some(Owner::Gateway(gateway_id.as_str().into())),
        None => parts(tag).filter(|(kind, _)| *kind == "u").map(|(_, id)| Owner::User(id.into())),
    }
}

/// The owner of an application as far as it is known. At the end of the process, nobody knows any more.
fn last_owner(app_id: &AppId, owners: &Weak<Owners>) -> Owner {
    owners.upgrade().map_or_else(|| Owner::from(app_id), |owners| owners.last(app_id))
}

/// The application or gateway of a tag.
fn entity(tag: &str) -> Option<Entity> {
    let (kind, id) = parts(tag)?;
    match kind {
        "a" => id.parse().ok().map(Entity::Application),
        "g" => id.parse().ok().map(Entity::Gateway),
        _ => None,
    }
}

fn parts(tag: &str) -> Option<(&str, &str)> {
    tag.strip_prefix('{')?.strip_suffix('}')?.split_once(':')
}
