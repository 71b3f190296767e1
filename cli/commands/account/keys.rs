//! `airlock account keys …`: the keys that sign tokens.

use account::{Account, Rotation, SigningKeyInfo};

use super::args::Keys;
use crate::{
    output::{Output, Table},
    terminal::confirm,
};

pub(super) async fn run(command: Keys, account: &Account, output: &Output) -> anyhow::Result<()> {
    match command {
        Keys::List => print(output, account.signing_keys()?),
        Keys::Rotate { at_once: false, .. } => {
            print(output, account.rotate_signing_key(Rotation::Planned).await?)?;
            output.message("The last one signs tokens from one hour from now; all tokens stay valid")
        }
        Keys::Rotate { at_once: true, confirmation } => {
            let question = format_args!("Delete all signing keys? All tokens of users and components become invalid.");
            confirm(question, confirmation)?;
            print(output, account.rotate_signing_key(Rotation::AtOnce).await?)?;
            output.message("All earlier tokens are invalid: users must log in again, components need new tokens")
        }
    }
}

fn print(output: &Output, keys: Vec<SigningKeyInfo>) -> anyhow::Result<()> {
    let row =
        |key: SigningKeyInfo| [key.id.into(), key.signs.into(), output.time(key.signs_from), output.time(key.created)];
    let columns = [("id", "ID"), ("signs", "Signs"), ("signs_from", "Signs from"), ("created", "Created")];
    output.table(Table::new(columns, keys.into_iter().map(row)), "There are no signing keys")
}
