//! The TLS certificate of the process: from files, or self-signed on the first start.

mod self_signed;

use std::{fs, path::Path, sync::Arc};

use rustls::{ServerConfig, crypto::aws_lc_rs};
use rustls_pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject};
use types::Clock;

use crate::Error;

/// The ALPN protocols of HTTP listeners; gRPC needs `h2`.
pub const HTTP_PROTOCOLS: [&[u8]; 2] = [b"h2", b"http/1.1"];

/// A certificate and its key.
#[derive(Clone)]
pub struct Tls {
    config: ServerConfig,
    announced: String,
}

impl Tls {
    /// Reads PEM files with the certificate chain, own certificate first, and with its key; they may be the same file.
    pub fn from_files(certificate: &Path, key: &Path) -> Result<Self, Error> {
        let chain = read(certificate)?;
        let key_text = if key == certificate { chain.clone() } else { read(key)? };
        let announced = certificates(&chain).map(str::to_owned).collect();
        Ok(Self { config: config(certificate, &chain, &key_text)?, announced })
    }

    /// Reads the self-signed certificate in `dir`, or creates one.
    ///
    /// It is valid for localhost and `names` for ten years, and is replaced when the names change or it is about to
    /// expire. The file holds the key, so only its owner can read it.
    pub fn self_signed(dir: &Path, names: &[String], clock: &dyn Clock) -> Result<Self, Error> {
        let (path, text) = self_signed::load_or_create(dir, names, clock)?;
        // Clients trust the authority, the last certificate: they refuse an authority as a server's own certificate.
        let announced = certificates(&text).last().unwrap_or_default().to_owned();
        Ok(Self { config: config(&path, &text, &text)?, announced })
    }

    /// The configuration of a listener with these ALPN protocols: [`HTTP_PROTOCOLS`], or none for MQTT.
    pub fn server_config(&self, protocols: &[&[u8]]) -> Arc<ServerConfig> {
        let mut config = self.config.clone();
        config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
        Arc::new(config)
    }

    /// The certificate that clients must trust, as PEM, for the announcement.
    pub fn certificate_pem(&self) -> &str {
        &self.announced
    }
}

impl std::fmt::Debug for Tls {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Tls").field("announced", &self.announced).finish_non_exhaustive()
    }
}

fn config(path: &Path, chain: &str, key: &str) -> Result<ServerConfig, Error> {
    let refused = |source: Box<dyn std::error::Error + Send + Sync>| Error::Certificate { path: path.into(), source };
    let chain: Vec<_> = CertificateDer::pem_slice_iter(chain.as_bytes())
        .collect::<Result<_, _>>()
        .map_err(|error| refused(error.into()))?;
    let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).map_err(|error| refused(error.into()))?;
    ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, key))
        .map_err(|error| refused(error.into()))
}

/// The certificates in a PEM text, without keys and anything else.
fn certificates(pem: &str) -> impl Iterator<Item = &str> {
    const BEGIN: &str = "-----BEGIN CERTIFICATE-----";
    const END: &str = "-----END CERTIFICATE-----\n";
    pem.match_indices(BEGIN).filter_map(|(start, _)| {
        let length = pem[start..].find(END)? + END.len();
        Some(&pem[start..start + length])
    })
}

fn read(path: &Path) -> Result<String, Error> {
    fs::read_to_string(path).map_err(|source| Error::File { action: "read", path: path.into(), source })
}
