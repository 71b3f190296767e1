//! Certificates that a connection trusts.

use std::{path::Path, sync::Arc};

use rustls::{
    ClientConfig, ConfigBuilder, DigitallySignedStruct, RootCertStore, SignatureScheme,
    client::{
        WantsClientCert, WebPkiServerVerifier,
        danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    },
    crypto::{CryptoProvider, aws_lc_rs},
};
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime, pem::PemObject};
use types::Secret;

use crate::secret_file::{SecretFileError, read};

/// Error of a certificate or a key that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("certificate or key not valid: must be PEM")]
pub struct CertificateError {
    source: Box<dyn std::error::Error + Send + Sync>,
}

/// Certificates that a connection trusts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trust {
    /// None: the connection is not encrypted.
    Plaintext,
    /// This certificate, or one that it signed, in PEM, as components announce it.
    Certificate(String),
    /// The system's certificate authorities.
    System,
}

impl Trust {
    /// Trusts the certificate that a component announced; an empty one means plain text.
    pub fn announced(certificate: &str) -> Self {
        if certificate.trim().is_empty() { Self::Plaintext } else { Self::Certificate(certificate.to_owned()) }
    }

    /// Trusts the certificate in this file, or without one the system's authorities.
    pub fn of_file(path: Option<&Path>) -> Result<Self, SecretFileError> {
        Ok(match path {
            Some(path) => Self::Certificate(read(path)?),
            None => Self::System,
        })
    }

    /// Returns the trust for the scheme of an MQTT broker's address: the system's authorities for `mqtts`, otherwise
    /// plain text.
    pub fn of_mqtt(address: &str) -> Self {
        if address.starts_with("mqtts:") { Self::System } else { Self::Plaintext }
    }

    /// The certificate verifier; `None` for plain text.
    pub fn verifier(&self) -> Result<Option<Arc<dyn ServerCertVerifier>>, CertificateError> {
        let provider = Arc::new(aws_lc_rs::default_provider());
        Ok(match self {
            Self::Plaintext => None,
            Self::Certificate(pem) => Some(Arc::new(Announced::new(pem, provider)?)),
            Self::System => Some(Arc::new(rustls_platform_verifier::Verifier::new(provider).map_err(invalid)?)),
        })
    }

    /// The TLS configuration of a client; for plain text, one that trusts nothing.
    pub fn tls(&self) -> Result<ClientConfig, CertificateError> {
        Ok(self.tls_builder()?.with_no_client_auth())
    }

    /// The same of a client that proves its own identity to the server, with a chain, its own certificate first, and a
    /// private key in PEM.
    pub(crate) fn tls_with_identity(&self, chain: &str, key: &Secret) -> Result<ClientConfig, CertificateError> {
        let chain = CertificateDer::pem_slice_iter(chain.as_bytes()).collect::<Result<_, _>>().map_err(invalid)?;
        let key = PrivateKeyDer::from_pem_slice(key.expose().as_bytes()).map_err(invalid)?;
        self.tls_builder()?.with_client_auth_cert(chain, key).map_err(invalid)
    }

    fn tls_builder(&self) -> Result<ConfigBuilder<ClientConfig, WantsClientCert>, CertificateError> {
        // Name the provider explicitly, so that programs need no setup before the first call.
        let builder = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(invalid)?;
        Ok(match self.verifier()? {
            Some(verifier) => builder.dangerous().with_custom_certificate_verifier(verifier),
            None => builder.with_root_certificates(RootCertStore::empty()),
        })
    }
}

/// Trusts exactly the announced certificate, or what it signed.
///
/// Our components announce their own authority. Those of TTN v2 announce a self-signed certificate with the CA flag,
/// and serve with it. The standard verifier refuses a CA at the end of a chain, so this checks equality first: whoever
/// has the key of the announced certificate is the component, whatever its host name.
#[derive(Debug)]
struct Announced {
    certificates: Vec<CertificateDer<'static>>,
    signed: Arc<WebPkiServerVerifier>,
}

impl Announced {
    fn new(pem: &str, provider: Arc<CryptoProvider>) -> Result<Self, CertificateError> {
        let certificates: Vec<_> =
            CertificateDer::pem_slice_iter(pem.as_bytes()).collect::<Result<_, _>>().map_err(invalid)?;
        let mut roots = RootCertStore::empty();
        for certificate in &certificates {
            roots.add(certificate.clone()).map_err(invalid)?;
        }
        let signed = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build().map_err(invalid)?;
        Ok(Self { certificates, signed })
    }
}

impl ServerCertVerifier for Announced {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        if self.certificates.contains(end_entity) {
            return Ok(ServerCertVerified::assertion());
        }
        self.signed.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.signed.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.signed.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.signed.supported_verify_schemes()
    }
}

fn invalid(source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> CertificateError {
    CertificateError { source: source.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_certificate_means_plain_text() {
        assert_eq!(Trust::announced(" \n"), Trust::Plaintext);
        assert!(Trust::Plaintext.verifier().unwrap().is_none());
    }

    #[test]
    fn refuses_malformed_certificates() {
        let nonsense = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        for pem in ["hello", "-----BEGIN CERTIFICATE-----\n", nonsense] {
            assert!(Trust::announced(pem).verifier().is_err(), "{pem}");
        }
    }
}
