//! Confirmation of e-mail addresses by a mailed link.
//!
//! Nothing is stored. The token in the link has the user's id and the expiry time, with an HMAC that also covers the
//! address, so it confirms no other address.

use std::time::Duration;

use api::rest::account::User;
use percent_encoding::utf8_percent_encode;
use types::{Secret, UserId};

use super::Email;
use crate::{
    Account, Error, Result,
    public_url::QUERY_VALUE,
    seal::unverified_payload,
    user::{UserRecord, mail::Mail},
};

/// Time that a link is valid.
const LIFETIME: Duration = Duration::from_secs(7 * 24 * 3600);

impl Account {
    /// Confirms the address that the token was sent to. Idempotent.
    pub(crate) async fn confirm_email(&self, token: &str) -> Result<User> {
        let refused =
            || Error::Invalid { what: "link", must: "must be the latest one that was mailed, and not expired" };
        let plain: [u8; 20] = unverified_payload(token).ok_or_else(refused)?;
        let (user_id, expires_s) = plain.split_at(12);
        let user_id = UserId::from_bytes(user_id.try_into().map_err(|_| refused())?);
        let expires_s = u64::from_be_bytes(expires_s.try_into().map_err(|_| refused())?);
        if self.clock.now().as_secs() >= expires_s || self.user(&user_id).await?.is_none() {
            return Err(refused());
        }
        let confirm = |user: &mut UserRecord| {
            self.keys.verify_text::<20>(&context(&user.email), token).ok_or_else(refused)?;
            user.valid = true;
            Ok(())
        };
        let change = self.audit.change("address confirmed", &user_id, &"mail")?;
        Ok(change.run(self.change_user(&user_id, confirm)).await?.into())
    }

    /// Sends the mail with the link.
    pub(crate) fn mail_confirmation(&self, user: &UserRecord) {
        let Some(token) = self.confirmation(user) else { return };
        let address = user.email.to_string();
        let link = format!(
            "{}/users/emails/validate_email/{token}?email={}",
            self.public_url,
            utf8_percent_encode(&address, QUERY_VALUE)
        );
        let text = format!(
            "Hello {},\n\nplease confirm that this address is yours by opening this link within seven days:\n\n\
             {link}\n\nIf you did not register at {}, ignore this mail.\n",
            user.username, self.public_url
        );
        self.outbox.post(Mail {
            user_id: user.id.clone(),
            to: address,
            subject: "Please confirm your address",
            text: Secret::new(text),
        });
    }

    fn confirmation(&self, user: &UserRecord) -> Option<String> {
        let user_id = hex::decode(user.id.as_str()).ok()?;
        let expires_s = self.clock.now().plus(LIFETIME).as_secs();
        let plain = [&user_id[..], &expires_s.to_be_bytes()].concat();
        Some(self.keys.sign_text(&context(&user.email), &plain))
    }
}

/// The context of the HMAC, which includes the address.
fn context(email: &Email) -> String {
    format!("confirmation of {email}")
}
