//! Destinations of messages, and the keys of their records in the store.

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

/// Parts of a destination that hold messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Part {
    /// Those that wait.
    Queue,
    /// Those that were given up.
    DeadLetters,
}

impl Part {
    pub(crate) const ALL: [Self; 2] = [Self::Queue, Self::DeadLetters];

    fn name(self) -> &'static str {
        match self {
            Self::Queue => "queue",
            Self::DeadLetters => "dead",
        }
    }

    /// The prefix of all such messages of an application.
    pub(crate) fn of_application(self, app_id: &AppId) -> Result<Key, Error> {
        application_key(app_id, &format!("{}/", self.name()))
    }
}

impl Destination {
    pub(crate) fn new(app_id: &AppId, kind: &str, name: &str) -> Self {
        Self { app_id: app_id.clone(), kind: kind.to_owned(), name: name.to_owned() }
    }

    /// The destination of an application with this label.
    pub(crate) fn labelled(app_id: &AppId, label: &str) -> Option<Self> {
        let (kind, name) = label.split_once('/')?;
        Some(Self::new(app_id, kind, name))
    }

    /// The destination to which a message with this key belongs.
    pub(crate) fn of_key(app_id: &AppId, part: Part, key: &Key) -> Option<Self> {
        let path = key.path().strip_prefix("handler/output/")?.strip_prefix(part.name())?;
        let mut levels = path.strip_prefix('/')?.split('/');
        Some(Self::new(app_id, levels.next()?, levels.next()?))
    }

    /// Names it among those of its application.
    pub(crate) fn label(&self) -> String {
        format!("{}/{}", self.kind, self.name)
    }

    /// The prefix of its messages in a part.
    pub(crate) fn prefix(&self, part: Part) -> Result<Key, Error> {
        self.key(part.name(), "/")
    }

    /// A key after all of its messages in a part.
    pub(crate) fn after(&self, part: Part) -> Result<Key, Error> {
        self.key(part.name(), "/~")
    }

    pub(crate) fn message(&self, part: Part, id: &str) -> Result<Key, Error> {
        self.key(part.name(), &format!("/{id}"))
    }

    /// Names the process that delivers to it.
    pub(crate) fn lease(&self) -> Result<Key, Error> {
        self.key("lease", "")
    }

    /// Returns the key of the count of dropped messages that it has not been told about.
    pub(crate) fn dropped(&self) -> Result<Key, Error> {
        self.key("dropped", "")
    }

    /// Returns the key of the record that exists once anything was delivered to it.
    pub(crate) fn delivered(&self) -> Result<Key, Error> {
        self.key("delivered", "")
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

/// The body of a message that several destinations share, or that is large.
pub(crate) fn body(app_id: &AppId, id: &str) -> Result<Key, Error> {
    application_key(app_id, &format!("body/{id}"))
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
