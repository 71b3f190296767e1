//! Self-signed certificates: one file with the server's key, its certificate, and the authority that signed it.

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

use crate::{Error, secrets::private_file::write_private};

/// The file name in the data directory.
const FILE: &str = "tls.pem";
/// Start of the first line of the file; the host names and the expiry follow.
const TITLE: &str = "Made by Airlock for";
/// Validity of a certificate.
const VALIDITY: Duration = Duration::from_secs(10 * 365 * 24 * 60 * 60);
/// Time before its expiry at which a certificate is replaced.
const RENEWAL: Duration = Duration::from_secs(30 * 24 * 60 * 60);
/// Time by which its start is backdated, for clients with slow clocks.
const BACKDATED: Duration = Duration::from_secs(24 * 60 * 60);
/// The host names in every certificate.
const LOCAL: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

/// Returns the file and its text; creates a certificate unless a valid one for these names is there.
pub(super) fn load_or_create(dir: &Path, names: &[String], clock: &dyn Clock) -> Result<(PathBuf, String), Error> {
    let path = dir.join(FILE);
    let mut names: Vec<String> = LOCAL.into_iter().map(str::to_owned).chain(names.iter().cloned()).collect();
    names[LOCAL.len()..].sort();
    names.dedup();
    match fs::read_to_string(&path) {
        Ok(text) if is_current(&text, &names, clock.now()) => return Ok((path, text)),
        Ok(_) => {
            tracing::info!(path = %path.display(), "replacing the certificate: its names changed or it expires soon");
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(source) => return Err(Error::File { action: "read", path, source }),
    }
    let text =
        create(&names, clock.now()).map_err(|source| Error::CreateCertificate { names: names.join(", "), source })?;
    match write_private(&path, text.as_bytes()) {
        Ok(()) => Ok((path, text)),
        Err(source) => Err(Error::File { action: "write", path, source }),
    }
}

/// Returns true if the first line has these names and an expiry that is not near.
fn is_current(text: &str, names: &[String], now: Timestamp) -> bool {
    let title = format!("{TITLE} {} until ", names.join(" "));
    let until = text.lines().next().and_then(|line| line.strip_prefix(&title)?.parse::<Timestamp>().ok());
    until.is_some_and(|until| until > now.plus(RENEWAL))
}

/// Creates an authority and a certificate signed by it, and drops the authority's key.
fn create(names: &[String], now: Timestamp) -> Result<String, rcgen::Error> {
    let until = now.plus(VALIDITY);
    let (authority_key, key) = (KeyPair::generate()?, KeyPair::generate()?);
    let mut authority = with_validity(CertificateParams::default(), now, until);
    authority.distinguished_name.push(DnType::CommonName, "Airlock authority of this machine");
    authority.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    authority.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    let mut server = with_validity(CertificateParams::new(names)?, now, until);
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

fn with_validity(mut params: CertificateParams, now: Timestamp, until: Timestamp) -> CertificateParams {
    params.not_before = date_time(now) - BACKDATED;
    params.not_after = date_time(until);
    params
}

fn date_time(moment: Timestamp) -> OffsetDateTime {
    // Every second that a timestamp can hold is in the library's range.
    let seconds = i64::try_from(moment.as_secs()).unwrap_or_default();
    OffsetDateTime::from_unix_timestamp(seconds).unwrap_or(OffsetDateTime::UNIX_EPOCH)
}
