//! Messages that confirm what was just done.

use std::str::FromStr;

/// A message. URLs contain only its name, so that links cannot make the site show other text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::http::site) enum Notice {
    Registered,
    RegisteredWithoutMail,
    LoggedOut,
    Saved,
    PasswordChanged,
    MailSent,
    MailLogged,
    ClientRevoked,
    LoginLinked,
    LoginUnlinked,
    Created,
    Deleted,
    Restored,
    KeyCreated,
    KeyDeleted,
    EuiAdded,
    EuiRemoved,
    CollaboratorSet,
    CollaboratorRemoved,
}

/// All messages, with their names in URLs and their texts.
const NOTICES: [(Notice, &str, &str); 19] = [
    (Notice::Registered, "registered", "Welcome. Please confirm your e-mail address with the link that we sent you."),
    (Notice::RegisteredWithoutMail, "registered-without-mail", "Welcome."),
    (Notice::LoggedOut, "logged-out", "You have logged out."),
    (Notice::Saved, "saved", "Saved."),
    (
        Notice::PasswordChanged,
        "password-changed",
        "Your password is changed. All other sessions and all tokens have ended.",
    ),
    (Notice::MailSent, "mail-sent", "If your address is not confirmed yet, a mail is on its way."),
    (Notice::MailLogged, "mail-logged", "This server sends no mail. Its operator finds the link in its log."),
    (Notice::ClientRevoked, "revoked", "Access revoked. The tokens of that program no longer work."),
    (Notice::LoginLinked, "login-linked", "Linked. From now on you can also log in there."),
    (Notice::LoginUnlinked, "login-unlinked", "Unlinked. You can no longer log in there."),
    (Notice::Created, "created", "Created."),
    (Notice::Deleted, "deleted", "Deleted."),
    (Notice::Restored, "restored", "Restored."),
    (Notice::KeyCreated, "key-created", "Access key created. Copy it from the list of access keys."),
    (Notice::KeyDeleted, "key-deleted", "Access key deleted."),
    (Notice::EuiAdded, "eui-added", "EUI added."),
    (Notice::EuiRemoved, "eui-removed", "EUI removed."),
    (Notice::CollaboratorSet, "collaborator-set", "Collaborator saved."),
    (Notice::CollaboratorRemoved, "collaborator-removed", "Collaborator removed."),
];

impl Notice {
    pub(in crate::http::site) fn name(self) -> &'static str {
        self.row().1
    }

    pub(in crate::http::site) fn text(self) -> &'static str {
        self.row().2
    }

    fn row(self) -> (Self, &'static str, &'static str) {
        NOTICES.into_iter().find(|(notice, ..)| *notice == self).unwrap_or(NOTICES[0])
    }
}

impl FromStr for Notice {
    type Err = ();

    fn from_str(name: &str) -> Result<Self, ()> {
        NOTICES.into_iter().find(|(_, known, _)| *known == name).map(|(notice, ..)| notice).ok_or(())
    }
}
