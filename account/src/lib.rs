#![doc = include_str!("../README.md")]

mod account;
mod application;
mod component;
mod documents;
mod entity;
mod error;
mod gateway;
mod http;
mod id_index;
mod local_path;
mod mail;
mod metrics;
mod oauth;
mod openapi;
mod operator;
mod public_url;
mod rate_limit;
mod rest;
mod settings;
mod site;
mod token;
mod user;

use server::seal;

pub use account::{Account, Environment};
pub use application::{EuiBlock, EuiBlockError};
pub use error::{Error, Result};
pub use gateway::routers::RouterSettings;
pub use mail::MailSettings;
pub use oauth::{OAuthErrorCode, client_settings::ClientSettings};
pub use operator::{LISTED_MAX, OperatorClient, UserInfo};
pub use public_url::PublicUrl;
pub use rate_limit::RateLimits;
pub use settings::Settings;
pub use token::signing::{Rotation, SigningKeyInfo};

pub(crate) use local_path::LocalPath;
pub(crate) use oauth::{Authorization, AuthorizationRequest, AuthorizedClient, ConsentRequest, Metadata};
pub(crate) use user::{
    profile::AuthenticatedUser,
    session::{SESSION_LIFETIME, Session},
};
