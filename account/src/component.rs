//! Components of the network: handlers, routers and brokers, which prove themselves with tokens of their own.

use serde::{Deserialize, Serialize};
use store::{Key, Tag};
use types::{ComponentId, Secret, ServiceName, Timestamp};

use crate::{Account, Result, audit};

/// A component, as kept under its service and id.
#[derive(Debug, Serialize, Deserialize)]
struct ComponentRecord {
    service: ServiceName,
    id: ComponentId,
    created: Timestamp,
}

impl Account {
    /// A token for a component of the operator's own, which is registered when it is new.
    ///
    /// It lives 93 days. Whoever can call this can do anything here anyway: it is not part of any interface.
    pub async fn component_token(&self, service: ServiceName, id: &ComponentId) -> Result<Secret> {
        let key = Key::new(&Tag::named("c", &format!("{service}:{id}"))?, "component")?;
        let record = ComponentRecord { service, id: id.clone(), created: self.clock.now() };
        if self.documents.create(&key, &record).await? {
            audit::event("component registered", &service, id);
        }
        self.sign_component(service, id)
    }
}
