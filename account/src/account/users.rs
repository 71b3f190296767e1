//! Users as operators see them over the API: who is an operator, pages of all users, and what one user has.

use api::rest::account::{ListedUser, UserDetails};
use types::{Scope, UserId, Username};

use crate::{
    Account, Error, Result,
    documents::id_index::{IdIndex, LISTED_MAX},
    entity::{Entity, access::Caller, application::Application, gateway::Gateway},
    oauth::client::Client,
    user::{UserRecord, no_user},
};

/// Maximum number of users on a page.
const PAGE_LENGTH: usize = 100;
/// Maximum length of a text that is searched, in bytes: that of an e-mail address.
const SEARCH_BYTES_MAX: usize = 254;

impl Account {
    /// The users after this name whose name, id or e-mail address has the text, in order of their names; and the name
    /// after which the next page starts, if there may be one.
    ///
    /// It looks at [`LISTED_MAX`] names at most, so a page may have few users, or none, and still not be the last. The
    /// audit log has who read which users.
    pub(crate) async fn page_of_users(
        &self,
        caller: &Caller,
        after: Option<&Username>,
        search: &str,
    ) -> Result<(Vec<ListedUser>, Option<Username>)> {
        let operator = self.check_operator(caller).await?;
        let search = parse_search(search)?;
        let mut names = self.ids_in_index::<Username>(IdIndex::Users, after.map(Username::as_str)).await?;
        let listed = names.len();
        if search.is_empty() {
            names.truncate(PAGE_LENGTH);
        }
        let mut users: Vec<UserRecord> = self.users_named(&names).await?;
        users.retain(|user| fits(user, &search));
        let next = if users.len() > PAGE_LENGTH {
            users.truncate(PAGE_LENGTH);
            users.last().map(|user| user.username.clone())
        } else {
            let is_last = names.len() == listed && listed < LISTED_MAX;
            names.pop().filter(|_| !is_last)
        };
        if let (Some(first), Some(last)) = (users.first(), users.last()) {
            let (count, first, last) = (users.len(), &first.username, &last.username);
            self.audit.note("users read", &operator, &format_args!("{count} in the list, {first} to {last}"));
        }
        Ok((users.into_iter().map(ListedUser::from).collect(), next))
    }

    /// A user, with what belongs to them.
    pub(crate) async fn user_details(&self, caller: &Caller, user_id: &UserId) -> Result<UserDetails> {
        let operator = self.check_operator(caller).await?;
        let user = self.user(user_id).await?.ok_or_else(|| no_user(user_id))?;
        self.audit.note("user read", &operator, user_id);
        let last_session = self.last_session(user_id).await?;
        let (applications, more) = self.held::<Application>(user_id).await?;
        let (gateways, more_gateways) = self.held::<Gateway>(user_id).await?;
        Ok(UserDetails {
            listed: user.into(),
            last_session,
            applications: applications.into_iter().map(|application| application.id).collect(),
            gateways: gateways.into_iter().map(|gateway| gateway.id).collect(),
            more: more || more_gateways,
        })
    }

    /// The entities to which a user has rights, and whether there are more that others shared.
    async fn held<E: Entity>(&self, user_id: &UserId) -> Result<(Vec<E>, bool)> {
        let page = self.entities_of::<E>(user_id, None).await?;
        let mut entities = page.entities;
        entities.retain(|entity| !entity.is_deleted() && !entity.rights_of(user_id).is_empty());
        Ok((entities, page.next.is_some()))
    }

    /// Returns the operator who calls. Refuses others; and for operators, programs of others, whom they allowed to read
    /// no more than their own profile.
    async fn check_operator(&self, caller: &Caller) -> Result<UserId> {
        let user_id = caller.user_with(&Scope::Profile)?;
        if !self.is_operator(&user_id).await? {
            return Err(Error::NotOperator);
        }
        let client = match &caller.user_and_claims()?.1.client {
            Some(client) => self.client_named(client.as_str()).await?,
            None => None,
        };
        if client.is_some_and(|client| self.is_own_program(&client)) { Ok(user_id) } else { Err(Error::ForeignProgram) }
    }

    /// Returns true for users in the settings, or if those name none, for that of the first account.
    async fn is_operator(&self, user_id: &UserId) -> Result<bool> {
        self.read_first_account().await?;
        Ok(self.operators.contains(user_id) || self.first_operator().get() == Some(user_id))
    }

    /// Returns true for a user who sees the pages for operators of the console of this site.
    pub(crate) fn sees_operator_pages(&self, user_id: &UserId) -> bool {
        let is_named = self.console_operators.contains(user_id) || self.first_operator().get() == Some(user_id);
        self.console.is_some() && is_named
    }

    /// Returns true for first-party clients, and for the console of this site.
    fn is_own_program(&self, client: &Client) -> bool {
        client.owner.is_none() && (client.first_party || self.console.as_ref() == Some(&client.id))
    }
}

/// The text as it is compared.
fn parse_search(text: &str) -> Result<String> {
    match text.trim() {
        text if text.len() > SEARCH_BYTES_MAX => {
            Err(Error::Invalid { what: "search", must: "must have at most 254 bytes" })
        }
        text => Ok(text.to_lowercase()),
    }
}

fn fits(user: &UserRecord, search: &str) -> bool {
    let has = |text: &str| text.to_lowercase().contains(search);
    search.is_empty() || has(user.username.as_str()) || has(user.id.as_str()) || has(&user.email.to_string())
}
