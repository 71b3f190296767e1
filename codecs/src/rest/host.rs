//! The hosts that a service without a key, which only this machine can reach, answers for.
//!
//! Any web page can let the name of its own host lead to 127.0.0.1, and then read what a browser on this machine gets
//! from there. Such requests still name that host.

use std::{net::IpAddr, sync::Arc};

use axum::{
    extract::{Request, State},
    http::{header::HOST, uri::Authority},
    middleware::Next,
    response::{IntoResponse, Response},
};

use super::{Service, error::RestError};
use crate::Error;

const LOCALHOST: &str = "localhost";

/// Refuses a request for another host.
pub(super) async fn check(State(service): State<Arc<Service>>, request: Request, next: Next) -> Response {
    let host = host(&request).unwrap_or_default();
    let is_known = service.hosts.iter().any(|known| known.eq_ignore_ascii_case(&host));
    if is_known || is_local(&host) { next.run(request).await } else { RestError::from(Error::Host).into_response() }
}

/// Returns true if a request names a host that leads to this machine, and is that of no web page.
pub fn names_this_machine(request: &Request) -> bool {
    host(request).is_some_and(|host| is_local(&host))
}

/// The host that a request names, without its port.
fn host(request: &Request) -> Option<String> {
    let authority = match request.uri().authority() {
        Some(authority) => authority.clone(),
        None => request.headers().get(HOST)?.to_str().ok()?.parse::<Authority>().ok()?,
    };
    Some(authority.host().to_owned())
}

/// Returns true if no web page can be from this host.
fn is_local(host: &str) -> bool {
    let lower = host.to_ascii_lowercase();
    let is_localhost = lower == LOCALHOST || lower.strip_suffix(LOCALHOST).is_some_and(|rest| rest.ends_with('.'));
    is_localhost || lower.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_this_machine_and_addresses_are_local() {
        for host in ["localhost", "LocalHost", "codecs.localhost", "127.0.0.1", "10.1.2.3", "[::1]"] {
            assert!(is_local(host), "{host}");
        }
        for host in ["", "example.com", "notlocalhost", "localhost.example.com", "127.0.0.1.example.com"] {
            assert!(!is_local(host), "{host}");
        }
    }
}
