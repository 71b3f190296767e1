//! Where messages go, and the keys of what is stored about it.

use std::fmt;

use store::{Key, Tag};
use types::AppId;

use crate::Error;

/// The kind of destinations that owners of applications manage.
pub(crate) const WEBHOOK: &str = "webhook";

/// One receiver of one application's messages.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Destination {
    pub(crate) app_id: AppId,
    /// The kind of output, such as `webhook`.
    pub(crate) kind: String,
    /// Differs from that of others of its kind.
    pub(crate) name: String,
}

impl Destination {
    pub(crate) fn new(app_id: &AppId, kind: &str, name: &str) -> Self {
        Self { app_id: app_id.clone(), kind: kind.to_owned(), name: name.to_owned() }
    }

    /// The destination whose queue has this key.
    pub(crate) fn of_queued(app_id: &AppId, key: &Key) -> Option<Self> {
        let mut levels = key.path().strip_prefix("handler/output/queue/")?.split('/');
        Some(Self::new(app_id, levels.next()?, levels.next()?))
    }

    /// The prefix of its queue.
    pub(crate) fn queue(&self) -> Result<Key, Error> {
        self.key("queue", "/")
    }

    /// A key after all of its queue.
    pub(crate) fn after_queue(&self) -> Result<Key, Error> {
        self.key("queue", "/~")
    }

    pub(crate) fn queued(&self, id: &str) -> Result<Key, Error> {
        self.key("queue", &format!("/{id}"))
    }

    /// The prefix of its dead letters.
    pub(crate) fn dead_letters(&self) -> Result<Key, Error> {
        self.key("dead", "/")
    }

    pub(crate) fn dead_letter(&self, id: &str) -> Result<Key, Error> {
        self.key("dead", &format!("/{id}"))
    }

    /// Names the process that delivers to it.
    pub(crate) fn lease(&self) -> Result<Key, Error> {
        self.key("lease", "")
    }

    /// How many messages were dropped that it has not been told about.
    pub(crate) fn dropped(&self) -> Result<Key, Error> {
        self.key("dropped", "")
    }

    fn key(&self, what: &str, rest: &str) -> Result<Key, Error> {
        application_key(&self.app_id, &format!("{what}/{}/{}{rest}", self.kind, self.name))
    }
}

impl fmt::Display for Destination {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} {} of application {}", self.kind, self.name, self.app_id)
    }
}

/// The prefix of all queues of an application.
pub(crate) fn queues(app_id: &AppId) -> Result<Key, Error> {
    application_key(app_id, "queue/")
}

/// The webhooks of an application.
pub(crate) fn webhooks(app_id: &AppId) -> Result<Key, Error> {
    application_key(app_id, "webhooks")
}

/// Names an application that may have messages in queues. It has another tag.
pub(crate) fn index(app_id: &str) -> Result<Key, Error> {
    Ok(Key::new(&Tag::service("handler")?, &format!("handler/outputs/{app_id}"))?)
}

/// It belongs to the application, and is deleted with it, like all that the handler keeps about it.
fn application_key(app_id: &AppId, path: &str) -> Result<Key, Error> {
    Ok(Key::new(&Tag::application(app_id.as_str())?, &format!("handler/output/{path}"))?)
}

/// The last level of a key's path.
pub(crate) fn last_level(key: &Key) -> &str {
    key.path().rsplit('/').next().unwrap_or_default()
}
