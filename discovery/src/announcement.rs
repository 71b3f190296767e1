//! Announcements: who a component is and how to reach it, validated on arrival.

use api::discovery as message;
use rustls_pki_types::{CertificateDer, SubjectPublicKeyInfoDer, pem::PemObject};
use serde::{Deserialize, Serialize};
use types::{ComponentId, ServiceName, Timestamp};

use crate::{Error, address::Address, error::Result, metadata::Metadata};

/// Maximum length of a description, in characters.
const TEXT_LENGTH_MAX: usize = 1000;
/// Maximum length of a documentation URL, in characters.
const URL_LENGTH_MAX: usize = 2048;
/// Maximum size of a public key in PEM, in bytes.
const KEY_BYTES_MAX: usize = 4 << 10;
/// Maximum size of a certificate chain in PEM, in bytes.
const CERTIFICATE_BYTES_MAX: usize = 64 << 10;

/// An announcement of a component, without the list of what it serves.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Announcement {
    pub(crate) id: ComponentId,
    pub(crate) service: ServiceName,
    service_version: String,
    description: String,
    url: String,
    public: bool,
    net_address: Address,
    public_key: String,
    certificate: String,
    api_address: Address,
    mqtt_address: Address,
    amqp_address: Address,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StoredAnnouncement {
    pub(crate) announcement: Announcement,
    /// Time at which the component first announced itself.
    pub(crate) created_at: Timestamp,
    /// Time of the last announcement.
    pub(crate) updated_at: Timestamp,
}

impl TryFrom<message::Announcement> for Announcement {
    type Error = Error;

    /// Validates everything but the metadata, which has calls of its own.
    fn try_from(given: message::Announcement) -> Result<Self> {
        Ok(Self {
            id: given.id.parse()?,
            service: given.service_name.parse()?,
            service_version: line("ServiceVersion", given.service_version)?,
            description: line("Description", given.description)?,
            url: url(given.url)?,
            public: given.public,
            net_address: Address::net(&given.net_address)?,
            public_key: public_key(given.public_key)?,
            certificate: certificate(given.certificate)?,
            api_address: Address::api(&given.api_address)?,
            mqtt_address: Address::mqtt(&given.mqtt_address)?,
            amqp_address: Address::amqp(&given.amqp_address)?,
        })
    }
}

impl Announcement {
    /// Builds the message, including what the component serves.
    pub(crate) fn into_message(self, served: Vec<Metadata>) -> message::Announcement {
        message::Announcement {
            id: self.id.into(),
            service_name: self.service.to_string(),
            service_version: self.service_version,
            description: self.description,
            url: self.url,
            public: self.public,
            net_address: self.net_address.into(),
            public_key: self.public_key,
            certificate: self.certificate,
            api_address: self.api_address.into(),
            mqtt_address: self.mqtt_address.into(),
            amqp_address: self.amqp_address.into(),
            metadata: served.into_iter().map(|one| message::Metadata { metadata: Some(one.into()) }).collect(),
        }
    }
}

fn line(what: &'static str, text: String) -> Result<String> {
    if !types::is_line(&text, 0..=TEXT_LENGTH_MAX) {
        return Err(Error::invalid(what, format!("must be one line of at most {TEXT_LENGTH_MAX} characters")));
    }
    Ok(text)
}

/// Validates a documentation URL, which must be http or https.
fn url(text: String) -> Result<String> {
    let web = ["http://", "https://"].iter().any(|scheme| text.len() > scheme.len() && text.starts_with(scheme));
    let plain = text.len() <= URL_LENGTH_MAX && text.bytes().all(|byte| byte.is_ascii_graphic());
    if text.is_empty() || (web && plain) { Ok(text) } else { Err(Error::invalid("URL", "must be http(s)://…")) }
}

/// Validates a public key, without which nobody could verify the component's signatures.
fn public_key(pem: String) -> Result<String> {
    let is_key = pem.len() <= KEY_BYTES_MAX && SubjectPublicKeyInfoDer::from_pem_slice(pem.as_bytes()).is_ok();
    if is_key { Ok(pem) } else { Err(Error::invalid("PublicKey", "must be a public key as PEM")) }
}

fn certificate(pem: String) -> Result<String> {
    let mut certificates = CertificateDer::pem_slice_iter(pem.as_bytes()).peekable();
    let is_some = certificates.peek().is_some();
    if pem.is_empty() || (pem.len() <= CERTIFICATE_BYTES_MAX && is_some && certificates.all(|one| one.is_ok())) {
        Ok(pem)
    } else {
        Err(Error::invalid("Certificate", "must be a certificate as PEM"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PEM: &str = "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n";

    fn message() -> message::Announcement {
        message::Announcement {
            id: "handler-1".into(),
            service_name: "handler".into(),
            service_version: "2.0.0-abcdef (2026-11-21)".into(),
            description: "Ours".into(),
            url: "https://example.com/docs".into(),
            public: true,
            net_address: "localhost:1904".into(),
            public_key: PEM.into(),
            certificate: PEM.replace("PUBLIC KEY", "CERTIFICATE"),
            api_address: "http://localhost:8084".into(),
            mqtt_address: "localhost:1883".into(),
            amqp_address: "localhost:5672".into(),
            metadata: Vec::new(),
        }
    }

    #[test]
    fn parsing_keeps_everything_but_the_metadata() {
        let served = message::Metadata { metadata: Some(message::metadata::Metadata::AppId("my-app".into())) };
        let given = message::Announcement { metadata: vec![served], ..message() };
        assert_eq!(Announcement::try_from(given).unwrap().into_message(Vec::new()), message());
    }

    // Conformance: Announcement: every field, and every form of address
    #[test]
    fn validates_every_field() {
        type Break = fn(&mut message::Announcement);
        let broken: [(&str, Break); 11] = [
            ("ComponentID", |it| it.id = "Handler".into()),
            ("ComponentID", |it| it.id = "a*".into()),
            ("service name", |it| it.service_name = "gateway".into()),
            ("ServiceVersion", |it| it.service_version = "1\r\nx".into()),
            ("Description", |it| it.description = "x".repeat(1001)),
            ("URL", |it| it.url = "javascript:alert(1)".into()),
            ("NetAddress", |it| it.net_address = "localhost".into()),
            ("PublicKey", |it| it.public_key = "key".into()),
            ("PublicKey", |it| it.public_key = String::new()),
            ("Certificate", |it| it.certificate = PEM.into()),
            ("MqttAddress", |it| it.mqtt_address = "http://a".into()),
        ];
        for (what, break_it) in broken {
            let mut given = message();
            break_it(&mut given);
            let error = Announcement::try_from(given).unwrap_err();
            assert!(error.to_string().starts_with(what), "{what}: {error}");
        }
    }
}
