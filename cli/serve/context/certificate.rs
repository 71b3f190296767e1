//! The TLS certificate of the gRPC listeners, chosen by the settings.

use anyhow::Context;
use server::tls::Tls;
use types::Clock;

use crate::{
    serve::data_dir::DataDir,
    settings::{Settings, TlsMode},
};

/// Loads the certificate, or generates it on the first start; `None` when TLS is off.
pub(super) fn certificate(settings: &Settings, data_dir: &DataDir, clock: &dyn Clock) -> anyhow::Result<Option<Tls>> {
    Ok(match settings.tls.mode {
        TlsMode::Off => None,
        TlsMode::SelfSigned => {
            let tls = Tls::self_signed(data_dir.path(), std::slice::from_ref(&settings.announce_host), clock)?;
            data_dir.write_trusted_certificate(tls.certificate_pem())?;
            Some(tls)
        }
        TlsMode::Files => {
            let certificate = settings.tls.certificate.as_deref().context("set tls.certificate to a PEM file")?;
            Some(Tls::from_files(certificate, settings.tls.key.as_deref().unwrap_or(certificate))?)
        }
    })
}
