//! Registration, also of the first account, to which the server prints a link.

use api::rest::account::NewUser;
use askama::Template;
use axum::{
    extract::{Query, State, rejection::QueryRejection},
    response::{IntoResponse, Redirect, Response},
};
use serde::Deserialize;
use types::{Secret, Username};

use crate::{
    Account, Error,
    http::{
        cookie,
        error::HttpError,
        peer::Peer,
        site::{
            page::{
                FIRST_APPLICATION, Frame, Page, done,
                form::{Fields, Form},
                notice::Notice,
                viewer::MaybeViewer,
            },
            user::login,
        },
    },
};

/// The parameter of the link, and the field of its form.
const FIRST: &str = "first";
/// The same for the path to go to afterwards.
const NEXT: &str = "next";
/// The box that asks for a first application, too.
const APPLICATION: &str = "application";
/// The values that the form of the first account suggests: all but the password.
const SUGGESTED: [(&str, &str); 3] = [("username", "admin"), ("email", "admin@localhost"), (APPLICATION, "yes")];

#[derive(Template)]
#[template(path = "register.html")]
pub(in crate::http::site) struct Register {
    frame: Frame,
    form: Form,
    sends_mail: bool,
}

impl Register {
    /// Returns true for the first account.
    fn is_first(&self) -> bool {
        !self.form.value(FIRST).is_empty()
    }

    /// The path of the login for those who have an account.
    fn login_path(&self) -> String {
        login::path_leading_to("/users/login", self.form.value(NEXT))
    }

    /// Returns a hint about the use of the address.
    fn email_hint(&self) -> &'static str {
        if self.sends_mail {
            "We will send a confirmation link to this address."
        } else {
            "This server sends no mail: its operator confirms the address."
        }
    }
}

/// The parameters of links to the registration.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(in crate::http::site) struct Link {
    /// The token of the link to the first account.
    first: String,
    /// The path to go to afterwards.
    next: String,
}

pub(in crate::http::site) async fn show(
    State(account): State<Account>,
    viewer: MaybeViewer,
    query: Result<Query<Link>, QueryRejection>,
) -> Result<Page<Register>, HttpError> {
    let Link { first, next } = query.map(|Query(link)| link).unwrap_or_default();
    if !first.is_empty() && !account.is_first_account_link(&first).await? {
        return Err(Error::FirstAccountLink.into());
    }
    let suggested: &[(&str, &str)] = if first.is_empty() { &[] } else { &SUGGESTED };
    let suggested = suggested.iter().map(|(name, value)| (*name, (*value).to_owned()));
    let form = Form::with(suggested.chain([(FIRST, first), (NEXT, next)]));
    Ok(page(&account, viewer.frame(), form).await)
}

pub(in crate::http::site) async fn register(
    State(account): State<Account>,
    Peer(from): Peer,
    viewer: MaybeViewer,
    fields: Fields,
) -> Result<Response, HttpError> {
    let first = fields.filled(FIRST);
    let registered = match (read(&fields), first) {
        (Ok(new), Some(token)) => account.register_first(token, new, from).await,
        (Ok(new), None) => account.register(new, from).await,
        (Err(error), _) => Err(error),
    };
    let value = match registered {
        Ok(user) => account.start_session(&user.id).await?.ok_or(Error::LoginEnded)?,
        // Nobody can create that account any more. Whoever sends the form twice has it, but may have no session: of a
        // double click, browsers read only the second answer.
        Err(error @ Error::FirstAccountLink) => {
            let login = account.log_in(fields.text("username"), fields.secret("password"), from).await?;
            login.map(|(value, _)| value).ok_or(error)?
        }
        Err(error) => {
            let (form, status) = Form::refused(&fields, error)?;
            return Ok(page(&account, viewer.frame(), form).await.with_status(status).into_response());
        }
    };
    if let Some(old) = viewer.session {
        account.log_out(&old).await?;
    }
    if first.is_some() && fields.ticked(APPLICATION) && account.console.is_some() {
        let cookies = cookie::with_first_application(&account, cookie::set(&account, &value));
        return Ok((cookies, Redirect::to(FIRST_APPLICATION)).into_response());
    }
    let next = fields.text(NEXT);
    // Whoever has no application finds the form of the first one in the console.
    if first.is_some() || !next.is_empty() || account.console.is_some() {
        return Ok(login::welcome(&account, &value, next).into_response());
    }
    let cookies = cookie::set(&account, &value);
    let notice = if account.sends_mail() { Notice::Registered } else { Notice::RegisteredWithoutMail };
    Ok((cookies, done("/users/profile", notice)).into_response())
}

/// The page. If somebody registers for a program, its form may redirect to that program.
async fn page(account: &Account, frame: Frame, form: Form) -> Page<Register> {
    let consent_request = login::consent_request(account, form.value(NEXT)).await;
    let page = Page::new(Register { frame, form, sends_mail: account.sends_mail() });
    match consent_request {
        Some(consent) => page.leading_to(&consent.redirect_uri),
        None => page,
    }
}

fn read(fields: &Fields) -> Result<NewUser, Error> {
    let username: Username = fields.text("username").parse()?;
    // Whoever mistypes that of the first account sets another one at the server.
    let is_first = fields.filled(FIRST).is_some();
    let password = if is_first { fields.secret("password") } else { repeated_password(fields)? };
    Ok(NewUser { username, email: fields.text("email").to_owned(), password })
}

/// The new password, which must be typed twice because it is not visible.
pub(in crate::http::site) fn repeated_password(fields: &Fields) -> Result<Secret, Error> {
    let (password, again) = (fields.secret("password"), fields.secret("password_again"));
    if password.expose() == again.expose() {
        Ok(password)
    } else {
        Err(Error::Invalid { what: "second password", must: "must be the same as the first" })
    }
}
