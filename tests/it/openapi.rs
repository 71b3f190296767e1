//! The descriptions of the HTTP interfaces: every path in them is there, everything that they refer to, and every route.

use serde_json::Value;

use crate::harness::Network;

/// Every `$ref` below a value.
fn references<'a>(value: &'a Value, found: &mut Vec<&'a str>) {
    match value {
        Value::Object(members) => {
            found.extend(members.get("$ref").and_then(Value::as_str));
            members.values().for_each(|member| references(member, found));
        }
        Value::Array(members) => members.iter().for_each(|member| references(member, found)),
        _ => {}
    }
}

/// The methods and paths of a description, with something valid in place of each parameter.
fn operations(description: &Value) -> Vec<(String, String)> {
    let mut operations = Vec::new();
    for (path, methods) in description["paths"].as_object().unwrap() {
        let path = path.replace("{service_name}", "handler").replace("{app_eui}", "0102030405060708");
        let path = path.replace(['{', '}'], "").replace('_', "-");
        let methods = methods.as_object().unwrap().keys().filter(|name| *name != "parameters");
        operations.extend(methods.map(|method| (method.to_uppercase(), path.clone())));
    }
    operations
}

#[test]
fn every_route_is_described() {
    for (routes, description) in [
        (include_str!("../../handler/src/rest.rs"), include_str!("../../handler/openapi.json")),
        (include_str!("../../discovery/src/rest.rs"), include_str!("../../discovery/openapi.json")),
    ] {
        let description: Value = serde_json::from_str(description).unwrap();
        let routes: Vec<_> = routes.split(".route(\"").skip(1).map(|text| text.split('"').next().unwrap()).collect();
        assert!(routes.len() > 3, "{routes:?}");
        for route in routes.into_iter().filter(|route| *route != "/openapi.json") {
            assert!(description["paths"].get(route).is_some(), "{route}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_described_is_there() {
    let network = Network::start().await;
    let discovery = format!("http://{}", network.stack.discovery_http_address().unwrap());
    for (service, count_min) in [(network.handler_http(), 15), (discovery, 9)] {
        let answer = reqwest::get(format!("{service}/openapi.json")).await.unwrap();
        assert_eq!(answer.headers()["content-type"], "application/json");
        let description: Value = answer.json().await.unwrap();
        let mut found = Vec::new();
        references(&description, &mut found);
        assert!(found.len() > 50);
        for reference in found {
            let place = reference.strip_prefix('#').unwrap();
            assert!(description.pointer(place).is_some(), "{reference}");
        }
        let operations = operations(&description);
        assert!(operations.len() >= count_min, "{operations:?}");
        for (method, path) in operations {
            let request = reqwest::Client::new().request(method.parse().unwrap(), format!("{service}{path}"));
            let answer = request.send().await.unwrap();
            assert_ne!(answer.status(), 405, "{method} {path}");
            let text = answer.text().await.unwrap();
            assert!(!text.contains("no such path"), "{method} {path}: {text}");
        }
    }
    network.stack.stop().await;
}
