//! The page of all users: a table with search, in pages.

use api::rest::account::ListedUser;
use askama::Template;
use axum::extract::Query;
use client::account::UserPage;
use types::Username;

use crate::{
    Console, Result,
    form::drafts::Fields,
    session::Session,
    site::{
        failure::{Failure, Problem, partly},
        page::{Frame, Page, Time, short},
        viewer::{Operator, Sent},
    },
};

/// Maximum number of calls for a page: the account service looks at some hundred users in each.
const CALLS_MAX: usize = 20;

#[derive(Template)]
#[template(path = "users.html")]
pub(in crate::site) struct List {
    frame: Frame,
    search: String,
    /// True if it does not begin with the first of all users.
    is_part: bool,
    people: Vec<Person>,
    /// The name after which the next page starts.
    next: Option<Username>,
    /// The reason why nobody is shown.
    problem: Option<Problem>,
}

/// A user, with texts that can be looked at.
pub(super) struct Person {
    pub(super) id: String,
    pub(super) username: String,
    pub(super) name: String,
    pub(super) email: String,
    pub(super) is_confirmed: bool,
    pub(super) is_disabled: bool,
    pub(super) registered: Time,
}

pub(in crate::site) async fn list(
    Operator { console, session, frame, unconfirmed }: Operator,
    Query(fields): Query<Fields>,
) -> Result<Page<List>, Failure> {
    let sent = Sent(fields);
    let search = sent.value("search").trim().to_owned();
    let after: Option<Username> = sent.value("after").trim().parse().ok();
    let is_part = after.is_some() || !search.is_empty();
    let (page, problem) = match unconfirmed {
        Some(problem) => (None, Some(problem)),
        None => partly(find(&console, &session, &search, after).await)?,
    };
    let (people, next) = page.map(|page| (page.users, page.next)).unwrap_or_default();
    let people = people.into_iter().map(Person::from).collect();
    Ok(Page::new(List { frame, search, is_part, people, next, problem }))
}

/// The next page that has users. If many users have to be looked at, it may be one without.
async fn find(console: &Console, session: &Session, search: &str, after: Option<Username>) -> Result<UserPage> {
    let mut page = console.users(session, search, after.as_ref()).await?;
    for _ in 1..CALLS_MAX {
        let Some(next) = page.next.as_ref().filter(|_| page.users.is_empty()) else { break };
        page = console.users(session, search, Some(next)).await?;
    }
    Ok(page)
}

impl From<ListedUser> for Person {
    fn from(ListedUser { user, disabled }: ListedUser) -> Self {
        let name = [user.name.first, user.name.last].into_iter().flatten().collect::<Vec<_>>().join(" ");
        Self {
            id: user.id.to_string(),
            username: user.username.to_string(),
            name: short(&name),
            email: short(&user.email),
            is_confirmed: user.valid,
            is_disabled: disabled,
            registered: Time(user.created.as_nanos()),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn mallory() -> Person {
        let user = json!({
            "username": "mallory", "email": "m\u{202e}@example.org", "created": "2026-01-01T00:00:00Z", "valid": false,
            "name": {"first": "\u{1b}[2J", "last": "x".repeat(1000)}, "_id": "0102030405060708090a0b0c",
        });
        serde_json::from_value::<ListedUser>(user).unwrap().into()
    }

    #[test]
    fn texts_of_users_change_nothing_around_them() {
        let person = mallory();
        assert_eq!(person.email, r"m\u202e@example.org");
        assert!(person.name.starts_with(r"\u001b[2J x") && person.name.chars().count() < 200, "{}", person.name);
        assert!(!person.is_confirmed && !person.is_disabled);
    }

    #[test]
    fn a_page_leads_to_the_next_one_even_without_users() {
        let page = |people| {
            let (search, next) = ("zoe".to_owned(), Some("bob".parse().unwrap()));
            List { frame: Frame::default(), search, is_part: true, people, next, problem: None }.render().unwrap()
        };
        let (none, some) = (page(Vec::new()), page(vec![mallory()]));
        assert!(none.contains("Nobody who was looked at so far matches “zoe”"), "{none}");
        assert!(none.contains("name=\"after\" value=\"bob\">Search the rest</button>"), "{none}");
        assert!(some.contains("name=\"after\" value=\"bob\">More users</button>"), "{some}");
    }
}
