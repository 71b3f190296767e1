//! Registration, also of the first account, to which the server prints a link.

use api::rest::account::NewUser;
use askama::Template;
use axum::{
    extract::{Query, State, rejection::QueryRejection},
    response::{IntoResponse, Response},
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
                Frame, Page, done,
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

    /// Returns a hint about the use of the address.
    fn email_hint(&self) -> &'static str {
        match self.sends_mail {
            _ if self.is_first() => "It needs no confirmation.",
            true => "We will send a confirmation link to this address.",
            false => "This server sends no mail: its operator confirms the address.",
        }
    }
}

/// A registration that the link to the first account begins has its token.
#[derive(Deserialize)]
pub(in crate::http::site) struct Link {
    #[serde(default)]
    first: String,
}

pub(in crate::http::site) async fn show(
    State(account): State<Account>,
    viewer: MaybeViewer,
    query: Result<Query<Link>, QueryRejection>,
) -> Result<Page<Register>, HttpError> {
    let first = query.map(|Query(link)| link.first).unwrap_or_default();
    if !first.is_empty() && !account.is_first_account_link(&first) {
        return Err(Error::FirstAccountLink.into());
    }
    let form = Form::with([(FIRST, first)]);
    Ok(Page::new(Register { frame: viewer.frame(), form, sends_mail: account.sends_mail() }))
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
    let user = match registered {
        Ok(user) => user,
        Err(error) => {
            let (form, status) = Form::refused(&fields, error)?;
            let page = Register { frame: viewer.frame(), form, sends_mail: account.sends_mail() };
            return Ok(Page::new(page).with_status(status).into_response());
        }
    };
    if let Some(old) = viewer.session {
        account.log_out(&old).await?;
    }
    let value = account.start_session(&user.id).await?.ok_or(Error::LoginEnded)?;
    if first.is_some() {
        return Ok(login::welcome(&account, &value, "").into_response());
    }
    let cookies = cookie::set(&account, &value);
    let notice = if account.sends_mail() { Notice::Registered } else { Notice::RegisteredWithoutMail };
    Ok((cookies, done("/users/profile", notice)).into_response())
}

fn read(fields: &Fields) -> Result<NewUser, Error> {
    let username: Username = fields.text("username").parse()?;
    let password = repeated_password(fields)?;
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
