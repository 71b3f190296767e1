//! Requests to the handler's REST API.

use serde_json::Value;
use types::Credential;

use super::Owner;

impl Owner {
    /// Sends a request about the application to the handler at `base`, without a body if that is null. Returns the
    /// status and the body of the response.
    pub(crate) async fn ask(&self, base: &str, method: &str, path: &str, body: Value) -> (u16, Value) {
        self.ask_with(&self.token, base, (method, path), body).await
    }

    /// The same with another credential.
    pub(crate) async fn ask_with(
        &self,
        credential: &Credential,
        base: &str,
        (method, path): (&str, &str),
        body: Value,
    ) -> (u16, Value) {
        let url = format!("{base}/applications/{}{path}", self.app_id);
        let mut request = reqwest::Client::new().request(method.parse().unwrap(), url);
        if !body.is_null() {
            request = request.json(&body);
        }
        let response = request.header("authorization", credential.to_header()).send().await.unwrap();
        (response.status().as_u16(), response.json().await.unwrap())
    }
}
