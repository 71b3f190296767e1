//! The authorization endpoint and its codes.

use std::collections::BTreeMap;

use airlock_account::{ClientSettings, Settings};
use reqwest::header::LOCATION;
use serde_json::json;
use types::{Scope, Secret};

use crate::service::{PASSWORD, Service, TestResponse, bearer, send};

pub(crate) const APP: &str = "https://app.example.com/callback";
/// The example of RFC 7636.
pub(crate) const VERIFIER: &str = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
pub(crate) const CHALLENGE: &str = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";

type Request<'a> = Vec<(&'a str, &'a str)>;

pub(crate) fn with_app() -> Settings {
    let client = ClientSettings {
        secret: Some(Secret::new("app-secret")),
        first_party: false,
        scope: vec![Scope::Profile, Scope::Apps],
        redirect_uris: vec![APP.to_owned()],
        legacy: false,
    };
    let mut settings = Settings::default();
    settings.clients.insert("app".parse().unwrap(), client);
    settings
}

pub(crate) async fn session(service: &Service, username: &str) -> String {
    let body = json!({"username": username, "password": PASSWORD});
    let response = service.post("/api/v2/users/login", "", body).await;
    response.headers["set-cookie"].to_str().unwrap().split(';').next().unwrap().to_owned()
}

pub(crate) async fn authorize(service: &Service, cookie: &str, request: &Request<'_>) -> TestResponse {
    let url = reqwest::Url::parse_with_params("http://site.invalid/users/authorize", request).unwrap();
    let path = format!("{}?{}", url.path(), url.query().unwrap_or_default());
    send(service.request("GET", &path, "").header("cookie", cookie)).await
}

async fn decide(service: &Service, cookie: &str, request: &Request<'_>, decision: &str) -> TestResponse {
    let mut form = request.clone();
    form.push(("decision", decision));
    let request = service.request("POST", "/users/authorize", "").header("cookie", cookie);
    send(request.header("sec-fetch-site", "same-origin").form(&form)).await
}

pub(crate) fn location(response: &TestResponse) -> &str {
    assert_eq!(response.status, 303, "{response:?}");
    assert_eq!(
        (&response.headers["cache-control"], &response.headers["referrer-policy"]),
        (&"no-store".parse().unwrap(), &"no-referrer".parse().unwrap())
    );
    response.headers[LOCATION].to_str().unwrap()
}

fn parameters(response: &TestResponse) -> (String, BTreeMap<String, String>) {
    let url = reqwest::Url::parse("http://site.invalid").unwrap().join(location(response)).unwrap();
    let place = location(response).split('?').next().unwrap().to_owned();
    (place, url.query_pairs().into_owned().collect())
}

/// The code for a client, with or without earlier consent.
pub(crate) async fn code(service: &Service, cookie: &str, request: &Request<'_>) -> String {
    let response = decide(service, cookie, request, "allow").await;
    parameters(&response).1.remove("code").unwrap_or_else(|| panic!("{response:?}"))
}

pub(crate) async fn redeem(service: &Service, client: (&str, &str), form: &[(&str, &str)]) -> TestResponse {
    let form = [&[("grant_type", "authorization_code")], form].concat();
    send(service.request("POST", "/users/token", "").basic_auth(client.0, Some(client.1)).form(&form)).await
}

pub(crate) fn of_app<'a>() -> Request<'a> {
    vec![("client_id", "app"), ("redirect_uri", APP), ("response_type", "code")]
}

pub(crate) fn changed<'a>(request: &Request<'a>, name: &str, value: Option<&'a str>) -> Request<'a> {
    let mut request: Request<'a> = request.iter().copied().filter(|(known, _)| *known != name).collect();
    let name: &'a str =
        ["client_id", "redirect_uri", "response_type", "scope", "state", "code_challenge", "code_challenge_method"]
            .into_iter()
            .find(|known| *known == name)
            .unwrap();
    request.extend(value.map(|value| (name, value)));
    request
}

#[tokio::test]
async fn configured_clients_obey_the_rules_of_all_clients() {
    type Change = fn(&mut ClientSettings);
    let cases: [(&str, Change); 7] = [
        ("no scope", |client| client.scope.clear()),
        ("a scope of one thing", |client| client.scope = vec![Scope::App("my-app".parse().unwrap())]),
        ("plain text", |client| client.redirect_uris = vec!["http://app.example.com/callback".to_owned()]),
        ("a script", |client| client.redirect_uris = vec!["javascript://app.example.com/%0aalert(1)".to_owned()]),
        ("a fragment", |client| client.redirect_uris = vec!["/oauth/callback/app#x".to_owned()]),
        ("another site", |client| client.redirect_uris = vec!["//evil.example/callback".to_owned()]),
        ("no address", |client| client.redirect_uris = vec!["callback".to_owned()]),
    ];
    for (what, change) in cases {
        let mut settings = with_app();
        change(settings.clients.get_mut(&"app".parse::<types::ClientId>().unwrap()).unwrap());
        let error = Service::try_open(settings).await.unwrap_err().to_string();
        assert!(error.contains("account.clients.<id>."), "{what}: {error}");
    }
}

// Conformance: GET /users/authorize: login, consent, redirect with a code
// Conformance: Consent is remembered
#[tokio::test]
async fn a_user_consents_once_and_is_redirected_at_once_later() {
    for service in Service::start_on_each_store_with(with_app()).await {
        service.user("alice").await;
        let request = changed(&of_app(), "state", Some("a&b#c\r\nd"));
        let stranger = authorize(&service, "", &request).await;
        assert!(location(&stranger).starts_with("/users/login?next=%2Fusers%2Fauthorize%3Fclient_id%3Dapp"));
        let cookie = session(&service, "alice").await;
        assert!(location(&authorize(&service, &cookie, &request).await).starts_with("/users/consent?client_id=app"));
        let (place, said) = parameters(&decide(&service, &cookie, &request, "allow").await);
        assert_eq!((place.as_str(), said["state"].as_str()), (APP, "a&b#c\r\nd"));
        assert_eq!(said["iss"], service.base);
        let (place, again) = parameters(&authorize(&service, &cookie, &request).await);
        assert_eq!(place, APP);
        assert_ne!(said["code"], again["code"]);
        let form = [("code", again["code"].as_str()), ("redirect_uri", APP)];
        let response = redeem(&service, ("app", "app-secret"), &form).await;
        assert_eq!(response.status, 200, "{response:?}");
        let members: Vec<_> = response.json().as_object().unwrap().keys().cloned().collect();
        assert_eq!(members, ["token_type", "access_token", "expires_in", "refresh_token"]);
        let token = bearer(&response.json()["access_token"]);
        assert_eq!(service.get("/api/v2/users/me", &token).await.json()["username"], "alice");
        assert_eq!(service.get("/api/v2/gateways", &token).await.status.as_u16() / 100, 4, "no scope, no gateways");
    }
}

#[tokio::test]
async fn never_redirects_to_an_untrusted_uri() {
    let service = Service::start_with(with_app()).await;
    service.user("alice").await;
    let cookie = session(&service, "alice").await;
    let long = "s".repeat(4097);
    let good = of_app();
    let cases = [
        ("an unknown client", changed(&good, "client_id", Some("nobody"))),
        ("no client", changed(&good, "client_id", None)),
        ("a client that is no id", changed(&good, "client_id", Some("<script>"))),
        ("no redirect URI", changed(&good, "redirect_uri", None)),
        ("another site", changed(&good, "redirect_uri", Some("https://evil.example/callback"))),
        ("a slash more", changed(&good, "redirect_uri", Some("https://app.example.com/callback/"))),
        ("another case", changed(&good, "redirect_uri", Some("https://app.example.com/Callback"))),
        ("a query", changed(&good, "redirect_uri", Some("https://app.example.com/callback?x=1"))),
        ("a fragment", changed(&good, "redirect_uri", Some("https://app.example.com/callback#x"))),
        ("a port", changed(&good, "redirect_uri", Some("https://app.example.com:8443/callback"))),
        ("plain text", changed(&good, "redirect_uri", Some("http://app.example.com/callback"))),
        ("a path of ours", changed(&good, "redirect_uri", Some("/oauth/callback/ttnctl"))),
        ("a long state", changed(&good, "state", Some(&long))),
        ("two redirect URIs, good and evil", [good.clone(), vec![("redirect_uri", "https://evil.example")]].concat()),
        ("two redirect URIs, evil and good", [vec![("redirect_uri", "https://evil.example")], good.clone()].concat()),
        ("a list of redirect URIs", [changed(&good, "redirect_uri", None), vec![("redirect_uri[]", APP)]].concat()),
    ];
    for (what, request) in cases {
        for response in
            [authorize(&service, &cookie, &request).await, decide(&service, &cookie, &request, "allow").await]
        {
            assert_eq!(response.status, 400, "{what}: {response:?}");
            assert!(!response.headers.contains_key(LOCATION), "{what}");
            assert!(!response.text.contains("evil") && !response.text.contains("script"), "{what}: {response:?}");
        }
    }
}

#[tokio::test]
async fn redirects_other_errors_to_the_client_with_its_state() {
    let service = Service::start_with(with_app()).await;
    service.user("alice").await;
    let cookie = session(&service, "alice").await;
    let good = changed(&of_app(), "state", Some("xyz"));
    let public = changed(
        &changed(&good, "client_id", Some("airlock")),
        "redirect_uri",
        Some("http://127.0.0.1:99/oauth/callback"),
    );
    let plain = [changed(&good, "code_challenge", Some(VERIFIER)), vec![("code_challenge_method", "plain")]].concat();
    let cases = [
        ("no response type", changed(&good, "response_type", None), "invalid_request"),
        ("a token", changed(&good, "response_type", Some("token")), "unsupported_response_type"),
        ("an id token", changed(&good, "response_type", Some("id_token")), "unsupported_response_type"),
        ("both", changed(&good, "response_type", Some("code token")), "unsupported_response_type"),
        ("no scope that there is", changed(&good, "scope", Some("everything")), "invalid_scope"),
        ("a scope that it may not have", changed(&good, "scope", Some("gateways")), "invalid_scope"),
        ("a plain challenge", plain, "invalid_request"),
        ("a challenge without a method", changed(&good, "code_challenge", Some(CHALLENGE)), "invalid_request"),
        ("a method without a challenge", changed(&good, "code_challenge_method", Some("S256")), "invalid_request"),
        ("a public client without a challenge", public, "invalid_request"),
    ];
    for (what, request, word) in cases {
        for cookie in ["", &cookie] {
            let (place, said) = parameters(&authorize(&service, cookie, &request).await);
            let back = request.iter().find(|(name, _)| *name == "redirect_uri").unwrap().1;
            assert_eq!((place.as_str(), said["error"].as_str()), (back, word), "{what}");
            assert_eq!(said["state"], "xyz", "{what}");
            assert!(!said.contains_key("code") && said.contains_key("iss"), "{what}");
        }
    }
}

#[tokio::test]
async fn refusing_redirects_and_new_scopes_ask_again() {
    let service = Service::start_with(with_app()).await;
    service.user("alice").await;
    let cookie = session(&service, "alice").await;
    let narrow = changed(&of_app(), "scope", Some("profile"));
    let (place, said) = parameters(&decide(&service, &cookie, &narrow, "deny").await);
    assert_eq!((place.as_str(), said["error"].as_str()), (APP, "access_denied"));
    code(&service, &cookie, &narrow).await;
    assert!(location(&authorize(&service, &cookie, &narrow).await).starts_with(APP));
    let wide = changed(&of_app(), "scope", Some("profile apps"));
    assert!(location(&authorize(&service, &cookie, &wide).await).starts_with("/users/consent?"));
    code(&service, &cookie, &wide).await;
    assert!(location(&authorize(&service, &cookie, &wide).await).starts_with(APP));
    let foreign = service.request("POST", "/users/authorize", "").header("cookie", &cookie).form(&narrow);
    assert_eq!(send(foreign).await.status, 403, "a foreign page says nothing for the user");
    assert_eq!(decide(&service, "", &narrow, "allow").await.status, 401);
}

// Conformance: The code is exchanged with Basic credentials and `redirect_uri`
#[tokio::test]
async fn v2_clients_log_in_unchanged() {
    let service = Service::start().await;
    service.user("alice").await;
    let cookie = session(&service, "alice").await;
    for request in [
        vec![("client_id", "ttnctl"), ("redirect_uri", "/oauth/callback/ttnctl"), ("response_type", "code")],
        vec![("client_id", "ttnctl"), ("response_type", "code")],
    ] {
        let response = authorize(&service, &cookie, &request).await;
        let (place, said) = parameters(&response);
        assert_eq!(place, "/oauth/callback/ttnctl");
        let start = format!("/oauth/callback/ttnctl?code={}&", said["code"]);
        assert!(location(&response).starts_with(&start), "scripts cut the code out as it stands: {response:?}");
        assert!((30..60).contains(&said["code"].len()), "short enough to be typed into a command");
        let response = redeem(&service, ("ttnctl", "ttnctl"), &[("code", &said["code"])]).await;
        assert_eq!(response.status, 200, "{response:?}");
    }
    let code = code(&service, &cookie, &vec![("client_id", "ttnctl"), ("response_type", "code")]).await;
    let body = json!({"client_id": "ttnctl", "grant_type": "authorization_code", "code": code});
    let java = service.request("POST", "/users/token", "").basic_auth("ttnctl", Some("ttnctl")).json(&body);
    assert_eq!(send(java).await.status, 200);
}

#[tokio::test]
async fn metadata_names_the_endpoints_whatever_the_headers_say() {
    let service = Service::start().await;
    let path = "/.well-known/oauth-authorization-server";
    let request = service.request("GET", path, "").header("x-forwarded-host", "evil.example");
    let request = request.header("forwarded", "host=evil.example").header("x-forwarded-proto", "ftp");
    let metadata = send(request).await.json();
    assert_eq!(metadata["issuer"], service.base);
    for endpoint in ["authorization_endpoint", "token_endpoint", "revocation_endpoint", "jwks_uri"] {
        let url = metadata[endpoint].as_str().unwrap();
        let path = url.strip_prefix(&service.base).unwrap();
        assert_ne!(service.get(path, "").await.status, 404, "{endpoint}");
    }
    assert_eq!(metadata["code_challenge_methods_supported"], json!(["S256"]));
    assert_eq!(metadata["response_types_supported"], json!(["code"]));
}
