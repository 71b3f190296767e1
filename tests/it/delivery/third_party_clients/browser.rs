//! A minimal browser that registers, keeps the session, and consents to a client.

use reqwest::{Client, Response, header, redirect::Policy};
use serde_json::json;

use crate::harness::PASSWORD;

pub(crate) struct Browser {
    http: Client,
    base: String,
    cookie: String,
}

impl Browser {
    /// Registers alice, which starts a session.
    pub(crate) async fn register(base: &str) -> Self {
        let http = Client::builder().redirect(Policy::none()).build().unwrap();
        let body = json!({"username": "alice", "email": "alice@example.com", "password": PASSWORD});
        let response = http.post(format!("{base}/api/v2/users")).json(&body).send().await.unwrap();
        assert_eq!(response.status(), 201);
        let cookie = response.headers()[header::SET_COOKIE].to_str().unwrap();
        let cookie = cookie.split(';').next().unwrap().to_owned();
        Self { http, base: base.to_owned(), cookie }
    }

    /// Opens an authorization URL, consents, and returns the redirect URL.
    pub(crate) async fn allow(&self, url: &str) -> String {
        let asked = self.http.get(url).header(header::COOKIE, &self.cookie).send().await.unwrap();
        let question = location(&asked);
        let (page, query) = question.split_once('?').unwrap();
        assert_eq!(page, "/users/consent", "the user was not asked");
        let post = self.http.post(format!("{}/users/authorize", self.base)).header(header::COOKIE, &self.cookie);
        let form = format!("{query}&decision=allow");
        let post = post.header(header::ORIGIN, &self.base).body(form);
        location(&post.header(header::CONTENT_TYPE, "application/x-www-form-urlencoded").send().await.unwrap())
    }
}

fn location(response: &Response) -> String {
    assert_eq!(response.status(), 303, "{response:?}");
    response.headers()[header::LOCATION].to_str().unwrap().to_owned()
}
