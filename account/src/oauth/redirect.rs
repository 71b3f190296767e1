//! Redirect URIs: matching and appending parameters.

use percent_encoding::utf8_percent_encode;

use crate::public_url::QUERY_VALUE;

pub(super) const URI_BYTES_MAX: usize = 2048;
/// Registered URIs that start like this match with any port (RFC 8252).
const LOOPBACK: [&str; 2] = ["http://127.0.0.1", "http://[::1]"];

/// Returns true if `sent` matches a registered URI exactly, except for the port of a loopback address.
pub(super) fn is_registered(registered: &[String], sent: &str) -> bool {
    registered.iter().any(|registered| registered == sent || fits_loopback(registered, sent))
}

/// Appends query parameters to a URI.
pub(super) fn with_parameters(uri: &str, parameters: &[(&str, &str)]) -> String {
    let mut uri = uri.to_owned();
    for (name, value) in parameters {
        uri.push(if uri.contains('?') { '&' } else { '?' });
        uri.push_str(name);
        uri.push('=');
        uri.extend(utf8_percent_encode(value, QUERY_VALUE));
    }
    uri
}

fn fits_loopback(registered: &str, sent: &str) -> bool {
    LOOPBACK.iter().any(|host| {
        let (Some(registered), Some(sent)) = (registered.strip_prefix(host), sent.strip_prefix(host)) else {
            return false;
        };
        registered.starts_with('/') && without_port(sent) == Some(registered)
    })
}

/// The text after a port, if there is one.
fn without_port(text: &str) -> Option<&str> {
    let text = text.strip_prefix(':')?;
    let end = text.find('/')?;
    text[..end].bytes().all(|byte| byte.is_ascii_digit()).then_some(())?;
    text[..end].parse::<u16>().ok().filter(|port| *port > 0).map(|_| &text[end..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_port_of_a_loopback_address_may_vary() {
        let registered = ["https://app.example.com/callback", "http://127.0.0.1/callback", "http://localhost/callback"];
        let registered = registered.map(str::to_owned);
        for good in [
            "https://app.example.com/callback",
            "http://127.0.0.1/callback",
            "http://127.0.0.1:8080/callback",
            "http://localhost/callback",
        ] {
            assert!(is_registered(&registered, good), "{good}");
        }
        for evil in [
            "",
            "https://app.example.com/callback/",
            "https://app.example.com/callback?x=1",
            "https://app.example.com/callback#x",
            "https://app.example.com/Callback",
            "https://APP.example.com/callback",
            "https://app.example.com:443/callback",
            "https://app.example.com:8443/callback",
            "https://app.example.com/callback/../evil",
            "https://app.example.com.evil.com/callback",
            "https://evil.app.example.com/callback",
            "https://evil@app.example.com/callback",
            "http://app.example.com/callback",
            "https://app.example.com",
            "http://127.0.0.1:0/callback",
            "http://127.0.0.1:65536/callback",
            "http://127.0.0.1:80@evil.com/callback",
            "http://127.0.0.1:+80/callback",
            "http://127.0.0.1:80/callback?x=1",
            "http://127.0.0.1.evil.com/callback",
            "http://127.0.0.2:80/callback",
            "http://[::1]:80/callback",
            "http://localhost:80/callback",
            "https://127.0.0.1:80/callback",
        ] {
            assert!(!is_registered(&registered, evil), "{evil}");
        }
    }

    #[test]
    fn appends_encoded_parameters_after_existing_ones() {
        assert_eq!(
            with_parameters("ttn://oauth", &[("code", "a b"), ("x", "&#\r\n")]),
            "ttn://oauth?code=a%20b&x=%26%23%0D%0A"
        );
        assert_eq!(with_parameters("/callback?y=1", &[("code", "a-b_c.d~")]), "/callback?y=1&code=a-b_c.d~");
    }
}
