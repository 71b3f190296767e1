//! Messages that confirm what was just done.

use std::str::FromStr;

/// A message. URLs contain only its name, so that links cannot make the site show other text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::site) enum Notice {
    Registered,
    LoggedOut,
    Saved,
    PasswordChanged,
    MailSent,
    ClientRevoked,
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

impl Notice {
    const ALL: [Self; 15] = [
        Self::Registered,
        Self::LoggedOut,
        Self::Saved,
        Self::PasswordChanged,
        Self::MailSent,
        Self::ClientRevoked,
        Self::Created,
        Self::Deleted,
        Self::Restored,
        Self::KeyCreated,
        Self::KeyDeleted,
        Self::EuiAdded,
        Self::EuiRemoved,
        Self::CollaboratorSet,
        Self::CollaboratorRemoved,
    ];

    /// Its name in URLs.
    pub(in crate::site) fn name(self) -> &'static str {
        self.name_and_text().0
    }

    pub(in crate::site) fn text(self) -> &'static str {
        self.name_and_text().1
    }

    fn name_and_text(self) -> (&'static str, &'static str) {
        match self {
            Self::Registered => {
                ("registered", "Welcome. Please confirm your e-mail address with the link that we sent you.")
            }
            Self::LoggedOut => ("logged-out", "You are logged out."),
            Self::Saved => ("saved", "Saved."),
            Self::PasswordChanged => {
                ("password-changed", "Your password is changed. All other sessions and all tokens have ended.")
            }
            Self::MailSent => ("mail-sent", "If your address is not confirmed yet, a mail is on its way."),
            Self::ClientRevoked => ("revoked", "Access revoked. The tokens of that program no longer work."),
            Self::Created => ("created", "Created."),
            Self::Deleted => ("deleted", "Deleted."),
            Self::Restored => ("restored", "Restored."),
            Self::KeyCreated => ("key-created", "Access key created. Copy it from the list of access keys."),
            Self::KeyDeleted => ("key-deleted", "Access key deleted."),
            Self::EuiAdded => ("eui-added", "EUI added."),
            Self::EuiRemoved => ("eui-removed", "EUI removed."),
            Self::CollaboratorSet => ("collaborator-set", "Collaborator saved."),
            Self::CollaboratorRemoved => ("collaborator-removed", "Collaborator removed."),
        }
    }
}

impl FromStr for Notice {
    type Err = ();

    fn from_str(name: &str) -> Result<Self, ()> {
        Self::ALL.into_iter().find(|notice| notice.name() == name).ok_or(())
    }
}
