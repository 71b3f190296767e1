//! Certificates: created once, replaced when needed, or read from files.

use std::{fs, path::Path, time::Duration};

use axum::Router;
use server::{system::SystemClock, tls::Tls};
use testing::ManualClock;

use crate::harness::{TestServer, http_client};

const YEAR: Duration = Duration::from_secs(365 * 24 * 60 * 60);

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(ToString::to_string).collect()
}

#[test]
fn creates_a_certificate_once() {
    let dir = tempfile::tempdir().unwrap();
    let (first, again) = (
        Tls::self_signed(dir.path(), &names(&["b.example", "a.example"]), &SystemClock).unwrap(),
        Tls::self_signed(dir.path(), &names(&["a.example", "b.example"]), &SystemClock).unwrap(),
    );
    assert_eq!(first.certificate_pem(), again.certificate_pem());
    assert_eq!(first.certificate_pem().matches("BEGIN CERTIFICATE").count(), 1);
    assert!(!first.certificate_pem().contains("PRIVATE"));
}

#[test]
fn replaces_a_certificate_for_other_names_or_near_its_expiry() {
    let dir = tempfile::tempdir().unwrap();
    let clock = ManualClock::new();
    let made = |host: &str| Tls::self_signed(dir.path(), &names(&[host]), &*clock).unwrap();
    let first = made("a.example").certificate_pem().to_owned();
    let other = made("b.example").certificate_pem().to_owned();
    assert_ne!(first, other);
    clock.advance(9 * YEAR);
    assert_eq!(other, made("b.example").certificate_pem());
    clock.advance(YEAR);
    assert_ne!(other, made("b.example").certificate_pem());
}

#[cfg(unix)]
#[test]
fn only_the_owner_can_read_the_key_file() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    Tls::self_signed(dir.path(), &[], &SystemClock).unwrap();
    let files: Vec<_> = fs::read_dir(dir.path()).unwrap().map(Result::unwrap).collect();
    assert_eq!(files.len(), 1);
    assert_eq!(files[0].metadata().unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn reads_a_certificate_chain_from_files() {
    let dir = tempfile::tempdir().unwrap();
    Tls::self_signed(dir.path(), &[], &SystemClock).unwrap();
    let file = dir.path().join("tls.pem");
    let tls = Tls::from_files(&file, &file).unwrap();
    assert_eq!(tls.certificate_pem().matches("BEGIN CERTIFICATE").count(), 2);
    assert!(!tls.certificate_pem().contains("PRIVATE"));
}

#[test]
fn names_an_invalid_certificate() {
    let dir = tempfile::tempdir().unwrap();
    let nonsense = dir.path().join("nonsense.pem");
    fs::write(&nonsense, "nonsense").unwrap();
    let missing = dir.path().join("missing.pem");
    let other = tempfile::tempdir().unwrap();
    for dir in [dir.path(), other.path()] {
        Tls::self_signed(dir, &[], &SystemClock).unwrap();
    }
    let (own, foreign) = (dir.path().join("tls.pem"), other.path().join("tls.pem"));
    let only_certificate = dir.path().join("certificate.pem");
    let chain = Tls::from_files(&own, &own).unwrap().certificate_pem().to_owned();
    fs::write(&only_certificate, chain).unwrap();
    assert!(Tls::from_files(&only_certificate, &own).is_ok());
    let pairs = [(&nonsense, &own), (&missing, &own), (&only_certificate, &foreign), (&only_certificate, &nonsense)];
    for (certificate, key) in pairs {
        let text = Tls::from_files(certificate, key).unwrap_err().to_string();
        assert!(text.contains(&certificate.display().to_string()), "{text}");
    }
}

#[test]
fn refuses_a_missing_directory_or_an_invalid_name() {
    let error = Tls::self_signed(Path::new("/nowhere/at/all"), &[], &SystemClock).unwrap_err();
    assert!(error.to_string().contains("/nowhere/at/all"), "{error}");
    let dir = tempfile::tempdir().unwrap();
    let error = Tls::self_signed(dir.path(), &names(&["n\u{f6}"]), &SystemClock).unwrap_err();
    assert!(error.to_string().contains("n\u{f6}"), "{error}");
}

#[tokio::test]
async fn clients_refuse_a_certificate_that_is_not_yet_valid() {
    let dir = tempfile::tempdir().unwrap();
    let clock = ManualClock::new();
    clock.advance(20 * YEAR);
    let tls = Tls::self_signed(dir.path(), &[], &*clock).unwrap();
    let server = TestServer::both(Router::new(), &tls).await;
    let url = format!("https://localhost:{}/", server.serving.addresses()[1].port());
    assert!(http_client(Some(tls.certificate_pem())).get(url).send().await.is_err());
}
