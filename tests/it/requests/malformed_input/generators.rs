//! Generates malformed input: known words in the wrong places, and arbitrary ones.

use proptest::{collection::vec, prelude::*, sample::select};
use serde_json::{Map, Value};

const WORDS: &[&str] = &[
    "",
    "malformed-app",
    "dev-1",
    "dev-2",
    "handler",
    "router",
    "broker",
    "by-app-id",
    "custom",
    "cayennelpp",
    "function Decoder(bytes) { return { n: bytes[0] }; }",
    "function Encoder(fields) { return [1]; }",
    "{\"led\": 1}",
    "0102030405060708",
    "00112233445566778899aabbccddeeff",
    "26000000",
    "26000000/20",
    "AQI=",
    "0",
    "-1",
    "256",
    "4294967296",
    "9223372036854775808",
    "NaN",
    "1e999",
    "account.key",
    "localhost:1904",
    "http://localhost",
    "local,abp",
    "..",
    "a/b",
    "{a}*",
    "\0",
    "\r\n",
    "\u{feff}",
    "☃",
];

const MEMBERS: &[&str] = &[
    "app_id",
    "appId",
    "dev_id",
    "devId",
    "lorawan_device",
    "lorawanDevice",
    "app_eui",
    "dev_eui",
    "dev_addr",
    "nwk_s_key",
    "app_s_key",
    "app_key",
    "f_cnt_up",
    "fCntDown",
    "disable_f_cnt_check",
    "activation_constraints",
    "last_seen",
    "latitude",
    "altitude",
    "attributes",
    "description",
    "payload_format",
    "decoder",
    "encoder",
    "register_on_join_access_key",
    "payload",
    "fields",
    "port",
    "app",
    "id",
    "service_name",
    "net_address",
    "certificate",
    "public",
    "metadata",
    "gateway_id",
    "dev_addr_prefix",
];

const BODIES: &[&str] = &[
    r#"{"app_id": "malformed-app"}"#,
    r#"{"payload_format": "custom", "decoder": "function Decoder(bytes) { return { n: bytes[0] }; }"}"#,
    r#"{"dev_id": "dev-1", "lorawan_device": {"app_id": "malformed-app", "dev_id": "dev-1"}, "description": "x"}"#,
    r#"{"payload": "AQI=", "port": 1}"#,
    r#"{"payload": "AQI=", "port": 1, "app": {"decoder": "function Decoder(bytes) { return { n: bytes[0] }; }"}}"#,
    r#"{"fields": "{}", "port": 1, "app": {"encoder": "function Encoder(fields) { return [1]; }"}}"#,
    r#"{"net_address": "localhost:1904", "metadata": [{"app_id": "malformed-app"}]}"#,
];

pub(super) fn word() -> impl Strategy<Value = String> {
    prop_oneof![
        6 => select(WORDS).prop_map(str::to_owned),
        1 => vec(any::<char>(), 0..12).prop_map(String::from_iter),
        1 => "[0-9a-fA-F]{0,34}",
    ]
}

/// A word, or bytes that are not text.
pub(super) fn bytes() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![6 => word().prop_map(String::into_bytes), 1 => vec(any::<u8>(), 0..40)]
}

/// Usually an object with known members, some valid except for one member.
pub(super) fn body() -> impl Strategy<Value = Vec<u8>> {
    let text = |value: Value| value.to_string().into_bytes();
    prop_oneof![
        4 => (select(BODIES), object(value())).prop_map(move |(body, more)| text(with_some_of(body, more))),
        4 => object(value()).prop_map(text),
        1 => value().prop_map(text),
        1 => (object(value()), any::<prop::sample::Index>()).prop_map(move |(value, end)| {
            let whole = text(value);
            whole[..end.index(whole.len())].to_vec()
        }),
        1 => vec(any::<u8>(), 0..200),
    ]
}

/// The body, possibly with one unexpected member.
fn with_some_of(body: &str, more: Value) -> Value {
    let mut body: Value = serde_json::from_str(body).unwrap();
    let Value::Object(more) = more else { panic!("members come in objects") };
    // Half of them stay unchanged.
    body.as_object_mut().unwrap().extend(more.into_iter().take(1).filter(|(name, _)| name.len() % 2 == 0));
    body
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        4 => word().prop_map(Value::from),
        1 => Just(Value::Null),
        1 => any::<bool>().prop_map(Value::from),
        1 => (-2..300_i64).prop_map(Value::from),
        1 => any::<i64>().prop_map(Value::from),
        1 => any::<f64>().prop_map(Value::from),
    ];
    leaf.prop_recursive(
        3,
        24,
        6,
        |inner| prop_oneof![3 => object(inner.clone()), 1 => vec(inner, 0..4).prop_map(Value::from)],
    )
}

fn object(value: impl Strategy<Value = Value>) -> impl Strategy<Value = Value> {
    let name = prop_oneof![8 => select(MEMBERS).prop_map(str::to_owned), 1 => word()];
    vec((name, value), 0..8).prop_map(|members| Value::Object(Map::from_iter(members)))
}
