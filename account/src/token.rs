//! Tokens: what each sort of them says, how long it lives, and what may be exchanged for what.

use std::collections::BTreeMap;

use types::{
    AccessKey, AppId, ApplicationRight, Claims, ClientId, ComponentId, Scope, Secret, ServiceName, Timestamp, UserId,
};

use crate::{Account, Error, Result, access::Caller, audit, user::UserRecord};

/// How long users' tokens and those of access keys live, in seconds.
pub(crate) const TOKEN_SECONDS: u64 = 3600;
/// How long components' tokens live, in seconds: 93 days.
const COMPONENT_SECONDS: u64 = 93 * 24 * 3600;
/// How far `iat` lies back, because clients of v2 refuse tokens from the future without any leeway.
const BACKDATED_SECONDS: u64 = 60;
/// The most applications, gateways and components that one token names.
const ENTITIES_MAX: usize = 10;
/// The `type` of a user's token.
const USER: &str = "user";
/// The `type` of a token that an access key was exchanged for.
const APPLICATION: &str = "application";

/// Whose token it is.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Holder {
    /// A user's.
    User(UserId),
    /// That of whoever had an access key of an application.
    Application { app_id: AppId, key_id: String },
    /// A component's.
    Component,
}

/// Whose token it is that says this.
pub(crate) fn holder(claims: &Claims) -> Result<Holder> {
    let strange = || Error::NotUser("token of this type");
    match claims.kind.as_str() {
        USER => Ok(Holder::User(claims.sub.clone().try_into()?)),
        APPLICATION => {
            let key_id = claims.jti.as_deref().and_then(|jti| jti.split_once('-')).ok_or_else(strange)?.0;
            Ok(Holder::Application { app_id: claims.sub.parse()?, key_id: key_id.to_owned() })
        }
        kind if kind.parse::<ServiceName>().is_ok() => Ok(Holder::Component),
        _ => Err(strange()),
    }
}

impl Account {
    /// A token for a user with these scopes; those with an id need rights there.
    ///
    /// General scopes name no single thing, so a token with only those opens none: it is there to be exchanged.
    pub(crate) async fn user_token(&self, user: &UserRecord, client: &ClientId, scope: &[Scope]) -> Result<Secret> {
        let mut claims = self.claims(USER, user.id.as_str(), TOKEN_SECONDS);
        claims.interchangeable = true;
        claims.client = Some(client.clone());
        self.grant(&mut claims, user, scope).await?;
        self.signer.sign(&claims)
    }

    /// A token with other entities, for the bearer of one that may be exchanged; it ends when that one ends.
    pub(crate) async fn restrict_token(&self, caller: &Caller, scope: &[Scope]) -> Result<Secret> {
        let user_id = caller.user()?;
        let Caller::Bearer(old) = caller else { return Err(Error::NotUser("access key")) };
        if !old.interchangeable {
            return Err(Error::NotInterchangeable);
        }
        let covered = |asked: &Scope| old.scope.iter().any(|held| held.general() == asked.general());
        if let Some(missing) = scope.iter().find(|asked| !covered(asked)) {
            return Err(Error::MissingScope(missing.general()));
        }
        let user = self.user(&user_id).await?;
        let user = user.ok_or_else(|| Error::NotFound { what: "user", id: user_id.to_string() })?;
        let mut claims = self.claims(USER, user_id.as_str(), TOKEN_SECONDS);
        claims.exp = old.exp;
        claims.client.clone_from(&old.client);
        self.grant(&mut claims, &user, scope).await?;
        self.signer.sign(&claims)
    }

    /// A token with the rights of an access key.
    pub(crate) async fn exchange_key(&self, app_id: &AppId, key: &AccessKey) -> Result<Secret> {
        let found = self.application(app_id).await?.filter(|stored| stored.value.deleted.is_none());
        let application = found.ok_or(Error::Key)?.value;
        let record = self.find_key(&application, key).ok_or(Error::Key)?;
        let mut claims = self.claims(APPLICATION, app_id.as_str(), TOKEN_SECONDS);
        claims.scope = vec![Scope::App(app_id.clone())];
        claims.apps = BTreeMap::from([(app_id.clone(), record.rights.iter().copied().collect())]);
        // Names the key, so that here the token dies with it, and something of its own after that.
        claims.jti = Some(format!("{}-{}", record.id, hex::encode(self.random_bytes::<4>())));
        self.signer.sign(&claims)
    }

    /// Signs the token of a component.
    pub(crate) fn sign_component(&self, service: ServiceName, id: &ComponentId) -> Result<Secret> {
        audit::event("component token issued", &service, id);
        self.signer.sign(&self.claims(service.as_str(), id.as_str(), COMPONENT_SECONDS))
    }

    /// Puts scopes and what comes with them into a user's token.
    async fn grant(&self, claims: &mut Claims, user: &UserRecord, scope: &[Scope]) -> Result<()> {
        let scope = distinct(scope)?;
        for entity in scope.iter().filter(|scope| **scope != scope.general()) {
            // Users have no gateways and components yet, so nobody has rights to one.
            let Scope::App(app_id) = entity else { return Err(Error::NoRights(entity.clone())) };
            let rights = self.rights_of(&user.id, app_id).await?;
            claims.apps.insert(app_id.clone(), rights.ok_or_else(|| Error::NoRights(entity.clone()))?);
        }
        if scope.contains(&Scope::Profile) {
            claims.username = Some(user.username.to_string());
            claims.email = Some(user.email.to_string());
            claims.created = Some(user.created.to_rfc3339_millis());
            claims.name = Some(user.name.clone());
            claims.valid = Some(user.valid);
        }
        claims.scope = scope;
        Ok(())
    }

    /// What a user may do to an application; a deleted one can only be restored.
    async fn rights_of(&self, user_id: &UserId, app_id: &AppId) -> Result<Option<Vec<ApplicationRight>>> {
        let Some(mut found) = self.application(app_id).await? else { return Ok(None) };
        let mut rights = found.value.collaborators.remove(user_id).unwrap_or_default();
        if found.value.deleted.is_some() {
            rights.retain(|right| *right == ApplicationRight::Delete);
        }
        Ok((!rights.is_empty()).then(|| rights.into_iter().collect()))
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
        }
    }
}

/// The scopes in the order asked for, each once; refuses none at all, and more entities than fit.
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
