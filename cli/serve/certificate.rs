//! The certificate of the gRPC listeners, as the settings want it.

use anyhow::Context;
use server::tls::Tls;
use types::Clock;

use super::data_dir::Folder;
use crate::settings::{Settings, TlsMode};

/// Takes or makes the certificate; none when encryption is off.
pub(crate) fn certificate(settings: &Settings, folder: &Folder, clock: &dyn Clock) -> anyhow::Result<Option<Tls>> {
    Ok(match settings.tls.mode {
        TlsMode::Off => None,
        TlsMode::SelfSigned => {
            let tls = Tls::self_signed(folder.path(), std::slice::from_ref(&settings.announce_host), clock)?;
            folder.trust(tls.certificate_pem())?;
            Some(tls)
        }
        TlsMode::Files => {
            let certificate = settings.tls.certificate.as_deref().context("set tls.certificate to a PEM file")?;
            Some(Tls::from_files(certificate, settings.tls.key.as_deref().unwrap_or(certificate))?)
        }
    })
}
