//! Self-signed certificates: one file with the server's key and certificate, and the authority that signed it.

use std::{
    fs, io,
    path::{Path, PathBuf},
    time::Duration,
};

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose,
};
use time::OffsetDateTime;
use types::{Clock, Timestamp};

use crate::{Error, private_file::write_private};

/// The file in the data directory.
const FILE: &str = "tls.pem";
/// The prefix of the file's first line; the names and the expiry follow.
const TITLE: &str = "Made by Airlock for";
/// How long a certificate is valid.
const LIFE: Duration = Duration::from_secs(10 * 365 * 24 * 60 * 60);
/// How long before it expires a certificate is replaced.
const RENEWAL: Duration = Duration::from_secs(30 * 24 * 60 * 60);
/// How far validity is backdated, for clients with slow clocks.
const BACKDATED: Duration = Duration::from_secs(24 * 60 * 60);
/// Names in every certificate.
const LOCAL: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

/// Returns the file and its contents; creates it if there is none that is valid for these names.
pub(super) fn load_or_make(folder: &Path, names: &[String], clock: &dyn Clock) -> Result<(PathBuf, String), Error> {
    let path = folder.join(FILE);
    let mut names: Vec<String> = LOCAL.into_iter().map(str::to_owned).chain(names.iter().cloned()).collect();
    names[LOCAL.len()..].sort();
    names.dedup();
    match fs::read_to_string(&path) {
        Ok(text) if is_good(&text, &names, clock.now()) => return Ok((path, text)),
        Ok(_) => {
            tracing::info!(path = %path.display(), "replacing the certificate: its names changed, or it expires soon")
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(source) => return Err(Error::File { action: "read", path, source }),
    }
    let text =
        make(&names, clock.now()).map_err(|source| Error::MakeCertificate { names: names.join(", "), source })?;
    match write_private(&path, text.as_bytes()) {
        Ok(()) => Ok((path, text)),
        Err(source) => Err(Error::File { action: "write", path, source }),
    }
}

/// Whether the first line shows that this file has these names and does not expire soon.
fn is_good(text: &str, names: &[String], now: Timestamp) -> bool {
    let title = format!("{TITLE} {} until ", names.join(" "));
    let until = text.lines().next().and_then(|line| line.strip_prefix(&title)?.parse::<Timestamp>().ok());
    until.is_some_and(|until| until > now.plus(RENEWAL))
}

/// Creates an authority and a certificate signed by it, and discards the authority's key.
fn make(names: &[String], now: Timestamp) -> Result<String, rcgen::Error> {
    let until = now.plus(LIFE);
    let (authority_key, key) = (KeyPair::generate()?, KeyPair::generate()?);
    let mut authority = lasting(CertificateParams::default(), now, until);
    authority.distinguished_name.push(DnType::CommonName, "Airlock authority of this machine");
    authority.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    authority.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    let mut server = lasting(CertificateParams::new(names)?, now, until);
    server.distinguished_name.push(DnType::CommonName, "Airlock");
    server.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    server.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    server.use_authority_key_identifier_extension = true;

    let authority_pem = authority.self_signed(&authority_key)?.pem();
    let server_pem = server.signed_by(&key, &Issuer::from_params(&authority, &authority_key))?.pem();
    let title = format!("{TITLE} {} until {}", names.join(" "), until.to_rfc3339());
    let text = [title, key.serialize_pem(), server_pem, authority_pem].join("\n");
    Ok(text.replace("\r\n", "\n"))
}

fn lasting(mut params: CertificateParams, now: Timestamp, until: Timestamp) -> CertificateParams {
    params.not_before = date_time(now) - BACKDATED;
    params.not_after = date_time(until);
    params
}

fn date_time(moment: Timestamp) -> OffsetDateTime {
    // The library supports every second that a timestamp can hold.
    let seconds = i64::try_from(moment.as_secs()).unwrap_or_default();
    OffsetDateTime::from_unix_timestamp(seconds).unwrap_or(OffsetDateTime::UNIX_EPOCH)
}
