//! The services that are measured, and somebody who may call them.

use std::net::SocketAddr;

use airlock::serve::Stack;
use api::{
    handler::application_manager_client::ApplicationManagerClient,
    rest::account::{NewApplication, NewUser},
};
use client::account::{AccountClient, ClientCredentials};
use server::{limit::Limit, telemetry::Metrics};
use tonic::{Request, transport::Channel};
use types::{Credential, Scope, Secret};

use crate::shelf::{self, Shelf};

/// As many applications as one token names.
pub(crate) const APPLICATIONS: usize = 10;

pub(crate) type Stub = ApplicationManagerClient<Channel>;

/// All services on a store, and a token for some of its applications.
pub(crate) struct Site {
    pub(crate) http: SocketAddr,
    pub(crate) stub: Stub,
    pub(crate) token: String,
    pub(crate) shelf: Shelf,
    stack: Stack,
}

impl Site {
    pub(crate) async fn start(shelf: Shelf, metrics: &Metrics) -> Self {
        let mut settings = shelf.settings();
        let often = Limit::new(1_000_000_000, 1_000_000_000);
        (settings.handler.calls.client, settings.handler.calls.application) = (often, often);
        let stack = Stack::start(settings, None, metrics.clone()).await.unwrap();
        let http = stack.handler_http_address().unwrap();
        let channel = Channel::from_shared(format!("http://{http}")).unwrap().tcp_nodelay(true).connect().await;
        let stub = Stub::new(channel.unwrap()).max_decoding_message_size(64 << 20);
        let token = token(&stack.settings().client.auth_server).await;
        Self { http, stub, token, shelf, stack }
    }

    /// A message by the owner of the applications.
    pub(crate) fn sign<T>(&self, message: T) -> Request<T> {
        sign(message, &self.token)
    }

    /// A call by the owner of the applications, as bytes of HTTP/1.1.
    pub(crate) fn request(&self, method: &str, path: &str, body: &str) -> Vec<u8> {
        let head = format!("{method} {path} HTTP/1.1\r\nhost: bench\r\nauthorization: Bearer {}\r\n", self.token);
        format!("{head}content-length: {}\r\n\r\n{body}", body.len()).into_bytes()
    }

    pub(crate) async fn stop(self) -> Shelf {
        self.stack.stop().await;
        self.shelf
    }
}

pub(crate) fn sign<T>(message: T, token: &str) -> Request<T> {
    let mut request = Request::new(message);
    request.metadata_mut().insert("token", token.parse().unwrap());
    request
}

/// A user's token for the first applications.
async fn token(auth_server: &str) -> String {
    let account = AccountClient::new(auth_server).unwrap();
    let (username, email) = ("alice", "alice@example.com".to_owned());
    let password = Secret::new("correct horse battery");
    let user = NewUser { username: username.parse().unwrap(), email, password: password.clone() };
    account.register_user(&user).await.unwrap();
    let client = ClientCredentials { id: "airlock".parse().unwrap(), secret: Secret::default() };
    let general = account.password_token(&client, &username.parse().unwrap(), &password, &[]).await.unwrap();
    let mut scope = Vec::new();
    for number in 0..APPLICATIONS {
        let id = shelf::app_id(number);
        let new = NewApplication { id: id.clone(), name: "A".to_owned(), euis: vec![], access_keys: vec![] };
        account.create_application(&Credential::Token(general.access_token.clone()), &new).await.unwrap();
        scope.push(Scope::App(id));
    }
    account.restrict_token(&general.access_token, &scope).await.unwrap().expose().to_owned()
}
