//! A network broker, as the handler sees it: it forwards join requests with a response template of the network.

use api::{
    broker::{
        ActivationChallengeRequest, DeduplicatedDeviceActivationRequest, DeviceActivationResponse as Template,
        DownlinkOption,
    },
    gateway::RxMetadata,
    handler::{DeviceActivationResponse, handler_client::HandlerClient},
    lorawan::{ActivationMetadata, Metadata},
    protocol::{self, activation_metadata::Protocol, rx_metadata},
};
use client::account::{AccountClient, ClientCredentials};
use serde_json::{Value, json};
use tonic::{Request, Status, transport::Channel};
use types::{AppEui, AppId, ComponentId, DevEui, Scope, Secret};

use crate::harness::{Network, PASSWORD};

/// The trusted network broker.
pub(crate) const BROKER: &str = "broker-1";
pub(crate) const APP_EUI: &str = "70B3D57ED0000DEA";
pub(crate) const DEV_EUI: &str = "0004A30B001C0530";
/// The device address in the template, of network 13.
pub(crate) const DEV_ADDR: &str = "26012E43";
const TEMPLATE: &str = "20000000130000432E0126030100000000";

/// A client that calls the handler as a network broker.
#[derive(Clone)]
pub(crate) struct NetworkBroker {
    stub: HandlerClient<Channel>,
    token: Option<Secret>,
}

impl NetworkBroker {
    pub(crate) async fn new(network: &Network, token: Option<Secret>) -> Self {
        let channel = Channel::from_shared(network.handler_http()).unwrap().connect().await.unwrap();
        Self { stub: HandlerClient::new(channel), token }
    }

    /// Uses the token of a component that this user registers.
    pub(crate) async fn of(network: &Network, username: &str, services: &str, id: &str) -> Self {
        let token = component_token(network, username, services, &id.parse().unwrap()).await;
        Self::new(network, Some(token)).await
    }

    /// A join request with the handler's challenge response.
    pub(crate) async fn challenge(
        &self,
        app_id: &AppId,
        dev_id: &str,
        dev_eui: &str,
        dev_nonce: u16,
    ) -> Result<Vec<u8>, Status> {
        let message = ActivationChallengeRequest {
            payload: unsigned(APP_EUI, dev_eui, dev_nonce),
            app_id: app_id.to_string(),
            dev_id: dev_id.to_owned(),
            app_eui: bytes(APP_EUI),
            dev_eui: bytes(dev_eui),
            ..Default::default()
        };
        let response = self.stub.clone().activation_challenge(self.sign(message)).await?;
        Ok(response.into_inner().payload)
    }

    pub(crate) async fn activate(
        &self,
        message: DeduplicatedDeviceActivationRequest,
    ) -> Result<DeviceActivationResponse, Status> {
        self.stub.clone().activate(self.sign(message)).await.map(tonic::Response::into_inner)
    }

    pub(crate) async fn join(
        &self,
        app_id: &AppId,
        dev_id: &str,
        dev_eui: &str,
        dev_nonce: u16,
    ) -> Result<DeviceActivationResponse, Status> {
        let payload = self.challenge(app_id, dev_id, dev_eui, dev_nonce).await?;
        self.activate(message(app_id, dev_id, dev_eui, payload)).await
    }

    fn sign<T>(&self, message: T) -> Request<T> {
        let mut request = Request::new(message);
        if let Some(token) = &self.token {
            request.metadata_mut().insert("token", token.expose().parse().unwrap());
        }
        request
    }
}

/// A join request as a network broker forwards it.
pub(crate) fn message(
    app_id: &AppId,
    dev_id: &str,
    dev_eui: &str,
    payload: Vec<u8>,
) -> DeduplicatedDeviceActivationRequest {
    let template = Template {
        payload: bytes(TEMPLATE),
        downlink_option: Some(DownlinkOption { identifier: "option".to_owned(), ..Default::default() }),
        ..Default::default()
    };
    let gateway = RxMetadata { gateway_id: "gateway-1".to_owned(), frequency: 868_100_000, ..Default::default() };
    let received = Metadata { data_rate: "SF7BW125".to_owned(), coding_rate: "4/5".to_owned(), ..Metadata::default() };
    let network = ActivationMetadata { rx_delay: 1, rx2_dr: 3, ..Default::default() };
    DeduplicatedDeviceActivationRequest {
        payload,
        dev_eui: bytes(dev_eui),
        app_eui: bytes(APP_EUI),
        app_id: app_id.to_string(),
        dev_id: dev_id.to_owned(),
        protocol_metadata: Some(protocol::RxMetadata { protocol: Some(rx_metadata::Protocol::Lorawan(received)) }),
        gateway_metadata: vec![gateway],
        activation_metadata: Some(protocol::ActivationMetadata { protocol: Some(Protocol::Lorawan(network)) }),
        server_time: 1_484_664_429_740_000_000,
        response_template: Some(template),
        ..Default::default()
    }
}

/// The session that the network receives.
pub(crate) fn told(response: &DeviceActivationResponse) -> ActivationMetadata {
    let metadata = response.activation_metadata.clone().and_then(|metadata| metadata.protocol);
    let Some(Protocol::Lorawan(lorawan)) = metadata else { panic!("{response:?} has no metadata") };
    lorawan
}

pub(crate) fn bytes(hexadecimal: &str) -> Vec<u8> {
    hex::decode(hexadecimal).unwrap()
}

/// A join request with a MIC of zero.
fn unsigned(app_eui: &str, dev_eui: &str, dev_nonce: u16) -> Vec<u8> {
    let (app_eui, dev_eui): (AppEui, DevEui) = (app_eui.parse().unwrap(), dev_eui.parse().unwrap());
    let mut frame = vec![0];
    frame.extend(app_eui.as_bytes().iter().rev());
    frame.extend(dev_eui.as_bytes().iter().rev());
    frame.extend(dev_nonce.to_le_bytes());
    frame.extend([0; 4]);
    frame
}

pub(crate) async fn component_token(network: &Network, username: &str, services: &str, id: &ComponentId) -> Secret {
    let base = &network.stack.settings().client.auth_server;
    let account = AccountClient::new(base).unwrap();
    let client = ClientCredentials { id: "airlock".parse().unwrap(), secret: Secret::default() };
    let (name, password) = (username.parse().unwrap(), Secret::new(PASSWORD));
    let general = account.password_token(&client, &name, &password, &[]).await.unwrap().access_token;
    let http = reqwest::Client::new();
    let components = format!("{base}/api/v2/components/{services}");
    let created = http.post(&components).bearer_auth(general.expose()).json(&json!({ "id": id })).send().await.unwrap();
    assert_eq!(created.status(), 201, "{id}");
    let mine = account.restrict_token(&general, &[Scope::Component(id.clone())]).await.unwrap();
    let asked = http.get(format!("{components}/{id}/token")).bearer_auth(mine.expose()).send().await.unwrap();
    let response: Value = asked.json().await.unwrap();
    Secret::new(response["token"].as_str().unwrap())
}
