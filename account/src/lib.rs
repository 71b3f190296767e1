#![doc = include_str!("../README.md")]

mod account;
mod documents;
mod entity;
mod error;
mod http;
mod metrics;
mod oauth;
mod provider;
mod public_url;
mod settings;
mod token;
mod user;

use server::seal;

pub use account::{Account, Environment, LISTED_MAX, OperatorClient};
pub use entity::{
    application::{EuiBlock, EuiBlockError},
    gateway::routers::RouterSettings,
};
pub use error::{Error, Result};
pub use oauth::{OAuthErrorCode, client::settings::ClientSettings};
pub use provider::{
    error::ProviderError,
    settings::{ProviderName, ProviderSettings},
};
pub use public_url::PublicUrl;
pub use settings::Settings;
pub use token::signing::{Rotation, SigningKeyInfo};
pub use user::{mail::MailSettings, rate_limit::RateLimits};

pub(crate) use http::local_path::LocalPath;
pub(crate) use oauth::{Authorization, AuthorizationRequest, AuthorizedClient, ConsentRequest, Metadata};
pub(crate) use user::{
    profile::AuthenticatedUser,
    session::{SESSION_LIFETIME, Session},
};
