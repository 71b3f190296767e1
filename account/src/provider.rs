//! OpenID Connect providers at which users log in instead of with a password.

pub(crate) mod error;
pub(crate) mod flow;
mod id_token;
pub(crate) mod login;
mod profile;
mod published;
pub(crate) mod settings;
mod suggestions;

use std::{collections::BTreeMap, sync::Arc};

use client::{
    account::{AuthorizationCode, CodeVerifier},
    openid::{AuthenticationRequest, OpenIdClient, ProviderClient},
};
use server::{secret_file::SecretFile, status::ErrorChain};
use types::{Clock, Secret};

use self::{
    error::ProviderError,
    flow::Flow,
    id_token::{Expected, IdToken},
    profile::Profile,
    published::Published,
    settings::{ProviderName, ProviderSettings},
};
use crate::{Error, Result};

type ProviderResult<T> = std::result::Result<T, ProviderError>;

/// The providers of the settings.
pub(crate) struct Providers(BTreeMap<ProviderName, Provider>);

pub(crate) struct Provider {
    pub(crate) name: ProviderName,
    pub(crate) settings: ProviderSettings,
    client: OpenIdClient,
    /// None for a public client.
    secret: Option<SecretFile>,
    published: Published,
    clock: Arc<dyn Clock>,
}

/// A person whom a provider has identified.
pub(crate) struct Person {
    token: IdToken,
    access_token: Option<Secret>,
}

impl Providers {
    /// Reads the files with secrets. Providers are not called before somebody logs in there.
    pub(crate) fn open(settings: &BTreeMap<ProviderName, ProviderSettings>, clock: &Arc<dyn Clock>) -> Result<Self> {
        let open = |(name, settings): (&ProviderName, &ProviderSettings)| -> Result<_> {
            Ok((name.clone(), Provider::open(name, settings, Arc::clone(clock))?))
        };
        Ok(Self(settings.iter().map(open).collect::<Result<_>>()?))
    }

    pub(crate) fn get(&self, name: &ProviderName) -> Result<&Provider> {
        self.0.get(name).ok_or(Error::PathNotFound)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Provider> {
        self.0.values()
    }
}

impl Provider {
    fn open(name: &ProviderName, settings: &ProviderSettings, clock: Arc<dyn Clock>) -> Result<Self> {
        let client = OpenIdClient::new(&settings.issuer).map_err(|error| match error {
            client::Error::Address { .. } => settings::WRONG_ISSUER,
            _ => settings::NO_AUTHORITIES,
        })?;
        let secret = settings.client_secret_file.as_deref().map(SecretFile::open).transpose()?;
        let published = Published::new(client.clone(), Arc::clone(&clock));
        Ok(Self { name: name.clone(), settings: settings.clone(), client, secret, published, clock })
    }

    pub(crate) fn title(&self) -> &str {
        &self.settings.title
    }

    /// The error of a login that failed. What the operator has to know is logged.
    pub(crate) fn failed(&self, reason: ProviderError) -> Error {
        if reason.concerns_operator() {
            tracing::warn!(provider = %self.name, error = %ErrorChain(&reason), "a login at a provider failed");
        }
        Error::Provider { title: self.settings.title.clone(), reason }
    }

    /// The address to which a browser goes for a login.
    async fn authentication_url(&self, flow: &Flow, redirect_uri: &str) -> ProviderResult<String> {
        let description = self.published.description(&self.settings.issuer).await?;
        let request = AuthenticationRequest {
            client_id: &self.settings.client_id,
            redirect_uri,
            scope: &self.settings.scope,
            state: &flow.state,
            nonce: &flow.nonce,
            verifier: &CodeVerifier::from_secret(flow.verifier.clone()),
        };
        Ok(self.client.authentication_url(&description, request)?)
    }

    /// Redeems the code that a browser brought, and verifies who logged in.
    async fn identify(&self, flow: &Flow, redirect_uri: String, code: Secret) -> ProviderResult<Person> {
        let description = self.published.description(&self.settings.issuer).await?;
        let verifier = Some(CodeVerifier::from_secret(flow.verifier.clone()));
        let code = AuthorizationCode { code, redirect_uri, verifier };
        let secret = self.secret.as_ref().map(SecretFile::current);
        let client = ProviderClient { id: &self.settings.client_id, secret: secret.as_ref() };
        let tokens = self.client.tokens(&description, client, &code).await.map_err(ProviderError::of_tokens)?;
        let header = id_token::header(&tokens.id_token)?;
        let key = self.published.key(&self.settings.issuer, &header).await?;
        let ProviderSettings { issuer, client_id, .. } = &self.settings;
        let expected = Expected { issuer, client_id, nonce: &flow.nonce, now: self.clock.now() };
        let token = id_token::verify(&tokens.id_token, (&header, &key), expected)?;
        Ok(Person { token, access_token: tokens.access_token })
    }

    /// The profile of a person: that of the ID token or, if it has no e-mail address, the one that the provider keeps.
    async fn profile(&self, person: &Person) -> ProviderResult<Profile> {
        let Person { token, access_token: Some(access_token) } = person else {
            return Ok(person.token.profile.clone());
        };
        if token.profile.email.is_some() {
            return Ok(token.profile.clone());
        }
        let description = self.published.description(&self.settings.issuer).await?;
        let profile = self.client.user_info::<Profile>(&description, access_token).await;
        let Some(profile) = profile.map_err(|error| ProviderError::of("your profile", error))? else {
            return Ok(token.profile.clone());
        };
        // A stolen access token must not bring somebody else's address.
        if profile.sub == token.subject { Ok(profile) } else { Err(ProviderError::OtherProfile) }
    }
}
