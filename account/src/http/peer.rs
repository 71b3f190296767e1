//! The client's IP address.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use axum::{
    extract::{ConnectInfo, FromRequestParts, MatchedPath, Request, State},
    http::{Extensions, HeaderMap, StatusCode, request::Parts},
    middleware::Next,
    response::Response,
};

use super::error::HttpError;
use crate::Account;

/// The header to which every proxy appends the address of its client.
const FORWARDED_FOR: &str = "x-forwarded-for";

pub(crate) struct Peer(pub(crate) IpAddr);

impl FromRequestParts<Account> for Peer {
    type Rejection = HttpError;

    async fn from_request_parts(parts: &mut Parts, account: &Account) -> Result<Self, HttpError> {
        Ok(Self::of(&parts.headers, &parts.extensions, account))
    }
}

impl Peer {
    fn of(headers: &HeaderMap, extensions: &Extensions, account: &Account) -> Self {
        let connected = extensions.get::<ConnectInfo<SocketAddr>>();
        // Requests without a connection, as in tests, share one address and its limits.
        let connected = connected.map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |ConnectInfo(peer)| peer.ip());
        Self(outermost(headers, connected, account.settings.proxies.into()))
    }
}

/// Writes denied and rate-limited requests to the audit log.
pub(crate) async fn log_denied_requests(
    State(account): State<Account>,
    route: Option<MatchedPath>,
    request: Request,
    next: Next,
) -> Response {
    let Peer(from) = Peer::of(request.headers(), request.extensions(), &account);
    let method = request.method().clone();
    let response = next.run(request).await;
    let status = response.status();
    if [StatusCode::UNAUTHORIZED, StatusCode::FORBIDDEN, StatusCode::TOO_MANY_REQUESTS].contains(&status) {
        // The route, not the path: clients must not be able to write text of their choice to the log.
        let route = route.as_ref().map_or("none", MatchedPath::as_str);
        account.audit.note_from(from, "request refused", &format_args!("{} {method} {route}", status.as_u16()));
    }
    response
}

/// The address seen by the outermost trusted proxy. Entries before those of our own proxies may be forged.
fn outermost(headers: &HeaderMap, connected: IpAddr, proxies: usize) -> IpAddr {
    let values = headers.get_all(FORWARDED_FOR).iter().filter_map(|value| value.to_str().ok());
    let entries: Vec<&str> = values.flat_map(|value| value.split(',')).map(str::trim).collect();
    let seen = entries.iter().rev().take(proxies).map_while(|entry| entry.parse().ok());
    seen.last().unwrap_or(connected)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trusts_only_entries_of_our_own_proxies() {
        let mut headers = HeaderMap::new();
        headers.append(FORWARDED_FOR, "198.51.100.1, 198.51.100.2".parse().unwrap());
        headers.append(FORWARDED_FOR, "198.51.100.3".parse().unwrap());
        let connected: IpAddr = "192.0.2.1".parse().unwrap();
        let cases = [(0, "192.0.2.1"), (1, "198.51.100.3"), (2, "198.51.100.2"), (9, "198.51.100.1")];
        for (proxies, expected) in cases {
            assert_eq!(outermost(&headers, connected, proxies).to_string(), expected, "{proxies}");
        }
        assert_eq!(outermost(&HeaderMap::new(), connected, 1), connected);
        let forged = [(FORWARDED_FOR.parse().unwrap(), "no address".parse().unwrap())].into_iter().collect();
        assert_eq!(outermost(&forged, connected, 1), connected);
    }
}
