//! Certificates for tests of TLS.

use std::{fs, path::PathBuf};

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use tempfile::TempDir;

/// A certificate authority with a certificate for localhost and one for a client, as PEM files.
pub struct Certificates {
    dir: TempDir,
}

impl Certificates {
    /// Creates all files.
    pub fn create() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, "test authority");
        let key = KeyPair::generate().unwrap();
        fs::write(dir.path().join("ca.pem"), params.self_signed(&key).unwrap().pem()).unwrap();
        let issuer = Issuer::new(params, key);
        for name in ["server", "client"] {
            let names = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
            let mut params = CertificateParams::new(names).unwrap();
            params.distinguished_name.push(DnType::CommonName, name);
            let key = KeyPair::generate().unwrap();
            let certificate = params.signed_by(&key, &issuer).unwrap();
            fs::write(dir.path().join(format!("{name}.pem")), certificate.pem()).unwrap();
            fs::write(dir.path().join(format!("{name}.key")), key.serialize_pem()).unwrap();
        }
        Self { dir }
    }

    /// `ca.pem`, `server.pem`, `server.key`, `client.pem` or `client.key`.
    pub fn path(&self, file: &str) -> PathBuf {
        self.dir.path().join(file)
    }
}
