//! gRPC messages that no generated code would send.

use bytes::{Buf, BufMut};
use proptest::{collection::vec, option, prelude::*, sample::select};
use tonic::{
    Code, Request, Status,
    codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder},
    codegen::http::uri::PathAndQuery,
    metadata::MetadataValue,
    transport::Channel,
};

use super::{Services, generators, try_many};

const HANDLER: &[&str] = &[
    "/device.DeviceManager/ChangeDevices",
    "/device.DeviceManager/FindDevices",
    "/device.DeviceManager/ListNewestUplinks",
    "/device.DeviceManager/MoveDevice",
    "/handler.ApplicationManager/RegisterApplication",
    "/handler.ApplicationManager/GetApplication",
    "/handler.ApplicationManager/SetApplication",
    "/handler.ApplicationManager/DeleteApplication",
    "/handler.ApplicationManager/GetDevice",
    "/handler.ApplicationManager/SetDevice",
    "/handler.ApplicationManager/DeleteDevice",
    "/handler.ApplicationManager/GetDevicesForApplication",
    "/handler.ApplicationManager/DryDownlink",
    "/handler.ApplicationManager/DryUplink",
    "/handler.ApplicationManager/SimulateUplink",
    "/handler.HandlerManager/GetStatus",
    "/history.HistoryManager/GetChart",
    "/history.HistoryManager/GetRecord",
    "/history.HistoryManager/ListRecords",
    "/lorawan.DevAddrManager/GetPrefixes",
    "/lorawan.DevAddrManager/GetDevAddr",
    "/uplink.UplinkManager/SimulateUplinks",
    "/version.VersionManager/CompareVersions",
    "/version.VersionManager/CreateVersion",
    "/version.VersionManager/GetVersion",
    "/version.VersionManager/GetVersions",
    "/version.VersionManager/LabelVersion",
    "/version.VersionManager/RestoreVersion",
];
const DISCOVERY: &[&str] = &[
    "/discovery.Discovery/Announce",
    "/discovery.Discovery/GetAll",
    "/discovery.Discovery/Get",
    "/discovery.Discovery/AddMetadata",
    "/discovery.Discovery/DeleteMetadata",
    "/discovery.Discovery/GetByAppID",
    "/discovery.Discovery/GetByGatewayID",
    "/discovery.Discovery/GetByAppEUI",
];
/// Codes that blame the caller.
const BLAMELESS: &[Code] = &[
    Code::InvalidArgument,
    Code::NotFound,
    Code::AlreadyExists,
    Code::PermissionDenied,
    Code::Unauthenticated,
    Code::OutOfRange,
];

#[derive(Clone, Debug)]
struct Call {
    method: &'static str,
    message: Vec<u8>,
    /// The owner's token unless another one is given.
    token: Option<String>,
    limit: Option<String>,
}

fn call() -> impl Strategy<Value = Call> {
    let method = prop_oneof![2 => select(HANDLER), 1 => select(DISCOVERY)];
    // Metadata must be visible ASCII.
    let value = || "[ -~]{0,12}";
    let message = prop_oneof![6 => message(), 1 => vec(any::<u8>(), 0..100)];
    (method, message, option::weighted(0.1, value()), option::weighted(0.1, value()))
        .prop_map(|(method, message, token, limit)| Call { method, message, token, limit })
}

/// Nested fields with arbitrary numbers and types.
fn message() -> impl Strategy<Value = Vec<u8>> {
    let first = Just(field(1, 2, b"malformed-app"));
    let leaf = vec(scalar(), 0..6).prop_map(|fields| fields.concat());
    let nested = leaf.prop_recursive(3, 16, 4, |inner| {
        vec(
            prop_oneof![2 => scalar(), 1 => (number(), inner).prop_map(|(number, inner)| field(number, 2, &inner))],
            0..6,
        )
        .prop_map(|fields| fields.concat())
    });
    (option::weighted(0.7, first), nested).prop_map(|(first, rest)| [first.unwrap_or_default(), rest].concat())
}

/// A field number, usually one that exists.
fn number() -> impl Strategy<Value = u64> {
    prop_oneof![8 => 1..35_u64, 1 => any::<u64>()]
}

fn scalar() -> impl Strategy<Value = Vec<u8>> {
    let varint = prop_oneof![0..300_u64, any::<u64>()];
    prop_oneof![
        4 => (number(), generators::bytes()).prop_map(|(number, bytes)| field(number, 2, &bytes)),
        1 => (number(), varint).prop_map(|(number, value)| [encode_varint(number << 3), encode_varint(value)].concat()),
        1 => (number(), any::<[u8; 4]>()).prop_map(|(number, bytes)| [&encode_varint(number << 3 | 5)[..], &bytes].concat()),
        1 => (number(), 0..8_u64).prop_map(|(number, wire)| encode_varint(number << 3 | wire)),
    ]
}

fn field(number: u64, wire: u64, bytes: &[u8]) -> Vec<u8> {
    [&encode_varint(number << 3 | wire)[..], &encode_varint(bytes.len() as u64), bytes].concat()
}

fn encode_varint(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}

/// Sends raw bytes, and ignores the response.
#[derive(Default)]
struct Raw;

impl Codec for Raw {
    type Encode = Vec<u8>;
    type Decode = ();
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        Self
    }

    fn decoder(&mut self) -> Self {
        Self
    }
}

impl Encoder for Raw {
    type Item = Vec<u8>;
    type Error = Status;

    fn encode(&mut self, item: Vec<u8>, buffer: &mut EncodeBuf<'_>) -> Result<(), Status> {
        buffer.put_slice(&item);
        Ok(())
    }
}

impl Decoder for Raw {
    type Item = ();
    type Error = Status;

    fn decode(&mut self, buffer: &mut DecodeBuf<'_>) -> Result<Option<()>, Status> {
        buffer.advance(buffer.remaining());
        Ok(Some(()))
    }
}

impl Services {
    async fn call(&self, channel: &Channel, call: &Call) -> Result<(), Status> {
        let mut request = Request::new(call.message.clone());
        request.set_timeout(crate::harness::MESSAGE_TIMEOUT);
        let metadata = request.metadata_mut();
        metadata.insert("token", MetadataValue::try_from(call.token.as_deref().unwrap_or(self.token())).unwrap());
        if let Some(limit) = &call.limit {
            metadata.insert("limit", MetadataValue::try_from(limit).unwrap());
        }
        let mut grpc = tonic::client::Grpc::new(channel.clone());
        grpc.ready().await.unwrap();
        grpc.unary(request, PathAndQuery::from_static(call.method), Raw).await.map(|_| ())
    }
}

// Conformance: Every HTTP request and gRPC message either succeeds
#[tokio::test(flavor = "multi_thread")]
async fn malformed_grpc_calls_succeed_or_fail_as_client_errors() {
    let services = Services::start().await;
    let connect = async |url: String| Channel::from_shared(url).unwrap().connect().await.unwrap();
    let handler = connect(services.network.handler_http()).await;
    let discovery = connect(services.discovery_http.clone()).await;
    try_many(call(), &services, async |call, before| {
        let channel = if DISCOVERY.contains(&call.method) { &discovery } else { &handler };
        let response = services.call(channel, &call).await;
        let what = format!("{call:?}, answered by {response:?},");
        if let Err(status) = &response {
            assert!(BLAMELESS.contains(&status.code()), "{what}");
            assert!(!status.message().is_empty(), "{what}");
        }
        (services.data_after(before, response.is_ok(), &what).await, response.is_ok())
    })
    .await;
    services.network.stack.stop().await;
}
