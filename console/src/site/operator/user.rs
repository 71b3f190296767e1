//! The page of one user: the profile, and what the user has and uses.

use std::collections::BTreeSet;

use api::rest::account::UserDetails;
use askama::Template;
use axum::extract::{Path, rejection::PathRejection};
use types::UserId;

use super::{own_applications, usage::Usage, users::Person};
use crate::{
    Console, Error, Result,
    site::{
        failure::{Failure, Problem, partly},
        page::{Frame, Page, Time},
        viewer::Operator,
    },
};

#[derive(Template)]
#[template(path = "user.html")]
pub(in crate::site) struct Show {
    frame: Frame,
    details: Option<Details>,
    /// The reason why nothing is shown.
    problem: Option<Problem>,
    /// The user's usage of the budgets, or the reason why it is not known; none where only the console runs.
    usage: Option<Result<Vec<Usage>, String>>,
}

struct Details {
    person: Person,
    last_session: Option<Time>,
    applications: Vec<UserApplication>,
    gateways: Vec<String>,
    has_more: bool,
}

/// An application of the user.
struct UserApplication {
    id: String,
    /// True if the viewer has rights to it, too.
    is_own: bool,
}

pub(in crate::site) async fn show(
    Operator { console, session, frame, unconfirmed }: Operator,
    path: Result<Path<String>, PathRejection>,
) -> Result<Page<Show>, Failure> {
    let user_id = path.ok().and_then(|Path(id)| id.parse::<UserId>().ok()).ok_or(Error::NotFound("user"))?;
    let (found, problem) = match unconfirmed {
        Some(problem) => (None, Some(problem)),
        None => partly(console.user(&session, &user_id).await)?,
    };
    let Some(found) = found else { return Ok(Page::new(Show { frame, details: None, problem, usage: None })) };
    let own = match found.applications.is_empty() {
        true => BTreeSet::new(),
        false => own_applications(&console, &session).await,
    };
    let details = Details::of(found, &own);
    let usage = used_by(&console, &details.person.username).await;
    Ok(Page::new(Show { frame, details: Some(details), problem, usage }))
}

async fn used_by(console: &Console, username: &str) -> Option<Result<Vec<Usage>, String>> {
    let usage = console.status()?.usage(&format!("user {username}")).await;
    Some(usage.map(|budgets| budgets.into_iter().map(Usage::from).collect()))
}

impl Details {
    fn of(details: UserDetails, own: &BTreeSet<String>) -> Self {
        let UserDetails { listed, last_session, applications, gateways, more } = details;
        let applications = applications.into_iter().map(|app_id| app_id.to_string());
        Self {
            person: listed.into(),
            last_session: last_session.map(|began| Time(began.as_nanos())),
            applications: applications.map(|id| UserApplication { is_own: own.contains(&id), id }).collect(),
            gateways: gateways.iter().map(ToString::to_string).collect(),
            has_more: more,
        }
    }
}
