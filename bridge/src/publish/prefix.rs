//! Prefixes of the topics of decoded messages, chosen so that a bridge does not receive what it publishes.

use link::mqtt::Endpoint;
use tokio::net::lookup_host;

/// Default prefix of topics that are published on the broker that the messages come from.
const SAME_BROKER_PREFIX: &str = "airlock/";

/// The prefix for the broker `out`: the one that is set, or a default. `own` is the broker that messages come from, and
/// `is_received` says whether the bridge would receive from it what it publishes with a prefix. An error is a reason.
pub async fn prefix(
    setting: Option<&str>,
    own: Option<&Endpoint>,
    out: &Endpoint,
    is_received: impl Fn(&str) -> bool,
) -> Result<String, &'static str> {
    let is_same = match own {
        Some(own) => is_same_broker(own, out).await,
        None => false,
    };
    let prefix = setting.unwrap_or(if is_same { SAME_BROKER_PREFIX } else { "" });
    check(prefix, is_same && is_received(prefix))?;
    Ok(prefix.to_owned())
}

fn check(prefix: &str, is_loop: bool) -> Result<(), &'static str> {
    if prefix.contains(['+', '#', '\0']) || prefix.starts_with('$') {
        return Err("must not contain `+` or `#`, or start with `$`");
    }
    if is_loop {
        return Err("must not be empty where messages come from and go to the same broker, as in `airlock/`");
    }
    Ok(())
}

/// Returns true if two URLs lead to the same broker, as far as names and addresses tell. If they fail to, duplicates
/// are still recognized, so that no message goes round twice.
pub async fn is_same_broker(one: &Endpoint, other: &Endpoint) -> bool {
    if one.url.port != other.url.port {
        return false;
    }
    if one.url.host.eq_ignore_ascii_case(&other.url.host) {
        return true;
    }
    let addresses = async |endpoint: &Endpoint| -> Vec<_> {
        lookup_host((endpoint.url.host.as_str(), endpoint.url.port)).await.map(Iterator::collect).unwrap_or_default()
    };
    let (one, other) = (addresses(one).await, addresses(other).await);
    one.iter().any(|address| other.contains(address))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Remote;

    #[tokio::test]
    async fn refuses_prefixes_that_would_make_a_loop() {
        let endpoint = |url: &str| {
            let settings = Remote { url: url.to_owned(), ..Remote::default() };
            Endpoint::new(&settings, "test", "id".to_owned()).unwrap()
        };
        let (own, other) = (endpoint("mqtt://localhost:1883"), endpoint("mqtt://localhost:1884"));
        let is_received = |prefix: &str| prefix.is_empty() || prefix.ends_with('!');
        for (setting, out, expected) in [
            (None, &other, Some("")),
            (None, &own, Some("airlock/")),
            (Some(""), &other, Some("")),
            (Some(""), &own, None),
            (Some("airlock"), &own, Some("airlock")),
            (Some("loop!"), &own, None),
            (Some("a/+/"), &other, None),
            (Some("$SYS/"), &other, None),
        ] {
            let prefix = prefix(setting, Some(&own), out, is_received).await;
            assert_eq!(prefix.ok().as_deref(), expected, "{setting:?}");
        }
    }
}
