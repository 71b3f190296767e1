//! Routes from applications of ChirpStack to their receivers.

use std::{
    collections::HashMap,
    hash::{BuildHasher, RandomState},
    num::NonZeroUsize,
    time::Duration,
};

use bridge::{Error, codec::single_flight::is_final, hand_over::network::Route};
use client::chirpstack::ChirpStackClient;
use link::backoff::Backoff;
use lru::LruCache;
use parking_lot::Mutex;
use server::status::ErrorChain;
use tokio::{sync::Mutex as AsyncMutex, time::Instant};

use crate::api::application::is_id;

/// Maximum number of applications whose name is remembered.
const NAMES_MAX: NonZeroUsize = NonZeroUsize::MIN.saturating_add(9_999);
/// Maximum number of applications that are asked for at once.
const TURNS: usize = 16;
/// Time for which a name is used before it is asked for again.
const NAME_AGE_MAX: Duration = Duration::from_secs(60);

/// The receivers, by ids and names of applications.
pub(crate) struct Routes {
    by_id: HashMap<String, Route>,
    by_name: HashMap<String, Route>,
    names: Mutex<LruCache<String, (Instant, Option<String>)>>,
    /// One question at a time for the same application.
    turns: [AsyncMutex<()>; TURNS],
    hasher: RandomState,
}

impl Routes {
    /// Fails if there are none, if one is repeated, or if there are names but no API that tells the id of each.
    pub(crate) fn new(routes: Vec<Route>, has_api: bool) -> Result<Self, Error> {
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
        Ok(Self { by_id, by_name, names, turns: Default::default(), hasher: RandomState::new() })
    }

    /// Returns the route of an application's events, if there is one. Waits for an API that cannot be reached, because
    /// the name in an event is what its sender wrote.
    pub(crate) async fn find(&self, id: &str, api: Option<&ChirpStackClient>) -> Option<&Route> {
        // One event asks for all that wait for the same answer.
        let _turn = match self.is_known(id) {
            true => None,
            false => Some(self.turns[self.hasher.hash_one(id) as usize % TURNS].lock().await),
        };
        let mut backoff = Backoff::default();
        loop {
            match self.try_find(id, api).await {
                Ok(route) => return route,
                Err(error) => {
                    tracing::warn!(id, error = %ErrorChain(&error), "cannot ask ChirpStack for the name of an application: its events wait");
                    backoff.pause().await;
                }
            }
        }
    }

    /// The same, or why the API cannot say it now.
    pub(crate) async fn try_find(&self, id: &str, api: Option<&ChirpStackClient>) -> client::Result<Option<&Route>> {
        if let Some(route) = self.by_id.get(id) {
            return Ok(Some(route));
        }
        let Some(api) = api.filter(|_| !self.by_name.is_empty()) else { return Ok(None) };
        Ok(self.name(id, api).await?.and_then(|name| self.by_name.get(&name)))
    }

    fn is_known(&self, id: &str) -> bool {
        self.by_id.contains_key(id) || self.known(id, NAME_AGE_MAX).is_some()
    }

    /// The name of an application; none if the API key may not read it, whose events are none of ours then.
    async fn name(&self, id: &str, api: &ChirpStackClient) -> client::Result<Option<String>> {
        if let Some(name) = self.known(id, NAME_AGE_MAX) {
            return Ok(name);
        }
        let name = match api.application(id).await {
            Ok(response) => response.application.map(|application| application.name),
            // A key that is not accepted at all is replaced some time.
            Err(error) if is_final(&error) && api.check().await.is_ok() => None,
            // The last answer is good enough until there is another: names hardly ever change.
            Err(error) => self.known(id, Duration::MAX).ok_or(error)?,
        };
        self.names.lock().put(id.to_owned(), (Instant::now(), name.clone()));
        Ok(name)
    }

    fn known(&self, id: &str, age_max: Duration) -> Option<Option<String>> {
        let mut names = self.names.lock();
        let (when, name) = names.get(id)?;
        (when.elapsed() < age_max).then(|| name.clone())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use client::Trust;
    use futures::future::BoxFuture;
    use testing::{CHIRPSTACK_APPLICATION, CHIRPSTACK_APPLICATION_NAME, CHIRPSTACK_TOKEN, ChirpStackApi, Proxy};
    use tokio::time::{advance, pause, resume, timeout};
    use types::{NetworkEvent, NetworkRefusal, Secret};

    use super::*;
    use bridge::hand_over::network::Receiver;

    struct Nobody;

    impl Receiver for Nobody {
        fn receive(&self, _event: NetworkEvent) -> BoxFuture<'_, Result<(), NetworkRefusal>> {
            Box::pin(async { Ok(()) })
        }
    }

    fn route(application: &str) -> Route {
        Route { application: application.to_owned(), app_id: "my-app".parse().unwrap(), receiver: Arc::new(Nobody) }
    }

    #[tokio::test]
    async fn a_name_is_used_for_as_long_as_the_api_is_away() {
        server::system::install_crypto();
        let api = ChirpStackApi::start().await;
        let proxy = Proxy::start(Some(api.address())).await;
        let url = format!("http://{}", proxy.address);
        let client = ChirpStackClient::connect(&url, &Trust::System, Secret::new(CHIRPSTACK_TOKEN)).unwrap();
        let routes = Routes::new(vec![route(CHIRPSTACK_APPLICATION_NAME)], true).unwrap();
        assert!(routes.find(CHIRPSTACK_APPLICATION, Some(&client)).await.is_some());
        proxy.redirect(None).await;
        pause();
        advance(NAME_AGE_MAX).await;
        resume();
        let found = timeout(testing::PATIENCE, routes.find(CHIRPSTACK_APPLICATION, Some(&client))).await;
        assert!(found.unwrap().is_some());
        // One that nobody has told yet is not known.
        assert!(routes.try_find("52f14cd4-c6f1-4fbd-8f87-4025e1d49242", Some(&client)).await.is_err());
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
            let routes = applications.iter().map(|application| route(application)).collect();
            let error = Routes::new(routes, has_api).err().map(|error| error.to_string());
            match expected {
                Some(text) => assert!(error.is_some_and(|error| error.contains(text)), "{applications:?}"),
                None => assert_eq!(error, None, "{applications:?}"),
            }
        }
    }
}
