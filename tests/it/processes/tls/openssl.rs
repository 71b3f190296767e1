//! OpenSSL as a third-party client: creates a certificate, and connects with TLS 1.2 and one cipher.

use std::{
    io::Write,
    path::Path,
    process::{Command, Stdio},
};

const BEGIN: &str = "-----BEGIN CERTIFICATE-----";
const END: &str = "-----END CERTIFICATE-----";

pub(super) struct Served {
    pub(super) protocol: String,
    pub(super) cipher: String,
    /// The certificate chain in PEM, leaf first.
    pub(super) chain: Vec<String>,
}

/// Creates a self-signed authority for localhost.
pub(super) fn make(certificate: &Path, key: &Path) {
    let names = "subjectAltName=DNS:localhost,IP:127.0.0.1";
    let made = Command::new("openssl")
        .args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "30"])
        .args(["-subj", "/CN=localhost", "-addext", names, "-keyout"])
        .arg(key)
        .arg("-out")
        .arg(certificate)
        .output()
        .expect("openssl is installed");
    assert!(made.status.success(), "{made:?}");
}

/// Connects with TLS 1.2, this cipher and these roots; returns the error output on failure.
pub(super) fn dial(address: &str, roots: &Path, cipher: &str) -> Result<Served, String> {
    let ended = Command::new("openssl")
        .args(["s_client", "-connect", address, "-tls1_2", "-cipher", cipher, "-showcerts", "-verify_return_error"])
        .args(["-verify_hostname", "localhost", "-CAfile"])
        .arg(roots)
        .stdin(Stdio::null())
        .output()
        .expect("openssl is installed");
    let said = String::from_utf8_lossy(&ended.stdout).into_owned();
    if !ended.status.success() {
        return Err(said + &String::from_utf8_lossy(&ended.stderr));
    }
    let field = |name: &str| said.lines().find_map(|line| line.trim().strip_prefix(name)?.trim().strip_prefix(": "));
    let chain = said.match_indices(BEGIN).map(|(start, _)| {
        let length = said[start..].find(END).unwrap() + END.len();
        said[start..start + length].to_owned()
    });
    let (protocol, cipher) = (field("Protocol").unwrap().to_owned(), field("Cipher").unwrap().to_owned());
    // The leaf certificate is printed again after the chain.
    let mut chain: Vec<_> = chain.collect();
    if chain.len() > 1 && chain.first() == chain.last() {
        chain.pop();
    }
    Ok(Served { protocol, cipher, chain })
}

pub(super) fn text(pem: &str) -> String {
    let mut child = Command::new("openssl")
        .args(["x509", "-noout", "-text"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("openssl is installed");
    child.stdin.take().unwrap().write_all(pem.as_bytes()).unwrap();
    String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap()
}
