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
mod error;
mod eui;
mod metrics;
mod oauth;
mod password;
mod rest;
mod seal;
mod signing;
mod token;
mod user;

pub use account::Account;
pub use config::{ClientSettings, Settings};
pub use error::{Error, Result};
pub use eui::{EuiBlock, EuiBlockError};
pub use oauth::Refusal;
pub use seal::Keys;
