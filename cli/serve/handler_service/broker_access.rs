//! Answers a broker that others run when it asks what clients may do.

use std::sync::Arc;

use anyhow::{Context as _, ensure};
use mqtt::{AccessRequests, ClientIds, access_router};
use server::{
    auth::Authenticator,
    error_response::ErrorFormat,
    secret_file::read_secret,
    serve::{HttpService, Listeners, Server, ServerHandle},
};
use types::Secret;

use crate::serve::context::Context;

/// Minimum length of the secret in paths.
const SECRET_BYTES_MIN: usize = 16;

/// Returns the handler of the broker's access requests, by nearly the rules of the embedded one. Returns `None` if the
/// settings let nobody ask.
pub(super) fn access_requests(
    context: &Context,
    authenticator: &Arc<Authenticator>,
) -> anyhow::Result<Option<Arc<AccessRequests>>> {
    if context.settings.external_broker.access_listen.is_empty() {
        return Ok(None);
    }
    let system = (context.clock.clone(), context.random.clone());
    let settings = &context.settings;
    let client_ids = ClientIds {
        per_application_max: settings.external_broker.clients_per_application_max,
        name_application: settings.external_broker.client_ids_name_application,
    };
    let limits = (settings.broker.connects_per_credential, client_ids);
    let (store, keys) = (context.store.clone(), context.sealing_keys()?);
    Ok(Some(Arc::new(AccessRequests::new(authenticator.clone(), store, keys, limits, system))))
}

/// Listens for the broker; none if nobody may ask.
pub(super) async fn serve_access(
    context: &Context,
    server: &Server,
    requests: Option<Arc<AccessRequests>>,
) -> anyhow::Result<Option<ServerHandle>> {
    let Some(requests) = requests else { return Ok(None) };
    let settings = &context.settings.external_broker;
    let listeners = Listeners::new().plain(&settings.access_listen).await;
    let listeners = listeners.context("cannot listen at `external_broker.access_listen`")?;
    let secret = settings.access_secret_file.as_deref().map(read_secret).transpose();
    let secret = secret.context("cannot use `external_broker.access_secret_file`")?;
    check(secret.as_ref(), listeners.addresses().iter().all(|address| address.ip().is_loopback()))?;
    let service = HttpService::new("access", access_router(requests, secret), ErrorFormat::Account);
    Ok(Some(server.start(service, listeners)))
}

/// Refuses a secret that may be guessed, or that cannot be part of a path.
fn check(secret: Option<&Secret>, is_local: bool) -> anyhow::Result<()> {
    let Some(secret) = secret else {
        ensure!(
            is_local,
            "`external_broker.access_listen` is reached from other machines: set `external_broker.access_secret_file`"
        );
        return Ok(());
    };
    let is_letter = |letter: u8| letter.is_ascii_alphanumeric() || b"-_".contains(&letter);
    ensure!(
        secret.expose().len() >= SECRET_BYTES_MIN && secret.expose().bytes().all(is_letter),
        "the secret in `external_broker.access_secret_file` must have at least {SECRET_BYTES_MIN} letters and digits"
    );
    Ok(())
}
