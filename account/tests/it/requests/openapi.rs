//! The OpenAPI document matches the routes that are served.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::service::{Service, send};

const METHODS: [&str; 5] = ["GET", "POST", "PUT", "PATCH", "DELETE"];
/// Prefixes of paths that are not part of the API: pages for people, and the path of everything that is nowhere else.
const PAGES: [&str; 9] = [
    "/assets/",
    "/logout",
    "/my/",
    "/oauth/callback/",
    "/register",
    "/users/consent",
    "/users/login/",
    "/users/profile",
    "/{*path}",
];

async fn document(service: &Service) -> Value {
    service.get("/api/v2/openapi.json", "").await.json()
}

fn paths(document: &Value) -> impl Iterator<Item = (&String, &Value)> {
    document["paths"].as_object().unwrap().iter()
}

/// The paths that the router knows. It shows them only in its debug text: `RouteId(1): "/key"`.
fn served(service: &Service) -> BTreeSet<String> {
    let text = format!("{:?}", service.account.router());
    let (routes, _) = text.split_once("fallback_router").unwrap();
    let quoted = routes.split("RouteId(").filter_map(|part| part.split_once("): \"")?.1.split_once('"'));
    quoted.map(|(path, _)| path.to_owned()).filter(|path| path.starts_with('/')).collect()
}

fn filled(path: &str) -> String {
    let parts = path.split('/').map(|part| match part {
        "{services}" => "handlers",
        "{eui}" => "70B3D57ED0000001",
        part if part.starts_with('{') => "something",
        part => part,
    });
    parts.collect::<Vec<_>>().join("/")
}

#[tokio::test]
async fn every_route_is_described() {
    let service = Service::start().await;
    let document = document(&service).await;
    let described: BTreeSet<_> = paths(&document).map(|(path, _)| path.clone()).collect();
    let served = served(&service);
    assert!(served.len() > described.len(), "the router shows no paths any more: {served:?}");
    let alias = |path: &str| described.contains(&format!("/api/v2{path}"));
    let page = |path: &str| path == "/" || PAGES.iter().any(|page| path.starts_with(page));
    let missing: Vec<_> =
        served.iter().filter(|path| !described.contains(*path) && !alias(path) && !page(path)).collect();
    assert!(missing.is_empty(), "served, but neither described nor the alias of a path that is: {missing:?}");
    let surplus: Vec<_> = described.iter().filter(|path| !served.contains(*path)).collect();
    assert!(surplus.is_empty(), "described, but not served: {surplus:?}");
}

#[tokio::test]
async fn every_path_has_exactly_the_described_methods() {
    let service = Service::start().await;
    let document = document(&service).await;
    for (path, calls) in paths(&document) {
        for method in METHODS {
            let described = calls.get(method.to_lowercase()).is_some();
            let response = send(service.request(method, &filled(path), "").json(&json!({}))).await;
            assert_eq!(response.status != 405, described, "{method} {path}: {response:?}");
        }
    }
}

#[tokio::test]
async fn the_description_is_complete() {
    let service = Service::start().await;
    let document = document(&service).await;
    let mut ids = BTreeSet::new();
    for (path, calls) in paths(&document) {
        for (method, call) in calls.as_object().unwrap() {
            assert!(ids.insert(call["operationId"].as_str().unwrap()), "{method} {path} has the name of another call");
            let named = parameters(call);
            let in_path: BTreeSet<_> = path.split(['{', '}']).skip(1).step_by(2).map(str::to_owned).collect();
            assert_eq!(named, in_path, "{method} {path}");
            let tag = &call["tags"][0];
            assert!(document["tags"].as_array().unwrap().iter().any(|known| known["name"] == *tag), "{method} {path}");
        }
    }
    let text = document.to_string();
    for reference in text.split("\"$ref\":\"#").skip(1).map(|rest| rest.split_once('"').unwrap().0) {
        assert!(document.pointer(reference).is_some(), "nothing is at {reference}");
    }
    for sort in ["schemas", "responses"] {
        for name in document["components"][sort].as_object().unwrap().keys() {
            assert!(text.contains(&format!("#/components/{sort}/{name}\"")), "nothing refers to {sort}/{name}");
        }
    }
}

fn parameters(call: &Value) -> BTreeSet<String> {
    let all = call["parameters"].as_array().into_iter().flatten();
    all.filter(|one| one["in"] == "path").map(|one| one["name"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn the_page_lists_every_operation_without_scripts() {
    let service = Service::start().await;
    let (document, page) = (document(&service).await, service.get("/api/v2/docs", "").await);
    assert!(page.headers["content-type"].to_str().unwrap().starts_with("text/html"));
    assert!(page.headers["content-security-policy"].to_str().unwrap().starts_with("default-src 'none'"));
    assert!(!page.text.contains("<script") && !page.text.contains("http://") && !page.text.contains("https://"));
    for (_, calls) in paths(&document) {
        for call in calls.as_object().unwrap().values() {
            let id = call["operationId"].as_str().unwrap();
            assert_eq!(page.text.matches(&format!("<article id=\"{id}\">")).count(), 1, "{id}");
        }
    }
    for name in page.text.split("href=\"#").skip(1).map(|rest| rest.split_once('"').unwrap().0) {
        assert!(page.text.contains(&format!(" id=\"{name}\"")), "a link leads to {name}, which is not there");
    }
}
