//! `airlock account keys …`: the keys that sign tokens.

use account::{Account, Rotation, SigningKeyInfo};

use super::args::Keys;
use crate::{
    commands::yes_no,
    terminal::{say, table},
};

pub(super) async fn run(command: Keys, account: &Account) -> anyhow::Result<()> {
    match command {
        Keys::List => print(account.signing_keys()?),
        Keys::Rotate { at_once: false } => {
            print(account.rotate_signing_key(Rotation::Planned).await?)?;
            say("The last one signs tokens from one hour from now; all tokens stay valid")
        }
        Keys::Rotate { at_once: true } => {
            print(account.rotate_signing_key(Rotation::AtOnce).await?)?;
            say("All earlier tokens are invalid: users must log in again, components need new tokens")
        }
    }
}

fn print(keys: Vec<SigningKeyInfo>) -> anyhow::Result<()> {
    table(
        ["Id", "Signs", "Signs from", "Created"],
        keys.into_iter().map(|key| [key.id, yes_no(key.signs), key.signs_from.to_string(), key.created.to_string()]),
    )
}
