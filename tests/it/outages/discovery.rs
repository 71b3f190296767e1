//! Discovery is unavailable: the handler works without it, and announces later.

use airlock::{
    serve::{Service, Stack},
    settings::{Settings, TlsMode},
};
use client::{Trust, discovery::DiscoveryClient, handler::HandlerClient};
use testing::RedisProcess;
use types::{Kind, Kinded, ServiceName};

use super::soon;
use crate::harness::{Network, Owner, device, metrics};

/// A handler whose discovery service is stopped and started, and another service that sees the same announcements.
struct Stage {
    network: Network,
    owner: Owner,
    settings: Settings,
    handler: Stack,
    manager: HandlerClient,
    witness: DiscoveryClient,
}

impl Stage {
    /// Starts the handler without discovery.
    async fn set(redis: &RedisProcess) -> Self {
        let network = Network::on(redis, |_| ()).await;
        let owner = network.owner("alone").await;
        let mut settings = network.stack.settings().clone();
        settings.tls.mode = TlsMode::Off;
        // A free port without a listener.
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
        settings.listen.discovery.clone_from(&free);
        settings.client.discovery_address = free;
        let handler = Stack::start(settings.clone(), Some(Service::Handler), metrics()).await.unwrap();
        let place = handler.handler_http_address().unwrap().to_string();
        let manager = HandlerClient::connect_to(&place, &Trust::Plaintext, owner.token.clone()).unwrap();
        let witness = network.stack.discovery_http_address().unwrap().to_string();
        let witness = DiscoveryClient::connect(&witness, &Trust::Plaintext).unwrap();
        Self { network, owner, settings, handler, manager, witness }
    }

    async fn discovery(&self) -> Stack {
        Stack::start(self.settings.clone(), Some(Service::Discovery), metrics()).await.unwrap()
    }

    /// The handler of the application, if it is announced.
    async fn place(&self) -> Option<String> {
        match self.witness.get_by_app_id(&self.owner.app_id).await {
            Ok(handler) => Some(handler.api_address),
            Err(error) if error.kind() == Kind::NotFound => None,
            Err(error) => panic!("{error}"),
        }
    }

    fn handler_place(&self) -> String {
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

#[tokio::test(flavor = "multi_thread")]
async fn pending_announcements_are_sent_when_discovery_returns() {
    let Some(redis) = RedisProcess::start() else { return };
    let stage = Stage::set(&redis).await;
    let app_id = stage.owner.app_id.clone();
    stage.owner.handler.delete_application(&app_id).await.unwrap();
    assert_eq!(stage.place().await, None);

    // The handler started without discovery.
    stage.manager.register_application(&app_id).await.unwrap();
    stage.work().await;
    assert_eq!(stage.place().await, None);
    let discovery = stage.discovery().await;
    soon(Some(stage.handler_place()), || stage.place()).await;
    let announced = stage.witness.get_all(ServiceName::Handler).await.unwrap();
    assert_eq!(announced.len(), 1);

    // Discovery stops while the handler runs. Of two announcements about an application, the last one wins.
    discovery.stop().await;
    stage.work().await;
    stage.manager.delete_application(&app_id).await.unwrap();
    stage.manager.register_application(&app_id).await.unwrap();
    stage.manager.delete_application(&app_id).await.unwrap();
    assert_eq!(stage.place().await, Some(stage.handler_place()));
    let discovery = stage.discovery().await;
    soon(None, || stage.place()).await;

    // After that, announcements take effect at once again.
    stage.manager.register_application(&app_id).await.unwrap();
    soon(Some(stage.handler_place()), || stage.place()).await;
    stage.work().await;
    stage.handler.stop().await;
    discovery.stop().await;
    stage.network.stack.stop().await;
}
