//! Reasons why a connection failed, in words for users. The texts of libraries are for developers.

use std::{error::Error, io};

use rustls::CertificateError;
use tonic::{Code, Status};

/// The reason that the last known cause of an error tells; `None` if no cause is known.
pub(crate) fn reason(error: &(dyn Error + 'static)) -> Option<String> {
    causes(error).filter_map(known).last()
}

/// Returns true if one of an error's causes is a certificate that is not accepted.
pub(crate) fn is_certificate(error: &(dyn Error + 'static)) -> bool {
    causes(error).filter_map(tls_error).any(|error| matches!(error, rustls::Error::InvalidCertificate(_)))
}

fn causes<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(error.source(), |&error| error.source())
}

fn tls_error<'a>(cause: &'a (dyn Error + 'static)) -> Option<&'a rustls::Error> {
    let inner = cause.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
    cause.downcast_ref().or_else(|| inner?.downcast_ref())
}

fn known(cause: &(dyn Error + 'static)) -> Option<String> {
    if let Some(error) = tls_error(cause) {
        return tls(error);
    }
    if let Some(status) = cause.downcast_ref::<Status>() {
        // With a cause, it is what tonic makes of HTTP/2's `ENHANCE_YOUR_CALM`.
        let is_exhausted = status.code() == Code::ResourceExhausted;
        return is_exhausted
            .then(|| "it closed the connection, because too much that was sent waited there".to_owned());
    }
    let error = cause.downcast_ref::<io::Error>()?;
    if error.kind() == io::ErrorKind::UnexpectedEof {
        return Some("it closed the connection".to_owned());
    }
    match error.get_ref() {
        // Such an error is that of a library, except where it is text.
        Some(inner) if inner.source().is_some() => None,
        _ => Some(error.to_string()),
    }
}

fn tls(error: &rustls::Error) -> Option<String> {
    let text = match error {
        rustls::Error::InvalidCertificate(reason) => match reason {
            // A new certificate of the same name has another key than the one that is trusted.
            CertificateError::UnknownIssuer | CertificateError::BadSignature => {
                "nobody who is trusted here has issued its certificate"
            }
            CertificateError::Expired | CertificateError::ExpiredContext { .. } => "its certificate has expired",
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                "its certificate is for another name"
            }
            _ => return Some(format!("its certificate is not accepted: {reason}")),
        },
        rustls::Error::InvalidMessage(_) => "it does not speak TLS there",
        _ => return Some(error.to_string()),
    };
    Some(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("for programmers")]
    struct Library(#[source] io::Error);

    fn reason_of(error: io::Error) -> Option<String> {
        // As libraries have it: the cause of a cause.
        reason(&Library(io::Error::other(Library(error))))
    }

    // Conformance: Errors of connections say why in words, and what runs at a wrong address
    #[test]
    fn known_causes_are_told_in_words() {
        let refused = io::Error::from_raw_os_error(111);
        assert_eq!(reason_of(refused).unwrap(), "Connection refused (os error 111)");
        let issuer = rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer);
        for error in [issuer, rustls::Error::InvalidMessage(rustls::InvalidMessage::InvalidContentType)] {
            let text = reason_of(io::Error::new(io::ErrorKind::InvalidData, error)).unwrap();
            assert!(["nobody who", "it does not speak TLS"].iter().any(|begin| text.starts_with(begin)), "{text}");
        }
        assert_eq!(reason_of(io::Error::other("no such host")).unwrap(), "no such host");
        assert_eq!(reason(&Library(io::Error::other(Library(io::Error::other("x"))))).unwrap(), "x");
        assert_eq!(reason(&std::fmt::Error), None);
        let lost =
            |status: Status| crate::Error::Lost { service: "handler", address: "a:1".into(), source: status.into() };
        let exhausted = lost(Status::resource_exhausted("h2 protocol error: http2 error"));
        assert!(exhausted.reason().unwrap().ends_with("too much that was sent waited there"));
        assert_eq!(lost(Status::unknown("x")).reason(), None);
    }
}
