//! The running services, and a token for calling them.

use std::{net::SocketAddr, sync::Arc, time::Instant};

use airlock::serve::{Environment, Stack};
use api::{
    handler::application_manager_client::ApplicationManagerClient,
    rest::account::{NewApplication, NewUser},
};
use client::account::{AccountClient, ClientCredentials};
use server::{audit::AuditLog, rate_limit::RateLimit, system::SystemClock, telemetry::Metrics};
use tokio::runtime::Builder;
use tonic::{Request, transport::Channel};
use types::{Credential, Scope, Secret};

use crate::{
    dataset::{self, Dataset},
    figures::microseconds,
    seconds,
};

/// Number of applications that the token covers.
pub(crate) const TOKEN_APPLICATIONS: usize = 10;

pub(crate) type Stub = ApplicationManagerClient<Channel>;

/// All services on one store, with a token for the first applications.
pub(crate) struct Services {
    pub(crate) http: SocketAddr,
    pub(crate) stub: Stub,
    pub(crate) token: String,
    pub(crate) dataset: Dataset,
    stack: Stack,
}

impl Services {
    pub(crate) async fn start(dataset: Dataset, metrics: &Metrics) -> Self {
        let mut settings = dataset.settings();
        let often = RateLimit::new(1_000_000_000, 1_000_000_000);
        (settings.handler.rate_limits.client, settings.handler.rate_limits.application) = (often, often);
        let clock = Arc::new(SystemClock);
        let audit = AuditLog::without_file(clock.clone());
        let environment = Environment { metrics: metrics.clone(), audit, clock };
        let stack = Stack::start(settings, None, environment).await.unwrap();
        let http = stack.handler_http_address().unwrap();
        let stub = connect(http).await;
        let token = token(&stack.settings().client.auth_server).await;
        Self { http, stub, token, dataset, stack }
    }

    /// Adds the token to a gRPC message.
    pub(crate) fn sign<T>(&self, message: T) -> Request<T> {
        sign(message, &self.token)
    }

    /// An HTTP/1.1 request with the token.
    pub(crate) fn request(&self, method: &str, path: &str, body: &str) -> Vec<u8> {
        let head = format!("{method} {path} HTTP/1.1\r\nhost: bench\r\nauthorization: Bearer {}\r\n", self.token);
        format!("{head}content-length: {}\r\n\r\n{body}", body.len()).into_bytes()
    }

    /// Makes calls one after the other, with their numbers, from a thread of its own with its own connection, as a client
    /// in another process does; returns their durations in microseconds.
    pub(crate) async fn time_calls(&self, call: impl AsyncFn(&mut Stub, usize) + Send + 'static) -> Vec<f64> {
        let http = self.http;
        let calls = async move || {
            let (mut stub, mut taken, end) = (connect(http).await, Vec::new(), Instant::now() + seconds());
            while Instant::now() < end {
                let began = Instant::now();
                call(&mut stub, taken.len()).await;
                taken.push(microseconds(began.elapsed()));
            }
            taken
        };
        let client = move || Builder::new_current_thread().enable_all().build().unwrap().block_on(calls());
        tokio::task::spawn_blocking(client).await.unwrap()
    }

    pub(crate) async fn stop(self) -> Dataset {
        self.stack.stop().await;
        self.dataset
    }
}

pub(crate) fn sign<T>(message: T, token: &str) -> Request<T> {
    let mut request = Request::new(message);
    request.metadata_mut().insert("token", token.parse().unwrap());
    request
}

async fn connect(http: SocketAddr) -> Stub {
    let channel = Channel::from_shared(format!("http://{http}")).unwrap().tcp_nodelay(true).connect().await;
    Stub::new(channel.unwrap()).max_decoding_message_size(64 << 20)
}

/// Registers a user and the first applications; returns a token for them.
async fn token(auth_server: &str) -> String {
    let account = AccountClient::new(auth_server).unwrap();
    let (username, email) = ("alice", "alice@example.com".to_owned());
    let password = Secret::new("correct horse battery");
    let user = NewUser { username: username.parse().unwrap(), email, password: password.clone() };
    account.register_user(&user).await.unwrap();
    let client = ClientCredentials { id: "airlock".parse().unwrap(), secret: Secret::default() };
    let general = account.password_token(&client, &username.parse().unwrap(), &password, &[]).await.unwrap();
    let mut scope = Vec::new();
    for number in 0..TOKEN_APPLICATIONS {
        let id = dataset::app_id(number);
        let new = NewApplication { id: id.clone(), name: "A".to_owned(), euis: vec![], access_keys: vec![] };
        account.create_application(&Credential::Token(general.access_token.clone()), &new).await.unwrap();
        scope.push(Scope::App(id));
    }
    account.restrict_token(&general.access_token, &scope).await.unwrap().expose().to_owned()
}
