//! Takes sessions over, so that no other process can write for them.

use std::{collections::HashSet, sync::atomic::Ordering};

use store::{Batch, Commit, Entry, Error, Version};
use types::{AppId, Credential};

use super::{Durable, LiveProcesses, SessionRecord, last_level, owner_key, presented, session_key};
use crate::access::permissions::Permissions;

/// Maximum number of sessions that one commit claims, each with two steps, and that are read together, each with two
/// records.
const CLAIMS_MAX: usize = 256;

/// Maximum number of attempts to claim a session that other processes take meanwhile.
const ATTEMPTS_MAX: usize = 5;

/// A stored session that this process owns now.
pub(crate) struct Claimed {
    /// Version of the record that names its owner. Every write for the session expects it.
    pub(crate) owner: Version,
    /// Name of the claim, unique among all claims.
    pub(crate) name: String,
    /// Credential and rights that the client showed last; none if they are not known.
    pub(crate) presented: Option<(Credential, Permissions)>,
    /// None if it is a new session.
    pub(crate) record: Option<SessionRecord>,
}

/// The sessions of an application that nobody served.
#[derive(Default)]
pub(crate) struct AdoptedSessions {
    pub(crate) sessions: Vec<(String, Claimed)>,
    /// The processes that own others.
    pub(crate) processes: HashSet<String>,
}

impl Durable {
    /// Makes this process the owner of a session, so that nobody else can write for it.
    ///
    /// `is_new` deletes what there is of it.
    pub(crate) async fn claim(
        &self,
        app_id: &AppId,
        id: &str,
        is_new: bool,
        presented: Option<&(Credential, Permissions)>,
    ) -> Result<Claimed, Error> {
        let (owner, session) = (owner_key(app_id, id)?, session_key(app_id, id)?);
        self.put_index(app_id).await?;
        let sealed = presented.and_then(|presented| self.seal(app_id, id, presented));
        let claimed = store::retry(ATTEMPTS_MAX, async || {
            let found = self.store.get_one(&owner).await?;
            let name = self.claim_name();
            let value = self.owner(&name, sealed.as_deref());
            let mut batch = Batch::new().expect_entry(&owner, found.as_ref()).put(owner.clone(), value.clone());
            if is_new {
                batch = batch.delete(session.clone()).growing();
            }
            if self.store.commit(batch).await? == Commit::Conflict {
                return Ok(None);
            }
            let [owner, session] = self.store.get_array(&[owner.clone(), session.clone()]).await?;
            Ok::<_, Error>(claimed(name, &value, owner, session, presented.cloned()))
        });
        let busy = Error::Unavailable { what: "take over an MQTT session", source: None };
        claimed.await?.ok_or(busy)
    }

    /// Deletes a session, whoever owns it.
    pub(crate) async fn delete(&self, app_id: &AppId, id: &str) -> Result<(), Error> {
        let owner = owner_key(app_id, id)?;
        let deleted = store::retry(ATTEMPTS_MAX, async || {
            let found = self.store.get_one(&owner).await?;
            let batch = self.delete_session(Batch::new().expect_entry(&owner, found.as_ref()), app_id, id)?;
            Ok::<_, Error>((self.store.commit(batch).await? == Commit::Done).then_some(()))
        });
        let busy = Error::Unavailable { what: "delete an MQTT session", source: None };
        deleted.await?.ok_or(busy)
    }

    /// Claims the sessions of an application whose processes no longer live, and those of this process whose ids it
    /// `misses` in memory: at most `room`.
    pub(crate) async fn adopt(
        &self,
        app_id: &AppId,
        live_processes: &LiveProcesses,
        room: usize,
        misses: impl Fn(&str) -> bool,
    ) -> Result<AdoptedSessions, Error> {
        let owners = self.list(&owner_key(app_id, "")?).await?;
        let (mut orphans, mut others): (Vec<_>, Vec<_>) = owners.into_iter().partition(|owner| {
            live_processes.is_orphan(&owner.value)
                || live_processes.is_own(&owner.value) && misses(last_level(&owner.key))
        });
        others.extend(orphans.split_off(room.min(orphans.len())));
        let mut adopted = AdoptedSessions {
            processes: others.iter().filter_map(|owner| LiveProcesses::process_of(&owner.value)).collect(),
            ..AdoptedSessions::default()
        };
        for orphans in orphans.chunks(CLAIMS_MAX) {
            adopted.sessions.extend(self.claim_unchanged(app_id, orphans).await?);
        }
        Ok(adopted)
    }

    /// Claims sessions that still have these owners. One that does not is another process's by now.
    async fn claim_unchanged(&self, app_id: &AppId, owners: &[Entry]) -> Result<Vec<(String, Claimed)>, Error> {
        let names = owners.iter().map(|owner| {
            let name = self.claim_name();
            (self.owner(&name, presented::sealed(&owner.value)), name)
        });
        let names: Vec<(String, String)> = names.collect();
        let claim = |batch: Batch, (owner, (value, _)): (&Entry, &(String, String))| {
            batch.expect(owner.key.clone(), owner.version).put(owner.key.clone(), value.clone())
        };
        let all = owners.iter().zip(&names).fold(Batch::new(), claim);
        if self.store.commit(all).await? == Commit::Conflict {
            for one in owners.iter().zip(&names) {
                // Whose it is shows below.
                _ = self.store.commit(claim(Batch::new(), one)).await?;
            }
        }
        let mut keys = Vec::with_capacity(2 * owners.len());
        for owner in owners {
            keys.extend([owner.key.clone(), session_key(app_id, last_level(&owner.key))?]);
        }
        let mut found = self.store.get(&keys).await?.into_iter();
        let mut sessions = Vec::new();
        for (owner, (value, name)) in owners.iter().zip(names) {
            let (found_owner, session) = (found.next().flatten(), found.next().flatten());
            let id = last_level(&owner.key);
            let presented = self.open(app_id, id, value.as_bytes()).inspect_err(|error| {
                tracing::error!(%app_id, %error, "deleting an MQTT session whose rights cannot be checked");
            });
            let is_checkable = presented.is_ok();
            let Some(claimed) = claimed(name, &value, found_owner, session, presented.ok().flatten()) else { continue };
            if claimed.record.is_some() && is_checkable {
                sessions.push((id.to_owned(), claimed));
            } else {
                // It has expired, or its credential is damaged.
                let delete = self.expect_owner(Batch::new(), app_id, id, claimed.owner)?;
                _ = self.store.commit(self.delete_session(delete, app_id, id)?).await?;
            }
        }
        Ok(sessions)
    }

    /// A name that no other claim has, so that its version cannot be taken for that of a later one.
    fn claim_name(&self) -> String {
        format!("{}-{:x}", self.process, self.claims.fetch_add(1, Ordering::Relaxed))
    }
}

/// Returns the session claimed with `value`; none if another process has claimed it since.
fn claimed(
    name: String,
    value: &str,
    owner: Option<Entry>,
    session: Option<Entry>,
    presented: Option<(Credential, Permissions)>,
) -> Option<Claimed> {
    let owner = owner.filter(|owner| owner.value == value.as_bytes())?.version;
    Some(Claimed { owner, name, presented, record: session.and_then(|entry| SessionRecord::decode(&entry.value)) })
}
