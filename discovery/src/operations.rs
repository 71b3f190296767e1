//! The operations of the discovery service and who may use them. gRPC and REST only translate.

use std::{fmt, sync::Arc};

use api::discovery as message;
use server::{
    audit::AuditLog,
    auth::{Authenticator, Caller, Purpose},
    usage::Usage,
};
use types::{
    AppEui, AppId, ApplicationRight, Claims, Clock, ComponentId, Credential, GatewayId, GatewayRight, Scope,
    ServiceName,
};

use crate::{
    Error,
    announcement::Announcement,
    error::Result,
    metadata::Metadata,
    metrics,
    registry::{Page, Registry},
};

/// Maximum metadata in one response. Application ids at this count stay below the 4 MiB that gRPC clients accept.
const METADATA_MAX: usize = 50_000;

/// Metadata, and the component that serves it.
pub(crate) struct Assignment {
    pub(crate) service: ServiceName,
    pub(crate) id: ComponentId,
    pub(crate) metadata: Metadata,
}

impl fmt::Display for Assignment {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{} {}", self.service, self.id, self.metadata)
    }
}

pub(crate) struct Operations {
    registry: Registry,
    authenticator: Arc<Authenticator>,
    clock: Arc<dyn Clock>,
    audit: AuditLog,
    /// The account services whose components may announce themselves; if empty, all.
    issuers: Vec<String>,
}

impl Operations {
    pub(crate) fn new(
        registry: Registry,
        authenticator: Arc<Authenticator>,
        clock: Arc<dyn Clock>,
        audit: AuditLog,
        issuers: Vec<String>,
    ) -> Self {
        Self { registry, authenticator, clock, audit, issuers }
    }

    /// Stores a component's announcement; only the component itself may.
    pub(crate) async fn announce(&self, caller: Caller, announcement: &Announcement) -> Result<()> {
        let claims = self.authenticator.authenticate(caller, Purpose::Change).await?;
        self.check_component(&claims, announcement.service, &announcement.id)?;
        let object = format!("{}:{}", announcement.service, announcement.id);
        let change = self.audit.change("component announced", &claims.sub, &object)?;
        change.run(self.registry.announce(announcement, self.clock.now())).await?;
        metrics::announced(announcement.service);
        Ok(())
    }

    /// Assigns something to a component, taking it from the one that served it before.
    pub(crate) async fn add_metadata(&self, caller: Caller, assignment: &Assignment) -> Result<()> {
        let claims = self.authorize_change(caller, assignment).await?;
        // Serving something from a component that does not exist would make it unreachable.
        self.registry.announcement(assignment.service, &assignment.id).await?;
        let change = self.audit.change("metadata added", &claims.sub, assignment)?;
        change.run(self.registry.add(&assignment.id, &assignment.metadata)).await?;
        metrics::metadata_changed(assignment.service, "added");
        Ok(())
    }

    /// Removes something from what a component serves. The component itself may always do that.
    pub(crate) async fn delete_metadata(&self, caller: Caller, assignment: &Assignment) -> Result<()> {
        let claims = match self.itself(caller.clone(), assignment).await {
            Some(claims) => claims,
            None => self.authorize_change(caller, assignment).await?,
        };
        let change = self.audit.change("metadata deleted", &claims.sub, assignment)?;
        change.run(self.registry.delete(&assignment.id, &assignment.metadata)).await?;
        metrics::metadata_changed(assignment.service, "deleted");
        Ok(())
    }

    /// Returns a component with everything that it serves, which is charged to `usage`.
    pub(crate) async fn get(
        &self,
        service: ServiceName,
        id: &ComponentId,
        usage: &Usage,
    ) -> Result<message::Announcement> {
        let announcement = self.registry.announcement(service, id).await?;
        let served = self.registry.served(service, id, METADATA_MAX, usage).await?;
        usage.add_entries(1 + served.len());
        note_cut(served.len());
        Ok(announcement.into_message(served))
    }

    /// Returns the components of a service with everything that they serve, which is charged to `usage`.
    pub(crate) async fn get_all(
        &self,
        service: ServiceName,
        page: Page,
        usage: &Usage,
    ) -> Result<Vec<message::Announcement>> {
        let mut left = METADATA_MAX;
        let mut services = Vec::new();
        for announcement in self.registry.announcements(service, page, usage).await? {
            let served = self.registry.served(service, &announcement.id, left, usage).await?;
            usage.add_entries(1 + served.len());
            left -= served.len();
            services.push(announcement.into_message(served));
        }
        note_cut(METADATA_MAX - left);
        Ok(services)
    }

    /// Returns the handler of an application.
    pub(crate) async fn get_by_app_id(&self, app_id: AppId) -> Result<message::Announcement> {
        self.serving(Metadata::AppId(app_id)).await
    }

    pub(crate) async fn get_by_gateway_id(&self, gateway_id: GatewayId) -> Result<message::Announcement> {
        self.serving(Metadata::GatewayId(gateway_id)).await
    }

    /// Returns the handler of a join EUI.
    pub(crate) async fn get_by_app_eui(&self, app_eui: AppEui) -> Result<message::Announcement> {
        if app_eui.is_zero() {
            return Err(Error::invalid("AppEUI", "can not be empty"));
        }
        self.serving(Metadata::AppEui(app_eui)).await
    }

    /// Returns the component that serves something, without its other metadata.
    async fn serving(&self, metadata: Metadata) -> Result<message::Announcement> {
        let id = self.registry.holder(&metadata).await?;
        Ok(self.registry.announcement(metadata.service(), &id).await?.into_message(Vec::new()))
    }

    /// The claims of the caller, if it is the component that serves this.
    async fn itself(&self, caller: Caller, assignment: &Assignment) -> Option<Claims> {
        let Some(Credential::Token(_)) = caller.credential else { return None };
        let claims = self.authenticator.authenticate(caller, Purpose::Change).await.ok()?;
        self.check_component(&claims, assignment.service, &assignment.id).is_ok().then_some(claims)
    }

    /// Checks that the caller may change who serves this.
    ///
    /// An application needs `settings` or `delete`: `settings` lets a user register it at a handler, `delete` remove it
    /// there, and the handler passes that credential on. (v2 required `delete` for both, so registering with a lesser
    /// key left the application unreachable.)
    async fn authorize_change(&self, caller: Caller, assignment: &Assignment) -> Result<Claims> {
        let claims = match &assignment.metadata {
            Metadata::AppId(app_id) => self.authenticator.authenticate_for(app_id, caller, Purpose::Change).await?,
            Metadata::GatewayId(gateway_id) => {
                self.authenticator.authenticate_for_gateway(gateway_id, caller, Purpose::Change).await?
            }
            _ => self.authenticator.authenticate(caller, Purpose::Change).await?,
        };
        if assignment.metadata.service() != assignment.service {
            let reason = format!("a {} can not announce {}", assignment.service, assignment.metadata);
            return Err(Error::denied(reason));
        }
        match &assignment.metadata {
            Metadata::AppId(app_id) => check_application_right(&claims, app_id)?,
            Metadata::GatewayId(gateway_id) => check_gateway_right(&claims, gateway_id)?,
            Metadata::DevAddrPrefix(_) => self.check_component(&claims, assignment.service, &assignment.id)?,
            Metadata::AppEui(_) => return Err(Error::denied("Can not announce AppEUIs at this time")),
        }
        Ok(claims)
    }

    fn check_component(&self, claims: &Claims, service: ServiceName, id: &ComponentId) -> Result<()> {
        if !self.issuers.is_empty() && !self.issuers.contains(&claims.iss) {
            return Err(Error::denied(format!("Discovery:Token issuer {} may not announce components", claims.iss)));
        }
        if claims.kind != service.as_str() {
            let kind = &claims.kind;
            return Err(Error::denied(format!(
                "Discovery:Token type {kind} does not correspond with service {service}"
            )));
        }
        if !claims.is_component(service, id) {
            let subject = &claims.sub;
            let reason = format!("Discovery:Token subject {subject} does not correspond with announcement ID {id}");
            return Err(Error::denied(reason));
        }
        Ok(())
    }
}

fn check_application_right(claims: &Claims, app_id: &AppId) -> Result<()> {
    let rights = [ApplicationRight::Settings, ApplicationRight::Delete];
    if rights.into_iter().any(|right| claims.allows(app_id, right)) {
        return Ok(());
    }
    Err(Error::denied(format!(r#"No "settings" or "delete" rights to Application "{app_id}""#)))
}

/// A gateway may choose its own router.
fn check_gateway_right(claims: &Claims, gateway_id: &GatewayId) -> Result<()> {
    let is_gateway = claims.kind == "gateway" && claims.sub == gateway_id.as_str();
    let reaches = claims.scope.contains(&Scope::Gateway(gateway_id.clone()));
    let rights = claims.gateways.get(gateway_id).filter(|_| reaches);
    if is_gateway || rights.is_some_and(|rights| rights.contains(&GatewayRight::Delete)) {
        return Ok(());
    }
    Err(Error::denied(format!(r#"No "gateway:delete" rights to Gateway "{gateway_id}""#)))
}

/// Logs that a response has as much metadata as allowed, so that some may be missing.
fn note_cut(served: usize) {
    if served >= METADATA_MAX {
        metrics::response_cut();
        tracing::warn!(served, "response truncated: too much metadata");
    }
}
