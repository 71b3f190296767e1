//! Stored messages, over REST, gRPC and the command line.

mod grpc;

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    sync::Arc,
};

use ::history::{Environment, History, NewRecord, Settings};
use airlock::serve::Stack;
use api::history::Query;
use client::{Trust, handler::HandlerClient};
use serde_json::{Value, json};
use testing::{FixedRandom, ManualClock, Python};
use types::{Clock, DevId, Kind, Kinded};

use crate::{
    harness::{Network, Owner, environment, printed, runs_airlock, server_process::ServerProcess},
    processes::outages::soon,
};

/// Fails on an empty payload, and refuses 0 degrees.
const DECODER: &str = "function Decoder(bytes) {
  console.log('bytes', bytes.length);
  if (bytes.length === 0) throw new Error('no bytes');
  return { celsius: bytes[0], room: { name: 'Büro' } };
}";
const VALIDATOR: &str = "function Validator(fields) { return fields.celsius !== 0; }";
/// Another one, with which stored uplinks are decoded again.
const LENGTH_DECODER: &str = "function Decoder(bytes) { return { length: bytes.length }; }";

async fn get(network: &Network, owner: &Owner, path: &str) -> (u16, Value) {
    owner.ask(&network.handler_http(), "GET", &format!("/history{path}"), Value::Null).await
}

/// Returns the field `celsius` of each record on a page.
fn celsius(page: &Value) -> Vec<Value> {
    page["records"].as_array().unwrap().iter().map(|record| record["payload_fields"]["celsius"].clone()).collect()
}

/// An owner of a device whose uplinks with 21, nothing, 0 and 35 degrees were handled.
async fn owner(network: &Network) -> Owner {
    let owner = network.owner("archive").await;
    owner.add_device("warm").await;
    owner.add_device("cold").await;
    owner.set_functions([DECODER, "", VALIDATOR]).await.unwrap();
    owner.simulate("warm", &[21], 1).await.unwrap();
    owner.simulate("warm", &[], 1).await.unwrap();
    owner.simulate("cold", &[0], 2).await.unwrap_err();
    owner.simulate("warm", &[35], 2).await.unwrap();
    owner
}

// Conformance: What was handled is kept with what came of it, and found by device, time
// Conformance: DuckDB and pandas read its Parquet files
#[tokio::test(flavor = "multi_thread")]
async fn what_was_handled_is_found_with_all_that_came_of_it() {
    let network = Network::start().await;
    let owner = owner(&network).await;
    lists(&network, &owner).await;
    filters(&network, &owner).await;
    files(&network, &owner).await;
    network.stack.stop().await;
}

/// Records have all that is known, one by one and in lists.
async fn lists(network: &Network, owner: &Owner) {
    let (status, page) = get(network, owner, "?kind=up").await;
    let records = page["records"].as_array().unwrap();
    assert_eq!((status, records.len()), (200, 4), "{page}");
    let outcomes: Vec<_> = records.iter().map(|record| record["outcome"].as_str().unwrap()).collect();
    assert_eq!(outcomes, ["decoded", "invalid", "failed", "decoded"], "the newest first");
    let newest = &records[0];
    assert_eq!(newest["payload_fields"], json!({"celsius": 35, "room": {"name": "Büro"}}));
    assert_eq!((&newest["payload_raw"], &newest["port"], &newest["version"]), (&json!("Iw=="), &json!(2), &json!(1)));
    assert_eq!(newest["logs"], json!([{"function": "decoder", "fields": ["\"bytes\"", "1"]}]));
    assert_eq!(newest["functions"].as_str().unwrap().len(), 64);
    let id: ::history::RecordId = newest["id"].as_str().unwrap().parse().unwrap();
    assert_eq!(newest["recorded"], id.recorded().to_rfc3339());
    for cost in ["fuel", "microseconds"] {
        assert!(newest[cost].as_str().unwrap().parse::<u64>().unwrap() > 0, "{cost}");
    }
    assert!(records[2]["failure"].as_str().unwrap().contains("no bytes"), "{page}");
    let (status, mut one) = get(network, owner, &format!("/{}", newest["id"].as_str().unwrap())).await;
    let limits = one.as_object_mut().unwrap().remove("limits").unwrap();
    assert_eq!((status, &one), (200, newest), "only its limits are more");
    assert_eq!(limits["fuel"], network.stack.settings().sandbox.limits.fuel);
    let (_, events) = get(network, owner, "?kind=create").await;
    let events = events["records"].as_array().unwrap();
    assert_eq!(events.len(), 2, "two devices were created: {events:?}");
    assert!(events.iter().all(|event| event.get("microseconds").is_none()), "nothing ran: {events:?}");
}

/// Filters select, and pages continue.
async fn filters(network: &Network, owner: &Owner) {
    for (path, expected) in [
        ("?kind=up&dev_id=warm", json!([35, null, 21])),
        ("?kind=up&port=2", json!([35, 0])),
        ("?failed=true&kind=up", json!([0, null])),
        ("?field=fields.celsius+%3E+30", json!([35])),
        ("?field=fields.room.name+%3D+%22B%C3%BCro%22", json!([35, 0, 21])),
        ("?text=no+bytes&kind=up", json!([null])),
        ("?kind=up&version=1", json!([35, 0, null, 21])),
        ("?kind=up&version=2", json!([])),
        ("?kind=up&since=2100-01-01T00:00:00Z", json!([])),
        ("?kind=up&until=2000-01-01T00:00:00Z", json!([])),
        ("?kind=up&limit=2", json!([35, 0])),
    ] {
        let (status, page) = get(network, owner, path).await;
        assert_eq!((status, json!(celsius(&page))), (200, expected), "{path}: {page}");
    }
    let (_, first) = get(network, owner, "?kind=up&limit=3").await;
    let next = first["next"].as_str().unwrap();
    let (_, last) = get(network, owner, &format!("?kind=up&limit=3&before={next}")).await;
    assert_eq!((celsius(&last), &last["next"]), (vec![json!(21)], &Value::Null));
}

/// DuckDB and pandas read what was sealed and what is exported.
async fn files(network: &Network, owner: &Owner) {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("third_party_clients/parquet.py");
    let packages = ["duckdb==2.0.1", "pandas==3.1.1", "pyarrow==26.0.1"];
    let Some(python) = Python::install(&folder, &packages) else { return };
    keep_with_gateways(network, owner).await;
    // Deleting a device moves everything to Parquet files.
    owner.add_device("gone").await;
    owner.handler.delete_device(&owner.app_id, &"gone".parse().unwrap()).await.unwrap();
    let url = format!("{}/applications/{}/history/export/parquet", network.handler_http(), owner.app_id);
    let request = reqwest::Client::new().get(url).header("authorization", owner.token.to_header());
    let exported = network.dir.path().join("exported.parquet");
    fs::write(&exported, request.send().await.unwrap().bytes().await.unwrap()).unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/delivery/third_party_clients/parquet.py");
    let documented = documented_queries().map(|query| query.replace("my-app", owner.app_id.as_str()));
    let limits = history_dir(network).join("limits.jsonl");
    soon(true, async || limits.exists()).await;
    let mut command = python.command(&script);
    let output = command.args([&history_dir(network), &exported]).args(documented).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let seen: Value = serde_json::from_slice(&output.stdout).unwrap();
    let expected = json!([
        ["warm", 1, "15", "decoded", 21],
        ["warm", 1, "", "failed", null],
        ["cold", 2, "00", "invalid", 0],
        ["warm", 2, "23", "decoded", 35],
    ]);
    assert_eq!(seen["uplinks"], expected);
    assert_eq!(seen["documented"][0], json!([["warm", 28.0]]), "without what the validator refused");
    assert_eq!(seen["documented"][1], seen["documented"][0], "no uplink was corrected");
    let longest = seen["documented"][3].as_array().unwrap();
    assert!(longest.len() == 2 && longest.iter().all(|device| device[1].as_u64().unwrap() > 0), "{longest:?}");
    assert_eq!(seen["documented"][4], json!([["warm", "cellar", 1, -113.5], ["warm", "roof", 1, -60.0]]));
    assert_eq!(seen["documented"][5], json!([]), "all rows have checksums");
    let shares = seen["documented"][2].as_array().unwrap();
    assert_eq!(shares.iter().map(|share| &share[0]).collect::<Vec<_>>(), ["cold", "warm"]);
    assert!(shares.iter().all(|share| (f64::MIN_POSITIVE..1.0).contains(&share[1].as_f64().unwrap())), "{shares:?}");
    decode_with_duckdb(network, owner, &python);
    decode_files(network, owner, &python);
}

/// The program of docs/scale.md that has this text.
fn documented_program(text: &str) -> &'static str {
    let mut programs = include_str!("../../../docs/scale.md").split("```python\n").skip(1);
    programs.find_map(|program| Some(program.split_once("```")?.0).filter(|program| program.contains(text))).unwrap()
}

/// The program of docs/scale.md runs another codec in DuckDB on what was sealed.
fn decode_with_duckdb(network: &Network, owner: &Owner, python: &Python) {
    let program = documented_program("import duckdb");
    let rows = "import json; print('rows', json.dumps(duckdb.sql('SELECT dev_id, made FROM decoded').fetchall()))";
    let dir = tempfile::tempdir().unwrap();
    let [script, codec] = ["decode.py", "decoder.js"].map(|name| dir.path().join(name));
    fs::write(&script, format!("{program}\n{rows}\n")).unwrap();
    fs::write(&codec, LENGTH_DECODER).unwrap();
    let sealed = history_dir(network).join(format!("app={}/*/*.parquet", owner.app_id));
    let mut command = python.command(&script);
    runs_airlock(&mut command, dir.path());
    let text = printed(&command.args([&sealed, &codec]).output().unwrap());
    let rows = text.lines().find_map(|line| line.strip_prefix("rows ")).unwrap();
    let rows: Vec<(String, String)> = serde_json::from_str(rows).unwrap();
    let length = |made: &str| serde_json::from_str::<Value>(made).unwrap()["fields"]["length"].clone();
    let mut rows: Vec<_> = rows.iter().map(|(dev_id, made)| format!("{dev_id} {}", length(made))).collect();
    rows.sort();
    assert_eq!(rows, ["cold 1", "warm 0", "warm 1", "warm 1"]);
}

/// Does what a task of Spark does in the program of docs/scale.md, without Spark, and as often as Spark may do it.
fn decode_files(network: &Network, owner: &Owner, python: &Python) {
    let program = documented_program("def decode(file)").split("\nspark = ").next().unwrap();
    let without_spark: Vec<_> = program.lines().filter(|line| !line.contains("pyspark")).collect();
    let tasks = "import duckdb
damaged = [decode(file) for file in found + found]
uplinks = duckdb.sql(f\"SELECT app, device, verdict, new FROM '{output}/*/*/*.parquet' WHERE fuel > 0 ORDER BY ALL\")
print(json.dumps([sum(damaged), uplinks.fetchall()]))
";
    let dir = tempfile::tempdir().unwrap();
    let [script, codecs, output] = ["decode_files.py", "codecs", "decoded"].map(|name| dir.path().join(name));
    fs::write(&script, format!("{}\n{tasks}", without_spark.join("\n"))).unwrap();
    fs::create_dir(&codecs).unwrap();
    fs::write(codecs.join(format!("{}.js", owner.app_id)), LENGTH_DECODER).unwrap();
    let sealed = history_dir(network).join(format!("app={}/*/*.parquet", owner.app_id));
    let mut command = python.command(&script);
    runs_airlock(&mut command, dir.path());
    let text = printed(&command.args([&sealed, &codecs, &output]).output().unwrap());
    let (app, one, none) = (owner.app_id.as_str(), r#"{"length":1}"#, r#"{"length":0}"#);
    let expected = json!([
        [app, "cold", "newly_decoded", one],
        [app, "warm", "changed", one],
        [app, "warm", "changed", one],
        [app, "warm", "newly_decoded", none],
    ]);
    assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), json!([0, expected]));
}

/// Keeps what two gateways have received, and a correction of it, as another handler with the same directory does.
async fn keep_with_gateways(network: &Network, owner: &Owner) {
    let clock = ManualClock::at(server::system::SystemClock.now());
    let received = clock.now();
    let environment = Environment { clock, random: &FixedRandom::new([7]), owner_of: Arc::new(ToString::to_string) };
    let history = History::open(history_dir(network), Settings::default(), environment).unwrap();
    let (dev_id, kind) = ("warm".parse().unwrap(), ::history::Kind::Event("activations".to_owned()));
    let metadata = r#"{"time":"","gateways":[{"gtw_id":"roof","time":"","channel":0,"rssi":-60.0,"snr":9.5,"rf_chain":0},{"gtw_id":"cellar","time":"","channel":1,"rssi":-113.5,"snr":-7.25,"rf_chain":0}]}"#;
    let record = NewRecord { metadata, ..NewRecord::new(&owner.app_id, &dev_id, &kind, received) };
    let original = history.append(&record).await.unwrap();
    history.append(&NewRecord { revision: 1, corrects: Some(original), ..record }).await.unwrap();
    history.seal().await.unwrap();
    history.close().await.unwrap();
}

/// The queries of docs/history.md, which are run in the data directory.
fn documented_queries() -> impl Iterator<Item = &'static str> {
    let queries = include_str!("../../../docs/history.md").split("duckdb -c \"").skip(1);
    queries.map(|query| query.split_once("\"\n").unwrap().0)
}

// Conformance: What was handled is kept with what came of it, and found by device, time
#[tokio::test(flavor = "multi_thread")]
async fn records_outlive_a_restart_and_go_with_their_device_and_application() {
    let network = Network::start().await;
    let owner = owner(&network).await;
    let settings = network.stack.settings().clone();
    network.stack.stop().await;
    let stack = Stack::start(settings, None, environment()).await.unwrap();
    let address = stack.handler_http_address().unwrap().to_string();
    let handler = HandlerClient::connect_to(&address, &Trust::Plaintext, owner.token.clone()).unwrap();
    let uplinks = async |dev_id: &str| {
        let (app_id, kind) = (owner.app_id.to_string(), "up".to_owned());
        let query = Query { app_id, kind, dev_id: dev_id.to_owned(), ..Query::default() };
        handler.list_records(query).await.map(|page| page.records.len())
    };
    assert_eq!(uplinks("").await.unwrap(), 4);
    handler.delete_device(&owner.app_id, &"warm".parse().unwrap()).await.unwrap();
    assert_eq!((uplinks("warm").await.unwrap(), uplinks("cold").await.unwrap()), (0, 1));
    handler.delete_application(&owner.app_id).await.unwrap();
    assert_eq!(uplinks("").await.unwrap_err().kind(), Kind::NotFound);
    handler.register_application(&owner.app_id).await.unwrap();
    assert_eq!(uplinks("").await.unwrap(), 0);
    stack.stop().await;
}

/// Deletes devices in a process that is killed when they are gone from the store, but not from history. By then,
/// another device has the id of the second one.
async fn delete_and_kill(server: &mut ServerProcess, dir: &Path, owner: &Owner) {
    // History deletes nothing while another process changes its files.
    let lock = File::options().write(true).create(true).truncate(false).open(dir.join("history/lock")).unwrap();
    lock.lock().unwrap();
    for dev_id in ["gone", "again"] {
        let (handler, app_id, dev_id): (_, _, DevId) = (&owner.handler, &owner.app_id, dev_id.parse().unwrap());
        let is_gone = async || {
            let found = handler.get_device(app_id, &dev_id).await;
            found.is_err_and(|error| error.kind() == Kind::NotFound)
        };
        let deletion = handler.delete_device(app_id, &dev_id);
        tokio::select! {
            deleted = deletion => panic!("nobody kept history from deleting: {deleted:?}"),
            () = soon(true, is_gone) => {}
        }
    }
    owner.add_device("again").await;
    owner.simulate("again", &[35], 1).await.unwrap();
    server.kill();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_deletion_of_a_device_leaves_nothing_and_spares_another_device_of_its_id() {
    server::system::install_crypto();
    let dir = tempfile::tempdir().unwrap();
    let mut server = ServerProcess::start(dir.path());
    let mut owner = server.owner(dir.path(), "killed-deletion").await;
    for dev_id in ["gone", "again", "other"] {
        owner.add_device(dev_id).await;
        owner.simulate(dev_id, &[21], 1).await.unwrap();
    }
    delete_and_kill(&mut server, dir.path(), &owner).await;
    let server = ServerProcess::start(dir.path());
    let handler = server.announcement(dir.path()).await;
    owner.handler = HandlerClient::connect(&handler, owner.token.clone()).unwrap();
    let uplinks = async || {
        let query = Query { app_id: owner.app_id.to_string(), kind: "up".to_owned(), ..Query::default() };
        let records = owner.handler.list_records(query).await.unwrap().records;
        records.into_iter().map(|record| (record.dev_id, record.payload)).collect::<Vec<_>>()
    };
    soon(vec![("again".to_owned(), vec![35]), ("other".to_owned(), vec![21])], uplinks).await;
    server.stop();
}

// Conformance: What was handled is kept with what came of it, and found by device, time
#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_kept_when_it_is_switched_off() {
    let network = Network::with(|settings| settings.history.bytes_max = 0).await;
    let owner = owner(&network).await;
    assert_eq!(get(&network, &owner, "").await, (200, json!({"records": []})));
    assert!(!history_dir(&network).exists(), "not even a directory");
    network.stack.stop().await;
}

fn history_dir(network: &Network) -> PathBuf {
    network.stack.settings().data_dir.join("history")
}
