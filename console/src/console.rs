//! The console: its dependencies and shared state.

use std::sync::{Arc, OnceLock};

use client::{
    account::{AccountClient, ClientCredentials},
    discovery::DiscoveryClient,
};
use server::{
    ledger::{Budget, Limits, Resource, Turns},
    seal::SealingKeys,
};
use tokio_util::sync::CancellationToken;
use types::{Clock, ComponentId, Random, Secret, UserId};

use crate::{
    Error, Result, Settings,
    form::{drafts::Drafts, registrations::Registrations},
    settings::MapTiles,
    status::StatusSource,
};

/// Fraction of all live views that one user may open: one in this many.
const LIVE_VIEWS_SHARE: u64 = 8;
/// Numbers of requests at once that have all devices of an application in memory. Others wait for their turn.
const DEVICE_LISTS: Limits = Limits { total: 8, owner_max: 2, owner_min: 1 };
/// Numbers of first applications that are created at once: of one user, one after the other.
const FIRST_APPLICATIONS: Limits = Limits { total: 8, owner_max: 1, owner_min: 1 };
/// Numbers of files that are downloaded at once, each of any length and a few parts of it in memory.
const DOWNLOADS: Limits = Limits { total: 16, owner_max: 2, owner_min: 0 };

/// Resources that the console takes from its process.
pub struct Environment {
    /// The account service.
    pub account: AccountClient,
    /// The secret of its OAuth client; empty for a public one.
    pub client_secret: Secret,
    /// The handler with which applications are registered.
    pub handler_id: ComponentId,
    /// True if users' tokens may be sent to a handler without a certificate.
    pub allow_insecure: bool,
    /// The keys that seal cookies.
    pub keys: SealingKeys,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// The source of ids and secrets.
    pub random: Arc<dyn Random>,
    /// Ends live views and downloads when the process stops.
    pub stop: CancellationToken,
}

/// Public address of the console.
#[derive(Clone, Debug)]
pub enum ConsoleAddress {
    /// At the address of the account service, with whose pages it is one site.
    WithAccount {
        /// The address of both.
        public_url: String,
    },
    /// At an address of its own.
    Alone {
        /// Its address.
        public_url: String,
        /// The address of the account service.
        account_url: String,
    },
}

/// The console. Cheap to clone.
#[derive(Clone)]
pub struct Console {
    pub(crate) place: Arc<ConsoleAddress>,
    pub(crate) account: AccountClient,
    pub(crate) client: Arc<ClientCredentials>,
    pub(crate) handler_id: ComponentId,
    pub(crate) allow_insecure: bool,
    pub(crate) keys: Arc<SealingKeys>,
    pub(crate) drafts: Arc<Drafts>,
    /// The pages of deletions that can be undone.
    pub(crate) deletions: Arc<Drafts>,
    pub(crate) registrations: Arc<Registrations>,
    pub(crate) live_views: Arc<Budget>,
    pub(crate) downloads: Arc<Budget>,
    pub(crate) device_lists: Arc<Turns>,
    pub(crate) first_applications: Arc<Turns>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) random: Arc<dyn Random>,
    pub(crate) stop: CancellationToken,
    /// The server of tiles for maps; none if they show land alone.
    pub(crate) map_tiles: Option<Arc<MapTiles>>,
    operators: Arc<[UserId]>,
    /// The user of the first account, once it is created.
    first_operator: Arc<OnceLock<UserId>>,
    discovery: Arc<OnceLock<DiscoveryClient>>,
    status: Arc<OnceLock<Arc<dyn StatusSource>>>,
}

impl Console {
    /// The path below which whoever serves the console also serves the playground.
    pub const PLAYGROUND: &'static str = "/console/playground";

    /// A console that does not know the discovery service yet.
    pub fn new(settings: Settings, place: ConsoleAddress, environment: Environment) -> Self {
        let Environment { account, client_secret, handler_id, allow_insecure, keys, clock, random, stop } = environment;
        let client = ClientCredentials { id: settings.client_id, secret: client_secret };
        let total = settings.live_views_max;
        let limits = Limits { total, owner_max: (total / LIVE_VIEWS_SHARE).max(1), owner_min: 0 };
        let live_views = Budget::new(Resource::LiveViews, limits);
        Self {
            place: Arc::new(place),
            account,
            client: Arc::new(client),
            handler_id,
            allow_insecure,
            keys: Arc::new(keys),
            drafts: Arc::default(),
            deletions: Arc::default(),
            registrations: Arc::default(),
            live_views: Arc::new(live_views),
            downloads: Arc::new(Budget::new(Resource::LongWork, DOWNLOADS)),
            device_lists: Turns::new(Arc::new(Budget::new(Resource::Lists, DEVICE_LISTS))),
            first_applications: Turns::new(Arc::new(Budget::new(Resource::LongWork, FIRST_APPLICATIONS))),
            clock,
            random,
            stop,
            map_tiles: settings.map_tiles.map(Arc::new),
            operators: settings.operators.into(),
            first_operator: Arc::default(),
            discovery: Arc::default(),
            status: Arc::default(),
        }
    }

    /// Lets the user of the first account see the pages of operators, too, as soon as there is one.
    #[must_use]
    pub fn with_first_operator(self, first_operator: Arc<OnceLock<UserId>>) -> Self {
        Self { first_operator, ..self }
    }

    /// Says where the discovery service is. Only the first time counts.
    pub fn connect(&self, discovery: DiscoveryClient) {
        _ = self.discovery.set(discovery);
    }

    /// Says who knows the state of the services in this process. Only the first time counts.
    pub fn watch(&self, status: Arc<dyn StatusSource>) {
        _ = self.status.set(status);
    }

    /// Returns true for a user who may see the pages of operators.
    pub(crate) fn has_operator(&self, user_id: &UserId) -> bool {
        self.operators.contains(user_id) || self.first_operator.get() == Some(user_id)
    }

    /// The source of the state of this process; none if no services run in it, or not yet.
    pub(crate) fn status(&self) -> Option<&dyn StatusSource> {
        self.status.get().map(|source| &**source)
    }

    pub(crate) fn discovery(&self) -> Result<&DiscoveryClient> {
        self.discovery.get().ok_or(Error::Starting)
    }
}

impl ConsoleAddress {
    pub(crate) fn public_url(&self) -> &str {
        match self {
            Self::WithAccount { public_url } | Self::Alone { public_url, .. } => public_url.trim_end_matches('/'),
        }
    }

    /// Returns the prefix of links to pages of the account service; empty on the same site.
    pub(crate) fn account_url(&self) -> &str {
        match self {
            Self::WithAccount { .. } => "",
            Self::Alone { account_url, .. } => account_url.trim_end_matches('/'),
        }
    }

    /// The redirect URI of the OAuth client.
    pub(crate) fn callback(&self) -> String {
        match self {
            Self::WithAccount { .. } => Settings::CALLBACK.to_owned(),
            Self::Alone { .. } => format!("{}{}", self.public_url(), Settings::CALLBACK),
        }
    }

    pub(crate) fn is_https(&self) -> bool {
        self.public_url().starts_with("https:")
    }
}
