//! Metadata of any form is in files as it was written.

use proptest::{collection::vec, prelude::*, sample::select};
use types::{GatewayMetadata, Metadata, Timestamp};

use crate::{
    Kind, NewRecord, Record, RecordId,
    record::View,
    sealed::{
        file::column_bytes,
        rows::read_all,
        schema::{GATEWAYS_MAX, GROUP_ROWS},
        write::{sort, write_file},
    },
};

const TIMES: [&str; 5] = [
    "2026-11-30T07:29:00Z",
    "2026-11-30T07:29:00.12Z",
    "2026-11-30T07:29:00.120000001Z",
    "1969-12-31T23:59:59.999Z",
    // The first that a timestamp can be.
    "1677-09-21T00:12:43.145224192Z",
];

fn record(number: u64, metadata: &str, received: Timestamp) -> Record {
    let (app_id, dev_id) = ("my-app".parse().unwrap(), format!("device-{}", number % 3).parse().unwrap());
    let new = NewRecord { metadata, ..NewRecord::new(&app_id, &dev_id, &Kind::Uplink, received) };
    View::of_new(RecordId::new(number, 1, 1), &new).to_record().unwrap()
}

/// Writes records, reads them again, and returns the bytes of each that its gateways and other metadata take.
fn check(records: &[Record]) -> f64 {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("some-file");
    let rows = sort(&records.iter().collect::<Vec<_>>());
    write_file(&path, &rows).unwrap();
    let (read, _) = read_all(&path).unwrap();
    assert_eq!(read.len(), rows.len());
    for (read, written) in read.iter().zip(rows) {
        assert_eq!(read, written);
    }
    let columns = column_bytes(&path).unwrap();
    let bytes = columns.iter().filter(|(name, _)| name == "metadata" || name.starts_with("gateways."));
    bytes.map(|(_, bytes)| *bytes as f64).sum::<f64>() / records.len() as f64
}

fn number() -> BoxedStrategy<String> {
    let odd = ["7", "-7", "0", "-0", "0.0", "-0.0", "7.50", "07.5", "1e3", "1.5E-7", "0.001", "10000.5", "9999.99"];
    prop_oneof![
        4 => (-1_000_000..1_000_000_i32).prop_map(|number| format!("{:?}", number as f32 / 100.0)),
        4 => any::<u32>().prop_map(|number| number.to_string()),
        1 => any::<f32>().prop_map(|number| format!("{number:?}")),
        1 => any::<f64>().prop_map(|number| format!("{number:?}")),
        4 => select(odd.to_vec()).prop_map(str::to_owned),
    ]
    .boxed()
}

fn text() -> BoxedStrategy<String> {
    let odd = [r#""""#, r#""eui-0102""#, r#""a\"b\\""#, r#""\u0061""#, r#""é""#, r#""null""#, r#""},{""#];
    let other_times = [r#""2026-11-30T07:29:00.120Z""#, r#""2026-11-30t07:29:00z""#, r#""2026-11-30T08:29:00+01:00""#];
    prop_oneof![
        4 => select(TIMES.to_vec()).prop_map(|time| format!("\"{time}\"")),
        1 => select(other_times.to_vec()).prop_map(str::to_owned),
        3 => select(odd.to_vec()).prop_map(str::to_owned),
    ]
    .boxed()
}

/// Values of all kinds, mostly those that have columns.
fn value() -> BoxedStrategy<String> {
    let other = ["null", "true", "[]", "{}", "[null]", r#"{"time":null,"gateways":[{"rssi":7.0}]}"#, " 1", "", "]"];
    prop_oneof![20 => number(), 20 => text(), 1 => select(other.to_vec()).prop_map(str::to_owned)].boxed()
}

fn object(names: &'static [&'static str], value: BoxedStrategy<String>) -> BoxedStrategy<String> {
    let members = vec((select(names), value).prop_map(|(name, value)| format!("\"{name}\":{value}")), 0..8);
    members.prop_map(|members| format!("{{{}}}", members.join(","))).boxed()
}

fn metadata() -> BoxedStrategy<String> {
    let names = &["gtw_id", "timestamp", "time", "channel", "rssi", "snr", "rf_chain", "latitude", r#"\"rssi"#];
    let gateways = vec(object(names, value()), 0..4).prop_map(|gateways| format!("[{}]", gateways.join(","))).boxed();
    let names = &["time", "frequency", "gateways", "data_rate", r#"\"time"#, ""];
    let odd =
        ["", "{}", "[]", "null", "{", r#"{"time":null}"#, r#"{"gateways":null}"#, r#"{"gateways":[{}]}"#, "no JSON"];
    prop_oneof![
        4 => object(names, prop_oneof![2 => gateways.clone(), 1 => value()].boxed()),
        4 => (value(), gateways).prop_map(|(time, gateways)| format!(r#"{{"time":{time},"gateways":{gateways}}}"#)),
        1 => select(odd.to_vec()).prop_map(str::to_owned),
    ]
    .boxed()
}

proptest! {
    #[test]
    fn metadata_is_read_as_it_was_written(rows in vec((metadata(), select(TIMES.to_vec())), 1..40)) {
        let records = (1..).zip(&rows).map(|(number, (metadata, received))| {
            record(number, metadata, received.parse().unwrap())
        });
        check(&records.collect::<Vec<_>>());
    }
}

/// The metadata of an uplink that so many gateways have received, as the handler has it.
fn usual(number: u64, gateways: u64) -> String {
    let received = Timestamp::from_millis(1_790_000_000_000 + 60 * number as i64);
    let gateway = |place: u64| GatewayMetadata {
        gtw_id: format!("eui-{:016x}", (number + place) % 16),
        timestamp: (number.wrapping_mul(2_654_435_761) >> place) as u32,
        time: received.to_rfc3339(),
        channel: (number % 8) as u32,
        rssi: -60.0 - (number % 59) as f32,
        snr: (number % 41) as f32 / 4.0,
        ..GatewayMetadata::default()
    };
    let metadata = Metadata {
        time: received.to_rfc3339(),
        frequency: 868.1 + (number % 8) as f32 / 5.0,
        modulation: "LORA".to_owned(),
        data_rate: format!("SF{}BW125", 7 + number % 6),
        coding_rate: "4/5".to_owned(),
        gateways: (0..gateways).map(gateway).collect(),
        ..Metadata::default()
    };
    serde_json::to_string(&metadata).unwrap()
}

fn usual_records(count: u64, gateways: impl Fn(u64) -> u64) -> Vec<Record> {
    let received = |number| Timestamp::from_millis(1_790_000_000_000 + 60 * number as i64);
    (0..count).map(|number| record(number, &usual(number, gateways(number)), received(number))).collect()
}

#[test]
fn metadata_with_more_gateways_than_a_row_group_may_have_stays_whole() {
    let metadata = |count: usize| format!(r#"{{"gateways":[{}]}}"#, vec!["{}"; count].join(","));
    let records = [GATEWAYS_MAX, GROUP_ROWS + 1].map(|count| record(3, &metadata(count), Timestamp::default()));
    check(&records);
}

#[test]
fn the_first_time_of_all_is_read_as_it_was_written() {
    let received = Timestamp::from_nanos(i64::MIN);
    check(&[record(1, &format!(r#"{{"time":"{received}","gateways":[{{"time":"{received}"}}]}}"#), received)]);
}

#[test]
fn the_metadata_of_a_gateway_takes_few_bytes() {
    let bytes = check(&usual_records(5000, |_| 1));
    // Of which the timestamp takes four.
    assert!(bytes < 10.0, "{bytes}");
}

#[test]
fn rows_of_many_pages_have_their_own_gateways() {
    check(&usual_records(9000, |number| [0, 3, 1, 0, 7][number as usize % 5]));
}

#[test]
fn metadata_that_is_never_the_same_is_kept_beyond_the_dictionary() {
    let received = Timestamp::from_millis(1_790_000_000_000);
    let metadata =
        |number: u64| format!(r#"{{"gateways":[{{"gtw_id":"a","other":"{number:0200}"}}],"number":{number}}}"#);
    let records: Vec<_> = (0..4000).map(|number| record(number, &metadata(number), received)).collect();
    check(&records);
}
