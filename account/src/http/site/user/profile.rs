//! The profile: names, e-mail address, password and authorized programs.

use api::rest::account::{ProfileChange, User};
use askama::Template;
use axum::{
    extract::State,
    response::{IntoResponse, Redirect, Response},
};
use types::{ClientId, FullName, Scope, Username};

use super::register::repeated_password;
use crate::{
    Account, AuthorizedClient, Error,
    http::{
        cookie,
        error::HttpError,
        path::IdPath,
        site::page::{
            Frame, Page, done,
            form::{Fields, Form},
            labels,
            notice::Notice,
            viewer::Viewer,
        },
    },
    provider::login::LoginChoice,
    user::no_user,
};

const PATH: &str = "/users/profile";

#[derive(Template)]
#[template(path = "profile.html")]
pub(in crate::http::site) struct Profile {
    frame: Frame,
    email: String,
    valid: bool,
    sends_mail: bool,
    person: Form,
    password: Form,
    clients: Vec<AuthorizedClient>,
    has_password: bool,
    logins: Vec<LoginChoice>,
}

impl Profile {
    fn label(&self, scope: &Scope) -> String {
        labels::scope(scope)
    }

    fn state(&self, login: &LoginChoice) -> String {
        login.linked.map_or_else(|| "Not linked".to_owned(), |since| format!("Linked since {}", labels::day(since)))
    }
}

/// The forms of the page. A refused form keeps what the viewer entered.
#[derive(Default)]
struct Forms {
    person: Option<Form>,
    password: Form,
}

pub(in crate::http::site) async fn show(
    State(account): State<Account>,
    viewer: Viewer,
) -> Result<Page<Profile>, HttpError> {
    let user = viewer.session.profile();
    Ok(Page::new(page(&account, viewer.frame(), user, Forms::default()).await?))
}

pub(in crate::http::site) async fn change(
    State(account): State<Account>,
    viewer: Viewer,
    fields: Fields,
) -> Result<Response, HttpError> {
    let (frame, user) = (viewer.frame(), viewer.session.profile());
    let changed = match read(&fields, &user) {
        Ok(change) => account.change_profile(&viewer.into_authenticated(), change).await,
        Err(error) => Err(error),
    };
    let Err(error) = changed else { return Ok(done(PATH, Notice::Saved).into_response()) };
    let (form, status) = Form::refused(&fields, error)?;
    let forms = Forms { person: Some(form), ..Forms::default() };
    Ok(Page::new(page(&account, frame, user, forms).await?).with_status(status).into_response())
}

/// Changes the password, which ends all sessions. The viewer gets a new one.
pub(in crate::http::site) async fn change_password(
    State(account): State<Account>,
    viewer: Viewer,
    fields: Fields,
) -> Result<Response, HttpError> {
    let (frame, user) = (viewer.frame(), viewer.session.profile());
    let changed = match repeated_password(&fields) {
        Ok(new) if !viewer.session.has_password() => account.set_first_password(&viewer.session, new).await,
        Ok(new) => {
            let old_password = Some(fields.secret("old_password"));
            let change = ProfileChange { old_password, password: Some(new), ..ProfileChange::default() };
            account.change_profile(&viewer.into_authenticated(), change).await
        }
        Err(error) => Err(error),
    };
    match changed {
        Ok(value) => {
            let cookies = value.map_or_else(|| cookie::clear(&account), |value| cookie::set(&account, &value));
            Ok((cookies, done(PATH, Notice::PasswordChanged)).into_response())
        }
        Err(error) => {
            let (password, status) = Form::refused(&fields, error)?;
            let forms = Forms { password, ..Forms::default() };
            Ok(Page::new(page(&account, frame, user, forms).await?).with_status(status).into_response())
        }
    }
}

pub(in crate::http::site) async fn resend_confirmation(
    State(account): State<Account>,
    viewer: Viewer,
) -> Result<Redirect, HttpError> {
    account.resend_confirmation(viewer.session.user_id()).await?;
    Ok(done(PATH, if account.sends_mail() { Notice::MailSent } else { Notice::MailLogged }))
}

pub(in crate::http::site) async fn revoke(
    State(account): State<Account>,
    viewer: Viewer,
    IdPath(client): IdPath<ClientId>,
) -> Result<Redirect, HttpError> {
    account.revoke_client(viewer.session.user_id(), &client).await?;
    Ok(done(PATH, Notice::ClientRevoked))
}

/// The page with the reason why something else was not changed.
pub(super) async fn refused(account: &Account, viewer: &Viewer, error: Error) -> Result<Response, HttpError> {
    let (password, status) = Form::refused(&Fields::default(), error)?;
    let forms = Forms { password, ..Forms::default() };
    let page = page(account, viewer.frame(), viewer.session.profile(), forms).await?;
    Ok(Page::new(page).with_status(status).into_response())
}

fn read(fields: &Fields, user: &User) -> Result<ProfileChange, Error> {
    let username: Username = fields.text("username").parse()?;
    let name = |name| fields.filled(name).map(str::to_owned);
    Ok(ProfileChange {
        username: Some(username).filter(|username| *username != user.username),
        email: Some(fields.text("email").to_owned()).filter(|email| *email != user.email),
        name: Some(FullName { first: name("first"), last: name("last") }),
        ..ProfileChange::default()
    })
}

async fn page(account: &Account, frame: Frame, user: User, forms: Forms) -> Result<Profile, Error> {
    let clients = account.authorized_clients(&user.id).await?;
    let record = account.user(&user.id).await?.ok_or_else(|| no_user(&user.id))?;
    let (has_password, logins) = (record.password.is_some(), account.login_choices(&record));
    let User { username, email, name, valid, .. } = user;
    let person = forms.person.unwrap_or_else(|| {
        Form::with([
            ("username", username.to_string()),
            ("email", email.clone()),
            ("first", name.first.unwrap_or_default()),
            ("last", name.last.unwrap_or_default()),
        ])
    });
    let sends_mail = account.sends_mail();
    let password = forms.password;
    Ok(Profile { frame, email, valid, sends_mail, person, password, clients, has_password, logins })
}
