//! The OpenAPI documents of handler and discovery describe exactly the routes that exist.

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

/// The methods and paths of a document, with valid values for the parameters.
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

/// The paths that a source file passes to its router, documented or not.
fn routes(source: &str) -> Vec<&str> {
    let calls = source.split("route(").skip(1).filter_map(|call| call.trim_start().strip_prefix('"'));
    calls.map(|call| call.split('"').next().unwrap()).collect()
}

// Conformance: Every HTTP path is described in OpenAPI, and behaves as described
#[tokio::test(flavor = "multi_thread")]
async fn documents_and_routes_agree() {
    let network = Network::start().await;
    let discovery = format!("http://{}", network.stack.discovery_http_address().unwrap());
    let handler_routes = routes(include_str!("../../../handler/src/api/rest.rs"));
    let discovery_routes = routes(include_str!("../../../discovery/src/rest.rs"));
    for (service, routes, count_min) in [(network.handler_http(), handler_routes, 15), (discovery, discovery_routes, 9)]
    {
        let response = reqwest::get(format!("{service}/openapi.json")).await.unwrap();
        assert_eq!(response.headers()["content-type"], "application/json");
        let description: Value = response.json().await.unwrap();
        assert!(routes.len() > 3, "{routes:?}");
        for route in routes.into_iter().filter(|route| *route != "/openapi.json") {
            assert!(description["paths"].get(route).is_some(), "{route}");
        }
        let mut found = Vec::new();
        references(&description, &mut found);
        assert!(found.len() > 50);
        for reference in found {
            let pointer = reference.strip_prefix('#').unwrap();
            assert!(description.pointer(pointer).is_some(), "{reference}");
        }
        let operations = operations(&description);
        assert!(operations.len() >= count_min, "{operations:?}");
        for (method, path) in operations {
            let request = reqwest::Client::new().request(method.parse().unwrap(), format!("{service}{path}"));
            let response = request.send().await.unwrap();
            assert_ne!(response.status(), 405, "{method} {path}");
            let text = response.text().await.unwrap();
            assert!(!text.contains("path not found"), "{method} {path}: {text}");
        }
    }
    network.stack.stop().await;
}
