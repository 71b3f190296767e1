//! The tokens of users, access keys, gateways and components: claims and lifetimes.

mod confirmation;
mod exchange;
pub(crate) mod lifetime;
pub(crate) mod signing;

use std::collections::BTreeMap;

use types::{
    AccessKey, AppId, ApplicationRight, Claims, ClientId, ComponentId, GatewayRight, Scope, Secret, Timestamp, UserId,
};

use self::lifetime::{MACHINE_SECONDS, TOKEN_SECONDS};
use crate::{
    Account, Error, Result,
    entity::{
        Entity,
        application::Application,
        component::{Component, ServiceAndId},
        gateway::Gateway,
        subject::{APPLICATION, GATEWAY, Subject, USER},
    },
    user::UserRecord,
};

/// Seconds by which `iat` is backdated, because v2 clients have no leeway for clocks that are ahead.
const BACKDATED_SECONDS: u64 = 60;
/// Maximum number of applications, gateways and components in one token.
const ENTITIES_MAX: usize = 10;

impl Account {
    /// Refuses a user's token if the user was disabled or changed the password, or revoked the client's access; and a
    /// component's, if its tokens were ended.
    ///
    /// Other services ask for a token's remaining rights to an application every two seconds; calls that name no
    /// application notice only when the token expires. Rights to entities are checked separately.
    pub(crate) async fn check_not_ended(&self, claims: &Claims) -> Result<()> {
        let user_id = match Subject::of(claims)? {
            Subject::User(user_id) => user_id,
            Subject::Component => return self.check_component_not_ended(claims).await,
            Subject::Application { .. } | Subject::Gateway => return Ok(()),
        };
        let user = self.user(&user_id).await?.filter(|user| !user.disabled).ok_or(Error::LoginEnded)?;
        let issued = claims.iat.saturating_add(BACKDATED_SECONDS);
        let counts = match &claims.client {
            Some(client) => user.authorized(client) && issued >= user.not_before_s_of(client),
            None => issued >= user.not_before_s,
        };
        if counts { Ok(()) } else { Err(Error::LoginEnded) }
    }

    /// Refuses a component's token if the component was deleted, or if its tokens were ended.
    async fn check_component_not_ended(&self, claims: &Claims) -> Result<()> {
        let ended = || Error::ComponentTokenEnded(claims.sub.clone());
        let id: ComponentId = claims.sub.parse()?;
        let found = self.documents.read::<Component>(&Component::key(id.as_str())?).await?;
        let component = found.filter(|stored| !stored.value.is_deleted()).ok_or_else(ended)?.value;
        let issued = claims.iat.saturating_add(BACKDATED_SECONDS);
        let counts = component.service.as_str() == claims.kind && issued >= component.not_before_s;
        if counts { Ok(()) } else { Err(ended()) }
    }

    /// Issues a token to a user's client. Scopes that name an entity require rights to it.
    ///
    /// A token with general scopes only cannot access any entity; it is meant to be exchanged.
    pub(crate) async fn user_token(&self, user: &UserRecord, client: &ClientId, scope: &[Scope]) -> Result<Secret> {
        let mut claims = self.claims(USER, user.id.as_str(), TOKEN_SECONDS);
        claims.interchangeable = true;
        claims.client = Some(client.clone());
        self.grant(&mut claims, user, scope).await?;
        self.signer.sign(&claims)
    }

    /// Issues a token with the rights of an access key.
    pub(crate) async fn exchange_key(&self, app_id: &AppId, key: &AccessKey) -> Result<Secret> {
        self.signer.sign(&self.claims_of_key(app_id, key).await?)
    }

    /// The claims of a token with the rights of an access key.
    async fn claims_of_key(&self, app_id: &AppId, key: &AccessKey) -> Result<Claims> {
        let refused = || Error::InvalidKey(Application::NOUN);
        let found = self.entity::<Application>(app_id).await?.filter(|stored| stored.value.deleted.is_none());
        let application = found.ok_or_else(refused)?.value;
        let record = self.find_key(&application, key).ok_or_else(refused)?;
        let mut claims = self.claims(APPLICATION, app_id.as_str(), TOKEN_SECONDS);
        claims.scope = vec![Scope::App(app_id.clone())];
        claims.apps = BTreeMap::from([(app_id.clone(), record.rights.iter().copied().collect())]);
        // The key's id, so that the token dies with the key, and a random part.
        claims.jti = Some(format!("{}-{}", record.id, hex::encode(self.random.array::<4>())));
        Ok(claims)
    }

    pub(crate) async fn sign_gateway(&self, gateway: &Gateway) -> Result<Secret> {
        let mut claims = self.claims(GATEWAY, gateway.id.as_str(), MACHINE_SECONDS);
        claims.owner = self.owner_of(gateway, &gateway.id).await?;
        claims.location_public = Some(gateway.location_public);
        claims.status_public = Some(gateway.status_public);
        self.signer.sign(&claims)
    }

    pub(crate) async fn sign_component(&self, component: &Component) -> Result<Secret> {
        let id = ServiceAndId { service: component.service, id: component.id.clone() };
        let owner = self.owner_of(component, &id).await?;
        self.audit.note("component token issued", &component.service, &component.id);
        let mut claims = self.claims(component.service.as_str(), component.id.as_str(), MACHINE_SECONDS);
        claims.owner = owner;
        claims.iat = claims.iat.max(component.not_before_s.saturating_sub(BACKDATED_SECONDS));
        self.signer.sign(&claims)
    }

    /// Adds scopes, and the rights and profile that they imply, to the claims of a user's token.
    async fn grant(&self, claims: &mut Claims, user: &UserRecord, scope: &[Scope]) -> Result<()> {
        let scope = distinct(scope)?;
        for scope in &scope {
            match scope {
                Scope::App(id) => {
                    let rights = self.granted::<Application>(&user.id, id.as_str(), scope).await?;
                    claims.apps.insert(id.clone(), rights);
                }
                Scope::Gateway(id) => {
                    let rights = self.granted::<Gateway>(&user.id, id.as_str(), scope).await?;
                    claims.gateways.insert(id.clone(), rights);
                }
                Scope::Component(id) => {
                    let rights = self.granted::<Component>(&user.id, id.as_str(), scope).await?;
                    claims.components.insert(id.clone(), rights);
                }
                Scope::Profile | Scope::Apps | Scope::Gateways | Scope::Components | Scope::Clients => {}
            }
        }
        if scope.contains(&Scope::Profile) {
            claims.username = Some(user.username.to_string());
            claims.email = Some(user.email.to_string());
            claims.created = Some(user.created.to_rfc3339_millis());
            claims.name = Some(user.name.clone());
            claims.valid = Some(user.valid);
        }
        let not_before_s = claims.client.as_ref().map_or(user.not_before_s, |client| user.not_before_s_of(client));
        claims.iat = claims.iat.max(not_before_s.saturating_sub(BACKDATED_SECONDS));
        claims.scope = scope;
        Ok(())
    }

    /// General scopes, and those of all entities of the user that they are about, unless these are too many for a
    /// token.
    pub(crate) async fn with_entities(&self, user: &UserRecord, general: &[Scope]) -> Result<Vec<Scope>> {
        let mut named = Vec::new();
        for scope in general {
            match scope {
                Scope::Apps => named.extend(self.named::<Application>(user, |found| Scope::App(found.id)).await?),
                Scope::Gateways => named.extend(self.named::<Gateway>(user, |found| Scope::Gateway(found.id)).await?),
                Scope::Components => {
                    named.extend(self.named::<Component>(user, |found| Scope::Component(found.id)).await?);
                }
                _ => {}
            }
        }
        if named.len() > ENTITIES_MAX {
            named.clear();
        }
        Ok([general, named.as_slice()].concat())
    }

    /// The scopes of the first entities of one kind to which the user has rights.
    async fn named<E: Entity>(&self, user: &UserRecord, scope: impl Fn(E) -> Scope) -> Result<Vec<Scope>> {
        let found = self.entities_of::<E>(&user.id, None).await?.entities;
        Ok(found
            .into_iter()
            .filter(|entity| !entity.is_deleted() && !entity.rights_of(&user.id).is_empty())
            .map(scope)
            .collect())
    }

    /// The user's rights to the entity that a scope names.
    async fn granted<E: Entity>(&self, user_id: &UserId, id: &str, scope: &Scope) -> Result<Vec<E::Right>> {
        let found = self.documents.read::<E>(&E::key(id)?).await?;
        let rights = found.map(|stored| stored.value.rights_of(user_id)).unwrap_or_default();
        if rights.is_empty() { Err(Error::NoRights(scope.clone())) } else { Ok(rights.into_iter().collect()) }
    }

    /// The claims of a user of the site, with all rights that the scope can have. They are never signed.
    pub(crate) fn claims_at_site(&self, user_id: &UserId, scope: Scope) -> Claims {
        let mut claims = self.claims(USER, user_id.as_str(), TOKEN_SECONDS);
        match &scope {
            Scope::App(id) => claims.apps = BTreeMap::from([(id.clone(), ApplicationRight::ALL.to_vec())]),
            Scope::Gateway(id) => claims.gateways = BTreeMap::from([(id.clone(), GatewayRight::ALL.to_vec())]),
            _ => {}
        }
        claims.scope = vec![scope];
        claims
    }

    fn claims(&self, kind: &str, sub: &str, seconds: u64) -> Claims {
        let now = Timestamp::as_secs(self.clock.now());
        Claims {
            iss: self.settings.issuer.clone(),
            sub: sub.to_owned(),
            kind: kind.to_owned(),
            iat: now.saturating_sub(BACKDATED_SECONDS),
            exp: now.saturating_add(seconds),
            jti: None,
            client: None,
            scope: Vec::new(),
            interchangeable: false,
            apps: BTreeMap::new(),
            gateways: BTreeMap::new(),
            components: BTreeMap::new(),
            username: None,
            email: None,
            created: None,
            name: None,
            valid: None,
            owner: None,
            location_public: None,
            status_public: None,
        }
    }
}

/// Removes duplicate scopes. Fails without any scope, or with too many entities.
fn distinct(scope: &[Scope]) -> Result<Vec<Scope>> {
    let mut all: Vec<Scope> = Vec::new();
    for scope in scope {
        if !all.contains(scope) {
            all.push(scope.clone());
        }
    }
    if all.is_empty() {
        return Err(Error::Invalid { what: "scope", must: "must name at least one" });
    }
    if all.iter().filter(|scope| **scope != scope.general()).count() > ENTITIES_MAX {
        return Err(Error::Invalid {
            what: "scope",
            must: "must name at most 10 applications, gateways and components",
        });
    }
    Ok(all)
}
