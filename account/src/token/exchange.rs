//! Exchanging a user's token for one with other entities, but never more rights; and the operator's handler's for one
//! with applications.

use std::collections::BTreeMap;

use types::{ApplicationRight, Claims, Scope, Secret, ServiceName};

use super::{distinct, lifetime::TOKEN_SECONDS};
use crate::{
    Account, Error, Result,
    entity::{
        access::{Caller, Deleted},
        application::Application,
        not_found,
        subject::USER,
    },
    user::no_user,
};

impl Account {
    /// Exchanges an interchangeable token for one that names entities. It expires when the old one does.
    pub(crate) async fn restrict_token(&self, caller: &Caller, scope: &[Scope]) -> Result<Secret> {
        if caller.component().is_ok() {
            return self.restrict_to_devices(caller, scope).await;
        }
        let (user_id, old) = caller.user_and_claims()?;
        if !old.interchangeable {
            return Err(Error::NotInterchangeable);
        }
        if let Some(missing) = scope.iter().find(|asked| !covers(old, asked)) {
            return Err(Error::MissingScope(missing.general()));
        }
        let user = self.user(&user_id).await?;
        let user = user.ok_or_else(|| no_user(&user_id))?;
        self.check_consent(&user, old.client.as_ref(), scope).await?;
        let mut claims = self.claims(USER, user_id.as_str(), TOKEN_SECONDS);
        claims.exp = old.exp;
        claims.client.clone_from(&old.client);
        self.grant(&mut claims, &user, scope).await?;
        limit(&mut claims, old);
        self.signer.sign(&claims)
    }

    /// Exchanges the token of the operator's own handler for one with the right `devices` to these applications. With
    /// it, the handler tells network servers of v2 about devices that it has; for itself it needs none.
    async fn restrict_to_devices(&self, caller: &Caller, scope: &[Scope]) -> Result<Secret> {
        self.check_own_component(caller).await?;
        let old = match caller {
            Caller::Bearer(claims) if claims.kind == ServiceName::Handler.as_str() => claims,
            _ => return Err(Error::NotOperatorComponent),
        };
        let mut claims = self.claims(&old.kind, &old.sub, TOKEN_SECONDS);
        claims.exp = claims.exp.min(old.exp);
        for scope in distinct(scope)? {
            let Scope::App(app_id) = &scope else { return Err(Error::MissingScope(scope)) };
            let found = self.find_entity::<Application>(app_id, Deleted::Excluded).await?;
            found.ok_or_else(|| not_found::<Application>(app_id))?;
            self.audit.note("device token issued", &old.sub, app_id);
            claims.apps.insert(app_id.clone(), vec![ApplicationRight::Devices]);
            claims.scope.push(scope);
        }
        self.signer.sign(&claims)
    }
}

/// Returns true if a token can be exchanged for this scope: naming an entity requires any scope of the same kind.
fn covers(old: &Claims, asked: &Scope) -> bool {
    match *asked == asked.general() {
        true => old.scope.contains(asked),
        false => old.scope.iter().any(|held| held.general() == asked.general()),
    }
}

/// Removes rights that the old token did not have to entities that it named.
fn limit(new: &mut Claims, old: &Claims) {
    fn narrow<K: Ord, R: PartialEq>(new: &mut BTreeMap<K, Vec<R>>, old: &BTreeMap<K, Vec<R>>) {
        for (id, rights) in new {
            if let Some(held) = old.get(id) {
                rights.retain(|right| held.contains(right));
            }
        }
    }
    narrow(&mut new.apps, &old.apps);
    narrow(&mut new.gateways, &old.gateways);
    narrow(&mut new.components, &old.components);
}
