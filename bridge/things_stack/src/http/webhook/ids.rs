//! The webhooks of applications that may queue downlinks.
//!
//! Requests say so with the address to send downlinks to. Only the id is taken from it, and only if the rest is the
//! address that it has to be: downlinks, and the key with them, never go anywhere but to The Things Stack's API.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use parking_lot::Mutex;

use crate::application::{Application, topic::is_id};

/// The ids of webhooks, by application.
pub(crate) struct WebhookIds {
    /// The URL of the API.
    api: String,
    ids: Mutex<HashMap<String, Arc<str>>>,
    /// Applications with a webhook that has another address, each of which is logged once.
    elsewhere: Mutex<HashSet<String>>,
}

impl WebhookIds {
    pub(crate) fn new(api: &str) -> Self {
        Self { api: api.trim_end_matches('/').to_owned(), ids: Mutex::default(), elsewhere: Mutex::default() }
    }

    /// Takes the id from the address that a request of the application has for downlinks.
    pub(crate) fn learn(&self, application: &Application, push: &str) {
        let Some(id) = self.id(application, push) else { return self.elsewhere(application) };
        let mut ids = self.ids.lock();
        if ids.get(&application.uid).is_none_or(|known| **known != *id) {
            ids.insert(application.uid.clone(), id.into());
        }
    }

    fn elsewhere(&self, application: &Application) {
        let mut elsewhere = self.elsewhere.lock();
        if elsewhere.insert(application.uid.clone()) {
            tracing::warn!(
                application = application.uid,
                api = self.api,
                "a webhook has another address for downlinks than the API: using the API"
            );
        }
    }

    /// Forgets a webhook that was deleted, until a request names it again.
    pub(crate) fn forget(&self, application: &Application) {
        self.ids.lock().remove(&application.uid);
    }

    /// The webhook of an application that was last seen.
    pub(crate) fn get(&self, application: &Application) -> Option<Arc<str>> {
        self.ids.lock().get(&application.uid).cloned()
    }

    fn id<'a>(&self, application: &Application, push: &'a str) -> Option<&'a str> {
        let rest = push.strip_prefix(&self.api)?.strip_prefix("/api/v3/as/applications/")?;
        let rest = rest.strip_prefix(application.id())?.strip_prefix("/webhooks/")?;
        let (id, rest) = rest.split_once("/devices/")?;
        let (device, operation) = rest.split_once('/')?;
        (is_id(id) && is_id(device) && operation == "down/push").then_some(id)
    }
}

#[cfg(test)]
mod tests {
    use types::Secret;

    use super::*;
    use link::secret_file::SecretFile;

    #[test]
    fn only_the_address_of_the_api_is_accepted() {
        let key = SecretFile::given(Secret::new("key"));
        let application = Application { uid: "app1@lab".to_owned(), webhook_key: key.clone(), key };
        let ids = WebhookIds::new("https://stack.example/");
        let path = "/api/v3/as/applications/app1/webhooks/hook-1/devices/dev1/down/push";
        assert_eq!(ids.id(&application, &format!("https://stack.example{path}")), Some("hook-1"));
        for push in [
            format!("https://stack.example.evil{path}"),
            format!("http://stack.example{path}"),
            format!("https://stack.example@evil{path}"),
            format!("https://stack.example{}", path.replace("app1", "app2")),
            format!("https://stack.example{}", path.replace("hook-1", "../x")),
            format!("https://stack.example{}", path.replace("hook-1", "hook?x=")),
            format!("https://stack.example{path}?x"),
        ] {
            assert_eq!(ids.id(&application, &push), None, "{push}");
        }
    }
}
