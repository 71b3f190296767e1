//! The key pair of a component: created once, and never replaced silently.

use std::fs;

use server::identity::Identity;
use types::{Kind, Kinded};

#[test]
fn creates_a_key_pair_once_and_shows_only_the_public_key() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("handler.pem");
    let [first, again] = [(); 2].map(|()| Identity::load_or_create(&path).unwrap());
    assert_eq!(first.public_key_pem(), again.public_key_pem());
    assert!(first.public_key_pem().starts_with("-----BEGIN PUBLIC KEY-----\n"), "{}", first.public_key_pem());
    assert!(fs::read_to_string(&path).unwrap().contains("PRIVATE KEY"));
    let other = Identity::load_or_create(&dir.path().join("other.key")).unwrap();
    assert_ne!(first.public_key_pem(), other.public_key_pem());
}

#[test]
fn refuses_an_invalid_key_file_and_keeps_it() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("handler.pem");
    for text in ["", "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"] {
        fs::write(&path, text).unwrap();
        let error = Identity::load_or_create(&path).unwrap_err();
        assert_eq!(error.kind(), Kind::Invalid, "{error}");
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
    }
}
