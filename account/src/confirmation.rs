//! Confirming an address: a link that comes by mail and shows that mail arrives.
//!
//! Nothing of it is kept. The token in the link says which user and until when, and its authentication code covers the
//! address too, so that it confirms no other.

use std::time::Duration;

use api::rest::account::User;
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use percent_encoding::utf8_percent_encode;
use types::{Secret, UserId};

use crate::{Account, Error, Result, audit, email::Email, mail::Mail, public_url::ENCODED, user::UserRecord};

/// How long a link works.
const LIFETIME: Duration = Duration::from_secs(7 * 24 * 3600);
/// How many bytes of the code go into a token.
const CODE_BYTES: usize = 16;
/// What the codes belong to.
const PLACE: &str = "address confirmation";

impl Account {
    /// Confirms the address that the token of a link was mailed to; a second time changes nothing.
    pub async fn confirm_email(&self, token: &str) -> Result<User> {
        let refused = || Error::Invalid { what: "link", must: "must be the newest that came by mail, and not too old" };
        let bytes = URL_SAFE_NO_PAD.decode(token).map_err(|_| refused())?;
        let (plain, code) = bytes.split_at_checked(20).ok_or_else(refused)?;
        let (user_id, expires_s) = plain.split_at(12);
        let user_id = UserId::from_bytes(user_id.try_into().map_err(|_| refused())?);
        let expires_s = u64::from_be_bytes(expires_s.try_into().map_err(|_| refused())?);
        if self.clock.now().as_secs() >= expires_s || self.user(&user_id).await?.is_none() {
            return Err(refused());
        }
        let confirm = |user: &mut UserRecord| {
            let expected = self.code(plain, &user.email);
            let fits = aws_lc_rs::constant_time::verify_slices_are_equal(&expected, code);
            fits.map_err(|_| refused())?;
            user.valid = true;
            Ok(())
        };
        let user = self.change_user(&user_id, confirm).await?;
        audit::event("address confirmed", &user_id, &"mail");
        Ok(user.into())
    }

    /// Posts the mail with the link.
    pub(crate) fn mail_confirmation(&self, user: &UserRecord) {
        let Some(token) = self.confirmation(user) else { return };
        let address = String::from(user.email.clone());
        let link = format!(
            "{}/users/emails/validate_email/{token}?email={}",
            self.public_url,
            utf8_percent_encode(&address, ENCODED)
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
        let code = self.code(&plain, &user.email);
        Some(URL_SAFE_NO_PAD.encode([&plain[..], &code].concat()))
    }

    fn code(&self, plain: &[u8], email: &Email) -> Vec<u8> {
        let covered = [plain, email.to_string().as_bytes()].concat();
        self.keys.sign(PLACE, &covered).as_ref()[..CODE_BYTES].to_vec()
    }
}
