//! Which receiver takes the events of an application of ChirpStack.

use std::{
    collections::HashMap,
    num::NonZeroUsize,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use client::chirpstack::ChirpStackClient;
use lru::LruCache;
use server::status::ErrorChain;
use tokio::{sync::Mutex as AsyncMutex, time::Instant};

use crate::{Error, backoff::Backoff, look_up::is_final, network::Route};

/// Maximum number of applications whose name is remembered.
const NAMES_MAX: NonZeroUsize = NonZeroUsize::MIN.saturating_add(9_999);
/// How long a name is remembered.
const NAME_AGE_MAX: Duration = Duration::from_secs(60);

/// The receivers, by ids and names of applications.
pub(super) struct Routes {
    by_id: HashMap<String, Route>,
    by_name: HashMap<String, Route>,
    names: Mutex<LruCache<String, (Instant, Option<String>)>>,
    /// One question at a time.
    turn: AsyncMutex<()>,
}

impl Routes {
    /// Fails if there are none, if one is repeated, or if there are names but no API that tells the id of each.
    pub(super) fn new(routes: Vec<Route>, has_api: bool) -> Result<Self, Error> {
        let refused = |reason: String| Error::setting("bridge.applications", reason);
        let (mut by_id, mut by_name) = (HashMap::new(), HashMap::new());
        for route in routes {
            let application = &route.application;
            let is_name = !is_id(application);
            if is_name && !has_api {
                return Err(refused(format!(
                    "`{application}` is a name, which only ChirpStack's API can tell from others: set \
                     `chirpstack.grpc`, or give the application's id"
                )));
            }
            let known = if is_name { &mut by_name } else { &mut by_id };
            let name = application.clone();
            if let Some(earlier) = known.insert(name, route) {
                return Err(refused(format!("`{}` is there twice", earlier.application)));
            }
        }
        if by_id.is_empty() && by_name.is_empty() {
            return Err(refused("is empty: name an application of ChirpStack and one of Airlock".to_owned()));
        }
        let names = Mutex::new(LruCache::new(NAMES_MAX));
        Ok(Self { by_id, by_name, names, turn: AsyncMutex::default() })
    }

    /// Who takes an application's events, if somebody does. Waits for an API that cannot be reached, because the
    /// name in an event is only what the sender of the event says.
    pub(super) async fn find(&self, id: &str, api: Option<&ChirpStackClient>) -> Option<&Route> {
        if let Some(route) = self.by_id.get(id) {
            return Some(route);
        }
        let api = api.filter(|_| !self.by_name.is_empty())?;
        let name = self.name(id, api).await?;
        self.by_name.get(&name)
    }

    /// The name of an application; none if the API key may not read it, whose events are none of ours then.
    async fn name(&self, id: &str, api: &ChirpStackClient) -> Option<String> {
        if let Some(name) = self.known(id) {
            return name;
        }
        let _turn = self.turn.lock().await;
        let mut backoff = Backoff::new();
        loop {
            if let Some(name) = self.known(id) {
                return name;
            }
            let name = match api.application(id).await {
                Ok(response) => response.application.map(|application| application.name),
                // A key that is not accepted at all is replaced some time.
                Err(error) if is_final(&error) && api.check().await.is_ok() => None,
                Err(error) => {
                    tracing::warn!(id, error = %ErrorChain(&error), "cannot ask ChirpStack for the name of an application: its events wait");
                    backoff.pause().await;
                    continue;
                }
            };
            let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
            names.put(id.to_owned(), (Instant::now(), name.clone()));
            return name;
        }
    }

    fn known(&self, id: &str) -> Option<Option<String>> {
        let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        let (when, name) = names.get(id)?;
        (when.elapsed() < NAME_AGE_MAX).then(|| name.clone())
    }
}

/// Whether this is a UUID, which is what ids are in ChirpStack.
fn is_id(application: &str) -> bool {
    let is_digit = |(place, byte): (usize, u8)| match place {
        8 | 13 | 18 | 23 => byte == b'-',
        _ => byte.is_ascii_hexdigit() && !byte.is_ascii_uppercase(),
    };
    application.len() == 36 && application.bytes().enumerate().all(is_digit)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use futures::future::BoxFuture;
    use types::{NetworkEvent, NetworkRefusal};

    use super::*;
    use crate::network::Receiver;

    struct Nobody;

    impl Receiver for Nobody {
        fn receive(&self, _event: NetworkEvent) -> BoxFuture<'_, Result<(), NetworkRefusal>> {
            Box::pin(async { Ok(()) })
        }
    }

    #[test]
    fn refuses_routes_that_cannot_be_followed() {
        let id = "119e3472-d36a-4260-a167-b51f0bd25676";
        for (applications, has_api, expected) in [
            (&[id][..], false, None),
            (&[id, "lab"], true, None),
            (&["lab"], false, Some("is a name")),
            (&["119E3472-D36A-4260-A167-B51F0BD25676"], false, Some("is a name")),
            (&[id, id], false, Some("twice")),
            (&[], true, Some("is empty")),
        ] {
            let route = |application: &&str| Route {
                application: (*application).to_owned(),
                app_id: "my-app".parse().unwrap(),
                receiver: Arc::new(Nobody),
            };
            let error =
                Routes::new(applications.iter().map(route).collect(), has_api).err().map(|error| error.to_string());
            match expected {
                Some(text) => assert!(error.is_some_and(|error| error.contains(text)), "{applications:?}"),
                None => assert_eq!(error, None, "{applications:?}"),
            }
        }
    }
}
