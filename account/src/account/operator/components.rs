//! Listing all components, and ending their tokens.

use api::rest::account as body;
use types::ComponentId;

use crate::{
    Account, Error, Result,
    documents::{Document, id_index::IdIndex, retried},
    entity::{Entity, component::Component},
};

impl Account {
    /// All components after the id `after`, in order; [`LISTED_MAX`](crate::LISTED_MAX) at most.
    ///
    /// The operator's own components have no collaborators.
    pub async fn list_components(&self, after: Option<&ComponentId>) -> Result<Vec<body::Component>> {
        let ids = self.ids_in_index::<ComponentId>(IdIndex::Components, after.map(ComponentId::as_str)).await?;
        let keys = ids.iter().map(|id| Component::key(id.as_str())).collect::<Result<Vec<_>>>()?;
        let found: Vec<Option<Document<Component>>> = self.documents.read_all(&keys).await?;
        let mut components = Vec::new();
        for Document { value, .. } in found.into_iter().flatten().filter(|stored| !stored.value.is_deleted()) {
            let collaborators = Some(self.collaborators(&value).await?);
            let Component { service, id, created, .. } = value;
            components.push(body::Component { service, id, created, collaborators });
        }
        Ok(components)
    }

    /// Ends all tokens of a component at once.
    pub async fn revoke_component_tokens(&self, id: &ComponentId) -> Result<()> {
        let key = Component::key(id.as_str())?;
        let now = self.clock.now();
        let attempt = || async {
            let found = self.documents.read::<Component>(&key).await?.filter(|stored| !stored.value.is_deleted());
            let missing = || Error::NotFound { what: Component::NOUN, id: id.to_string() };
            let mut stored = found.ok_or_else(missing)?;
            stored.value.end_tokens(now);
            Ok(self.documents.replace(&stored).await?.then_some(()))
        };
        let change = self.audit.change("component tokens revoked", &"operator", id)?;
        change.run(retried(Component::NOUN, attempt)).await
    }
}
