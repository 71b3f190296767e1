//! Calls that gRPC refuses: without the right, with a wrong filter, and beyond the bounds of an owner.

use api::{
    handler::Application,
    history::{ChartQuery, DecodeAgain, DecodeReport, ExportQuery, Query, SendAgain, SendReport, send_again::To},
};
use tonic::{Code, Request, Response, Status, Streaming};
use types::AccessKey;

use super::{Client, all, connect, export_query, other_functions, owner, uplinks};
use crate::{
    harness::{Network, Owner, next},
    processes::outages::soon,
};

/// A request with an access key, or without a credential.
fn with_key<T>(message: T, key: Option<&AccessKey>) -> Request<T> {
    let mut request = Request::new(message);
    if let Some(key) = key {
        request.metadata_mut().insert("key", key.expose().parse().unwrap());
    }
    request
}

fn code<T>(response: &Result<T, Status>) -> Code {
    response.as_ref().err().map_or(Code::Ok, Status::code)
}

fn decode_again(owner: &Owner) -> DecodeAgain {
    DecodeAgain { app_id: owner.app_id.to_string(), ..DecodeAgain::default() }
}

fn send_again(owner: &Owner) -> SendAgain {
    SendAgain { app_id: owner.app_id.to_string(), kind: "up".to_owned(), ..SendAgain::default() }
}

/// The codes of a chart, a file, decoding again and counting what would be sent again.
async fn codes(client: &mut Client, owner: &Owner, key: Option<&AccessKey>) -> [Code; 4] {
    let (app_id, dev_id) = (owner.app_id.to_string(), "warm".to_owned());
    let chart = ChartQuery { app_id, dev_id, ..ChartQuery::default() };
    let replay = SendAgain { dry_run: true, ..send_again(owner) };
    [
        code(&client.get_chart(with_key(chart, key)).await),
        code(&all(client.export(with_key(export_query(owner, uplinks(), "csv"), key)).await).await),
        code(&all(client.decode(with_key(decode_again(owner), key)).await).await),
        code(&all(client.replay(with_key(replay, key)).await).await),
    ]
}

// Conformance: gRPC exports, charts, decodes again and sends again as REST does
#[tokio::test(flavor = "multi_thread")]
async fn each_call_takes_its_rights() {
    let network = Network::start().await;
    let owner = owner(&network).await;
    let mut client = connect(&network).await;
    let (granted, denied) = (Code::Ok, Code::PermissionDenied);
    for (right, expected) in [
        ("messages:up:r", [granted, granted, denied, denied]),
        ("settings", [denied; 4]),
        ("devices", [denied; 4]),
        ("messages:up:w", [denied; 4]),
    ] {
        let key = owner.key_with(&network, right).await;
        assert_eq!(codes(&mut client, &owner, Some(&key)).await, expected, "{right}");
    }
    assert_eq!(codes(&mut client, &owner, None).await, [Code::Unauthenticated; 4]);
    let stranger = network.owner("stranger").await;
    let refused = client.export(stranger.sign(export_query(&owner, uplinks(), "csv"))).await;
    assert_eq!(code(&refused), denied, "another owner");
    network.stack.stop().await;
}

/// Checks that a call is refused with this code, and that the reason has this text.
fn assert_refused<T>(response: Result<T, Status>, (expected, text): (Code, &str)) {
    let status = response.err().unwrap_or_else(|| panic!("no error that says `{text}`"));
    assert_eq!(status.code(), expected, "{text}: {status}");
    assert!(status.message().contains(text), "{text}: {status}");
}

// Conformance: gRPC exports, charts, decodes again and sends again as REST does
#[tokio::test(flavor = "multi_thread")]
async fn wrong_filters_and_options_are_refused_with_the_rule() {
    let network = Network::start().await;
    let owner = owner(&network).await;
    let mut client = connect(&network).await;
    let (app_id, invalid) = (owner.app_id.to_string(), Code::InvalidArgument);
    for (query, format, text) in [
        (Query { field: "temperature".to_owned(), ..Query::default() }, "csv", "Field not valid"),
        (Query { port: Some(256), ..Query::default() }, "csv", "Port not valid: it must be at most 255"),
        (Query { kind: "uplink".to_owned(), ..Query::default() }, "csv", "Kind not valid: `uplink` is unknown"),
        (Query { dev_id: "UPPER".to_owned(), ..Query::default() }, "csv", "lowercase letters"),
        (Query::default(), "xml", "it is one of jsonl, csv and parquet"),
    ] {
        let refused = client.export(owner.sign(export_query(&owner, query, format))).await;
        assert_refused(refused, (invalid, text));
    }
    let nobody = ExportQuery { query: None, format: "csv".to_owned() };
    assert_refused(client.export(owner.sign(nobody)).await, (invalid, "can not be empty"));
    let chart = ChartQuery { app_id, dev_id: "warm".to_owned(), ..ChartQuery::default() };
    for (query, text) in [
        (ChartQuery { dev_id: String::new(), ..chart.clone() }, "can not be empty"),
        (ChartQuery { points: 1001, ..chart.clone() }, "at most 1000"),
        (ChartQuery { since: Some(2), until: Some(1), ..chart }, "it must be before `until`"),
    ] {
        assert_refused(client.get_chart(owner.sign(query)).await, (invalid, text));
    }
    let unformatted = other_functions().map(|functions| Application { payload_format: String::new(), ..functions });
    for (again, expected) in [
        (DecodeAgain { port: Some(256), ..decode_again(&owner) }, (invalid, "Port not valid")),
        (DecodeAgain { publish: true, ..decode_again(&owner) }, (invalid, "it needs `write`")),
        (DecodeAgain { after: "yesterday".to_owned(), ..decode_again(&owner) }, (invalid, "28 hexadecimal digits")),
        (DecodeAgain { version: 9, ..decode_again(&owner) }, (Code::NotFound, "Version 9")),
        (DecodeAgain { functions: unformatted, ..decode_again(&owner) }, (invalid, "set `payload_format`")),
    ] {
        assert_refused(client.decode(owner.sign(again)).await, expected);
    }
    for (again, expected) in [
        (SendAgain { per_s: 10_001, ..send_again(&owner) }, (invalid, "at most 10000")),
        (to(&owner, To::Topic("devices".to_owned())), (invalid, "Topic not valid")),
        (to(&owner, To::Webhook("nobody".to_owned())), (Code::NotFound, "Webhook nobody not found")),
        (to(&owner, To::Output("nobody".to_owned())), (Code::NotFound, "Output nobody not found")),
    ] {
        assert_refused(client.replay(owner.sign(again)).await, expected);
    }
    network.stack.stop().await;
}

fn to(owner: &Owner, to: To) -> SendAgain {
    SendAgain { to: Some(to), ..send_again(owner) }
}

/// An owner of a device with ten uplinks.
async fn owner_of_ten(network: &Network) -> Owner {
    let owner = network.owner("slow").await;
    owner.add_device("warm").await;
    owner.set_functions(["function Decoder(bytes) { return { celsius: bytes[0] }; }", "", ""]).await.unwrap();
    for byte in 0..10 {
        owner.simulate("warm", &[byte], 1).await.unwrap();
    }
    owner
}

/// Begins a correction that takes a second for each uplink, and waits until it has published the first.
async fn begin_correction(network: &Network, client: &mut Client, owner: &Owner) -> Streaming<DecodeReport> {
    let mut listener = owner.listen(network).await;
    let (functions, publish_per_s) = (other_functions(), 1);
    let slow = DecodeAgain { functions, write: true, publish: true, publish_per_s, ..decode_again(owner) };
    let reports = client.decode(owner.sign(slow)).await.map(Response::into_inner).unwrap();
    assert_eq!(next(&mut listener).await.1["revision"], 1);
    reports
}

// Conformance: gRPC exports, charts, decodes again and sends again as REST does
#[tokio::test(flavor = "multi_thread")]
async fn an_owner_decodes_within_a_share_of_memory_until_a_call_ends() {
    // Enough for one call.
    let network = Network::with(|settings| settings.budgets.body_bytes_per_owner_max = 12 << 20).await;
    let (owner, another) = (owner_of_ten(&network).await, owner(&network).await);
    let mut client = connect(&network).await;
    let first = begin_correction(&network, &mut client, &owner).await;
    let refused = client.decode(owner.sign(decode_again(&owner))).await;
    assert_eq!(code(&refused), Code::ResourceExhausted);
    let others = all(client.decode(another.sign(decode_again(&another))).await).await;
    assert_eq!(code(&others), Code::Ok, "others have their own share");
    drop(first);
    let decoded = async || code(&client.clone().decode(owner.sign(decode_again(&owner))).await);
    soon(Code::Ok, decoded).await;
    network.stack.stop().await;
}

// Conformance: gRPC exports, charts, decodes again and sends again as REST does
#[tokio::test(flavor = "multi_thread")]
async fn a_part_of_a_file_is_within_the_share_of_responses_until_it_is_read() {
    let network = Network::with(|settings| settings.budgets.response_bytes_per_owner_max = 256 << 10).await;
    let owner = network.owner("large").await;
    owner.add_device("warm").await;
    owner.set_functions(["function Decoder() { return { text: 'x'.repeat(12000) }; }", "", ""]).await.unwrap();
    for byte in 0..40 {
        owner.simulate("warm", &[byte], 1).await.unwrap();
    }
    let mut client = connect(&network).await;
    for (port, expected) in [(1, Code::ResourceExhausted), (2, Code::Ok)] {
        let query = export_query(&owner, Query { port: Some(port), ..uplinks() }, "jsonl");
        assert_eq!(code(&all(client.export(owner.sign(query)).await).await), expected, "port {port}");
    }
    network.stack.stop().await;
}

// Conformance: gRPC exports, charts, decodes again and sends again as REST does
#[tokio::test(flavor = "multi_thread")]
async fn an_application_is_corrected_by_one_call_at_a_time_until_its_client_leaves() {
    let network = Network::start().await;
    let owner = owner_of_ten(&network).await;
    let mut client = connect(&network).await;
    let first = begin_correction(&network, &mut client, &owner).await;
    let write = || owner.sign(DecodeAgain { write: true, ..decode_again(&owner) });
    assert_refused(client.decode(write()).await, (Code::Aborted, "a correction of application slow-app is running"));
    drop(first);
    let corrected = async || code(&all(client.clone().decode(write()).await).await);
    soon(Code::Ok, corrected).await;
    network.stack.stop().await;
}

// Conformance: gRPC exports, charts, decodes again and sends again as REST does
#[tokio::test(flavor = "multi_thread")]
async fn an_application_has_one_replay_at_a_time_until_its_client_leaves() {
    let network = Network::start().await;
    let owner = owner_of_ten(&network).await;
    let mut client = connect(&network).await;
    let mut listener = owner.listen(&network).await;
    let slow = SendAgain { per_s: 1, ..send_again(&owner) };
    let first: Streaming<SendReport> = client.replay(owner.sign(slow)).await.unwrap().into_inner();
    assert_eq!(next(&mut listener).await.1["is_retry"], true);
    let fast = || owner.sign(SendAgain { per_s: 1000, ..send_again(&owner) });
    assert_refused(client.replay(fast()).await, (Code::Aborted, "a replay of application slow-app is running"));
    drop(first);
    let sent = async || code(&all(client.clone().replay(fast()).await).await);
    soon(Code::Ok, sent).await;
    network.stack.stop().await;
}
