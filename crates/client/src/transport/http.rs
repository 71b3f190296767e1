//! Calls with JSON bodies over HTTP: time limits, retries, and errors with the server's text.

use std::{error::Error as _, fmt, sync::Arc, time::Duration};

use api::discovery::Announcement;
use bytes::Bytes;
use reqwest::{
    Method, RequestBuilder, Response, StatusCode, Url,
    header::{ACCEPT, HeaderMap, HeaderValue, LINK, RETRY_AFTER, WWW_AUTHENTICATE},
    redirect,
};
use serde::de::DeserializeOwned;
use types::{Kind, Secret};

use crate::{
    Error, Result, Trust,
    error::unknown_call,
    transport::retry::{ATTEMPT_TIMEOUT, Call, retry},
};

/// The header with the token of the component that calls, by which the account service gives it turns of its own.
pub const COMPONENT_HEADER: &str = "airlock-component";

/// Maximum time to wait for a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
const RESPONSE_BYTES_MAX: usize = 4 << 20;
const HANDLER: &str = "handler";
/// The error text of our services for a path that they do not have.
const PATH_NOT_FOUND: &str = "path not found";

/// A service with a JSON API.
#[derive(Clone, Debug)]
pub(crate) struct Http {
    client: reqwest::Client,
    base: Url,
    service: &'static str,
    pub(crate) identity: Option<Identity>,
}

/// The component that makes calls, whatever credentials they carry: its current token, if it has one.
#[derive(Clone)]
pub(crate) struct Identity(pub(crate) Arc<dyn Fn() -> Option<Secret> + Send + Sync>);

impl Identity {
    fn to_header(&self) -> Option<HeaderValue> {
        let mut header = HeaderValue::try_from((self.0)()?.expose()).ok()?;
        header.set_sensitive(true);
        Some(header)
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Identity")
    }
}

impl Http {
    /// Prepares calls; the first one connects.
    pub(crate) fn new(service: &'static str, base: Url, trust: &Trust) -> Result<Self> {
        let client = reqwest::Client::builder()
            .user_agent(concat!("airlock/", env!("CARGO_PKG_VERSION")))
            .default_headers(HeaderMap::from_iter([(ACCEPT, HeaderValue::from_static("application/json"))]))
            .connect_timeout(CONNECT_TIMEOUT)
            .timeout(ATTEMPT_TIMEOUT)
            .tcp_nodelay(true)
            // A redirect must not take the credential elsewhere.
            .redirect(redirect::Policy::none())
            // reqwest's own TLS settings would panic in a program without a default crypto provider.
            .tls_backend_preconfigured(trust.tls()?)
            .build()
            .map_err(|error| Error::Unreachable { service, address: base.to_string(), source: error.into() })?;
        Ok(Self { client, base, service, identity: None })
    }

    /// Prepares calls of an announced handler, trusting the announced certificate.
    pub(crate) fn of_handler(announcement: &Announcement) -> Result<Self> {
        let trust = Trust::announced(&announcement.certificate);
        let scheme = if trust == Trust::Plaintext { "http" } else { "https" };
        let address = format!("{scheme}://{}", announcement.net_address);
        let base = Url::parse(&address).map_err(|error| Error::Unreachable {
            service: HANDLER,
            address: address.clone(),
            source: error.into(),
        })?;
        Self::new(HANDLER, base, &trust)
    }

    /// The same client for another address of the service.
    pub(crate) fn at(&self, base: Url) -> Self {
        Self { base, ..self.clone() }
    }

    /// A request to the path of these segments, which are escaped.
    pub(crate) fn request(&self, method: Method, path: &[&str]) -> RequestBuilder {
        self.request_to(method, self.url(path))
    }

    /// A request to an address from [`Self::url`].
    pub(crate) fn request_to(&self, method: Method, url: Url) -> RequestBuilder {
        let request = self.client.request(method, url);
        match self.identity.as_ref().and_then(Identity::to_header) {
            Some(token) => request.header(COMPONENT_HEADER, token),
            None => request,
        }
    }

    /// The address of the path of these segments, which are escaped.
    pub(crate) fn url(&self, path: &[&str]) -> Url {
        let mut url = self.base.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().extend(path);
        }
        url
    }

    /// Makes a call and ignores the body of the response.
    pub(crate) async fn done(&self, request: RequestBuilder) -> Result<()> {
        self.send(request).await.map(drop)
    }

    /// Makes a call and parses the response as JSON.
    pub(crate) async fn json<T: DeserializeOwned>(&self, request: RequestBuilder) -> Result<T> {
        let (_, body) = self.send(request).await?;
        serde_json::from_slice(&body).map_err(|error| self.unreadable(error))
    }

    /// Makes a call for a page of a list; returns its entries, and the id after which the next page starts.
    pub(crate) async fn page<T: DeserializeOwned>(&self, request: RequestBuilder) -> Result<(Vec<T>, Option<String>)> {
        let (headers, body) = self.send(request).await?;
        let entries = serde_json::from_slice(&body).map_err(|error| self.unreadable(error))?;
        Ok((entries, self.next_in(&headers)))
    }

    /// Makes a call and parses the response as JSON values, one after the other.
    pub(crate) async fn json_stream<T: DeserializeOwned>(&self, request: RequestBuilder) -> Result<Vec<T>> {
        let (_, body) = self.send(request).await?;
        let values = serde_json::Deserializer::from_slice(&body).into_iter();
        values.collect::<std::result::Result<_, _>>().map_err(|error| self.unreadable(error))
    }

    /// Makes a call, and returns the response while its body still comes.
    pub(crate) async fn open(&self, request: RequestBuilder) -> Result<Response> {
        let response = request.send().await.map_err(|error| self.failed(error))?;
        let (status, headers) = (response.status(), response.headers().clone());
        match status.is_success() {
            true => Ok(response),
            false => Err(self.refused(status, &headers, &self.read(response).await?)),
        }
    }

    /// The next part of a body; none after the last one.
    pub(crate) async fn next_part(&self, response: &mut Response) -> Result<Option<Bytes>> {
        response.chunk().await.map_err(|error| self.failed(error))
    }

    /// Makes a call, with retries where that is safe, and returns the headers and the body of the response.
    async fn send(&self, request: RequestBuilder) -> Result<(HeaderMap, Vec<u8>)> {
        // This crate builds paths and bodies; only the credential can be invalid in a header.
        let request = request.build().map_err(|_| Error::Credential)?;
        let call = if request.method() == Method::GET { Call::Repeatable } else { Call::Once };
        retry(call, || async {
            // Bodies are bytes in memory, so they can always be cloned.
            let request = request.try_clone().ok_or_else(|| self.unreadable("the body cannot be sent twice"))?;
            let response = self.client.execute(request).await.map_err(|error| self.failed(error))?;
            let status = response.status();
            let headers = response.headers().clone();
            let body = self.read(response).await?;
            if status.is_success() { Ok((headers, body)) } else { Err(self.refused(status, &headers, &body)) }
        })
        .await
    }

    /// The id after which the next page of a list starts, from the `Link` header (RFC 8288).
    fn next_in(&self, headers: &HeaderMap) -> Option<String> {
        let (target, relation) = headers.get(LINK)?.to_str().ok()?.strip_prefix('<')?.split_once('>')?;
        let next = self.base.join(target).ok().filter(|_| relation.contains("rel=\"next\""))?;
        let after = next.query_pairs().find(|(name, _)| name == "after");
        after.map(|(_, id)| id.into_owned())
    }

    /// The error of a call that the service refused. A path that it does not have is one of another service of ours.
    fn refused(&self, status: StatusCode, headers: &HeaderMap, body: &[u8]) -> Error {
        match refused(self.service, status, headers, body) {
            Error::Refused { kind: kind @ Kind::NotFound, message, retry_after }
            | Error::Foreign { kind: kind @ Kind::NotFound, message, retry_after }
                if message == PATH_NOT_FOUND =>
            {
                Error::Refused { kind, message: unknown_call(self.service, &self.address()), retry_after }
            }
            error => error,
        }
    }

    /// Reads the body up to the limit.
    async fn read(&self, mut response: Response) -> Result<Vec<u8>> {
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(|error| self.failed(error))? {
            if body.len() + chunk.len() > RESPONSE_BYTES_MAX {
                return Err(Error::TooLarge {
                    service: self.service,
                    address: self.address(),
                    bytes_max: RESPONSE_BYTES_MAX,
                });
            }
            body.extend_from_slice(&chunk);
        }
        Ok(body)
    }

    pub(crate) fn failed(&self, error: reqwest::Error) -> Error {
        let (service, address) = (self.service, self.address());
        let (is_connect, is_timeout) = (error.is_connect(), error.is_timeout());
        let error = error.without_url();
        if !is_connect && is_no_http(&error) {
            return self.unreadable(error);
        }
        let source = error.into();
        match (is_connect, is_timeout) {
            // Nothing has happened there.
            (true, _) => Error::Unreachable { service, address, source },
            (false, true) => Error::Timeout { service, address },
            (false, false) => Error::Lost { service, address, source },
        }
    }

    /// Returns the error for a response of an unexpected form.
    pub(crate) fn unreadable(&self, source: impl Into<crate::error::Cause>) -> Error {
        Error::Unreadable { service: self.service, address: self.address(), source: source.into() }
    }

    fn address(&self) -> String {
        self.base.as_str().trim_end_matches('/').to_owned()
    }
}

/// Returns true if the response is not HTTP/1.
fn is_no_http(error: &reqwest::Error) -> bool {
    let mut cause = error.source();
    while let Some(error) = cause {
        if error.downcast_ref::<hyper::Error>().is_some_and(hyper::Error::is_parse) {
            return true;
        }
        cause = error.source();
    }
    false
}

fn refused(service: &str, status: StatusCode, headers: &HeaderMap, body: &[u8]) -> Error {
    // OAuth responses have the text in `error_description`, exchanges in `description`, The Things Stack in `message`,
    // all others in `error`.
    let response: Option<serde_json::Value> = serde_json::from_slice(body).ok();
    let message = ["error_description", "description", "message", "error"]
        .into_iter()
        .find_map(|member| response.as_ref()?.get(member)?.as_str())
        .map_or_else(|| status.to_string(), str::to_owned);
    let (kind, retry_after) = (kind(status), retry_after(headers));
    if !response.is_some_and(|response| is_of(service, status, &response)) {
        return Error::Foreign { kind, message, retry_after };
    }
    // The challenge is about the credential in the header. Without it, a key in the body may be what was refused.
    if status == StatusCode::UNAUTHORIZED && headers.contains_key(WWW_AUTHENTICATE) {
        return Error::NotAccepted { message };
    }
    Error::Refused { kind, message, retry_after }
}

/// Our services repeat the status in the body. The handler has the code of gRPC there, and the text twice.
fn is_of(service: &str, status: StatusCode, response: &serde_json::Value) -> bool {
    let has_text_twice = response["error"].is_string() && response["error"] == response["message"];
    response["code"] == status.as_u16() || (service == HANDLER && response["code"].is_u64() && has_text_twice)
}

fn kind(status: StatusCode) -> Kind {
    match status {
        StatusCode::UNAUTHORIZED => Kind::Unauthenticated,
        StatusCode::FORBIDDEN => Kind::Denied,
        StatusCode::NOT_FOUND | StatusCode::GONE => Kind::NotFound,
        StatusCode::CONFLICT => Kind::AlreadyExists,
        StatusCode::PAYLOAD_TOO_LARGE => Kind::TooLarge,
        StatusCode::TOO_MANY_REQUESTS => Kind::Exhausted,
        StatusCode::INSUFFICIENT_STORAGE => Kind::Full,
        StatusCode::NOT_IMPLEMENTED | StatusCode::METHOD_NOT_ALLOWED => Kind::Unsupported,
        // A bad gateway is nearly always a proxy whose service does not run.
        StatusCode::BAD_GATEWAY | StatusCode::SERVICE_UNAVAILABLE => Kind::Unavailable,
        StatusCode::GATEWAY_TIMEOUT | StatusCode::REQUEST_TIMEOUT => Kind::Timeout,
        status if status.is_client_error() => Kind::Invalid,
        _ => Kind::Internal,
    }
}

/// The seconds of a `Retry-After` header; its other form, a date, is not used by our services.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    headers.get(RETRY_AFTER)?.to_str().ok()?.parse().ok().map(Duration::from_secs)
}

#[cfg(test)]
mod tests {
    use types::Kinded;

    use super::*;

    const ACCOUNT: &str = "account service";

    fn check(status: u16, body: &str, expected: (Kind, &str)) {
        let error = refused(ACCOUNT, StatusCode::from_u16(status).unwrap(), &HeaderMap::new(), body.as_bytes());
        assert_eq!((error.kind(), error.to_string().as_str()), expected, "{body}");
    }

    #[test]
    fn keeps_the_text_of_the_server() {
        check(404, r#"{"code":404,"error":"Application not found"}"#, (Kind::NotFound, "Application not found"));
        check(
            400,
            r#"{"error":"invalid_grant","error_description":"Code not found"}"#,
            (Kind::Invalid, "Code not found"),
        );
        check(401, r#"{"code":401,"description":"Invalid key"}"#, (Kind::Unauthenticated, "Invalid key"));
        check(409, r#"{"code":409,"error":"ID taken"}"#, (Kind::AlreadyExists, "ID taken"));
    }

    #[test]
    fn a_challenge_is_about_the_credential_of_the_call() {
        let challenged = HeaderMap::from_iter([(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"))]);
        let error =
            refused(ACCOUNT, StatusCode::UNAUTHORIZED, &challenged, br#"{"code":401,"error":"token not valid"}"#);
        assert!(matches!(&error, Error::NotAccepted { message } if message == "token not valid"), "{error:?}");
        let error = refused(ACCOUNT, StatusCode::FORBIDDEN, &challenged, br#"{"code":403,"error":"no"}"#);
        assert!(matches!(error, Error::Refused { kind: Kind::Denied, .. }), "{error:?}");
    }

    #[test]
    fn the_handler_has_the_code_of_grpc_and_the_text_twice() {
        let body = br#"{"error":"no `devices` right","code":7,"message":"no `devices` right"}"#;
        let of = |service| refused(service, StatusCode::FORBIDDEN, &HeaderMap::new(), body);
        assert!(matches!(of(HANDLER), Error::Refused { kind: Kind::Denied, .. }), "{:?}", of(HANDLER));
        assert!(matches!(of(ACCOUNT), Error::Foreign { .. }), "{:?}", of(ACCOUNT));
    }

    #[test]
    fn an_error_that_does_not_repeat_its_status_is_not_from_the_service() {
        let challenged = HeaderMap::from_iter([(WWW_AUTHENTICATE, HeaderValue::from_static("Basic"))]);
        for body in [
            "",
            "<html>",
            "[401]",
            r#"{"error":"no"}"#,
            r#"{"code":5,"error":"no"}"#,
            r#"{"code":"401"}"#,
            r#"{"code":16,"message":"no"}"#,
        ] {
            for headers in [HeaderMap::new(), challenged.clone()] {
                for service in [ACCOUNT, HANDLER] {
                    let error = refused(service, StatusCode::UNAUTHORIZED, &headers, body.as_bytes());
                    assert!(matches!(error, Error::Foreign { kind: Kind::Unauthenticated, .. }), "{error:?}");
                }
            }
        }
    }

    #[test]
    fn uses_the_status_when_there_is_no_text() {
        check(503, "<html>", (Kind::Unavailable, "503 Service Unavailable"));
        check(500, r#"{"error":7}"#, (Kind::Internal, "500 Internal Server Error"));
        check(302, "", (Kind::Internal, "302 Found"));
    }
}
