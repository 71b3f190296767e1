//! A user's consent is to the client as the user was shown it.

use serde_json::{Value, json};

use crate::{
    oauth::authorize::{authorize, code, location, redeem, session},
    service::{Service, TestResponse, bearer, send},
};

const URI: &str = "https://example.com/callback";
const OTHER_URI: &str = "https://other.example/callback";
const SCOPE: &str = "profile apps";

/// A client of alice's that the operator approved and alice uses.
struct Maps {
    service: Service,
    /// The token of its owner.
    owner: String,
    secret: String,
    cookie: String,
}

/// Tokens that the client got by one consent.
struct Login {
    access_token: String,
    refresh_token: String,
}

impl Maps {
    async fn register(service: Service) -> Self {
        let owner = service.user("alice").await;
        service.application(&owner, "my-app").await;
        let new = json!({"name": "maps", "description": "Shows maps", "uri": URI, "scope": ["profile", "apps"]});
        let secret = service.post("/api/v2/clients", &owner, new).await.json()["secret"].as_str().unwrap().to_owned();
        let cookie = session(&service, "alice").await;
        let maps = Self { service, owner, secret, cookie };
        maps.approve().await;
        maps
    }

    /// The operator approves it.
    async fn approve(&self) {
        self.service.account.approve_client(&"maps".parse().unwrap()).await.unwrap();
    }

    async fn change(&self, update: Value) {
        assert_eq!(self.service.call("PATCH", "/api/v2/clients/maps", &self.owner, update).await.status, 204);
        self.approve().await;
    }

    /// Returns the URL that alice is sent to when the client asks for a code.
    async fn asks(&self, uri: &str) -> String {
        location(&authorize(&self.service, &self.cookie, &request(uri)).await).to_owned()
    }

    async fn code(&self, uri: &str) -> String {
        code(&self.service, &self.cookie, &request(uri)).await
    }

    async fn redeem(&self, uri: &str, code: &str) -> TestResponse {
        redeem(&self.service, ("maps", &self.secret), &[("code", code), ("redirect_uri", uri)]).await
    }

    async fn log_in(&self, uri: &str) -> Login {
        let response = self.redeem(uri, &self.code(uri).await).await;
        assert_eq!(response.status, 200, "{response:?}");
        let refresh_token = response.json()["refresh_token"].as_str().unwrap().to_owned();
        Login { access_token: bearer(&response.json()["access_token"]), refresh_token }
    }

    async fn refresh(&self, login: &Login) -> TestResponse {
        let form = [("grant_type", "refresh_token"), ("refresh_token", &login.refresh_token)];
        let request = self.service.request("POST", "/users/token", "").basic_auth("maps", Some(&self.secret));
        send(request.form(&form)).await
    }

    async fn restrict(&self, login: &Login) -> TestResponse {
        self.service.post("/users/restrict-token", &login.access_token, json!({"scope": ["apps:my-app"]})).await
    }

    async fn consent_page(&self, uri: &str) -> TestResponse {
        send(self.service.request("GET", &self.asks(uri).await, "").header("cookie", &self.cookie)).await
    }
}

fn request(uri: &str) -> Vec<(&str, &str)> {
    vec![("client_id", "maps"), ("redirect_uri", uri), ("response_type", "code"), ("scope", SCOPE)]
}

#[tokio::test]
async fn a_changed_client_needs_the_users_consent_again() {
    let changes = [(json!({"description": "Shows your bank account"}), URI), (json!({"uri": OTHER_URI}), OTHER_URI)];
    for (change, uri) in changes {
        for service in Service::start_on_each_store().await {
            let maps = Maps::register(service).await;
            let login = maps.log_in(URI).await;
            assert!(maps.asks(URI).await.starts_with(URI), "the consent is remembered");
            let earlier = maps.code(URI).await;

            maps.change(change.clone()).await;
            assert!(maps.asks(uri).await.starts_with("/users/consent"), "{change}");
            assert_eq!(maps.redeem(URI, &earlier).await.error(), (400, "invalid_grant".to_owned()), "{change}");
            assert_eq!(maps.refresh(&login).await.error(), (400, "invalid_grant".to_owned()), "{change}");
            assert_eq!(maps.restrict(&login).await.error().0, 403, "{change}");

            let again = maps.log_in(uri).await;
            assert!(maps.asks(uri).await.starts_with(uri), "{change}");
            assert_eq!(maps.restrict(&again).await.status, 200);
            assert_eq!(maps.refresh(&again).await.status, 200);
            assert_eq!(maps.refresh(&login).await.error(), (400, "invalid_grant".to_owned()), "{change}");
        }
    }
}

#[tokio::test]
async fn a_consent_lasts_when_nothing_that_was_shown_changes() {
    let maps = Maps::register(Service::start().await).await;
    let login = maps.log_in(URI).await;
    let whole = json!({"description": "Shows maps", "uri": URI, "grants": ["authorization_code", "refresh_token"]});
    maps.change(whole).await;
    maps.change(json!({"scope": ["profile", "apps", "gateways"]})).await;
    assert!(maps.asks(URI).await.starts_with(URI));
    assert_eq!(maps.refresh(&login).await.status, 200);
}

#[tokio::test]
async fn a_user_cannot_consent_to_what_the_page_did_not_show() {
    let maps = Maps::register(Service::start().await).await;
    let page = maps.consent_page(URI).await.text;
    let (_, rest) = page.split_once("name=\"revision\" value=\"").unwrap();
    let (revision, _) = rest.split_once('"').unwrap();
    let decide = async |decision: &str| {
        let form = [&request(URI)[..], &[("revision", revision), ("decision", decision)]].concat();
        let post = maps.service.request("POST", "/users/authorize", "").header("cookie", &maps.cookie);
        send(post.header("sec-fetch-site", "same-origin").form(&form)).await
    };
    assert!(location(&decide("deny").await).starts_with(URI));
    maps.change(json!({"description": "Shows your bank account"})).await;
    let (status, text) = decide("allow").await.error();
    assert!(status == 409 && text.contains("has changed since you were asked"), "{status} {text}");
    assert!(maps.asks(URI).await.starts_with("/users/consent"), "it had no effect");
    assert!(maps.consent_page(URI).await.text.contains("Shows your bank account"));
    assert!(location(&decide("deny").await).starts_with(URI), "denying always counts");
}
