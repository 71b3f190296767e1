//! The gRPC clients: requests and retries.

use std::sync::atomic::{AtomicU32, Ordering};

use airlock_client::{
    Error, Trust,
    discovery::DiscoveryClient,
    handler::{HandlerClient, Page},
};
use api::discovery::{
    Announcement, AnnouncementsResponse, GetByAppEuiRequest, GetByAppIdRequest, GetByGatewayIdRequest, GetRequest,
    GetServiceRequest, MetadataRequest,
    discovery_server::{Discovery, DiscoveryServer},
    metadata::Metadata as Served,
};
use tokio::{net::TcpListener, sync::mpsc};
use tonic::{
    Code, Request, Response, Status,
    metadata::{MetadataMap, MetadataValue},
    transport::{Server, server::TcpIncoming},
};
use types::{Credential, Kind, Kinded, Secret, ServiceName};

type GrpcResult<T> = Result<Response<T>, Status>;

/// A discovery service that refuses the first calls, with or without `retry-after`.
struct Stub {
    code: Code,
    refusals: AtomicU32,
    retry_after_s: Option<u64>,
    seen: mpsc::UnboundedSender<(MetadataMap, String)>,
}

/// A client of the fake service, and what that received.
struct Fixture {
    discovery: DiscoveryClient,
    address: String,
    seen: mpsc::UnboundedReceiver<(MetadataMap, String)>,
}

impl Stub {
    fn response<T, A>(&self, request: Request<T>, response: A) -> GrpcResult<A>
    where
        T: std::fmt::Debug,
    {
        let (metadata, _, message) = request.into_parts();
        self.seen.send((metadata, format!("{message:?}"))).unwrap();
        if self.refusals.load(Ordering::SeqCst) == 0 {
            return Ok(Response::new(response));
        }
        self.refusals.fetch_sub(1, Ordering::SeqCst);
        let mut status = Status::new(self.code, "not now");
        if let Some(seconds) = self.retry_after_s {
            status.metadata_mut().insert("retry-after", MetadataValue::from(seconds));
        }
        Err(status)
    }
}

#[tonic::async_trait]
impl Discovery for Stub {
    async fn announce(&self, request: Request<Announcement>) -> GrpcResult<()> {
        self.response(request, ())
    }

    async fn get_all(&self, request: Request<GetServiceRequest>) -> GrpcResult<AnnouncementsResponse> {
        self.response(request, AnnouncementsResponse::default())
    }

    async fn get(&self, request: Request<GetRequest>) -> GrpcResult<Announcement> {
        self.response(request, Announcement::default())
    }

    async fn add_metadata(&self, request: Request<MetadataRequest>) -> GrpcResult<()> {
        self.response(request, ())
    }

    async fn delete_metadata(&self, request: Request<MetadataRequest>) -> GrpcResult<()> {
        self.response(request, ())
    }

    async fn get_by_app_id(&self, request: Request<GetByAppIdRequest>) -> GrpcResult<Announcement> {
        self.response(request, Announcement::default())
    }

    async fn get_by_gateway_id(&self, request: Request<GetByGatewayIdRequest>) -> GrpcResult<Announcement> {
        self.response(request, Announcement::default())
    }

    async fn get_by_app_eui(&self, request: Request<GetByAppEuiRequest>) -> GrpcResult<Announcement> {
        self.response(request, Announcement::default())
    }
}

impl Fixture {
    async fn start(code: Code, refusals: u32, retry_after_s: Option<u64>) -> Self {
        let (sender, seen) = mpsc::unbounded_channel();
        let stub = Stub { code, refusals: AtomicU32::new(refusals), retry_after_s, seen: sender };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let server = Server::builder().add_service(DiscoveryServer::new(stub));
        tokio::spawn(async move { server.serve_with_incoming(TcpIncoming::from(listener)).await });
        Self { discovery: DiscoveryClient::connect(&address, &Trust::Plaintext).unwrap(), address, seen }
    }

    fn received(&mut self) -> (MetadataMap, String) {
        self.seen.try_recv().unwrap()
    }

    fn calls(&mut self) -> usize {
        std::iter::from_fn(|| self.seen.try_recv().ok()).count()
    }
}

// Conformance: Deadlines, and retries that respect `Retry-After`
#[tokio::test]
async fn every_call_sends_its_timeout() {
    let mut fixture = Fixture::start(Code::Ok, 0, None).await;
    fixture.discovery.get_all(ServiceName::Handler).await.unwrap();
    let (metadata, _) = fixture.received();
    // Ten seconds, in tonic's unit.
    assert_eq!(metadata.get("grpc-timeout").unwrap(), "10000000u");
}

// Conformance: Deadlines, and retries that respect `Retry-After`
#[tokio::test]
async fn repeats_a_call_after_retry_after() {
    for (code, retry_after_s, expected) in [
        (Code::Unavailable, None, 3),
        (Code::Unavailable, Some(0), 3),
        (Code::ResourceExhausted, Some(0), 3),
        (Code::ResourceExhausted, None, 1),
        (Code::ResourceExhausted, Some(3600), 1),
        (Code::PermissionDenied, Some(0), 1),
    ] {
        let mut fixture = Fixture::start(code, u32::MAX, retry_after_s).await;
        let error = fixture.discovery.get(ServiceName::Handler, &"handler-1".parse().unwrap()).await.unwrap_err();
        assert_eq!(error.to_string(), "not now");
        let Error::Refused { retry_after, .. } = error else { panic!("{error:?}") };
        assert_eq!(retry_after.map(|wait| wait.as_secs()), retry_after_s);
        assert_eq!(fixture.calls(), expected, "{code:?} {retry_after_s:?}");
    }
    let mut fixture = Fixture::start(Code::ResourceExhausted, 2, Some(0)).await;
    fixture.discovery.get_by_app_id(&"my-app".parse().unwrap()).await.unwrap();
    assert_eq!(fixture.calls(), 3);
}

// Conformance: The discovery and handler clients: every call
#[tokio::test]
async fn announces_metadata_with_a_token() {
    let mut fixture = Fixture::start(Code::Ok, 0, None).await;
    let credential = Credential::Token(Secret::new("t0k3n"));
    let router = (ServiceName::Router, &"router-1".parse().unwrap());
    let served = || Served::GatewayId("gw-1".to_owned());
    fixture.discovery.add_metadata(&credential, router, served()).await.unwrap();
    let (metadata, message) = fixture.received();
    assert_eq!(metadata.get("token").unwrap(), "t0k3n");
    assert!(message.contains("router-1") && message.contains("gw-1"), "{message}");
    fixture.discovery.delete_metadata(&credential, router, served()).await.unwrap();
    assert!(fixture.received().1.contains("gw-1"));
    fixture.discovery.get_by_gateway_id(&"gw-1".parse().unwrap()).await.unwrap();
    assert!(fixture.received().1.contains("gw-1"));
    fixture.discovery.get_by_app_eui("70B3D57ED0000001".parse().unwrap()).await.unwrap();
    assert!(fixture.received().1.contains("[112, 179,"));
}

// Conformance: Errors of connections say why in words, and what runs at a wrong address
#[tokio::test]
async fn a_server_of_another_service_is_told_apart() {
    let fixture = Fixture::start(Code::Ok, 0, None).await;
    let credential = Credential::Token(Secret::new("t0k3n"));
    let handler = HandlerClient::connect_to(&fixture.address, &Trust::Plaintext, credential).unwrap();
    let error = handler.list_devices(&"my-app".parse().unwrap(), Page::default()).await.unwrap_err();
    assert_eq!(error.kind(), Kind::Unsupported, "{error}");
    assert!(error.to_string().contains("check that this is the address of the handler"), "{error}");
}
