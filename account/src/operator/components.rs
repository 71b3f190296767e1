//! The list of all components.

use api::rest::account as body;
use types::ComponentId;

use crate::{Account, Result, component::Component, documents::Stored, entity::Entity, id_index::IdIndex};

impl Account {
    /// All components after the id `after`, in order; [`LISTED_MAX`](crate::LISTED_MAX) at most.
    ///
    /// The operator's own components have no collaborators.
    pub async fn list_components(&self, after: Option<&ComponentId>) -> Result<Vec<body::Component>> {
        let ids = self.ids_in_index::<ComponentId>(IdIndex::Components, after.map(ComponentId::as_str)).await?;
        let keys = ids.iter().map(|id| Component::key(id.as_str())).collect::<Result<Vec<_>>>()?;
        let found: Vec<Option<Stored<Component>>> = self.documents.read_all(&keys).await?;
        let mut components = Vec::new();
        for Stored { value, .. } in found.into_iter().flatten().filter(|stored| !stored.value.is_deleted()) {
            let collaborators = Some(self.collaborators(&value).await?);
            let Component { service, id, created, .. } = value;
            components.push(body::Component { service, id, created, collaborators });
        }
        Ok(components)
    }
}
