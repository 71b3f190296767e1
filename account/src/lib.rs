#![doc = include_str!("../README.md")]

mod access;
mod access_key;
mod account;
mod application;
mod audit;
mod collaborator;
mod component;
mod config;
mod document;
mod entity;
mod error;
mod eui;
mod frequency_plan;
mod gateway;
mod kept_key;
mod metrics;
mod oauth;
mod password;
mod public_url;
mod rest;
mod seal;
mod signing;
mod token;
mod user;

pub use account::Account;
pub use config::{ClientSettings, Settings};
pub use error::{Error, Result};
pub use eui::{EuiBlock, EuiBlockError};
pub use gateway::RouterSettings;
pub use oauth::Refusal;
pub use public_url::PublicUrl;
pub use seal::Keys;
