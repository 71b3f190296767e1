//! The applications whose messages are decoded, with their API keys.

pub(super) mod topic;

use std::sync::Arc;

use bridge::Error;
use link::secret_file::SecretFile;

use self::topic::is_id;
use super::settings::{ThingsStackApplication, ThingsStackSettings};

/// An application of The Things Stack.
pub(super) struct Application {
    /// Its id and tenant, as in topics: `app1@tenant1`.
    pub(super) uid: String,
    /// Its API key.
    pub(super) key: SecretFile,
    /// The key that requests of its webhook must bring.
    pub(super) webhook_key: SecretFile,
}

impl Application {
    /// The applications of the settings; at least one.
    pub(super) fn all(settings: &ThingsStackSettings) -> Result<Vec<Arc<Self>>, Error> {
        let invalid = |reason: &str| Error::setting("bridge.things_stack.applications", reason);
        if settings.applications.is_empty() {
            return Err(invalid("is empty: give an application with --application, such as app1@tenant1"));
        }
        let mut applications: Vec<Arc<Self>> = Vec::new();
        for ThingsStackApplication { id, key_file } in &settings.applications {
            if !is_uid(id) {
                return Err(invalid("must have ids such as app1@tenant1: letters, digits and hyphens"));
            }
            if applications.iter().any(|application| application.uid == *id) {
                return Err(invalid("must not have the same id twice"));
            }
            let key = match key_file.as_ref().or(settings.key_file.as_ref()) {
                Some(file) => SecretFile::open(file)?,
                None => SecretFile::given(settings.key.clone()),
            };
            if key.current().expose().is_empty() {
                return Err(Error::flag(
                    "bridge.things_stack.key_file",
                    "is not set: create an API key in the Console of the application, and give its file",
                    "--key-file",
                ));
            }
            let webhook_key = match &settings.webhook.key_file {
                Some(file) => SecretFile::open(file)?,
                None => key.clone(),
            };
            let application = Arc::new(Self { uid: id.clone(), key, webhook_key });
            if !settings.webhook.listen.is_empty() {
                application.check_webhook_key(&applications)?;
            }
            applications.push(application);
        }
        Ok(applications)
    }

    /// A message says the id of its application and not the tenant, which only the key can tell.
    fn check_webhook_key(&self, others: &[Arc<Self>]) -> Result<(), Error> {
        let key = self.webhook_key.current();
        let same = |other: &&Arc<Self>| other.id() == self.id() && other.webhook_key.current() == key;
        let Some(other) = others.iter().find(same) else { return Ok(()) };
        let reason = format!(
            "`{}` and `{}` must not have the same key where a webhook listens, because messages do not name the \
             tenant: give each a `key_file`, and set no `webhook.key_file`",
            other.uid, self.uid
        );
        Err(Error::setting("bridge.things_stack.applications", reason))
    }

    /// Returns the application's id for topics of clients that forget the tenant. Returns `None` if there is no tenant,
    /// or another application has that id.
    pub(super) fn without_tenant<'a>(&'a self, others: &[Arc<Self>]) -> Option<&'a str> {
        let is_free = others.iter().all(|other| other.uid != self.id());
        (is_free && self.uid != self.id()).then(|| self.id())
    }

    /// Its id without the tenant, as in the API and in messages.
    pub(super) fn id(&self) -> &str {
        self.uid.split_once('@').map_or(self.uid.as_str(), |(id, _)| id)
    }
}

/// Returns true if the text is an id, or an id and a tenant, and so a level of a topic.
fn is_uid(text: &str) -> bool {
    match text.split_once('@') {
        Some((id, tenant)) => is_id(id) && is_id(tenant),
        None => is_id(text),
    }
}

#[cfg(test)]
mod tests {
    use types::Secret;

    use super::*;

    #[test]
    fn ids_are_levels_of_topics() {
        for (id, fits) in
            [("app1@ttn", true), ("app-1", true), ("", false), ("app@", false), ("a/b", false), ("+@ttn", false)]
        {
            let applications = vec![ThingsStackApplication { id: id.to_owned(), key_file: None }];
            let settings = ThingsStackSettings { applications, key: Secret::new("NNSXS.key"), ..Default::default() };
            assert_eq!(Application::all(&settings).is_ok(), fits, "{id}");
        }
    }

    #[test]
    fn an_application_without_a_key_is_refused() {
        let applications = vec![ThingsStackApplication { id: "app1@ttn".to_owned(), key_file: None }];
        let settings = ThingsStackSettings { applications, ..Default::default() };
        let error = Application::all(&settings).err().unwrap();
        assert!(error.to_string().contains("--key-file"), "{error}");
    }
}
