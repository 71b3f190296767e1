//! The settings of a connection to another server, and their checks.

use std::{path::PathBuf, sync::Arc};

use rustls::ClientConfig;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use types::Secret;

use crate::{
    Error, Trust,
    secret_file::{SecretFile, read},
};

// Settings with more fields hand these over as this type: Serde cannot both flatten and refuse unknown fields.
/// A server, and how to log in there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Remote {
    /// URL of the server, such as `mqtts://host:8883`. Its scheme says whether TLS is used.
    pub url: String,
    /// Username, if the server wants one.
    pub username: Option<String>,
    /// File with the password.
    pub password_file: Option<PathBuf>,
    /// PEM file with the certificate authority of the server. If unset, the system's.
    pub ca_certificate: Option<PathBuf>,
    /// PEM file with a client certificate.
    pub certificate: Option<PathBuf>,
    /// PEM file with the private key of the client certificate.
    pub key: Option<PathBuf>,
}

impl Remote {
    /// Reads the password for the first time.
    pub fn password(&self) -> Result<Option<SecretFile>, Error> {
        Ok(self.password_file.as_deref().map(SecretFile::open).transpose()?)
    }

    /// Returns the TLS of a client, with the certificates and the key in the files; `None` without TLS. `plain` is the
    /// setting to change where there is no TLS for them, and how. `refused` is the error for a setting and what is wrong
    /// with it.
    pub fn tls<E: From<Error>>(
        &self,
        is_tls: bool,
        plain: (&str, &str),
        refused: &dyn Fn(&str, &str) -> E,
    ) -> Result<Option<Arc<ClientConfig>>, E> {
        self.check_tls(is_tls, plain, refused)?;
        Ok(if is_tls { Some(Arc::new(self.client_tls()?)) } else { None })
    }

    /// Checks that files are set only with TLS, and a certificate of our own only with its key.
    pub(crate) fn check_tls<E>(
        &self,
        is_tls: bool,
        (setting, reason): (&str, &str),
        refused: &dyn Fn(&str, &str) -> E,
    ) -> Result<(), E> {
        let Self { ca_certificate, certificate, key, .. } = self;
        if !is_tls && [ca_certificate, certificate, key].into_iter().any(Option::is_some) {
            return Err(refused(setting, reason));
        }
        if certificate.is_some() != key.is_some() {
            return Err(refused("key", "must be set together with `certificate`"));
        }
        Ok(())
    }

    fn client_tls(&self) -> Result<ClientConfig, Error> {
        let trust = Trust::of_file(self.ca_certificate.as_deref())?;
        Ok(match (&self.certificate, &self.key) {
            (Some(certificate), Some(key)) => trust.tls_with_identity(&read(certificate)?, &Secret::new(read(key)?))?,
            _ => trust.tls()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_need_tls_and_a_certificate_needs_its_key() {
        let (file, none) = (|| Some(PathBuf::from("file.pem")), Remote::default);
        for (remote, is_tls, refused) in [
            (Remote { ca_certificate: file(), ..none() }, false, Some("url")),
            (Remote { key: file(), ..none() }, false, Some("url")),
            (Remote { key: file(), ..none() }, true, Some("key")),
            (Remote { certificate: file(), ..none() }, true, Some("key")),
            (Remote { certificate: file(), key: file(), ..none() }, true, None),
            (none(), false, None),
        ] {
            let refuse = |name: &str, _: &str| name.to_owned();
            let checked = remote.check_tls(is_tls, ("url", "must be of TLS"), &refuse);
            assert_eq!(checked.err().as_deref(), refused, "{remote:?}");
        }
    }
}
