//! Owner of an entity: its creator, until somebody else takes it over. Usage by the entity is charged to its owner.

use types::UserId;

use super::{Entity, all_rights, index::made_key};
use crate::{Account, Error, Result};

impl Account {
    /// The owner of an entity; none if it has no collaborators, like the operator's own components.
    ///
    /// Documents of older versions name no owner: it is the collaborator who created the entity, as the users' indexes
    /// say, or else the first one with all rights.
    pub(crate) async fn owner_of<E: Entity>(&self, entity: &E, id: &E::Id) -> Result<Option<UserId>> {
        if let Some(owner) = entity.owner() {
            return Ok(Some(owner.clone()));
        }
        let heirs = heirs(entity);
        let id = id.to_string();
        let entries = heirs.iter().map(|user_id| made_key::<E>(user_id, &id)).collect::<Result<Vec<_>>>()?;
        let made = self.documents.read_all::<()>(&entries).await?;
        let creator = heirs.iter().zip(made).find_map(|(user_id, entry)| entry.map(|_| *user_id));
        Ok(creator.or(heirs.first().copied()).cloned())
    }
}

/// Sees to the owner when collaborators were removed: either the owner has to stay, or the first heir takes over, who
/// is returned.
pub(super) fn pass_on<E: Entity>(entity: &mut E, id: &E::Id) -> Result<Option<UserId>> {
    if entity.owner().is_none_or(|owner| entity.collaborators().contains_key(owner)) {
        return Ok(None);
    }
    if E::OWNER_STAYS {
        return Err(Error::OwnerStays { what: E::NOUN, id: id.to_string() });
    }
    let heir = heirs(entity).first().copied().cloned();
    if let Some(heir) = &heir {
        entity.set_owner(heir.clone());
    }
    Ok(heir)
}

/// Returns the users who can own an entity, in order: collaborators with all rights, then those who can add others.
fn heirs<E: Entity>(entity: &E) -> Vec<&UserId> {
    let all = all_rights::<E>();
    let with = |has: &dyn Fn(&super::Rights<E::Right>) -> bool| {
        let collaborators = entity.collaborators().iter();
        collaborators.filter(|(_, rights)| has(rights)).map(|(user_id, _)| user_id).collect::<Vec<_>>()
    };
    let whole = with(&|rights| *rights == all);
    let others = with(&|rights| *rights != all && rights.contains(&E::COLLABORATORS));
    [whole, others].concat()
}
