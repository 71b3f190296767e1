//! Addresses that webhooks may have: only public ones, unless the operator allows others.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use reqwest::Url;

use crate::Error;

const URL_BYTES_MAX: usize = 2048;

/// Error of a request whose host has no public address.
#[derive(Debug, thiserror::Error)]
#[error("{0} has no public address, and the setting output.delivery.allow_private_addresses is off")]
pub(super) struct Private(pub(super) String);

/// Refuses an address whose host is a private IP address. Names are checked when they are resolved.
pub(super) fn check_host(url: &Url) -> Result<(), Private> {
    let host = url.host_str().unwrap_or_default();
    match host.trim_matches(['[', ']']).parse::<IpAddr>() {
        Ok(address) if !is_public(address) => Err(Private(host.to_owned())),
        _ => Ok(()),
    }
}

/// Checks the URL of a webhook, in which templates stand after the host.
pub(super) fn check_url(text: &str, allow_private: bool) -> Result<(), Error> {
    let refuse = |rule: &str| Err(Error::invalid("URL", rule));
    if text.len() > URL_BYTES_MAX {
        return refuse("at most 2048 bytes are allowed");
    }
    super::template::check("URL", text)?;
    let Ok(url) = Url::parse(text) else { return refuse("it must be like https://example.com/uplinks") };
    if !["http", "https"].contains(&url.scheme()) {
        return refuse("it must begin with https:// or http://");
    }
    let host = text.split_once("://").map_or("", |(_, rest)| rest.split(['/', '?', '#']).next().unwrap_or_default());
    if host.contains(['{', '@', '\\']) || url.host_str().is_none() {
        return refuse("its host must be a name or an address, without user, password or braces");
    }
    if url.fragment().is_some() {
        return refuse("a part after # is never sent");
    }
    if !allow_private {
        check_host(&url).map_err(|error| Error::invalid("URL", error))?;
    }
    Ok(())
}

/// Returns true if requests to `after` go to another server than those to `before`. Without a URL they go nowhere.
pub(super) fn is_elsewhere(before: &str, after: &str) -> bool {
    let origin = |text: &str| Url::parse(text).map(|url| url.origin());
    origin(after).is_ok_and(|after| origin(before) != Ok(after))
}

/// Returns true if an address can be reached from anywhere in the internet.
pub(super) fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => match address.to_ipv4_mapped() {
            Some(address) => is_public_v4(address),
            None => is_public_v6(address),
        },
    }
}

/// Not in the registry of special-purpose addresses (RFC 6890).
fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    let is_special = match (a, b) {
        (0 | 10 | 127, _) | (169, 254) | (192, 168) => true,
        (100, 64..=127) | (172, 16..=31) | (198, 18 | 19) => true,
        (192, 0) => c == 0 || c == 2,
        (192, 88) => c == 99,
        (198, 51) => c == 100,
        (203, 0) => c == 113,
        _ => a >= 224,
    };
    !is_special
}

/// In the range of global addresses, except for documentation, and for tunnels, which could lead to private addresses.
fn is_public_v6(address: Ipv6Addr) -> bool {
    let [a, b, ..] = address.segments();
    a & 0xe000 == 0x2000 && !matches!((a, b), (0x2001, 0..=0x01ff | 0x0db8) | (0x2002, _) | (0x3fff, 0..=0x0fff))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_public_addresses_are_allowed() {
        for address in ["1.1.1.1", "93.184.216.34", "172.32.0.1", "100.128.0.1", "2606:4700::1111", "2a00:1450::1"] {
            assert!(is_public(address.parse().unwrap()), "{address}");
        }
        let private = "0.0.0.0 10.1.2.3 127.0.0.1 127.8.8.8 169.254.169.254 172.16.0.1 172.31.255.255 192.168.1.1 \
             100.64.0.1 192.0.0.170 192.0.2.1 198.18.0.1 198.51.100.1 203.0.113.9 224.0.0.1 240.0.0.1 255.255.255.255 \
             :: ::1 ::ffff:127.0.0.1 ::ffff:10.0.0.1 fe80::1 fc00::1 fd00:ec2::254 ff02::1 64:ff9b::7f00:1 \
             2002:7f00:1::1 2001:0:1::1 2001:db8::1 fec0::1";
        for address in private.split_whitespace() {
            assert!(!is_public(address.parse().unwrap()), "{address}");
        }
    }

    #[test]
    fn urls_name_a_public_host_and_nothing_else() {
        for url in [
            "https://example.com",
            "http://example.com:8080/a/{app_id}/{dev_id}?event={event}",
            "https://1.1.1.1/",
            "https://[2606:4700::1111]/",
        ] {
            check_url(url, false).unwrap();
        }
        for url in [
            "",
            "example.com",
            "ftp://example.com",
            "https://{app_id}.example.com",
            "https://user:password@example.com",
            "https://example.com/#{event}",
            "https://example.com/{device}",
            "http://127.0.0.1/",
            "http://2130706433/",
            "http://0x7f.1/",
            "http://[::ffff:127.0.0.1]/",
            "http://169.254.169.254/latest/meta-data",
        ] {
            assert!(check_url(url, false).is_err(), "{url}");
        }
        check_url("http://127.0.0.1:8080/", true).unwrap();
    }
}
