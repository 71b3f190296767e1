//! Messages in, fields and payloads out.

use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::{BYTE, Service};

#[tokio::test]
async fn decodes_and_encodes() {
    let service = Service::with(&[("byte", BYTE)]).await;
    for message in [json!({"hex": "2a"}), json!({"payload": "Kg=="})] {
        let (status, body) = service.post("/codecs/byte", &message).await;
        assert_eq!((status, &body["fields"], &body["valid"]), (200, &json!({"value": 42}), &json!(true)), "{body}");
        assert!(body["fuel"].as_u64().unwrap() > 0 && body["microseconds"].is_u64(), "{body}");
    }
    let (status, body) = service.post("/codecs/byte", &json!({"fields": {"value": 42}})).await;
    assert_eq!((status, &body["payload"], &body["port"]), (200, &json!("Kg=="), &json!(3)), "{body}");
}

#[tokio::test]
async fn the_codec_gets_all_that_the_message_says() {
    let ts013 = "function decodeUplink(i) {
        console.warn(i.fPort);
        return { data: { port: i.fPort, time: i.recvTime, unit: i.variables.unit }, warnings: ['low'] };
    }";
    let chirpstack3 = "function Decode(fPort, bytes, variables) { return { fPort, unit: variables.unit }; }";
    let v2 = "function Decoder(bytes, port) { return { port, time: Date.now() }; }";
    let service = Service::with(&[("ts013", ts013), ("chirpstack3", chirpstack3), ("v2", v2)]).await;
    let message =
        json!({"hex": "", "port": 7, "time": "2026-11-22T10:00:00.5Z", "variables": {"unit": "K"}, "dialect": null});
    let (_, body) = service.post("/codecs/ts013", &message).await;
    assert_eq!(body["fields"], json!({"port": 7, "time": "2026-11-22T10:00:00.500Z", "unit": "K"}), "{body}");
    assert_eq!(body["warnings"], json!(["low"]));
    assert_eq!(body["logs"], json!([{"function": "decoder", "fields": ["7"]}]));
    assert_eq!(service.post("/codecs/chirpstack3", &message).await.1["fields"], json!({"fPort": 7, "unit": "K"}));
    let fields = service.post("/codecs/v2", &message).await.1["fields"].clone();
    assert_eq!(fields, json!({"port": 7, "time": 1_795_341_600_500_i64}));
}

#[tokio::test]
async fn a_message_can_name_the_dialect() {
    let both = "function Decoder(b) { return { dialect: 'v2' }; }
        function decodeUplink(i) { return { data: { dialect: 'ts013' } }; }";
    let service = Service::with(&[("both", both)]).await;
    for (dialect, expected) in [(Value::Null, "ts013"), (json!("ts013"), "ts013"), (json!("v2"), "v2")] {
        let (_, body) = service.post("/codecs/both", &json!({"hex": "", "dialect": dialect})).await;
        assert_eq!(body["fields"]["dialect"], expected, "{body}");
    }
    let (status, body) = service.post("/codecs/both", &json!({"hex": "", "dialect": "chirpstack3"})).await;
    assert_eq!((status, &body["kind"]), (400, &json!("syntax")), "{body}");
}

#[tokio::test]
async fn a_failure_says_where_and_why() {
    let thrower = "function decodeUplink(i) {\n  console.log('here');\n  throw new Error('no such sensor');\n}";
    let service = Service::with(&[("thrower", thrower), ("broken", "function decodeUplink(i) { retrn 1; }")]).await;
    let (status, body) = service.post("/codecs/thrower", &json!({"hex": "01"})).await;
    assert_eq!(status, 400, "{body}");
    assert_eq!((&body["function"], &body["kind"], &body["line"]), (&json!("decoder"), &json!("thrown"), &json!(3)));
    assert!(body["error"].as_str().unwrap().contains("no such sensor"), "{body}");
    assert_eq!(body["logs"], json!([{"function": "decoder", "fields": ["\"here\""]}]));
    let (status, body) = service.post("/codecs/broken", &json!({"hex": "01"})).await;
    assert_eq!((status, &body["kind"], &body["line"]), (400, &json!("syntax"), &json!(1)), "{body}");
}

#[tokio::test]
async fn bad_requests_are_refused_with_a_reason() {
    let service = Service::with(&[("byte", BYTE)]).await;
    for (path, body, status, reason) in [
        ("/codecs/none", "{}", 404, "codec none not found"),
        ("/codecs/..%2Fbyte", "{}", 400, "name of a codec not valid"),
        ("/codecs/byte", "", 400, "body not valid"),
        ("/codecs/byte", "{", 400, "body not valid"),
        ("/codecs/byte", "[{]", 400, "body not valid"),
        ("/codecs/byte", "{}", 400, "one of `payload`, `hex` and `fields`"),
        ("/codecs/byte", r#"{"hex": "01", "fPort": 1}"#, 400, "unknown field `fPort`"),
        ("/codecs/byte", r#"{"hex": "01", "time": "yesterday"}"#, 400, "body not valid"),
        ("/nothing", "{}", 404, "path not found"),
    ] {
        let response = service.send(Method::POST, path, body).await;
        let (told, body) = (response.status(), response.json::<Value>().await.unwrap());
        assert_eq!(told, status, "{path} {body}");
        assert!(body["error"].as_str().unwrap().contains(reason), "{path}: {body}");
    }
}

#[tokio::test]
async fn each_of_several_messages_has_its_own_result() {
    let text = "function decodeUplink(i) { if (i.bytes[0] == 2) throw 'two'; return { data: { n: i.bytes[0] } }; }";
    let service = Service::with(&[("some", text)]).await;
    let mut messages: Vec<Value> = (0..100).map(|n| json!({"hex": format!("{n:02x}")})).collect();
    messages[7] = json!({"hex": "zz"});
    messages[8] = json!("not a message");
    let (status, body) = service.post("/codecs/some", &messages.into()).await;
    assert_eq!(status, 200, "{body}");
    let results = body.as_array().unwrap();
    assert_eq!(results.len(), 100);
    for (number, result) in results.iter().enumerate() {
        match number {
            2 => assert_eq!(result["kind"], "thrown", "{result}"),
            7 => assert!(result["error"].as_str().unwrap().contains("hex not valid"), "{result}"),
            8 => assert!(result["error"].as_str().unwrap().contains("message not valid"), "{result}"),
            _ => assert_eq!(result["fields"], json!({"n": number}), "{result}"),
        }
    }
}

#[tokio::test]
async fn the_number_of_messages_is_bounded() {
    let settings = codecs::Settings { batch_max: 2, ..codecs::Settings::default() };
    let service = Service::start(&[("byte", BYTE)], settings).await;
    let (status, body) = service.post("/codecs/byte", &json!([{"hex": "01"}, {"hex": "02"}])).await;
    assert_eq!(status, 200, "{body}");
    let (status, body) = service.post("/codecs/byte", &json!([{"hex": "01"}, {"hex": "02"}, {"hex": "03"}])).await;
    assert_eq!(status, 400);
    assert!(body["error"].as_str().unwrap().contains("3 messages; at most 2"), "{body}");
}

#[tokio::test]
async fn a_response_is_bounded() {
    let large = "function decodeUplink(i) { return { data: { text: 'x'.repeat(10_000) } }; }";
    let service = Service::with(&[("large", large)]).await;
    let messages: Vec<Value> = (0..300).map(|_| json!({"hex": "01"})).collect();
    let (status, body) = service.post("/codecs/large", &messages.into()).await;
    let results = body.as_array().unwrap();
    assert_eq!((status, results.len()), (200, 300));
    assert!(results[0]["fields"].is_object() && results[90]["fields"].is_object());
    assert!(results[299]["error"].as_str().unwrap().contains("the response is full"), "{}", results[299]);
}

#[tokio::test]
async fn a_codec_that_never_ends_delays_only_itself() {
    let service = Service::with(&[("endless", "function decodeUplink(i) { while (true); }"), ("byte", BYTE)]).await;
    let endless: Vec<Value> = (0..20).map(|_| json!({"hex": "01"})).collect();
    let endless = Value::from(endless);
    let looping = async { service.post("/codecs/endless", &endless).await.1 };
    let honest = async {
        for _ in 0..20 {
            assert_eq!(service.value("byte").await, json!({"value": 42}));
        }
    };
    let (looped, ()) = tokio::join!(looping, honest);
    for result in looped.as_array().unwrap() {
        assert_eq!(result["kind"], "fuel", "{result}");
    }
}
