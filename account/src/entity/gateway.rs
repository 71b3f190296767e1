//! Gateways: the stored document, and creating, changing and deleting it.

pub(crate) mod frequency_plan;
mod key;
mod location;
pub(crate) mod routers;
mod update;

use std::collections::BTreeMap;

use api::rest::account::{GatewayUpdate, Location, NewGateway};
use serde::{Deserialize, Serialize};
use store::{Key, Tag};
use types::{AccessKey, Claims, ComponentId, GatewayId, GatewayRight, Scope, Timestamp, UserId};

use crate::{
    Account, Error, Result,
    entity::{
        self, Collaborators, Entity,
        access::{Caller, Requires},
        all_rights, collaborators,
        stored_key::StoredKey,
    },
};

pub(crate) type GatewayRights = entity::Rights<GatewayRight>;

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Gateway {
    pub(crate) id: GatewayId,
    pub(crate) created: Timestamp,
    pub(crate) deleted: Option<Timestamp>,
    /// Only the owner can transfer the gateway.
    pub(crate) owner: UserId,
    pub(crate) collaborators: Collaborators<GatewayRight>,
    key: StoredKey,
    /// True if the gateway has ever authenticated with its key.
    pub(crate) activated: bool,
    /// The id of an existing plan.
    pub(crate) frequency_plan: String,
    pub(crate) antenna_location: Option<Location>,
    pub(crate) location_public: bool,
    pub(crate) status_public: bool,
    pub(crate) owner_public: bool,
    pub(crate) auto_update: bool,
    pub(crate) beta_updates: bool,
    pub(crate) attributes: BTreeMap<String, String>,
    /// The first configured router if unset.
    router: Option<ComponentId>,
    /// All other configured routers if empty.
    fallback_routers: Vec<ComponentId>,
}

impl Entity for Gateway {
    type Id = GatewayId;
    type Right = GatewayRight;

    const NOUN: &'static str = "gateway";
    const RIGHTS: &'static [GatewayRight] = GatewayRight::ALL;
    const COLLABORATORS: GatewayRight = GatewayRight::Collaborators;
    const RESTORE: Option<GatewayRight> = None;
    const OWNER_STAYS: bool = true;
    const IS_PUBLIC: bool = true;

    fn key(id: &str) -> Result<Key> {
        Ok(Key::new(&Tag::gateway(id)?, "account")?)
    }

    fn scope(id: &GatewayId) -> Scope {
        Scope::Gateway(id.clone())
    }

    fn claimed<'a>(claims: &'a Claims, id: &GatewayId) -> Option<&'a Vec<GatewayRight>> {
        claims.gateways.get(id)
    }

    fn is(&self, id: &GatewayId) -> bool {
        self.id == *id
    }

    fn is_deleted(&self) -> bool {
        self.deleted.is_some()
    }

    fn collaborators(&self) -> &Collaborators<GatewayRight> {
        &self.collaborators
    }

    fn owner(&self) -> Option<&UserId> {
        Some(&self.owner)
    }

    fn set_owner(&mut self, owner: UserId) {
        self.owner = owner;
    }

    fn collaborators_mut(&mut self) -> &mut Collaborators<GatewayRight> {
        &mut self.collaborators
    }

    /// A gateway may know its own exact location.
    fn rights_of_key(&self, account: &Account, key: &AccessKey) -> Option<GatewayRights> {
        account.is_gateway_key(self, key).then(|| GatewayRights::from([GatewayRight::Location]))
    }
}

impl Account {
    /// Creates a gateway with a key. Its creator becomes the owner and has all rights.
    pub(crate) async fn create_gateway(&self, creator: &UserId, new: NewGateway) -> Result<Gateway> {
        let NewGateway { id, settings } = new;
        let frequency_plan = settings.frequency_plan.clone().unwrap_or_default();
        let mut gateway = Gateway {
            key: self.make_gateway_key(&id)?,
            id,
            created: self.clock.now(),
            deleted: None,
            owner: creator.clone(),
            collaborators: Collaborators::from([(creator.clone(), all_rights::<Gateway>())]),
            activated: false,
            frequency_plan,
            antenna_location: None,
            location_public: false,
            status_public: false,
            owner_public: false,
            auto_update: false,
            beta_updates: false,
            attributes: BTreeMap::new(),
            router: None,
            fallback_routers: Vec::new(),
        };
        // A missing plan becomes an empty id, which is refused here.
        let settings = GatewayUpdate { frequency_plan: Some(gateway.frequency_plan.clone()), owner: None, ..settings };
        self.update(&mut gateway, &settings, &all_rights::<Gateway>())?;
        let change = self.audit.change("gateway created", creator, &gateway.id)?;
        change.run(self.create_entity(creator, &gateway.id, &gateway)).await?;
        Ok(gateway)
    }

    /// Applies an update. Only the owner can transfer the gateway to somebody else.
    pub(crate) async fn update_gateway(
        &self,
        caller: &Caller,
        gateway_id: &GatewayId,
        update: &GatewayUpdate,
    ) -> Result<()> {
        let actor = caller.user()?;
        // Checked first, so that only callers who may change the gateway learn which users exist.
        self.access_with::<Gateway>(caller, gateway_id, GatewayRight::Settings).await?;
        let heir = match &update.owner {
            Some(owner) => Some(self.require_user(owner.id()).await?.id),
            None => None,
        };
        let give = |heir| self.audit.change("gateway transferred", caller, &format_args!("{gateway_id} to {heir}"));
        let giving = heir.as_ref().map(give).transpose()?;
        let change = |gateway: &mut Gateway, held: &GatewayRights| {
            self.update(gateway, update, held)?;
            heir.as_ref().map_or(Ok(false), |heir| gateway.give(&actor, heir, held))
        };
        let changed = async {
            let given = self.change_as(caller, gateway_id, Requires::Right(GatewayRight::Settings), change).await?;
            if let Some(heir) = heir.as_ref().filter(|_| given) {
                self.repair_index::<Gateway>(heir, gateway_id).await?;
            }
            Ok(given)
        };
        let outcome: Result<bool> = changed.await;
        match (giving, &outcome) {
            (Some(giving), Ok(false)) => giving.not_made(),
            (Some(giving), _) => giving.end(&outcome),
            (None, _) => {}
        }
        outcome.map(drop)
    }

    /// Deletes a gateway with its location and attributes. Its id stays taken.
    pub(crate) async fn delete_gateway(&self, caller: &Caller, gateway_id: &GatewayId) -> Result<()> {
        let now = self.clock.now();
        let delete = |gateway: &mut Gateway, _: &GatewayRights| {
            gateway.deleted = Some(now);
            gateway.antenna_location = None;
            gateway.attributes.clear();
            Ok(())
        };
        let change = self.audit.change("gateway deleted", caller, gateway_id)?;
        change.run(self.change_as(caller, gateway_id, Requires::Right(GatewayRight::Delete), delete)).await
    }
}

impl Gateway {
    /// Transfers the gateway to a user, who gets at least the rights of the previous owner. Returns `false` if they own
    /// it already.
    fn give(&mut self, giver: &UserId, heir: &UserId, held: &GatewayRights) -> Result<bool> {
        if self.owner == *heir {
            return Ok(false);
        }
        if self.owner != *giver {
            return Err(Error::NotOwner { what: Self::NOUN, id: self.id.to_string() });
        }
        self.owner = heir.clone();
        self.collaborators.entry(heir.clone()).or_default().extend(held);
        collaborators::check_whole(self)?;
        Ok(true)
    }
}
