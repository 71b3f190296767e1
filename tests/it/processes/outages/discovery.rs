//! Discovery is unavailable: the handler works without it, and announces later.

use airlock::{
    serve::{Service, Stack},
    settings::{Settings, TlsMode},
};
use client::{Trust, discovery::DiscoveryClient, handler::HandlerClient};
use store::{Batch, Commit, Key, Redis, RedisSettings, Store, StoreClock, Tag};
use testing::RedisProcess;
use types::{Kind, Kinded, ServiceName};

use super::soon;
use crate::harness::{Network, Owner, device, environment};

/// A handler whose discovery service is stopped and started, and another service that sees the same announcements.
struct Services {
    network: Network,
    owner: Owner,
    settings: Settings,
    handler: Stack,
    manager: HandlerClient,
    second_client: DiscoveryClient,
}

impl Services {
    /// Starts the handler without discovery.
    async fn start(redis: &RedisProcess) -> Self {
        let network = Network::on(redis, |_| ()).await;
        let owner = network.owner("alone").await;
        let mut settings = network.stack.settings().clone();
        settings.tls.mode = TlsMode::Off;
        // A free port without a listener, at an address where no other process gets it meanwhile.
        let free = std::net::TcpListener::bind("127.66.0.2:0").unwrap().local_addr().unwrap().to_string();
        settings.listen.discovery.clone_from(&free);
        settings.client.discovery_address = free;
        let handler = Stack::start(settings.clone(), Some(Service::Handler), environment()).await.unwrap();
        let address = handler.handler_http_address().unwrap().to_string();
        let manager = HandlerClient::connect_to(&address, &Trust::Plaintext, owner.token.clone()).unwrap();
        let second_client = network.stack.discovery_http_address().unwrap().to_string();
        let second_client = DiscoveryClient::connect(&second_client, &Trust::Plaintext).unwrap();
        Self { network, owner, settings, handler, manager, second_client }
    }

    async fn discovery(&self) -> Stack {
        Stack::start(self.settings.clone(), Some(Service::Discovery), environment()).await.unwrap()
    }

    /// The handler of the application, if it is announced.
    async fn address(&self) -> Option<String> {
        match self.second_client.get_by_app_id(&self.owner.app_id).await {
            Ok(handler) => Some(handler.api_address),
            Err(error) if error.kind() == Kind::NotFound => None,
            Err(error) => panic!("{error}"),
        }
    }

    fn handler_address(&self) -> String {
        format!("http://{}", self.handler.handler_http_address().unwrap())
    }

    /// Handler operations that do not need discovery.
    async fn work(&self) {
        let (app_id, dev_id) = (&self.owner.app_id, "dev-1".parse().unwrap());
        self.manager.set_device(device(app_id, "dev-1").into()).await.unwrap();
        let (app_id, dev_id_text) = (app_id.to_string(), "dev-1".to_owned());
        let uplink = api::handler::SimulatedUplinkMessage { app_id, dev_id: dev_id_text, payload: vec![1], port: 1 };
        self.manager.simulate_uplink(uplink).await.unwrap();
        self.manager.delete_device(&self.owner.app_id, &dev_id).await.unwrap();
    }
}

// Conformance: Discovery unavailable: the handler works without it, and announces later
#[tokio::test(flavor = "multi_thread")]
async fn pending_announcements_are_sent_when_discovery_returns() {
    let Some(redis) = RedisProcess::start() else { return };
    let services = Services::start(&redis).await;
    let app_id = services.owner.app_id.clone();
    services.owner.handler.delete_application(&app_id).await.unwrap();
    assert_eq!(services.address().await, None);

    // The handler started without discovery.
    services.manager.register_application(&app_id).await.unwrap();
    services.work().await;
    assert_eq!(services.address().await, None);
    let discovery = services.discovery().await;
    soon(Some(services.handler_address()), || services.address()).await;
    let announced = services.second_client.get_all(ServiceName::Handler).await.unwrap();
    assert_eq!(announced.len(), 1);

    // Discovery stops while the handler runs. Of two announcements about an application, the last one wins.
    discovery.stop().await;
    services.work().await;
    services.manager.delete_application(&app_id).await.unwrap();
    services.manager.register_application(&app_id).await.unwrap();
    services.manager.delete_application(&app_id).await.unwrap();
    assert_eq!(services.address().await, Some(services.handler_address()));
    let discovery = services.discovery().await;
    soon(None, || services.address()).await;

    // After that, announcements take effect at once again.
    services.manager.register_application(&app_id).await.unwrap();
    soon(Some(services.handler_address()), || services.address()).await;
    services.work().await;
    services.handler.stop().await;
    discovery.stop().await;
    services.network.stack.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_next_start_withdraws_what_a_killed_deletion_left() {
    let Some(redis) = RedisProcess::start() else { return };
    let network = Network::on(&redis, |settings| settings.tls.mode = TlsMode::Off).await;
    let owner = network.owner("killed").await;
    let address = network.stack.discovery_http_address().unwrap().to_string();
    let discovery = DiscoveryClient::connect(&address, &Trust::Plaintext).unwrap();
    discovery.get_by_app_id(&owner.app_id).await.unwrap();
    // What a handler leaves that is killed after the second commit of a deletion.
    let settings = RedisSettings { urls: vec![redis.url()], ..RedisSettings::default() };
    let store = Redis::connect(&settings, StoreClock::new(|| 0)).await.unwrap();
    let (handler, application) = (Tag::service("handler").unwrap(), Tag::application("killed-app").unwrap());
    let key = |tag: &Tag, path: &str| Key::new(tag, path).unwrap();
    let begun = Batch::new().put(key(&handler, "handler/deletion/killed-app"), "");
    let gone = ["handler/application", "handler/functions"].map(|path| key(&application, path));
    let gone = gone.into_iter().fold(Batch::new(), Batch::delete);
    for batch in [begun, gone] {
        assert_eq!(store.commit(batch).await.unwrap(), Commit::Done);
    }

    let settings = network.stack.settings().clone();
    let handler = Stack::start(settings, Some(Service::Handler), environment()).await.unwrap();
    let found = async || discovery.get_by_app_id(&owner.app_id).await.map(drop).map_err(|error| error.kind());
    soon(Err(Kind::NotFound), found).await;
    handler.stop().await;
    network.stack.stop().await;
}
