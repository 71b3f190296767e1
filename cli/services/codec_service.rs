//! Starts the codec service, in `airlock serve` or alone.

use std::sync::Arc;

use codecs::Codecs;
use server::{
    error_response::ErrorFormat,
    serve::{HttpService, Listeners, Server, ServerHandle},
};
use types::{Clock, Random};

use crate::{services::pool, settings::Settings};

/// Resources that the codec service takes from its process.
pub(crate) struct Environment<'a> {
    pub(crate) server: &'a Server,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) random: Arc<dyn Random>,
}

/// Starts the service, which follows its directory until the server stops.
pub(crate) async fn start(
    settings: &Settings,
    environment: Environment<'_>,
) -> anyhow::Result<(ServerHandle, Arc<Codecs>)> {
    let Environment { server, clock, random } = environment;
    let listeners = Listeners::new().plain(&settings.codecs.listen).await?;
    let is_local = listeners.addresses().iter().all(|address| address.ip().is_loopback());
    if settings.codecs.key_file.is_none() && !is_local {
        tracing::warn!("everybody who reaches the codec service can run and read its codecs: set codecs.key_file");
    }
    let pool = Arc::new(pool::start("codecs", &settings.sandbox).await?);
    let codecs = Arc::new(Codecs::open(&settings.codecs, pool, clock, random)?);
    let router = codecs.router(is_local);
    let (followed, stop) = (codecs.clone(), server.stop.clone());
    tokio::spawn(async move { followed.follow(&stop).await });
    let service = HttpService::new("codecs", router, ErrorFormat::Account);
    Ok((server.start(service, listeners), codecs))
}
