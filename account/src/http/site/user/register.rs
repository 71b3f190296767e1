//! Registration.

use api::rest::account::NewUser;
use askama::Template;
use axum::{
    extract::State,
    response::{IntoResponse, Response},
};
use types::{Secret, Username};

use crate::{
    Account, Error,
    http::{
        cookie,
        error::HttpError,
        peer::Peer,
        site::page::{
            Frame, Page, done,
            form::{Fields, Form},
            notice::Notice,
            viewer::MaybeViewer,
        },
    },
};

#[derive(Template)]
#[template(path = "register.html")]
pub(in crate::http::site) struct Register {
    frame: Frame,
    form: Form,
    sends_mail: bool,
}

impl Register {
    /// Returns a hint about the use of the address.
    fn email_hint(&self) -> &'static str {
        match self.sends_mail {
            true => "We will send a confirmation link to this address.",
            false => "This server sends no mail: its operator confirms the address.",
        }
    }
}

pub(in crate::http::site) async fn show(State(account): State<Account>, viewer: MaybeViewer) -> Page<Register> {
    Page::new(Register { frame: viewer.frame(), form: Form::default(), sends_mail: account.sends_mail() })
}

pub(in crate::http::site) async fn register(
    State(account): State<Account>,
    Peer(from): Peer,
    viewer: MaybeViewer,
    fields: Fields,
) -> Result<Response, HttpError> {
    let registered = match read(&fields) {
        Ok(new) => account.register(new, from).await,
        Err(error) => Err(error),
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
    let cookies = match account.start_session(&user.id).await? {
        Some(value) => cookie::set(&account, &value),
        None => return Err(Error::LoginEnded.into()),
    };
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
