//! Malformed input to handler and discovery either succeeds or is refused without changing anything.

mod generators;
mod grpc;
mod http;

use std::cell::Cell;

use api::{
    discovery::Announcement,
    handler::{Application, Device},
};
use client::{Trust, discovery::DiscoveryClient};
use proptest::{
    strategy::Strategy,
    test_runner::{Config, TestRunner},
};
use server::rate_limit::RateLimit;
use tokio::{runtime::Handle, task::block_in_place};
use types::{Credential, ServiceName};

use crate::harness::{Network, Owner};

/// Number of cases of each kind.
const CASES: u32 = 200;
const USER: &str = "malformed";

/// Both services, and an owner with one device.
struct Services {
    network: Network,
    owner: Owner,
    discovery_http: String,
}

/// The observable state of the services.
#[derive(Debug, PartialEq)]
struct StoredData {
    application: Application,
    devices: Vec<Device>,
    handlers: Vec<Announcement>,
}

impl Services {
    async fn start() -> Self {
        let often = RateLimit::new(1_000_000, 1_000_000);
        let network = Network::with(|settings| {
            (settings.handler.rate_limits.client, settings.handler.rate_limits.application) = (often, often);
        });
        let network = network.await;
        let owner = network.owner(USER).await;
        owner.add_device("dev-1").await;
        let address = network.stack.discovery_http_address().unwrap().to_string();
        Self { network, owner, discovery_http: format!("http://{address}") }
    }

    async fn stored_data(&self) -> StoredData {
        let (handler, app_id) = (&self.owner.handler, &self.owner.app_id);
        // A new client each time, without a cache.
        let address = self.network.stack.discovery_http_address().unwrap().to_string();
        let discovery = DiscoveryClient::connect(&address, &Trust::Plaintext).unwrap();
        StoredData {
            application: handler.get_application(app_id).await.unwrap(),
            devices: handler.list_devices(app_id, Default::default()).await.unwrap(),
            handlers: discovery.get_all(ServiceName::Handler).await.unwrap(),
        }
    }

    /// The state after a response: unchanged if the request was refused, otherwise the current state.
    ///
    /// A request may also delete the application, which is then registered again.
    async fn data_after(&self, before: StoredData, was_done: bool, what: &str) -> StoredData {
        if was_done {
            // It is usually still registered.
            _ = self.owner.handler.register_application(&self.owner.app_id).await;
            self.owner.add_device("dev-1").await;
            return self.stored_data().await;
        }
        assert_eq!(self.stored_data().await, before, "{what} was refused and changed something");
        before
    }

    fn token(&self) -> &str {
        let Credential::Token(token) = &self.owner.token else { panic!("owners have tokens") };
        token.expose()
    }
}

/// Tries many inputs in sequence. Each step returns the state and whether the request succeeded.
async fn try_many<S: Strategy>(
    inputs: S,
    services: &Services,
    step: impl AsyncFn(S::Value, StoredData) -> (StoredData, bool),
) {
    let (handle, state, done) = (Handle::current(), Cell::new(Some(services.stored_data().await)), Cell::new(0));
    // Shrinking would not work, because the state has changed.
    let config = Config { cases: CASES, max_shrink_iters: 0, failure_persistence: None, ..Config::default() };
    let run = || {
        TestRunner::new(config).run(&inputs, |one| {
            let before = state.take().expect("the one before held");
            let (after, was_done) = handle.block_on(step(one, before));
            state.set(Some(after));
            done.set(done.get() + u32::from(was_done));
            Ok(())
        })
    };
    block_in_place(run).unwrap();
    assert!((5..CASES - 50).contains(&done.get()), "{} of {CASES} were done: too few or too many", done.get());
}
