//! The requests of EMQX.

use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::Service;

const PORT: &str = "function decodeUplink(i) { return { data: { port: i.fPort, value: i.bytes[0] } }; }
    function encodeDownlink(i) { return { bytes: [i.data.value, i.fPort] }; }";

#[tokio::test]
async fn answers_with_base64_alone() {
    let service = Service::with(&[("port", PORT)]).await;
    for (payload, kind, opts, expected) in [
        // 0x2a on the port of the schema.
        ("Kg==", "decode", json!("7"), "{\"port\":7,\"value\":42}"),
        ("Kg==", "decode", json!(7), "{\"port\":7,\"value\":42}"),
        ("Kg==", "decode", json!(""), "{\"port\":1,\"value\":42}"),
        ("Kg==", "decode", Value::Null, "{\"port\":1,\"value\":42}"),
        // {"hex":"2a","port":9}: a rule passed the port on.
        ("eyJoZXgiOiIyYSIsInBvcnQiOjl9", "decode", json!("json"), "{\"port\":9,\"value\":42}"),
        ("eyJoZXgiOiIyYSIsInBvcnQiOjl9", "decode", json!("7"), "{\"port\":7,\"value\":123}"),
        // {"value":42}
        ("eyJ2YWx1ZSI6NDJ9", "encode", json!("7"), "*\u{7}"),
    ] {
        let request = json!({"payload": payload, "type": kind, "schema_name": "airlock", "opts": opts});
        let response = service.send(Method::POST, "/codecs/port/emqx", request.to_string()).await;
        assert_eq!(response.status(), 200);
        let text = response.text().await.unwrap();
        assert_eq!(text, base64_of(expected), "{request}");
    }
}

#[tokio::test]
async fn a_failure_is_no_result() {
    let service = Service::with(&[("port", PORT), ("thrower", "function decodeUplink() { throw 'x'; }")]).await;
    for (path, request) in [
        ("/codecs/thrower/emqx", json!({"payload": "Kg==", "type": "decode"})),
        ("/codecs/port/emqx", json!({"payload": "Kg==", "type": "decode", "opts": "256"})),
        // {"hex":"01","fport":3} and {"fields":{"a":1}}
        ("/codecs/port/emqx", json!({"payload": "eyJoZXgiOiIwMSIsImZwb3J0IjozfQ==", "type": "decode", "opts": "json"})),
        ("/codecs/port/emqx", json!({"payload": "eyJmaWVsZHMiOnsiYSI6MX19", "type": "decode", "opts": "json"})),
        ("/codecs/port/emqx", json!({"payload": "*", "type": "decode"})),
        ("/codecs/port/emqx", json!({"payload": "Kg==", "type": "encode"})),
        ("/codecs/port/emqx", json!({"payload": "Kg==", "type": "compile"})),
    ] {
        let (status, body) = service.post(path, &request).await;
        assert_eq!(status, 400, "{request} {body}");
    }
}

fn base64_of(text: &str) -> String {
    use base64::Engine;
    base64::engine::general_purpose::STANDARD.encode(text)
}
