//! Logging in at a provider, and linking that login with a user.

use std::net::IpAddr;

use server::ledger::Owner;
use types::{Secret, Timestamp, UserId, Username};

use super::{
    Person, Provider, ProviderResult,
    error::ProviderError,
    flow::{Departure, Flow, Purpose},
    settings::ProviderName,
    suggestions::suggestions,
};
use crate::{
    Account, Error, Result, Session,
    documents::Document,
    metrics,
    user::{UserRecord, email::Email, linked_login::Identity},
};

/// The parameters with which the provider sends a browser back.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) code: Option<Secret>,
    pub(crate) state: String,
    /// The issuer, if the provider says it (RFC 9207).
    pub(crate) issuer: Option<String>,
    pub(crate) error: Option<String>,
}

/// A browser that comes back: with the cookie of the login that it began, and its session, if it has them.
pub(crate) struct Returned<'a> {
    pub(crate) cookie: Option<&'a str>,
    pub(crate) answer: Answer,
    pub(crate) session: Option<&'a Session>,
}

/// The result of a login at a provider.
pub(crate) enum Arrival {
    LoggedIn {
        /// The cookie of the new session.
        cookie: Secret,
        /// The path to go to, which is not checked yet.
        next: String,
    },
    Linked,
}

/// A provider, as a user sees it in the profile.
pub(crate) struct LoginChoice {
    /// None if the settings no longer have the provider.
    pub(crate) name: Option<ProviderName>,
    pub(crate) title: String,
    pub(crate) issuer: String,
    /// When the user linked it.
    pub(crate) linked: Option<Timestamp>,
    /// True if the user could not log in without it.
    pub(crate) is_needed: bool,
}

impl Account {
    pub(crate) async fn begin_login_at(&self, name: &ProviderName, next: String, from: IpAddr) -> Result<Departure> {
        let provider = self.providers.get(name)?;
        self.limit_logins(None, from).await?;
        self.begin_flow(provider, Purpose::LogIn { next }).await
    }

    /// Begins to link a login with the user of a session, who must be there: proven by the password or, without one, by
    /// a login just now. Otherwise a stolen session would be enough to keep a way in.
    pub(crate) async fn begin_link(
        &self,
        name: &ProviderName,
        session: &Session,
        password: Secret,
    ) -> Result<Departure> {
        let (provider, user) = (self.providers.get(name)?, &session.user.value);
        if user.password.is_some() {
            self.limit_password_changes(&user.id).await?;
            if !self.passwords.verify(&Owner::from(&user.id), password, user.password.clone()).await? {
                self.audit.note_refusal("login link refused", &user.id, &"wrong password");
                return Err(Error::WrongPassword);
            }
        } else {
            session.check_fresh(self.clock.now())?;
        }
        self.begin_flow(provider, Purpose::Link { user_id: user.id.clone() }).await
    }

    /// Verifies what a browser brings back, and logs the user in or links the login.
    pub(crate) async fn finish_login_at(
        &self,
        name: &ProviderName,
        returned: Returned<'_>,
        from: IpAddr,
    ) -> Result<Arrival> {
        let provider = self.providers.get(name)?;
        self.limit_logins(None, from).await?;
        let session = returned.session;
        let identified = self.identify(provider, returned).await;
        let (flow, person) = identified.map_err(|reason| self.refuse_login(provider, reason, from))?;
        match flow.purpose {
            Purpose::LogIn { next } => {
                let cookie = self.log_in_as(provider, &person, from).await?;
                Ok(Arrival::LoggedIn { cookie, next })
            }
            Purpose::Link { user_id } => {
                if session.is_none_or(|session| *session.user_id() != user_id) {
                    return Err(self.refuse_login(provider, ProviderError::OtherSession, from));
                }
                let change = self.audit.change("login linked", &user_id, name)?;
                change.run(self.link_login(&user_id, &provider.identity(&person))).await?;
                Ok(Arrival::Linked)
            }
        }
    }

    pub(crate) async fn unlink(&self, user_id: &UserId, issuer: &str) -> Result<()> {
        let issuers = self.login_issuers();
        let name = self.providers.iter().find(|provider| provider.settings.issuer == issuer);
        let name = name.map_or_else(|| "a provider that is no longer set".to_owned(), |known| known.name.to_string());
        let change = self.audit.change("login unlinked", user_id, &name)?;
        change.run(self.unlink_login(user_id, issuer, &issuers)).await
    }

    /// All providers of the settings, and those of which the user has linked logins.
    pub(crate) fn login_choices(&self, user: &UserRecord) -> Vec<LoginChoice> {
        let issuers = self.login_issuers();
        let choice = |provider: &Provider| LoginChoice {
            name: Some(provider.name.clone()),
            title: provider.title().to_owned(),
            issuer: provider.settings.issuer.clone(),
            linked: user.logins.get(&provider.settings.issuer).map(|login| login.since),
            is_needed: user.needs_login(&provider.settings.issuer, &issuers),
        };
        let mut choices: Vec<_> = self.providers.iter().map(choice).collect();
        let others = user.logins.iter().filter(|(issuer, _)| !issuers.contains(&issuer.as_str()));
        choices.extend(others.map(|(issuer, login)| LoginChoice {
            name: None,
            title: issuer.clone(),
            issuer: issuer.clone(),
            linked: Some(login.since),
            is_needed: user.needs_login(issuer, &issuers),
        }));
        choices
    }

    fn login_issuers(&self) -> Vec<&str> {
        self.providers.iter().map(|provider| provider.settings.issuer.as_str()).collect()
    }

    async fn identify(&self, provider: &Provider, returned: Returned<'_>) -> ProviderResult<(Flow, Person)> {
        let Returned { cookie, answer, .. } = returned;
        let flow = cookie.and_then(|cookie| self.open_flow(provider, cookie));
        let flow = flow.filter(|flow| flow.state == answer.state).ok_or(ProviderError::State)?;
        if answer.issuer.is_some_and(|issuer| issuer != provider.settings.issuer) {
            return Err(ProviderError::Answerer);
        }
        match answer.error.as_deref() {
            Some("access_denied") => return Err(ProviderError::Declined),
            Some(code) => return Err(ProviderError::Refused(code.chars().take(60).collect())),
            None => {}
        }
        let code = answer.code.ok_or(ProviderError::NoCode)?;
        let person = provider.identify(&flow, self.provider_redirect_uri(provider), code).await?;
        Ok((flow, person))
    }

    /// Starts a session of the user that a person is linked with. Returns its cookie.
    async fn log_in_as(&self, provider: &Provider, person: &Person, from: IpAddr) -> Result<Secret> {
        let user = match self.user_with_identity(&provider.identity(person)).await? {
            Some(user) => user,
            None => self.first_login(provider, person, from).await?,
        };
        if user.value.disabled {
            return Err(self.refuse_login(provider, ProviderError::Disabled, from));
        }
        let cookie = self.begin_session(&user).await?.ok_or(Error::LoginEnded)?;
        self.remember_address(&user.value.id, from).await;
        self.audit.note("login", &user.value.id, &format_args!("session from {from}, by {}", provider.name));
        Ok(cookie)
    }

    /// The account of somebody who logs in for the first time, if the settings allow a new one.
    async fn first_login(&self, provider: &Provider, person: &Person, from: IpAddr) -> Result<Document<UserRecord>> {
        if !provider.settings.create_users {
            return Err(self.refuse_login(provider, ProviderError::Unlinked, from));
        }
        let profile = provider.profile(person).await.map_err(|reason| self.refuse_login(provider, reason, from))?;
        let email = profile.email.as_deref().and_then(|email| email.parse::<Email>().ok());
        let email = email.ok_or_else(|| self.refuse_login(provider, ProviderError::NoEmail, from))?;
        self.limit_registrations(from).await?;
        let names = suggestions(profile.preferred_username.as_deref(), &email.to_string(), self.random.as_ref());
        let mut user = self.new_user(self.first_free(names).await?, email);
        user.valid = profile.has_verified_email();
        let object = format!("{} by {} from {from}", user.username, provider.name);
        let change = self.audit.change("user registered", &user.id, &object)?;
        let user = change.run(self.store_linked_user(user, &provider.identity(person))).await?;
        if !user.valid {
            self.mail_confirmation(&user);
        }
        self.stored_user(&user.id).await?.ok_or(Error::LoginEnded)
    }

    async fn first_free(&self, names: Vec<Username>) -> Result<Username> {
        for name in names {
            if self.is_free(&name).await? {
                return Ok(name);
            }
        }
        Err(Error::Contended { what: "username" })
    }

    /// Records that a login was refused. Returns its error.
    fn refuse_login(&self, provider: &Provider, reason: ProviderError, from: IpAddr) -> Error {
        metrics::refused("provider");
        // Not the name alone, which could be that of a user.
        self.audit.note_from(from, "login refused", &format_args!("by {}", provider.name));
        provider.failed(reason)
    }
}

impl Provider {
    fn identity(&self, person: &Person) -> Identity {
        Identity { issuer: self.settings.issuer.clone(), subject: person.token.subject.clone() }
    }
}
