//! A network broker of The Things Network v2, as handlers see it: it streams uplinks and takes downlinks.

use std::{
    collections::HashMap,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use api::{
    broker::{
        ApplicationHandlerRegistration, DeduplicatedUplinkMessage, DeviceActivationRequest, DeviceActivationResponse,
        DownlinkMessage, Status as BrokerStatus, StatusRequest, SubscribeRequest, UplinkMessage,
        broker_manager_server::{BrokerManager, BrokerManagerServer},
        broker_server::{Broker, BrokerServer},
    },
    discovery::Announcement,
    lorawan::{
        Device, DeviceIdentifier,
        device_manager_server::{DeviceManager, DeviceManagerServer},
    },
};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use futures::{Stream, stream};
use serde_json::{Value, json};
use server::{auth::SelfSigned, identity::Identity};
use tokio::{
    net::TcpListener,
    sync::{Mutex, mpsc},
    task::JoinHandle,
};
use tonic::{
    Request, Response, Status, Streaming,
    metadata::MetadataMap,
    transport::{Server, server::TcpIncoming},
};
use types::{Clock, Secret};

use crate::{
    devices::joins::network_broker::component_token,
    harness::{MESSAGE_TIMEOUT, Network},
};

type Messages<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

/// A network broker that runs, and is announced.
pub(crate) struct FakeBroker {
    /// Its own key pair.
    pub(crate) identity: Identity,
    shared: Shared,
    address: String,
    subscribed: Mutex<mpsc::Receiver<mpsc::Sender<DeduplicatedUplinkMessage>>>,
    uplinks: Mutex<Option<mpsc::Sender<DeduplicatedUplinkMessage>>>,
    downlinks: Mutex<mpsc::Receiver<DownlinkMessage>>,
    told: Mutex<mpsc::Receiver<Told>>,
    asked: Mutex<mpsc::Receiver<()>>,
    serving: std::sync::Mutex<JoinHandle<()>>,
}

/// A message of a handler to the network.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Told {
    Application(String),
    Set(Box<Device>),
    Deleted(Vec<u8>),
}

/// State that the service and the test share.
#[derive(Clone)]
struct Shared {
    handler: Arc<Announcement>,
    subscriptions: mpsc::Sender<mpsc::Sender<DeduplicatedUplinkMessage>>,
    downlinks: mpsc::Sender<DownlinkMessage>,
    told: mpsc::Sender<Told>,
    asked: mpsc::Sender<()>,
    /// The reason why devices are refused; empty if they are not.
    refusal: Arc<Mutex<String>>,
    /// The devices of the network server behind it, by DevEUI.
    devices: Arc<Mutex<HashMap<Vec<u8>, Device>>>,
    /// Number of the next calls about devices and applications that are beyond the rate limit.
    beyond_limit: Arc<AtomicU32>,
    /// Number of those calls in progress, and its maximum so far.
    calls: Arc<(AtomicU32, AtomicU32)>,
}

impl FakeBroker {
    /// Starts a network broker, and announces it as a component of this user.
    pub(crate) async fn start(network: &Network, username: &str, id: &str) -> Self {
        let (subscriptions, subscribed) = mpsc::channel(10);
        let (downlinks_in, downlinks) = mpsc::channel(100);
        let (told_in, told) = mpsc::channel(100);
        let (asked_in, asked) = mpsc::channel(100);
        let handler = Arc::new(network.announcement().await);
        let (refusal, devices, beyond_limit, calls) = Default::default();
        let shared = Shared {
            handler,
            subscriptions,
            downlinks: downlinks_in,
            told: told_in,
            asked: asked_in,
            refusal,
            devices,
            beyond_limit,
            calls,
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let serving = std::sync::Mutex::new(serve(shared.clone(), listener));
        let identity = Identity::load_or_create(&network.dir.path().join(format!("{id}.pem"))).unwrap();
        let token = component_token(network, username, "brokers", &id.parse().unwrap()).await;
        let announcement = Announcement {
            id: id.to_owned(),
            service_name: "broker".to_owned(),
            net_address: address.clone(),
            public_key: identity.public_key_pem().to_owned(),
            ..Announcement::default()
        };
        network.discovery().announce(&token, announcement).await.unwrap();
        let (subscribed, downlinks, uplinks) = (subscribed.into(), downlinks.into(), Mutex::default());
        let (told, asked) = (told.into(), asked.into());
        Self { identity, shared, address, subscribed, uplinks, downlinks, told, asked, serving }
    }

    /// Waits until the handler has subscribed, between whose attempts there are pauses.
    pub(crate) async fn wait_for_handler(&self) {
        let uplinks = async { self.subscribed.lock().await.recv().await.unwrap() };
        *self.uplinks.lock().await =
            Some(tokio::time::timeout(3 * MESSAGE_TIMEOUT, uplinks).await.expect("it subscribes"));
    }

    pub(crate) async fn send(&self, uplink: DeduplicatedUplinkMessage) {
        let uplinks = self.uplinks.lock().await.clone().expect("the handler has subscribed");
        uplinks.send(uplink).await.unwrap();
    }

    /// The next downlink.
    pub(crate) async fn downlink(&self) -> DownlinkMessage {
        let downlink = async { self.downlinks.lock().await.recv().await.unwrap() };
        tokio::time::timeout(MESSAGE_TIMEOUT, downlink).await.expect("a downlink arrives")
    }

    /// Waits for the next message of the handler.
    pub(crate) async fn told(&self) -> Told {
        let told = async { self.told.lock().await.recv().await.unwrap() };
        tokio::time::timeout(MESSAGE_TIMEOUT, told).await.expect("the handler tells something")
    }

    /// Waits until the handler has asked for a device once more.
    pub(crate) async fn asked(&self) {
        let asked = async { self.asked.lock().await.recv().await.unwrap() };
        tokio::time::timeout(MESSAGE_TIMEOUT, asked).await.expect("the handler asks");
    }

    /// Returns true if the handler has told nothing more.
    pub(crate) async fn was_told_nothing(&self) -> bool {
        self.told.lock().await.try_recv().is_err()
    }

    /// Refuses devices from now on, for this reason.
    pub(crate) async fn refuse_devices(&self, reason: &str) {
        *self.shared.refusal.lock().await = reason.to_owned();
    }

    /// Replaces the devices of the network server by these.
    pub(crate) async fn keep_devices(&self, devices: &[Device]) {
        let devices = devices.iter().map(|device| (device.dev_eui.clone(), device.clone()));
        *self.shared.devices.lock().await = devices.collect();
    }

    /// Refuses the next calls about devices, this many of them, as v2 does beyond five per second.
    pub(crate) fn limit_calls(&self, refused: u32) {
        self.shared.beyond_limit.store(refused, Ordering::SeqCst);
    }

    /// Waits until as many calls were refused as [`Self::limit_calls`] said.
    pub(crate) async fn has_refused(&self) {
        while self.shared.beyond_limit.load(Ordering::SeqCst) > 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// Returns the maximum number of concurrent calls about devices and applications so far.
    pub(crate) fn calls_at_once(&self) -> u32 {
        self.shared.calls.1.load(Ordering::SeqCst)
    }

    /// Returns true if no downlink has arrived.
    pub(crate) async fn has_no_downlink(&self) -> bool {
        self.downlinks.lock().await.try_recv().is_err()
    }

    /// Ends all connections, and serves at the same address again.
    pub(crate) async fn restart(&self) {
        self.uplinks.lock().await.take();
        let old = {
            let mut serving = self.serving.lock().unwrap();
            serving.abort();
            std::mem::replace(&mut *serving, tokio::spawn(async {}))
        };
        _ = old.await;
        let listener = TcpListener::bind(&self.address).await.unwrap();
        *self.serving.lock().unwrap() = serve(self.shared.clone(), listener);
    }
}

fn serve(shared: Shared, listener: TcpListener) -> JoinHandle<()> {
    tokio::spawn(async move {
        let serving = Server::builder()
            .add_service(BrokerManagerServer::new(shared.clone()))
            .add_service(DeviceManagerServer::new(shared.clone()))
            .add_service(BrokerServer::new(shared));
        serving.serve_with_incoming(TcpIncoming::from(listener)).await.unwrap();
    })
}

impl Shared {
    /// Verifies the caller as v2 does: by the key that the handler has announced.
    fn check(&self, metadata: &MetadataMap) -> Result<(), Status> {
        let text = |name| metadata.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let refused = |reason: &str| Err(Status::permission_denied(reason.to_owned()));
        if (text("id"), text("service-name")) != (&self.handler.id, "handler") || text("service-version").is_empty() {
            return refused("it does not say who it is");
        }
        let Some(token) = SelfSigned::of(&Secret::new(text("token"))) else { return refused("no token of its own") };
        if token.issuer() != self.handler.id {
            return refused("another one's token");
        }
        let now = server::system::SystemClock.now();
        token
            .verify(&self.handler.public_key, &"broker-1".parse().unwrap(), now)
            .or_else(|_| refused("wrong signature"))
    }
}

#[tonic::async_trait]
impl Broker for Shared {
    type AssociateStream = Messages<DownlinkMessage>;
    type SubscribeStream = Messages<DeduplicatedUplinkMessage>;

    async fn subscribe(&self, request: Request<SubscribeRequest>) -> Result<Response<Self::SubscribeStream>, Status> {
        self.check(request.metadata())?;
        let (sender, uplinks) = mpsc::channel(100);
        self.subscriptions.send(sender).await.unwrap();
        let next = async |mut uplinks: mpsc::Receiver<_>| Some((Ok(uplinks.recv().await?), uplinks));
        Ok(Response::new(Box::pin(stream::unfold(uplinks, next))))
    }

    async fn publish(&self, request: Request<Streaming<DownlinkMessage>>) -> Result<Response<()>, Status> {
        self.check(request.metadata())?;
        let mut downlinks = request.into_inner();
        while let Some(downlink) = downlinks.message().await? {
            self.downlinks.send(downlink).await.unwrap();
        }
        Ok(Response::new(()))
    }

    async fn associate(&self, _: Request<Streaming<UplinkMessage>>) -> Result<Response<Self::AssociateStream>, Status> {
        Err(Status::unimplemented("this is for routers"))
    }

    async fn activate(
        &self,
        _: Request<DeviceActivationRequest>,
    ) -> Result<Response<DeviceActivationResponse>, Status> {
        Err(Status::unimplemented("this is for routers"))
    }
}

impl Shared {
    /// Notes what a user with a token of the account service asks for.
    async fn note<T>(&self, request: Request<T>, note: impl FnOnce(T) -> Told) -> Result<Response<()>, Status> {
        let token = request.metadata().get("token").and_then(|token| token.to_str().ok()).unwrap_or_default();
        if SelfSigned::of(&Secret::new(token)).is_some() || token.split('.').count() != 3 {
            return Err(Status::permission_denied("no token of the account service"));
        }
        let (running, at_once) = self.calls.as_ref();
        at_once.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        // Others that could come now do.
        for _ in 0..1000 {
            tokio::task::yield_now().await;
        }
        running.fetch_sub(1, Ordering::SeqCst);
        let counted = |left: u32| left.checked_sub(1);
        if self.beyond_limit.fetch_update(Ordering::SeqCst, Ordering::SeqCst, counted).is_ok() {
            return Err(Status::resource_exhausted("Rate limit for client \"somebody\" reached"));
        }
        let refusal = self.refusal.lock().await.clone();
        if !refusal.is_empty() {
            return Err(Status::permission_denied(refusal));
        }
        let told = note(request.into_inner());
        // First, because a test may replace them as soon as it hears of this.
        match &told {
            Told::Application(_) => {}
            Told::Set(device) => _ = self.devices.lock().await.insert(device.dev_eui.clone(), (**device).clone()),
            Told::Deleted(dev_eui) => _ = self.devices.lock().await.remove(dev_eui),
        }
        self.told.send(told).await.unwrap();
        Ok(Response::new(()))
    }
}

#[tonic::async_trait]
impl BrokerManager for Shared {
    async fn register_application_handler(
        &self,
        request: Request<ApplicationHandlerRegistration>,
    ) -> Result<Response<()>, Status> {
        self.note(request, |registration| Told::Application(registration.app_id)).await
    }

    async fn get_status(&self, _: Request<StatusRequest>) -> Result<Response<BrokerStatus>, Status> {
        Err(Status::unimplemented("nobody asks"))
    }
}

#[tonic::async_trait]
impl DeviceManager for Shared {
    /// As v2's network server, it takes a token with rights to the application of the device.
    async fn get_device(&self, request: Request<DeviceIdentifier>) -> Result<Response<Device>, Status> {
        let token = request.metadata().get("token").and_then(|token| token.to_str().ok()).unwrap_or_default();
        let rights = rights_of(token);
        let found = self.devices.lock().await.get(&request.into_inner().dev_eui).cloned();
        // Most tests do not look at them.
        _ = self.asked.try_send(());
        let device = found.ok_or_else(|| Status::not_found("Device not found"))?;
        if rights[&device.app_id].as_array().is_none_or(|rights| !rights.contains(&json!("devices"))) {
            return Err(Status::permission_denied(format!("No \"devices\" rights to Application {}", device.app_id)));
        }
        Ok(Response::new(device))
    }

    async fn set_device(&self, request: Request<Device>) -> Result<Response<()>, Status> {
        self.note(request, |device| Told::Set(Box::new(device))).await
    }

    async fn delete_device(&self, request: Request<DeviceIdentifier>) -> Result<Response<()>, Status> {
        self.note(request, |device| Told::Deleted(device.dev_eui)).await
    }
}

/// The rights to applications in the claims of a token.
fn rights_of(token: &str) -> Value {
    let claims = token.split('.').nth(1).and_then(|claims| URL_SAFE_NO_PAD.decode(claims).ok());
    let claims: Option<Value> = claims.and_then(|claims| serde_json::from_slice(&claims).ok());
    claims.map(|claims| claims["apps"].clone()).unwrap_or_default()
}
