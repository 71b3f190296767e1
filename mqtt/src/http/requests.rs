//! Access checks for brokers that others run: a client may connect, subscribe and publish by the rules of our own
//! broker, but only on topics of an application's devices. Other topics of such a broker are not Airlock's.
//!
//! These brokers ask about topics without the password. So the credential that a client showed when it connected is
//! kept in the store, sealed, where any process finds it. Its rights are asked for again each time.

mod clients;

use std::sync::Arc;

use server::{rate_limit::RateLimit, seal::SealingKeys, status::ErrorChain};
use store::Store;
use types::{AppId, Clock, Credential, Random};

use self::clients::{Claim, Clients, ClientsError, named_application};
use crate::{
    access::{
        authenticator::{Authenticator, Refusal},
        permissions::{Permissions, split_share},
    },
    connection::{
        connect::{CLIENT_ID_BYTES_MAX, credentials},
        connect_limits::ConnectLimits,
    },
};

/// The group in which handlers share the downlinks of all applications.
const HANDLERS_SHARE: &str = "$share/airlock/";
/// Prefix and suffixes of the client ids of handlers.
const HANDLER_ID: (&str, [&str; 2]) = ("airlock-", ["-in", "-out"]);

/// Answers the questions of brokers.
pub struct AccessRequests {
    authenticator: Arc<dyn Authenticator>,
    limits: ConnectLimits,
    clients: Clients,
    names_applications: bool,
}

/// Limits of the client ids of an application.
#[derive(Clone, Copy, Debug)]
pub struct ClientIds {
    /// Number of ids in a week, at most 1000.
    pub per_application_max: usize,
    /// True if ids must begin with the application's id and a colon. Then no other application can use them first.
    pub name_application: bool,
}

impl AccessRequests {
    /// Answers according to `authenticator`. The credentials of clients are kept in `store`, sealed with `keys`; one
    /// credential may be used to connect as often as `per_credential` says.
    pub fn new(
        authenticator: Arc<dyn Authenticator>,
        store: Arc<dyn Store>,
        keys: SealingKeys,
        (per_credential, client_ids): (RateLimit, ClientIds),
        (clock, random): (Arc<dyn Clock>, Arc<dyn Random>),
    ) -> Self {
        // Only the broker knows the addresses of its clients.
        let limits = ConnectLimits::new(per_credential, per_credential, &clock);
        let ClientIds { per_application_max, name_application: names_applications } = client_ids;
        let clients = Clients::new(store, keys, per_application_max, (clock, random));
        Self { authenticator, limits, clients, names_applications }
    }

    /// Lets a client connect, and returns when its token expires, in seconds since 1970; none for an access key. Its id
    /// belongs to its application from then on, so that no other one gets what waits for it in the broker.
    pub(crate) async fn connect(
        &self,
        username: &str,
        password: &str,
        client_id: &str,
    ) -> Result<Option<u64>, Refusal> {
        let (app_id, credential) = credentials(username, password).ok_or(Refusal::Invalid)?;
        if client_id.is_empty() || client_id.len() > CLIENT_ID_BYTES_MAX || is_handler_id(client_id) {
            return Err(Refusal::Invalid);
        }
        if self.names_applications && named_application(client_id).is_none() {
            tracing::debug!(%app_id, "refused an MQTT client: its id does not begin with its application's and a colon");
            return Err(Refusal::Invalid);
        }
        let limited = self.limits.count_credential(&app_id, &credential);
        limited
            .map_err(|exceeded| Refusal::Unavailable(format!("too many connections: wait {} s", exceeded.wait_s)))?;
        let claims = self.authenticator.authenticate(&app_id, &credential, None).await?;
        let permissions = Permissions::new(app_id.clone(), &claims);
        if !permissions.may_connect() {
            return Err(Refusal::Invalid);
        }
        let claimed = self.clients.claim(&app_id, client_id, (&credential, permissions.may_read())).await;
        match claimed.map_err(|error| unavailable(&error))? {
            Claim::Granted => {}
            Claim::Foreign => return Err(Refusal::Invalid),
            Claim::TooMany => {
                tracing::warn!(%app_id, "refused an MQTT client: its application has used too many client ids this week");
                return Err(Refusal::Invalid);
            }
        }
        // A key is exchanged for a token that expires soon, which says nothing about the key.
        Ok(matches!(credential, Credential::Token(_)).then_some(claims.exp))
    }

    /// Returns true if the application has this client, and the client may read if `reads` is set.
    pub(crate) async fn is_client_of(&self, username: &str, client_id: &str, reads: bool) -> Result<bool, Refusal> {
        let permissions = self.permissions(username, client_id).await?;
        Ok(permissions.is_some_and(|permissions| !reads || permissions.may_read()))
    }

    pub(crate) async fn may_publish(&self, username: &str, client_id: &str, topic: &str) -> Result<bool, Refusal> {
        let permissions = self.permissions(username, client_id).await?;
        Ok(permissions.is_some_and(|permissions| permissions.may_publish(topic)))
    }

    /// Returns true if a client may subscribe to a filter as it is, or receive messages on a topic.
    pub(crate) async fn may_subscribe(&self, username: &str, client_id: &str, filter: &str) -> Result<bool, Refusal> {
        let permissions = self.permissions(username, client_id).await?;
        Ok(permissions.is_some_and(|permissions| permissions.may_subscribe(filter)) && is_of_devices(filter))
    }

    /// A filter of a client, narrowed to its application; none if it may not subscribe to that.
    pub(crate) async fn narrow(
        &self,
        username: &str,
        client_id: &str,
        filter: &str,
    ) -> Result<Option<String>, Refusal> {
        let Some(permissions) = self.permissions(username, client_id).await? else { return Ok(None) };
        let mut narrowed = permissions.narrow(filter);
        if narrowed.ends_with(&format!("{username}/#")) && !is_of_devices(&narrowed) {
            narrowed.truncate(narrowed.len() - 1);
            narrowed.push_str("devices/#");
        }
        Ok(Some(narrowed).filter(|filter| permissions.may_subscribe(filter) && is_of_devices(filter)))
    }

    /// Returns the rights of a client now; none if it has not connected as this user, or its credential is no longer
    /// valid.
    async fn permissions(&self, username: &str, client_id: &str) -> Result<Option<Permissions>, Refusal> {
        let Ok(app_id) = username.parse::<AppId>() else { return Ok(None) };
        let Some(credential) =
            self.clients.credential(&app_id, client_id).await.map_err(|error| unavailable(&error))?
        else {
            return Ok(None);
        };
        match self.authenticator.authenticate(&app_id, &credential, None).await {
            Ok(claims) => Ok(Some(Permissions::new(app_id, &claims))),
            Err(Refusal::Invalid) => Ok(None),
            Err(refusal @ Refusal::Unavailable(_)) => Err(refusal),
        }
    }
}

/// Returns true if a filter matches only topics of devices, which is all that Airlock publishes: a broker of others
/// may have other topics below the id of an application. Filters in the group of the handlers are refused.
fn is_of_devices(filter: &str) -> bool {
    let (share, filter) = split_share(filter);
    share != HANDLERS_SHARE && filter.split('/').nth(1) == Some("devices")
}

fn is_handler_id(client_id: &str) -> bool {
    let (start, ends) = HANDLER_ID;
    client_id.starts_with(start) && ends.iter().any(|end| client_id.ends_with(end))
}

fn unavailable(error: &ClientsError) -> Refusal {
    tracing::debug!(error = %ErrorChain(error), "cannot answer a broker");
    Refusal::Unavailable("the store cannot be used: try again later".to_owned())
}
