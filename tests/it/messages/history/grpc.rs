//! History over gRPC has what it has over REST: files, charts, other results of uplinks, and messages to send again.

mod refusals;

use std::{collections::BTreeSet, fs};

use api::{
    handler::Application,
    history::{
        ChartQuery, DecodeAgain, DecodeReport, ExportQuery, FilePart, Query, SendAgain, SendReport, Verdicts,
        history_manager_client::HistoryManagerClient, send_again::To,
    },
};
use futures::TryStreamExt;
use serde_json::{Value, json};
use tonic::{Response, Status, Streaming, transport::Channel};
use types::Timestamp;

use super::{get, history_dir, owner};
use crate::{
    harness::{Network, Owner, next},
    messages::decode_again::decode,
};

type Client = HistoryManagerClient<Channel>;

/// Fails on 35 degrees, and decodes what failed or was refused.
const OTHER: &str = "function Decoder(bytes) {
  if (bytes[0] === 35) throw new Error('too hot');
  return { celsius: bytes.length ? bytes[0] + 1 : 1, room: { name: 'Büro' } };
}";
/// Maximum number of bytes in a message with a part of a file.
const PART_BYTES_MAX: usize = 64 << 10;

async fn connect(network: &Network) -> Client {
    let channel = Channel::from_shared(network.handler_http()).unwrap().connect().await.unwrap();
    HistoryManagerClient::new(channel)
}

/// All messages of a stream, or the error that it began or ended with.
async fn all<T>(response: Result<Response<Streaming<T>>, Status>) -> Result<Vec<T>, Status> {
    response?.into_inner().try_collect().await
}

fn export_query(owner: &Owner, query: Query, format: &str) -> ExportQuery {
    let query = Query { app_id: owner.app_id.to_string(), ..query };
    ExportQuery { query: Some(query), format: format.to_owned() }
}

async fn export(client: &mut Client, owner: &Owner, query: Query, format: &str) -> Vec<FilePart> {
    all(client.export(owner.sign(export_query(owner, query, format))).await).await.unwrap()
}

fn data(parts: &[FilePart]) -> Vec<u8> {
    parts.iter().flat_map(|part| part.data.clone()).collect()
}

/// A file over REST.
async fn exported(network: &Network, owner: &Owner, path: &str) -> Vec<u8> {
    let url = format!("{}/applications/{}/history/export/{path}", network.handler_http(), owner.app_id);
    let request = reqwest::Client::new().get(url).header("authorization", owner.token.to_header());
    request.send().await.unwrap().bytes().await.unwrap().to_vec()
}

fn uplinks() -> Query {
    Query { kind: "up".to_owned(), ..Query::default() }
}

// Conformance: gRPC exports, charts, decodes again and sends again as REST does
#[tokio::test(flavor = "multi_thread")]
async fn files_are_those_of_rest() {
    let network = Network::start().await;
    let owner = owner(&network).await;
    let mut client = connect(&network).await;
    let (dev_id, field) = ("warm".to_owned(), "fields.celsius > 30".to_owned());
    for (filter, query, lines) in [
        ("kind=up", uplinks(), 4),
        ("kind=up&dev_id=warm&port=1", Query { dev_id, port: Some(1), ..uplinks() }, 2),
        ("kind=up&field=fields.celsius+%3E+30", Query { field, ..uplinks() }, 1),
        ("kind=up&failed=true", Query { failed: true, ..uplinks() }, 2),
        ("kind=down%2Fsent", Query { kind: "down/sent".to_owned(), ..Query::default() }, 0),
    ] {
        let csv = data(&export(&mut client, &owner, query.clone(), "csv").await);
        assert_eq!(csv, exported(&network, &owner, &format!("csv?{filter}")).await, "{filter}");
        let json = data(&export(&mut client, &owner, query, "jsonl").await);
        assert_eq!(json, exported(&network, &owner, &format!("jsonl?{filter}")).await, "{filter}");
        assert_eq!(String::from_utf8(json).unwrap().lines().count(), lines, "{filter}");
    }
    let parquet = data(&export(&mut client, &owner, uplinks(), "parquet").await);
    assert!(parquet.starts_with(b"PAR1") && parquet.ends_with(b"PAR1"), "{} bytes", parquet.len());
    network.stack.stop().await;
}

// Conformance: gRPC exports, charts, decodes again and sends again as REST does
#[tokio::test(flavor = "multi_thread")]
async fn a_large_file_comes_in_small_messages() {
    let network = Network::start().await;
    let owner = network.owner("archive").await;
    owner.add_device("dev-1").await;
    owner.set_functions(["function Decoder(bytes) { return { text: 'x'.repeat(10000) }; }", "", ""]).await.unwrap();
    for byte in 0..20 {
        owner.simulate("dev-1", &[byte], 1).await.unwrap();
    }
    let parts = export(&mut connect(&network).await, &owner, uplinks(), "jsonl").await;
    assert!(parts.iter().all(|part| (1..=PART_BYTES_MAX).contains(&part.data.len())), "{} messages", parts.len());
    assert_eq!(data(&parts), exported(&network, &owner, "jsonl?kind=up").await);
    network.stack.stop().await;
}

// Conformance: gRPC exports, charts, decodes again and sends again as REST does
#[tokio::test(flavor = "multi_thread")]
async fn a_chart_is_that_of_rest() {
    let network = Network::start().await;
    let owner = owner(&network).await;
    let mut client = connect(&network).await;
    let (app_id, dev_id) = (owner.app_id.to_string(), "warm".to_owned());
    let (status, expected) = get(&network, &owner, "/chart?dev_id=warm&points=10").await;
    assert_eq!((status, &expected["series"][0]["field"]), (200, &json!("celsius")), "{expected}");
    let nanos = |name: &str| expected[name].as_str().unwrap().parse::<Timestamp>().unwrap().as_nanos();
    let query = ChartQuery {
        app_id: app_id.clone(),
        dev_id: dev_id.clone(),
        since: Some(nanos("since")),
        until: Some(nanos("until")),
        points: 10,
        field: String::new(),
    };
    let chart = client.get_chart(owner.sign(query)).await.unwrap().into_inner();
    let series = chart.series.iter().map(|series| {
        let points = series.points.iter().map(|point| {
            let time = Timestamp::from_nanos(point.time);
            json!({"time": time, "min": point.min, "mean": point.mean, "max": point.max, "count": point.count})
        });
        json!({"field": series.field, "points": points.collect::<Vec<_>>()})
    });
    let seen = json!({
        "since": Timestamp::from_nanos(chart.since), "until": Timestamp::from_nanos(chart.until),
        "bucket_seconds": chart.bucket_seconds, "examined": chart.examined, "series": series.collect::<Vec<_>>(),
    });
    assert_eq!(seen, expected);
    let day = client.get_chart(owner.sign(ChartQuery { app_id, dev_id, ..ChartQuery::default() })).await.unwrap();
    let day = day.into_inner();
    assert_eq!((day.until - day.since, day.examined), (24 * 3600 * 1_000_000_000, 3), "the last day by default");
    network.stack.stop().await;
}

/// A report as REST has it: without what is zero or empty.
fn as_rest(report: &DecodeReport) -> Value {
    let json = |text: &str| serde_json::from_str::<Value>(text).unwrap();
    let fields = report.fields.iter().map(|(path, field)| {
        let example = field.example.as_ref().unwrap();
        let (before, after) = (json(&example.before), json(&example.after));
        let example = json!({"id": example.id, "dev_id": example.dev_id, "before": before, "after": after});
        (path.clone(), json!({"count": field.count, "example": example}))
    });
    let failures = report.failures.iter().map(|(reason, failure)| {
        (reason.clone(), json!({"count": failure.count, "id": failure.id, "dev_id": failure.dev_id}))
    });
    let days = report.days.iter().map(|(date, day)| (date.clone(), non_zero(day)));
    let mut seen = non_zero(report.verdicts.as_ref().unwrap());
    let members = json!({
        "examined": report.examined, "not_repeatable": report.not_repeatable, "limited": report.limited,
        "written": report.written, "fuel_before": report.fuel_before, "fuel_after": report.fuel_after,
        "fields": fields.collect::<Value>(), "failures": failures.collect::<Value>(), "days": days.collect::<Value>(),
        "next": report.next, "done": report.done,
    });
    let seen_members = seen.as_object_mut().unwrap();
    seen_members.extend(members.as_object().unwrap().clone());
    let nothing = [json!(0), json!({}), json!(""), json!(false)];
    seen_members.retain(|_, value| !nothing.contains(value));
    seen
}

fn non_zero(verdicts: &Verdicts) -> Value {
    let Verdicts { equal, already_corrected, changed, newly_failing, newly_decoded, still_failing } = *verdicts;
    let all = [
        ("equal", equal),
        ("already_corrected", already_corrected),
        ("changed", changed),
        ("newly_failing", newly_failing),
        ("newly_decoded", newly_decoded),
        ("still_failing", still_failing),
    ];
    all.into_iter().filter(|(_, count)| *count > 0).collect()
}

fn other_functions() -> Option<Application> {
    let (payload_format, decoder) = ("custom".to_owned(), OTHER.to_owned());
    Some(Application { payload_format, decoder, ..Application::default() })
}

// Conformance: gRPC exports, charts, decodes again and sends again as REST does
#[tokio::test(flavor = "multi_thread")]
async fn other_functions_and_the_same_ones_have_the_reports_of_rest() {
    let network = Network::start().await;
    let owner = owner(&network).await;
    let mut client = connect(&network).await;
    let (app_id, sent) = (owner.app_id.to_string(), json!({"payload_format": "custom", "decoder": OTHER}));
    let changing = DecodeAgain { app_id, functions: other_functions(), ..DecodeAgain::default() };
    let same = DecodeAgain { functions: None, ..changing.clone() };
    for (body, again) in [
        (json!({"functions": sent}), changing.clone()),
        (
            json!({"functions": sent, "compare_live": true, "per_device": 1}),
            DecodeAgain { compare_live: true, per_device: 1, ..changing.clone() },
        ),
        (json!({"verify": true}), DecodeAgain { verify: true, ..same.clone() }),
        (
            json!({"dev_id": "warm", "port": 2, "version": 1}),
            DecodeAgain { dev_id: "warm".to_owned(), port: Some(2), version: 1, ..same },
        ),
    ] {
        let (status, expected) = decode(&network, &owner, body.clone()).await;
        let reports = all(client.decode(owner.sign(again)).await).await.unwrap();
        let seen: Vec<_> = reports.iter().map(as_rest).collect();
        assert_eq!((status, &expected[1]), (200, &json!({"done": true})), "{body}: {expected:?}");
        assert_eq!(seen, expected, "{body}");
    }
    let mut listener = owner.listen(&network).await;
    let correction = DecodeAgain { write: true, publish: true, publish_per_s: 1000, ..changing };
    let reports = all(client.decode(owner.sign(correction)).await).await.unwrap();
    let sum = |number: fn(&DecodeReport) -> u64| reports.iter().map(number).sum::<u64>();
    assert_eq!((sum(|report| report.written), sum(|report| report.published)), (3, 3), "{reports:?}");
    for celsius in [22, 1, 1] {
        let (_, message) = next(&mut listener).await;
        assert_eq!((&message["payload_fields"]["celsius"], &message["revision"]), (&json!(celsius), &json!(1)));
    }
    let (_, page) = get(&network, &owner, "?kind=up").await;
    let revisions = page["records"].as_array().unwrap().iter().filter(|record| record["revision"] == 1);
    assert_eq!(revisions.count(), 3, "{page}");
    network.stack.stop().await;
}

/// Number of messages that were looked at, were sent, nobody wants, and were never published.
fn sums(reports: &[SendReport]) -> [u64; 4] {
    assert!(reports.last().is_some_and(|report| report.done), "{reports:?}");
    let sum = |number: fn(&SendReport) -> u64| reports.iter().map(number).sum::<u64>();
    [
        sum(|report| report.examined),
        sum(|report| report.sent),
        sum(|report| report.unwanted),
        sum(|report| report.never_published),
    ]
}

// Conformance: gRPC exports, charts, decodes again and sends again as REST does
#[tokio::test(flavor = "multi_thread")]
async fn stored_messages_are_sent_again_to_whom_a_message_says() {
    let network = Network::start().await;
    let owner = owner(&network).await;
    let mut client = connect(&network).await;
    let mut listener = owner.listen(&network).await;
    let (app_id, kind) = (owner.app_id.to_string(), "up".to_owned());
    let again = SendAgain { app_id, kind, per_s: 1000, ..SendAgain::default() };
    let (_, page) = get(&network, &owner, "?kind=up&limit=1").await;
    let newest = page["records"][0]["id"].as_str().unwrap().to_owned();
    for (again, expected) in [
        (SendAgain { dry_run: true, ..again.clone() }, [4, 3, 0, 1]),
        (SendAgain { to: Some(To::Topic("backfill".to_owned())), ..again.clone() }, [4, 0, 3, 1]),
        (SendAgain { port: Some(2), to: Some(To::Mqtt(())), ..again.clone() }, [2, 1, 0, 1]),
        (SendAgain { id: newest, ..again }, [1, 1, 0, 0]),
    ] {
        let reports = all(client.replay(owner.sign(again.clone())).await).await.unwrap();
        assert_eq!(sums(&reports), expected, "{again:?}");
    }
    for _ in 0..2 {
        let (topic, message) = next(&mut listener).await;
        assert_eq!((&*topic, &message["is_retry"], &message["payload_raw"]), ("warm/up", &json!(true), &json!("Iw==")));
    }
    network.stack.stop().await;
}

// Conformance: gRPC exports, charts, decodes again and sends again as REST does
#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_cannot_be_read_is_named_by_each_call() {
    let network = Network::start().await;
    let owner = owner(&network).await;
    let mut client = connect(&network).await;
    // Deleting a device moves everything to Parquet files.
    owner.add_device("gone").await;
    owner.handler.delete_device(&owner.app_id, &"gone".parse().unwrap()).await.unwrap();
    let days = history_dir(&network).join(format!("app={}", owner.app_id));
    let day = fs::read_dir(days).unwrap().next().unwrap().unwrap().path();
    let foreign = "1000000000000-1990000009000-foreign.parquet".to_owned();
    fs::write(day.join(&foreign), "not a Parquet file").unwrap();

    let mut parts = export(&mut client, &owner, uplinks(), "jsonl").await;
    let last = parts.pop().unwrap();
    assert_eq!(last, FilePart { unreadable_files: vec![foreign.clone()], ..FilePart::default() });
    assert!(parts.iter().all(|part| part.unreadable_files.is_empty()), "only in the last message");
    assert_eq!(String::from_utf8(data(&parts)).unwrap().lines().count(), 4, "what can be read is there");

    let (app_id, dev_id) = (owner.app_id.to_string(), "warm".to_owned());
    let query = ChartQuery { app_id: app_id.clone(), dev_id, ..ChartQuery::default() };
    let chart = client.get_chart(owner.sign(query)).await.unwrap().into_inner();
    assert_eq!((chart.unreadable_files, chart.examined), (vec![foreign.clone()], 3));

    let again = DecodeAgain { app_id: app_id.clone(), ..DecodeAgain::default() };
    let reports = all(client.decode(owner.sign(again)).await).await.unwrap();
    let named: BTreeSet<_> = reports.into_iter().flat_map(|report| report.unreadable_files).collect();
    assert_eq!(named, BTreeSet::from([foreign.clone()]));

    let again = SendAgain { app_id, dry_run: true, ..SendAgain::default() };
    let reports = all(client.replay(owner.sign(again)).await).await.unwrap();
    let named: BTreeSet<_> = reports.into_iter().flat_map(|report| report.unreadable_files).collect();
    assert_eq!(named, BTreeSet::from([foreign]));
    network.stack.stop().await;
}
