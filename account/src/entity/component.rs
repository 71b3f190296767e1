//! Network components: handlers, routers and brokers, which authenticate with tokens of their own.

use std::fmt;

use serde::{Deserialize, Serialize};
use store::{Key, Tag};
use types::{AccessKey, Claims, ComponentId, ComponentRight, Scope, Secret, ServiceName, Timestamp, UserId};

use crate::{
    Account, Error, Result,
    documents::id_index::IdIndex,
    entity::{
        self, Collaborators, Entity,
        access::{Caller, Requires},
        all_rights,
    },
    user::next_second,
};

pub(crate) type ComponentRights = entity::Rights<ComponentRight>;

/// A component. The operator's own components have no collaborators.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Component {
    pub(crate) service: ServiceName,
    pub(crate) id: ComponentId,
    pub(crate) created: Timestamp,
    #[serde(default)]
    pub(crate) deleted: Option<Timestamp>,
    /// None of the operator's own components, and in documents of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) owner: Option<UserId>,
    #[serde(default)]
    pub(crate) collaborators: Collaborators<ComponentRight>,
    /// Tokens from before this Unix time in seconds are invalid.
    #[serde(default)]
    pub(crate) not_before_s: u64,
}

/// Name of a component in paths. Ids are unique across services, so tokens do not name the service.
#[derive(Clone, Debug)]
pub(crate) struct ServiceAndId {
    pub(crate) service: ServiceName,
    pub(crate) id: ComponentId,
}

impl fmt::Display for ServiceAndId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.id.fmt(out)
    }
}

impl Entity for Component {
    type Id = ServiceAndId;
    type Right = ComponentRight;

    const NOUN: &'static str = "component";
    const RIGHTS: &'static [ComponentRight] = ComponentRight::ALL;
    const COLLABORATORS: ComponentRight = ComponentRight::Collaborators;
    const RESTORE: Option<ComponentRight> = None;
    const OWNER_STAYS: bool = false;

    fn key(id: &str) -> Result<Key> {
        Ok(Key::new(&Tag::named("c", id)?, "component")?)
    }

    fn scope(id: &ServiceAndId) -> Scope {
        Scope::Component(id.id.clone())
    }

    fn claimed<'a>(claims: &'a Claims, id: &ServiceAndId) -> Option<&'a Vec<ComponentRight>> {
        claims.components.get(&id.id)
    }

    fn is(&self, id: &ServiceAndId) -> bool {
        self.service == id.service && self.id == id.id
    }

    fn is_deleted(&self) -> bool {
        self.deleted.is_some()
    }

    fn collaborators(&self) -> &Collaborators<ComponentRight> {
        &self.collaborators
    }

    fn owner(&self) -> Option<&UserId> {
        self.owner.as_ref()
    }

    fn set_owner(&mut self, owner: UserId) {
        self.owner = Some(owner);
    }

    fn collaborators_mut(&mut self) -> &mut Collaborators<ComponentRight> {
        &mut self.collaborators
    }

    /// Whoever could get the component's token may have kept it.
    fn note_rights_taken(&mut self, taken: &ComponentRights, now: Timestamp) {
        if taken.contains(&ComponentRight::Settings) {
            self.end_tokens(now);
        }
    }

    fn rights_of_key(&self, _: &Account, _: &AccessKey) -> Option<ComponentRights> {
        None
    }
}

impl Component {
    /// Ends all tokens of the component.
    pub(crate) fn end_tokens(&mut self, now: Timestamp) {
        self.not_before_s = next_second(self.not_before_s, now);
    }
}

impl Account {
    pub(crate) async fn create_component(&self, creator: &UserId, id: &ServiceAndId) -> Result<Component> {
        let component = self.new_component(id, Some(creator));
        let created = async {
            self.add_to_index(IdIndex::Components, id.id.as_str()).await?;
            self.create_entity(creator, id, &component).await
        };
        let change = self.audit.change("component created", creator, &format_args!("{} {id}", id.service))?;
        change.run(created).await?;
        Ok(component)
    }

    /// Deletes a component. Its id stays taken, and it gets no more tokens.
    pub(crate) async fn delete_component(&self, caller: &Caller, id: &ServiceAndId) -> Result<()> {
        let now = self.clock.now();
        let delete = |component: &mut Component, _: &ComponentRights| {
            component.deleted = Some(now);
            Ok(())
        };
        let change = self.audit.change("component deleted", caller, &format_args!("{} {id}", id.service))?;
        change.run(self.change_as(caller, id, Requires::Right(ComponentRight::Delete), delete)).await
    }

    /// Issues a token for one of the operator's own components, valid for 93 days, and registers the component if it is
    /// new.
    ///
    /// Only for the operator. Fails if a user or another service has a component with this id.
    pub async fn component_token(&self, service: ServiceName, id: &ComponentId) -> Result<Secret> {
        let id = ServiceAndId { service, id: id.clone() };
        let key = Component::key(id.id.as_str())?;
        self.add_to_index(IdIndex::Components, id.id.as_str()).await?;
        if self.documents.create(&key, &self.new_component(&id, None)).await? {
            // Not refused without the audit file: the account service registers the handler whenever it starts.
            self.audit.note("component registered", &service, &id);
        }
        let found = self.entity::<Component>(&id).await?;
        match found.filter(|stored| stored.value.collaborators.is_empty()) {
            Some(stored) => self.sign_component(&stored.value).await,
            None => Err(Error::Taken { what: Component::NOUN, id: id.to_string() }),
        }
    }

    /// The claims of a component's token that verifies with the current signing keys.
    pub fn component_of(&self, token: &Secret) -> Option<Claims> {
        let claims = self.signer.verify(token, self.clock.now()).ok()?;
        claims.kind.parse::<ServiceName>().is_ok().then_some(claims)
    }

    fn new_component(&self, id: &ServiceAndId, creator: Option<&UserId>) -> Component {
        let ServiceAndId { service, id } = id.clone();
        let collaborators = creator.map(|creator| (creator.clone(), all_rights::<Component>())).into_iter().collect();
        Component {
            service,
            id,
            created: self.clock.now(),
            deleted: None,
            owner: creator.cloned(),
            collaborators,
            not_before_s: 0,
        }
    }
}
