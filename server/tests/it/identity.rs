//! The key pair of a component: made once, kept, and never replaced in silence.

use std::fs;

use server::identity::Identity;
use types::{Kind, Kinded};

#[test]
fn a_key_pair_is_made_once_and_only_its_public_half_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("handler.pem");
    let [first, again] = [(); 2].map(|()| Identity::load_or_make(&path).unwrap());
    assert_eq!(first.public_key_pem(), again.public_key_pem());
    assert!(first.public_key_pem().starts_with("-----BEGIN PUBLIC KEY-----\n"), "{}", first.public_key_pem());
    assert!(fs::read_to_string(&path).unwrap().contains("PRIVATE KEY"));
    let other = Identity::load_or_make(&folder.path().join("other.key")).unwrap();
    assert_ne!(first.public_key_pem(), other.public_key_pem());
}

#[test]
fn a_file_that_holds_no_such_key_is_refused_and_stays() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("handler.pem");
    for text in ["", "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"] {
        fs::write(&path, text).unwrap();
        let error = Identity::load_or_make(&path).unwrap_err();
        assert_eq!(error.kind(), Kind::Invalid, "{error}");
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
    }
}
