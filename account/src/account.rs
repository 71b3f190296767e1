//! The account service: its dependencies and shared state.

mod first_account;
mod operator;
mod users;

use std::sync::{Arc, OnceLock};

use server::audit::AuditLog;
use store::Store;
use types::{ClientId, Clock, Random, UserId};

use self::first_account::FirstAccount;
pub use self::operator::{LISTED_MAX, OperatorClient};
use crate::{
    PublicUrl, Result, Settings,
    documents::Documents,
    entity::gateway::frequency_plan::FrequencyPlans,
    http::openapi::Description,
    metrics,
    provider::Providers,
    seal::SealingKeys,
    token::signing::Signer,
    user::{mail::Outbox, password::Passwords},
};

/// The public URL if neither settings nor the listener provide one.
const DEFAULT_PUBLIC_URL: &str = "http://localhost";

/// Services that the account service gets from its process.
pub struct Environment {
    /// Store of its documents.
    pub store: Arc<dyn Store>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// The source of ids, keys and secrets.
    pub random: Arc<dyn Random>,
    /// Records its security events.
    pub audit: AuditLog,
}

/// The account service. Cheap to clone.
///
/// Its methods are defined in the modules of users, applications, gateways and so on.
#[derive(Clone)]
pub struct Account {
    pub(crate) settings: Arc<Settings>,
    pub(crate) public_url: Arc<PublicUrl>,
    pub(crate) keys: Arc<SealingKeys>,
    pub(crate) documents: Documents,
    pub(crate) frequency_plans: Arc<FrequencyPlans>,
    pub(crate) description: Arc<OnceLock<Description>>,
    pub(crate) passwords: Passwords,
    pub(crate) signer: Signer,
    pub(crate) outbox: Outbox,
    pub(crate) providers: Arc<Providers>,
    pub(crate) audit: AuditLog,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) random: Arc<dyn Random>,
    /// The OAuth client of the console, if that is part of this site.
    pub(crate) console: Option<ClientId>,
    /// The users in the settings who may list all users.
    pub(crate) operators: Arc<[UserId]>,
    /// Those in the console's settings, who see its pages for operators.
    pub(crate) console_operators: Arc<[UserId]>,
    pub(crate) first_account: Arc<FirstAccount>,
}

impl Account {
    /// Returns true if mails are sent, and not only logged.
    pub(crate) fn sends_mail(&self) -> bool {
        self.settings.mail.is_some()
    }

    /// Opens the service on a store. The first start creates the signing key and the configured OAuth clients.
    ///
    /// Fails if a setting is invalid, the store is unavailable, or `keys` do not match the store.
    pub async fn open(
        settings: Settings,
        keys: SealingKeys,
        Environment { store, clock, random, audit }: Environment,
    ) -> Result<Self> {
        settings.check()?;
        metrics::describe();
        let documents = Documents::new(store);
        let signer = Signer::open(&settings.issuer, &documents, &keys, random.as_ref(), Arc::clone(&clock)).await?;
        let passwords = Passwords::new(settings.password_checks_max, Arc::clone(&random))?;
        let providers = Arc::new(Providers::open(&settings.login_providers, &clock)?);
        let outbox = Outbox::start(settings.mail.as_ref())?;
        let public_url = settings.public_url.clone().map_or_else(|| DEFAULT_PUBLIC_URL.parse(), Ok)?;
        let operators = settings.operators.clone().into();
        let account = Self {
            settings: Arc::new(settings),
            public_url: Arc::new(public_url),
            keys: Arc::new(keys),
            documents,
            frequency_plans: Arc::new(FrequencyPlans::read()?),
            description: Arc::default(),
            passwords,
            signer,
            outbox,
            providers,
            audit,
            clock,
            random,
            console: None,
            operators,
            console_operators: Arc::default(),
            first_account: Arc::default(),
        };
        account.create_first_clients().await?;
        account.read_first_account().await?;
        Ok(account)
    }

    /// The issuer id in tokens and access keys.
    pub fn issuer(&self) -> &str {
        &self.settings.issuer
    }

    /// Sets the public URL to the listener's, unless the settings have one.
    pub fn listening_at(self, url: PublicUrl) -> Self {
        let public_url = self.settings.public_url.clone().unwrap_or(url);
        Self { public_url: Arc::new(public_url), ..self }
    }

    /// The URL at which people reach the site.
    pub fn public_url(&self) -> &PublicUrl {
        &self.public_url
    }

    /// Makes the console part of this site: creates its OAuth client, which redirects to `callback`, a path of the
    /// site.
    ///
    /// Users are not asked whether the console may act for them, because to them it is the same site.
    pub async fn with_console(self, client: &ClientId, callback: &str) -> Result<Self> {
        self.create_console_client(client, callback).await?;
        Ok(Self { console: Some(client.clone()), ..self })
    }

    /// Lets the operators in the console's settings list all users, too.
    #[must_use]
    pub fn with_console_operators(self, more: &[UserId]) -> Self {
        let operators = self.operators.iter().chain(more).cloned().collect();
        Self { operators, console_operators: more.into(), ..self }
    }
}
