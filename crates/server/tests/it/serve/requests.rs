//! REST and gRPC on one listener, with and without TLS, and invalid requests.

use std::{convert::Infallible, future::poll_fn};

use axum::{
    Router,
    body::Body,
    extract::Path,
    http::{Request, Response, StatusCode},
    routing::{get, post},
};
use serde_json::{Value, json};
use server::{grpc, serve::ServeSettings, telemetry::Health, tls::Tls};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};
use tonic::{
    client::GrpcService,
    transport::{Certificate, Channel, ClientTlsConfig},
};
use tonic_health::pb::{HealthCheckRequest, health_check_response::ServingStatus, health_client::HealthClient};

use crate::harness::{TestServer, http_client};

/// A service with routes that echo, fail, panic and hang, and gRPC health.
fn router() -> Router {
    let health = Health::default();
    let length = async |body: String| body.len().to_string();
    let panic = async || -> &'static str { panic!("a mistake that nobody outside should read") };
    let never = std::future::pending::<String>;
    Router::new()
        .route("/hello", get(async || "hello"))
        .route("/length", post(length))
        .route("/named/{name}", get(async |Path(name): Path<String>| name))
        .route("/length.Service/Call", post(length))
        .route("/echo.Service/Call", post(async |body: Body| body))
        .route("/panic", get(panic))
        .route("/panic.Service/Call", post(panic))
        .route("/never", get(never))
        .route("/never.Service/Call", post(never))
        .merge(grpc::routes(&health).unwrap().routes().into_axum_router())
}

async fn json_of(response: reqwest::Response) -> (u16, Value) {
    (response.status().as_u16(), serde_json::from_str(&response.text().await.unwrap()).unwrap())
}

/// Sends a body over HTTP/2 with the content type of gRPC and without a length.
async fn grpc_typed(server: &TestServer, path: &str, body: Body) -> Response<Body> {
    let mut channel = Channel::from_shared(server.url("")).unwrap().connect().await.unwrap();
    let body = tonic::body::Body::new(body);
    let request = Request::post(path).header("content-type", "application/grpc").body(body).unwrap();
    poll_fn(|context| GrpcService::<tonic::body::Body>::poll_ready(&mut channel, context)).await.unwrap();
    GrpcService::call(&mut channel, request).await.unwrap().map(Body::new)
}

/// The HTTP status and the gRPC status of a response.
fn verdict(response: &Response<Body>) -> (u16, Option<&str>) {
    (response.status().as_u16(), response.headers().get("grpc-status").map(|code| code.to_str().unwrap()))
}

/// A body of `count` chunks of 600 bytes.
fn chunked(count: usize) -> Body {
    Body::from_stream(tokio_stream::iter(vec![Ok::<_, Infallible>("x".repeat(600)); count]))
}

async fn grpc_health(channel: Channel) -> i32 {
    let request = HealthCheckRequest { service: String::new() };
    HealthClient::new(channel).check(request).await.unwrap().into_inner().status
}

#[tokio::test]
async fn serves_rest_and_grpc_on_one_listener() {
    let server = TestServer::plain(router()).await;
    let response = http_client(None).get(server.url("/hello")).send().await.unwrap();
    assert_eq!(response.text().await.unwrap(), "hello");
    let channel = Channel::from_shared(server.url("")).unwrap().connect().await.unwrap();
    assert_eq!(grpc_health(channel).await, ServingStatus::Serving as i32);
}

#[tokio::test]
async fn serves_rest_and_grpc_over_tls_with_the_announced_certificate() {
    let dir = tempfile::tempdir().unwrap();
    let tls = Tls::self_signed(dir.path(), &[], &server::system::SystemClock).unwrap();
    let server = TestServer::both(router(), &tls).await;
    let port = server.serving.addresses()[1].port();
    let trusting = http_client(Some(tls.certificate_pem()));
    for host in ["localhost", "127.0.0.1"] {
        let response = trusting.get(format!("https://{host}:{port}/hello")).send().await.unwrap();
        assert_eq!(response.text().await.unwrap(), "hello");
    }
    assert!(http_client(None).get(format!("https://localhost:{port}/hello")).send().await.is_err());

    let trust = ClientTlsConfig::new().ca_certificate(Certificate::from_pem(tls.certificate_pem()));
    let endpoint = Channel::from_shared(format!("https://localhost:{port}")).unwrap().tls_config(trust).unwrap();
    assert_eq!(grpc_health(endpoint.connect().await.unwrap()).await, ServingStatus::Serving as i32);
}

#[tokio::test]
async fn unknown_paths_get_errors_in_the_protocol_of_the_client() {
    let server = TestServer::plain(router()).await;
    let client = http_client(None);
    let response = json_of(client.get(server.url("/nothing")).send().await.unwrap()).await;
    let message = "path not found";
    assert_eq!(response, (404, json!({ "error": message, "code": 5, "message": message })));
    let response = json_of(client.delete(server.url("/hello")).send().await.unwrap()).await;
    assert_eq!((response.0, &response.1["code"]), (405, &json!(12)));
    for path in ["/handler.Nothing/Get", "/grpc.health.v1.Health/Nothing"] {
        assert_eq!(verdict(&grpc_typed(&server, path, Body::empty()).await), (200, Some("12")));
    }
    // gRPC is not served on REST paths or over HTTP/1.
    assert_eq!(verdict(&grpc_typed(&server, "/nothing", Body::empty()).await), (404, None));
    let call = client.post(server.url("/handler.Nothing/Get")).header("content-type", "application/grpc");
    assert_eq!(json_of(call.send().await.unwrap()).await.0, 404);
}

#[tokio::test]
async fn errors_of_axum_have_the_same_format() {
    let server = TestServer::plain(router()).await;
    let response = json_of(http_client(None).get(server.url("/named/%FF")).send().await.unwrap()).await;
    let message = "Invalid URL: Invalid UTF-8 in `name`";
    assert_eq!(response, (400, json!({ "error": message, "code": 3, "message": message })));
    let response = json_of(http_client(None).post(server.url("/length")).body(vec![0xff]).send().await.unwrap()).await;
    assert_eq!((response.0, &response.1["code"]), (400, &json!(3)));
}

#[tokio::test]
async fn a_panic_becomes_an_internal_error() {
    let server = TestServer::plain(router()).await;
    let client = http_client(None);
    let response = json_of(client.get(server.url("/panic")).send().await.unwrap()).await;
    assert_eq!(response, (500, json!({ "error": "internal error", "code": 13, "message": "internal error" })));
    assert_eq!(verdict(&grpc_typed(&server, "/panic.Service/Call", Body::empty()).await), (200, Some("13")));
    assert_eq!(client.get(server.url("/hello")).send().await.unwrap().status(), StatusCode::OK);
}

#[tokio::test]
async fn every_response_has_a_request_id() {
    let server = TestServer::plain(router()).await;
    let client = http_client(None);
    let mut ids = Vec::new();
    for path in ["/hello", "/nothing", "/panic"] {
        let response = client.get(server.url(path)).header("x-request-id", "forged").send().await.unwrap();
        ids.push(response.headers()["x-request-id"].to_str().unwrap().to_owned());
    }
    assert_eq!(ids, ["0000000000000000", "0000000000000001", "0000000000000002"]);
}

#[tokio::test]
async fn accepts_a_body_up_to_the_limit_and_answers_413_beyond() {
    let settings = ServeSettings { body_bytes_max: 1000, ..ServeSettings::default() };
    let server = TestServer::bounded(router(), settings).await;
    let client = http_client(None);
    let sent = async |bytes| client.post(server.url("/length")).body(vec![b'x'; bytes]).send().await.unwrap();
    assert_eq!(sent(1000).await.text().await.unwrap(), "1000");
    let (status, body) = json_of(sent(1001).await).await;
    assert_eq!((status, body["error"].as_str()), (413, Some("body not valid: must have at most 1000 bytes")));
}

#[tokio::test]
async fn a_body_fits_four_payload_functions_of_the_largest_size() {
    let server = TestServer::plain(router()).await;
    let function = "return \"x\";\n".repeat(256 * 1024 / 12);
    let body = json!({ "decoder": function, "converter": function, "validator": function, "encoder": function });
    let body = body.to_string();
    assert!(body.len() > 1024 * 1024);
    let response = http_client(None).post(server.url("/length")).body(body.clone()).send().await.unwrap();
    assert_eq!(response.text().await.unwrap(), body.len().to_string());
}

#[tokio::test]
async fn refuses_too_large_a_body_before_it_is_sent() {
    let server = TestServer::plain(router()).await;
    let head = "POST /length HTTP/1.1\r\nhost: x\r\ncontent-length: 99999999999\r\n\r\n";
    assert!(raw(&server, head.as_bytes()).await.starts_with("HTTP/1.1 413"));
}

#[tokio::test]
async fn a_client_that_is_still_sending_gets_the_response() {
    let server = TestServer::plain(router()).await;
    let body = "x".repeat(8 << 20);
    let chunked = format!("transfer-encoding: chunked\r\n\r\n{:x}\r\n{body}\r\n0\r\n\r\n", body.len());
    let sized = format!("content-length: {}\r\n\r\n{body}", body.len());
    for (path, rest, status) in [
        ("/length", &sized, "413"),
        ("/length", &chunked, "413"),
        ("/nothing", &sized, "413"),
        ("/nothing", &chunked, "404"),
    ] {
        let mut stream = TcpStream::connect(server.address()).await.unwrap();
        let request = format!("POST {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n{rest}");
        stream.write_all(request.as_bytes()).await.unwrap();
        assert!(read_to_end(stream).await.starts_with(&format!("HTTP/1.1 {status}")), "{path}");
    }
}

#[tokio::test]
async fn limits_a_body_without_a_length() {
    let settings = ServeSettings { body_bytes_max: 1000, ..ServeSettings::default() };
    let server = TestServer::bounded(router(), settings).await;
    let chunk = format!("258\r\n{}\r\n", "x".repeat(600));
    let head = "POST /length HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n";
    assert!(raw(&server, format!("{head}{chunk}{chunk}0\r\n\r\n").as_bytes()).await.starts_with("HTTP/1.1 413"));
    let small = format!("{head}{chunk}0\r\n\r\n");
    assert!(raw(&server, small.as_bytes()).await.ends_with("600"));
}

#[tokio::test]
async fn limits_a_body_that_claims_to_be_grpc() {
    let settings = ServeSettings { body_bytes_max: 1000, ..ServeSettings::default() };
    let server = TestServer::bounded(router(), settings).await;
    let chunk = format!("258\r\n{}\r\n", "x".repeat(600));
    // The second path looks like gRPC, but its handler is not tonic's.
    for path in ["/length", "/length.Service/Call"] {
        let head = format!("POST {path} HTTP/1.1\r\nhost: x\r\ncontent-type: application/grpc\r\n");
        let request = format!("{head}transfer-encoding: chunked\r\n\r\n{chunk}{chunk}0\r\n\r\n");
        assert!(raw(&server, request.as_bytes()).await.starts_with("HTTP/1.1 413"), "{path}");
        assert_eq!(verdict(&grpc_typed(&server, path, chunked(2)).await), (413, None), "{path}");
        assert_eq!(verdict(&grpc_typed(&server, path, chunked(1)).await), (200, None), "{path}");
    }
}

#[tokio::test]
async fn refuses_malformed_and_oversized_heads() {
    let server = TestServer::plain(router()).await;
    let long = "x".repeat(64 * 1024);
    let many: String = (0..200).map(|number| format!("x-{number}: y\r\n")).collect();
    let heads = [
        (format!("GET /hello HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {long}\r\n\r\n"), "431"),
        (format!("GET /hello HTTP/1.1\r\nhost: x\r\n{many}\r\n"), "431"),
        ("POST /length HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab".to_owned(), "400"),
        ("GET /hello HTTP/1.1\r\nhost: x\r\nfolded: a\r\n b\r\n\r\n".to_owned(), "400"),
        ("POST /length HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n".to_owned(), "400"),
        ("POST /length HTTP/1.1\r\nhost: x\r\ntransfer-encoding: gzip\r\n\r\n".to_owned(), "400"),
        ("nonsense\r\n\r\n".to_owned(), "400"),
    ];
    for (head, status) in heads {
        let response = raw(&server, head.as_bytes()).await;
        assert!(response.starts_with(&format!("HTTP/1.1 {status}")), "{status}: {response}");
    }
    let response = http_client(None).get(server.url("/hello")).send().await.unwrap();
    assert_eq!(response.status(), StatusCode::OK);
}

#[tokio::test]
async fn refuses_a_request_without_one_host() {
    let server = TestServer::plain(router()).await;
    for (hosts, status) in [("", "400"), ("host: x\r\nhost: y\r\n", "400"), ("host: x\r\n", "200")] {
        let response = raw(&server, format!("GET /hello HTTP/1.1\r\n{hosts}\r\n").as_bytes()).await;
        assert!(response.starts_with(&format!("HTTP/1.1 {status}")), "{hosts}: {response}");
    }
}

/// Request smuggling: a length and chunks make two servers disagree about where a request ends.
// Conformance: HTTP/2 floods, and request smuggling with two content lengths
#[tokio::test]
async fn refuses_a_body_with_two_lengths() {
    let server = TestServer::plain(router()).await;
    let head = "POST /length HTTP/1.1\r\nhost: x\r\ncontent-length: 4\r\ntransfer-encoding: chunked\r\n\r\n";
    let response = raw(&server, format!("{head}0\r\n\r\nGET /hello HTTP/1.1\r\nhost: x\r\n\r\n").as_bytes()).await;
    assert!(!response.contains("hello"), "{response}");
}

/// Decompression would make a body larger than its limit.
#[tokio::test]
async fn never_decompresses_a_body() {
    let server = TestServer::plain(router()).await;
    for encoding in ["gzip", "deflate", "br", "zstd"] {
        let request = http_client(None).post(server.url("/length")).header("content-encoding", encoding).body("packed");
        assert_eq!(request.send().await.unwrap().text().await.unwrap(), "6", "{encoding}");
    }
}

#[tokio::test]
async fn times_out_a_slow_response() {
    let settings = ServeSettings { request_timeout_ms: 20, ..ServeSettings::default() };
    let server = TestServer::bounded(router(), settings).await;
    for content_type in ["application/json", "application/grpc"] {
        let request = http_client(None).get(server.url("/never")).header("content-type", content_type);
        let response = json_of(request.send().await.unwrap()).await;
        assert_eq!((response.0, &response.1["code"]), (504, &json!(4)), "{content_type}");
    }
    assert_eq!(verdict(&grpc_typed(&server, "/never.Service/Call", Body::empty()).await), (200, Some("4")));
}

// Conformance: Malformed messages, unknown fields, slow and half-open clients
#[tokio::test]
async fn times_out_an_endless_body() {
    let settings = ServeSettings { request_timeout_ms: 20, ..ServeSettings::default() };
    let server = TestServer::bounded(router(), settings).await;
    for content_type in ["application/json", "application/grpc"] {
        let mut stream = TcpStream::connect(server.address()).await.unwrap();
        let head = format!("POST /length HTTP/1.1\r\nhost: x\r\ncontent-type: {content_type}\r\n");
        stream.write_all(format!("{head}transfer-encoding: chunked\r\n\r\n1\r\nx\r\n").as_bytes()).await.unwrap();
        // The server closes the connection and frees its permit.
        assert!(read_to_end(stream).await.starts_with("HTTP/1.1 504"), "{content_type}");
    }
    let endless = || Body::from_stream(tokio_stream::pending::<Result<String, Infallible>>());
    assert_eq!(verdict(&grpc_typed(&server, "/length", endless()).await), (504, None));
    assert_eq!(verdict(&grpc_typed(&server, "/length.Service/Call", endless()).await), (200, Some("4")));
}

#[tokio::test]
async fn limits_do_not_apply_to_a_grpc_stream_that_has_begun() {
    // The timeout has passed as soon as the stream has begun.
    let settings = ServeSettings { request_timeout_ms: 0, body_bytes_max: 10, ..ServeSettings::default() };
    let server = TestServer::bounded(router(), settings).await;
    let response = grpc_typed(&server, "/echo.Service/Call", chunked(2)).await;
    assert_eq!(verdict(&response), (200, None));
    assert_eq!(axum::body::to_bytes(response.into_body(), usize::MAX).await.unwrap().len(), 1200);
}

// Conformance: Health and reflection
#[tokio::test]
async fn grpc_health_reports_failing_checks_and_shutdown() {
    let (ill, leaving) = (Health::default(), Health::default());
    ill.add("store", async || Err("the disk is full".to_owned()));
    leaving.drain();
    for health in [ill, leaving] {
        let server = TestServer::plain(grpc::routes(&health).unwrap().routes().into_axum_router()).await;
        let channel = Channel::from_shared(server.url("")).unwrap().connect().await.unwrap();
        assert_eq!(grpc_health(channel).await, ServingStatus::NotServing as i32);
    }
}

// Conformance: Health and reflection
#[tokio::test]
async fn reflection_describes_the_services() {
    use tonic_reflection::pb::v1::{
        ServerReflectionRequest, server_reflection_client::ServerReflectionClient,
        server_reflection_request::MessageRequest, server_reflection_response::MessageResponse,
    };
    let server = TestServer::plain(router()).await;
    let channel = Channel::from_shared(server.url("")).unwrap().connect().await.unwrap();
    let message_request = Some(MessageRequest::FileContainingSymbol("handler.ApplicationManager".to_owned()));
    let request = ServerReflectionRequest { host: String::new(), message_request };
    let requests = tokio_stream::iter([request]);
    let mut responses =
        ServerReflectionClient::new(channel).server_reflection_info(requests).await.unwrap().into_inner();
    let response = responses.message().await.unwrap().unwrap().message_response.unwrap();
    assert!(matches!(response, MessageResponse::FileDescriptorResponse(_)), "{response:?}");
}

/// Sends bytes, closes our side, and returns everything that the server answers.
async fn raw(server: &TestServer, bytes: &[u8]) -> String {
    let mut stream = TcpStream::connect(server.address()).await.unwrap();
    // The server may close the connection before it has read everything.
    let _ = stream.write_all(bytes).await;
    let _ = stream.shutdown().await;
    read_to_end(stream).await
}

async fn read_to_end(mut stream: TcpStream) -> String {
    let mut response = Vec::new();
    let mut buffer = [0; 4096];
    while let Ok(count @ 1..) = stream.read(&mut buffer).await {
        response.extend_from_slice(&buffer[..count]);
    }
    String::from_utf8(response).unwrap()
}

// Conformance: Malformed messages, unknown fields, slow and half-open clients
#[tokio::test]
async fn an_undecodable_message_is_an_invalid_argument() {
    let server = TestServer::plain(router()).await;
    for (message, code, what) in [
        (&[][..], None, "an empty message"),
        (&[0x78, 1], None, "an unknown field"),
        (&[0x0a, 9, b'a'], Some("3"), "a field that is cut short"),
        (&[0x0a, 2, 0xff, 0xfe], Some("3"), "text that is not UTF-8"),
        (&[0x08, 1], Some("3"), "a number where text belongs"),
        (&[0xff; 20], Some("3"), "nonsense"),
    ] {
        let length = u32::try_from(message.len()).unwrap().to_be_bytes();
        let body = Body::from([&[0], &length[..], message].concat());
        let response = grpc_typed(&server, "/grpc.health.v1.Health/Check", body).await;
        assert_eq!(verdict(&response), (200, code), "{what}");
    }
}

// Conformance: Deadlines of callers
#[tokio::test]
async fn obeys_the_timeout_of_the_client() {
    let server = TestServer::plain(router()).await;
    // The server's own limit is a minute.
    let request = http_client(None).get(server.url("/never")).header("grpc-timeout", "20m");
    let (status, response) = json_of(request.send().await.unwrap()).await;
    assert_eq!((status, response["code"].as_i64()), (504, Some(4)), "{response}");
    assert!(response["error"].as_str().unwrap().starts_with("no response within 20 ms"), "{response}");
}
