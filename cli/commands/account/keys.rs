//! `airlock account keys …`: the keys that sign tokens.

use account::{Account, Rotation, SigningKeyInfo};

use super::{args::Keys, yes};
use crate::terminal::{say, table};

/// Runs one of the commands.
pub(super) async fn run(command: Keys, account: &Account) -> anyhow::Result<()> {
    match command {
        Keys::List => show(account.signing_keys()?),
        Keys::Rotate { at_once: false } => {
            show(account.rotate_signing_key(Rotation::Planned).await?)?;
            say("The last one signs from in an hour on; no token is lost")
        }
        Keys::Rotate { at_once: true } => {
            show(account.rotate_signing_key(Rotation::AtOnce).await?)?;
            say("Every token from before is worthless: users log in again, components need new tokens")
        }
    }
}

fn show(keys: Vec<SigningKeyInfo>) -> anyhow::Result<()> {
    table(
        ["Id", "Signs", "Signs from", "Created"],
        keys.into_iter().map(|key| [key.id, yes(key.signs), key.signs_from.to_string(), key.created.to_string()]),
    )
}
