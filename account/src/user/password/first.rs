//! The first password of a user who has only logged in at providers.

use server::ledger::Owner;
use types::Secret;

use crate::{
    Account, Error, Result, Session,
    user::{UserRecord, password},
};

impl Account {
    /// Sets the password of a user who has none, and ends all sessions, grants and tokens. Returns the cookie of a new
    /// session.
    ///
    /// There is no old password to ask for, so the login must be a new one.
    pub(crate) async fn set_first_password(&self, session: &Session, new: Secret) -> Result<Option<Secret>> {
        let user = &session.user.value;
        let now = self.clock.now();
        session.check_fresh(now)?;
        password::check(&new, &user.username)?;
        self.limit_password_changes(&user.id).await?;
        let hash = Some(self.passwords.hash(&Owner::from(&user.id), new).await?);
        let set = |user: &mut UserRecord| {
            if user.password.is_some() {
                return Err(Error::WrongPassword);
            }
            user.password.clone_from(&hash);
            user.revoke_all(now);
            Ok(())
        };
        let change = self.audit.change("password changed", &user.id, &"sessions, grants and tokens ended")?;
        change.run(self.change_user(&user.id, set)).await?;
        self.start_session(&user.id).await
    }
}
