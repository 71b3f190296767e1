//! Sources of the handler's token: the account service in this process, or one elsewhere.

use std::{io, path::PathBuf};

use account::Account;
use anyhow::Context;
use async_trait::async_trait;
use client::account::AccountClient;
use server::auth::{RenewError, TokenSource, expiry_of};
use types::{ComponentId, Kind, Kinded, Secret, ServiceName};

use crate::serve::data_dir::DataDir;

/// The account service in this process, which issues tokens to its handler.
pub(super) struct OwnAccount {
    pub(super) account: Account,
    pub(super) id: ComponentId,
    pub(super) data_dir: DataDir,
}

/// An account service elsewhere. The handler has a token from it in a file, and renews it there.
pub(super) struct OtherAccount {
    pub(super) client: AccountClient,
    pub(super) id: ComponentId,
    /// File in which the operator puts the token. Renewed ones go to the data directory, since this may be read-only.
    pub(super) token_file: Option<PathBuf>,
    pub(super) data_dir: DataDir,
}

#[async_trait]
impl TokenSource for OwnAccount {
    /// Also writes it to the file that handlers in other processes take it from. On a full disk this one works without.
    async fn renew(&self, _: Option<&Secret>) -> Result<Secret, RenewError> {
        let token = self.account.component_token(ServiceName::Handler, &self.id).await;
        let token = token.map_err(|error| RenewError(format!("cannot issue a token for the handler: {error}")))?;
        if let Err(error) = self.data_dir.write_handler_token(&token) {
            if !is_disk_full(&error) {
                return Err(RenewError(format!("{error:#}")));
            }
            tracing::warn!("handlers in other processes lack a new token: {error:#}");
        }
        Ok(token)
    }

    async fn accepts(&self, token: &Secret) -> Option<bool> {
        self.account.accepts_token(token).await.ok()
    }

    fn is_local(&self) -> bool {
        true
    }
}

#[async_trait]
impl TokenSource for OtherAccount {
    /// Takes a newer token from a file, or renews the current one; if that is refused, takes any other one from a file.
    /// Tokens that the account service refuses are not taken.
    async fn renew(&self, current: Option<&Secret>) -> Result<Secret, RenewError> {
        let tokens = self.tokens().map_err(|error| RenewError(format!("{error:#}")))?;
        let Some(current) = current else {
            return newest(&tokens).ok_or_else(|| RenewError("there is no token: set handler.token_file".to_owned()));
        };
        let (newer, others): (Vec<_>, Vec<_>) = tokens
            .into_iter()
            .filter(|token| token != current)
            .partition(|token| expiry_of(token) > expiry_of(current));
        if let Some(token) = self.first_accepted(newer).await {
            return Ok(token);
        }
        match self.renew_there(current).await {
            Err(error) => self.first_accepted(others).await.ok_or(error),
            renewed => renewed,
        }
    }

    /// Asks whether the account service would renew the token.
    async fn accepts(&self, token: &Secret) -> Option<bool> {
        match self.client.component_token(ServiceName::Handler, &self.id, token).await {
            Ok(_) => Some(true),
            Err(error) => is_refusal(&error).then_some(false),
        }
    }
}

impl OtherAccount {
    /// The token to start with.
    pub(super) fn first(&self) -> anyhow::Result<Option<Secret>> {
        Ok(newest(&self.tokens()?))
    }

    /// The tokens in the two files.
    fn tokens(&self) -> anyhow::Result<Vec<Secret>> {
        let given = self.token_file.as_ref().map(|path| {
            let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
            anyhow::Ok(Secret::new(text.trim()))
        });
        let tokens = [given.transpose()?, self.data_dir.handler_token()?];
        Ok(tokens.into_iter().flatten().collect())
    }

    /// The first of these tokens that the account service accepts.
    async fn first_accepted(&self, tokens: Vec<Secret>) -> Option<Secret> {
        for token in tokens {
            if self.accepts(&token).await == Some(true) {
                return Some(token);
            }
        }
        None
    }

    async fn renew_there(&self, current: &Secret) -> Result<Secret, RenewError> {
        let response = self.client.component_token(ServiceName::Handler, &self.id, current).await;
        let token = response.map(|response| response.token).map_err(|error| {
            let next = if is_refusal(&error) {
                "; copy handler.token from the account service's data directory to handler.token_file again"
            } else {
                ""
            };
            RenewError(format!("{error}{next}"))
        })?;
        if let Err(error) = self.data_dir.write_handler_token(&token) {
            tracing::warn!("the renewed token will be lost when this process ends: {error:#}");
        }
        Ok(token)
    }
}

fn is_disk_full(error: &anyhow::Error) -> bool {
    let is_full = |cause: &io::Error| cause.kind() == io::ErrorKind::StorageFull;
    error.chain().filter_map(|cause| cause.downcast_ref()).any(is_full)
}

/// The token that expires last.
fn newest(tokens: &[Secret]) -> Option<Secret> {
    tokens.iter().max_by_key(|token| expiry_of(token)).cloned()
}

/// Returns true if the account service refused a token. A service that cannot be reached has not refused it.
fn is_refusal(error: &client::Error) -> bool {
    let is_own = matches!(error, client::Error::Refused { .. } | client::Error::NotAccepted { .. });
    is_own && matches!(error.kind(), Kind::Unauthenticated | Kind::Denied | Kind::NotFound)
}
