//! Client ids in brokers that others run: the application of each, and the sealed credential of its client.

use std::{sync::Arc, time::Duration};

use serde::{Deserialize, Serialize};
use server::seal::{SealError, Sealed, SealingKeys};
use sha2::{Digest, Sha256};
use store::{Batch, Commit, Entry, Key, LIST_MAX, Store, Tag};
use types::{AppId, Clock, Credential, Random, Secret};

/// Time that an application keeps a client id after the last question about it. Brokers keep sessions for less.
const KEPT_FOR: Duration = Duration::from_secs(7 * 24 * 3600);
/// After how long a question extends that.
const RENEWED_AFTER: Duration = Duration::from_secs(24 * 3600);
/// Maximum number of attempts to write a record that others write at the same time.
const ATTEMPTS_MAX: usize = 5;
const WHAT: &str = "credential of a client in an external MQTT broker";

/// Reasons why a record cannot be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum ClientsError {
    /// The store cannot be used, or others keep writing the same record.
    #[error("cannot use the store")]
    Store(#[from] store::Error),
    /// It cannot be sealed or opened.
    #[error(transparent)]
    Seal(#[from] SealError),
    /// It cannot be read or written.
    #[error("a record cannot be read")]
    Record(#[from] serde_json::Error),
}

/// The clients that have connected.
pub(super) struct Clients {
    store: Arc<dyn Store>,
    keys: SealingKeys,
    /// Maximum number of ids of an application.
    ids_max: usize,
    clock: Arc<dyn Clock>,
    random: Arc<dyn Random>,
}

/// Result of a client's claim to its id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Claim {
    Granted,
    /// It belongs to another application, by its name or because that has used it, or to a client that may read while
    /// this one may not.
    Foreign,
    /// The application has as many ids as it may have.
    TooMany,
}

#[derive(Serialize, Deserialize)]
struct ClientRecord {
    app_id: AppId,
    password: Sealed,
    written_ms: u64,
    /// True if the client could read, so that messages may wait for it.
    #[serde(default)]
    reads: bool,
}

impl Clients {
    pub(super) fn new(
        store: Arc<dyn Store>,
        keys: SealingKeys,
        ids_max: usize,
        (clock, random): (Arc<dyn Clock>, Arc<dyn Random>),
    ) -> Self {
        Self { store, keys, ids_max: ids_max.min(LIST_MAX), clock, random }
    }

    /// Remembers the credential of a client. An id that names an application belongs to that application, even if
    /// others have used it. Any other id may belong to another application, or to a client that `reads` while this
    /// one may not: it would get the messages that wait for that one.
    pub(super) async fn claim(
        &self,
        app_id: &AppId,
        client_id: &str,
        (credential, reads): (&Credential, bool),
    ) -> Result<Claim, ClientsError> {
        let named = named_application(client_id);
        if named.as_ref().is_some_and(|named| named != app_id) {
            return Ok(Claim::Foreign);
        }
        let (key, id) = key(client_id)?;
        let presented = match credential {
            Credential::Key(key) => Secret::new(key.expose()),
            Credential::Token(token) => token.clone(),
        };
        let password = self.keys.seal(&context(app_id, &id), presented.expose().as_bytes(), self.random.as_ref())?;
        let record = ClientRecord { app_id: app_id.clone(), password, written_ms: self.now_ms(), reads };
        for _ in 0..ATTEMPTS_MAX {
            let entry = self.store.get_one(&key).await?;
            match &entry {
                Some(Entry { value, .. }) => {
                    let known: ClientRecord = serde_json::from_slice(value)?;
                    let is_own = known.app_id == *app_id;
                    if (!is_own && named.is_none()) || (is_own && known.reads && !reads) {
                        return Ok(Claim::Foreign);
                    }
                }
                // Several that come at once may be a few too many.
                None if self.store.list(&used(app_id, "")?, None, self.ids_max).await?.len() >= self.ids_max => {
                    return Ok(Claim::TooMany);
                }
                None => {}
            }
            if self.write((&key, &id), entry.as_ref(), &record).await? == Commit::Done {
                return Ok(Claim::Granted);
            }
        }
        let what = "remember an MQTT client";
        Err(store::Error::Unavailable { what, source: None }.into())
    }

    /// Returns the credential that a client of the application has presented.
    pub(super) async fn credential(&self, app_id: &AppId, client_id: &str) -> Result<Option<Credential>, ClientsError> {
        let (key, id) = key(client_id)?;
        let Some(entry) = self.store.get_one(&key).await? else { return Ok(None) };
        let mut record: ClientRecord = serde_json::from_slice(&entry.value)?;
        if record.app_id != *app_id {
            return Ok(None);
        }
        let presented = self.keys.open(WHAT, &context(app_id, &id), &record.password)?;
        let presented = std::str::from_utf8(&presented).map_err(|_| SealError::Sealed(WHAT))?;
        let credential = Credential::from_password(presented).map_err(|_| SealError::Sealed(WHAT))?;
        if record.written_ms.saturating_add(millis(RENEWED_AFTER)) < self.now_ms() {
            record.written_ms = self.now_ms();
            // After a conflict, another process has just written it.
            _ = self.write((&key, &id), Some(&entry), &record).await?;
        }
        Ok(Some(credential))
    }

    /// Writes the record of an id, and first that its application uses it, which has another tag.
    async fn write(
        &self,
        (key, id): (&Key, &str),
        entry: Option<&Entry>,
        record: &ClientRecord,
    ) -> Result<Commit, ClientsError> {
        let until_ms = record.written_ms + millis(KEPT_FOR);
        // Without an expectation there is no conflict.
        _ = self.store.commit(Batch::new().put_until(used(&record.app_id, id)?, Vec::new(), until_ms)).await?;
        let batch = Batch::new().expect_entry(key, entry);
        Ok(self.store.commit(batch.put_until(key.clone(), serde_json::to_vec(record)?, until_ms)).await?)
    }

    fn now_ms(&self) -> u64 {
        self.clock.now().as_unix_ms()
    }
}

/// The application that a client id names, as `<app-id>:<anything>` does.
pub(super) fn named_application(client_id: &str) -> Option<AppId> {
    client_id.split_once(':')?.0.parse().ok()
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// The key of a client id, and the hash in it: clients choose their ids freely.
fn key(client_id: &str) -> Result<(Key, String), store::Error> {
    let id: String = Sha256::digest(client_id).iter().map(|byte| format!("{byte:02x}")).collect();
    Ok((Key::new(&Tag::named("client", &id)?, "mqtt/client")?, id))
}

/// Names an id that an application uses; without an id, the prefix of all of them.
fn used(app_id: &AppId, id: &str) -> Result<Key, store::Error> {
    Key::new(&Tag::application(app_id.as_str())?, &format!("mqtt/external/{id}"))
}

fn context(app_id: &AppId, id: &str) -> String {
    format!("mqtt/external/{app_id}/{id}")
}

#[cfg(test)]
mod tests {
    use server::seal::KeyOwner;
    use store::Embedded;
    use testing::{FixedRandom, ManualClock};

    use super::*;

    #[tokio::test]
    async fn an_id_that_names_an_application_is_never_another_one_s() {
        let clock = ManualClock::new();
        let store = Arc::new(Embedded::in_memory(clock.for_store()).unwrap());
        let keys = SealingKeys::new(KeyOwner::Handler, &[7; 32]).unwrap();
        let clients = Clients::new(store, keys, 10, (clock, Arc::new(FixedRandom::new([1]))));
        let (one, two): (AppId, AppId) = ("app-one".parse().unwrap(), "app-two".parse().unwrap());
        let credential = Credential::from_password("account.key").unwrap();
        let claim = async |app_id, client_id| clients.claim(app_id, client_id, (&credential, true)).await.unwrap();
        assert_eq!(claim(&two, "app-one:worker").await, Claim::Foreign);
        assert_eq!(claim(&one, "app-one:worker").await, Claim::Granted);
        assert_eq!(claim(&two, "app-one:worker").await, Claim::Foreign);
        // Of other ids, the first application that uses one has it.
        for client_id in ["app-one-worker", "worker", "Not An Id:worker", ":"] {
            assert_eq!(claim(&two, client_id).await, Claim::Granted, "{client_id}");
            assert_eq!(claim(&one, client_id).await, Claim::Foreign, "{client_id}");
        }
        // A record of an earlier version does not change that.
        let (key, id) = key("app-one:other").unwrap();
        let record = ClientRecord {
            app_id: two.clone(),
            password: clients.keys.seal(&context(&two, &id), b"account.key", clients.random.as_ref()).unwrap(),
            written_ms: clients.now_ms(),
            reads: true,
        };
        assert_eq!(clients.write((&key, &id), None, &record).await.unwrap(), Commit::Done);
        assert_eq!(claim(&one, "app-one:other").await, Claim::Granted);
    }
}
