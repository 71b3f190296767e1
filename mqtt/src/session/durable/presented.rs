//! The credential of a client, sealed beside the owner of its session, so that its rights can be checked after a
//! restart.

use serde::{Deserialize, Serialize};
use server::seal::{SealError, Sealed};
use types::{AppId, Credential, Secret};

use super::Durable;
use crate::access::permissions::Permissions;

/// A credential, and the rights that it had.
#[derive(Serialize, Deserialize)]
struct PresentedCredential {
    password: Secret,
    reads: bool,
    writes: bool,
}

impl Durable {
    /// The name of a claim, followed by what the client has presented.
    pub(super) fn owner(&self, name: &str, sealed: Option<&str>) -> String {
        sealed.map_or_else(|| name.to_owned(), |sealed| format!("{name} {sealed}"))
    }

    /// Seals what a client has presented; none if there are no keys to do so.
    pub(super) fn seal(&self, app_id: &AppId, id: &str, presented: &(Credential, Permissions)) -> Option<String> {
        let (keys, random) = self.sealing.as_ref()?;
        let password = match &presented.0 {
            Credential::Key(key) => Secret::new(key.expose()),
            Credential::Token(token) => token.clone(),
        };
        let (_, permissions) = presented;
        let (reads, writes) = (permissions.may_read(), permissions.may_write());
        let text = serde_json::to_vec(&PresentedCredential { password, reads, writes }).unwrap_or_default();
        let sealed = keys.seal(&context(app_id, id), &text, random.as_ref());
        let sealed = sealed.inspect_err(|error| tracing::error!(%app_id, %error, "cannot seal a credential")).ok()?;
        Some(serde_json::to_value(sealed).ok()?.as_str()?.to_owned())
    }

    /// Opens what follows the name of a claim. None if nothing does.
    pub(super) fn open(
        &self,
        app_id: &AppId,
        id: &str,
        owner: &[u8],
    ) -> Result<Option<(Credential, Permissions)>, SealError> {
        let Some(sealed) = sealed(owner) else { return Ok(None) };
        let (keys, _) = self.sealing.as_ref().ok_or(SealError::Sealed(WHAT))?;
        let sealed: Sealed = serde_json::from_value(sealed.into()).map_err(|_| SealError::Sealed(WHAT))?;
        let text = keys.open(WHAT, &context(app_id, id), &sealed)?;
        let PresentedCredential { password, reads, writes } =
            serde_json::from_slice(&text).map_err(|_| SealError::Sealed(WHAT))?;
        let credential = Credential::from_password(password.expose()).map_err(|_| SealError::Sealed(WHAT))?;
        Ok(Some((credential, Permissions::with_rights(app_id.clone(), reads, writes))))
    }
}

const WHAT: &str = "credential of an MQTT session";

/// Returns the sealed credential that follows the name of a claim.
pub(super) fn sealed(owner: &[u8]) -> Option<&str> {
    Some(std::str::from_utf8(owner).ok()?.split_once(' ')?.1)
}

fn context(app_id: &AppId, id: &str) -> String {
    format!("mqtt/{app_id}/{id}")
}
