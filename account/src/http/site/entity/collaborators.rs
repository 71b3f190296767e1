//! The collaborators of an application or gateway: the list, and a page for each.

use api::rest::account::Collaborator;
use askama::Template;
use axum::response::{IntoResponse, Redirect, Response};
use types::Username;

use super::{RightCheckbox, SiteEntity, checkboxes, collaborators_path, parse_rights, path};
use crate::{
    Error,
    entity::access::Access,
    http::{
        error::HttpError,
        path::EntityPathAnd,
        site::page::{
            Frame, Page,
            confirm::ConfirmPage,
            done,
            form::{Fields, Form},
            notice::Notice,
            viewer::EntityRequest,
        },
    },
};

#[derive(Template)]
#[template(path = "collaborators.html")]
pub(in crate::http::site) struct List {
    frame: Frame,
    entity: EntityLink,
    collaborators: Vec<Row>,
    checkboxes: Vec<RightCheckbox>,
    form: Form,
}

#[derive(Template)]
#[template(path = "collaborator.html")]
pub(in crate::http::site) struct Show {
    frame: Frame,
    entity: EntityLink,
    username: Username,
    checkboxes: Vec<RightCheckbox>,
    form: Form,
}

/// The entity that the collaborators belong to.
struct EntityLink {
    noun: &'static str,
    id: String,
    path: String,
}

struct Row {
    username: Username,
    email: String,
    rights: Vec<&'static str>,
}

impl EntityLink {
    fn of<E: SiteEntity>(id: &E::Id) -> Self {
        Self { noun: E::NOUN, id: id.to_string(), path: path::<E>(id) }
    }
}

pub(in crate::http::site) async fn list<E: SiteEntity>(request: EntityRequest<E>) -> Result<Page<List>, HttpError> {
    Ok(list_page(&request, Form::default()).await?)
}

pub(in crate::http::site) async fn add<E: SiteEntity>(
    request: EntityRequest<E>,
    fields: Fields,
) -> Result<Response, HttpError> {
    let added = match fields.text("username").parse() {
        Ok(username) => set(&request, &username, &fields).await,
        Err(error) => Err(Error::from(error)),
    };
    let Err(error) = added else {
        return Ok(done(&collaborators_path::<E>(&request.id), Notice::CollaboratorSet).into_response());
    };
    let (form, status) = Form::refused(&fields, error)?;
    Ok(list_page(&request, form).await?.with_status(status).into_response())
}

pub(in crate::http::site) async fn show<E: SiteEntity>(
    request: EntityRequest<E>,
    EntityPathAnd(_, username): EntityPathAnd<E, Username>,
) -> Result<Page<Show>, HttpError> {
    let access = access(&request).await?;
    let rights = request.account.collaborator(&access.entity.value, &username).await?.rights;
    let form = Form::with(rights.iter().map(|right| ("rights", Into::<&'static str>::into(*right).to_owned())));
    Ok(show_page(&request, username, &access, form))
}

pub(in crate::http::site) async fn change<E: SiteEntity>(
    request: EntityRequest<E>,
    EntityPathAnd(_, username): EntityPathAnd<E, Username>,
    fields: Fields,
) -> Result<Response, HttpError> {
    let Err(error) = set(&request, &username, &fields).await else {
        return Ok(after(&request, Notice::CollaboratorSet).await.into_response());
    };
    let (form, status) = Form::refused(&fields, error)?;
    let access = access(&request).await?;
    Ok(show_page(&request, username, &access, form).with_status(status).into_response())
}

pub(in crate::http::site) async fn ask_remove<E: SiteEntity>(
    request: EntityRequest<E>,
    EntityPathAnd(_, username): EntityPathAnd<E, Username>,
) -> Page<ConfirmPage> {
    let (viewer, id) = (&request.viewer, &request.id);
    if viewer.session.profile().username == username {
        let title = format!("Leave {} {id}?", E::NOUN);
        let text = "You can no longer see or change it, until one of its collaborators adds you again.";
        return Page::new(ConfirmPage { frame: viewer.frame(), title, text, button: "Leave", back: request.path() });
    }
    let title = format!("Remove {username} from {} {id}?", E::NOUN);
    let text = "They can no longer see or change it. You can add them again at any time.";
    let back = collaborators_path::<E>(id);
    Page::new(ConfirmPage { frame: viewer.frame(), title, text, button: "Remove collaborator", back })
}

pub(in crate::http::site) async fn remove<E: SiteEntity>(
    request: EntityRequest<E>,
    EntityPathAnd(_, username): EntityPathAnd<E, Username>,
) -> Result<Redirect, HttpError> {
    request.account.remove_collaborator::<E>(&request.caller, &request.id, &username).await?;
    Ok(after(&request, Notice::CollaboratorRemoved).await)
}

async fn access<E: SiteEntity>(request: &EntityRequest<E>) -> Result<Access<E>, Error> {
    request.account.access_with::<E>(&request.caller, &request.id, E::COLLABORATORS).await
}

async fn set<E: SiteEntity>(request: &EntityRequest<E>, username: &Username, fields: &Fields) -> Result<(), Error> {
    let rights = parse_rights::<E>(fields.all("rights"))?;
    request.account.set_collaborator::<E>(&request.caller, &request.id, username, &rights).await
}

/// After a change, viewers who removed their own rights may not see the list anymore.
async fn after<E: SiteEntity>(request: &EntityRequest<E>, what: Notice) -> Redirect {
    match access(request).await {
        Ok(_) => done(&collaborators_path::<E>(&request.id), what),
        Err(_) => done(&format!("/my/{}", E::PLURAL), what),
    }
}

async fn list_page<E: SiteEntity>(request: &EntityRequest<E>, form: Form) -> Result<Page<List>, Error> {
    let access = access(request).await?;
    let row = |collaborator: Collaborator<E::Right>| Row {
        username: collaborator.username,
        email: collaborator.email,
        rights: collaborator.rights.into_iter().map(E::label).collect(),
    };
    let collaborators = request.account.collaborators(&access.entity.value).await?.into_iter().map(row).collect();
    let (entity, checkboxes) = (EntityLink::of::<E>(&request.id), checkboxes::<E>(&access.rights));
    Ok(Page::new(List { frame: request.frame(), entity, collaborators, checkboxes, form }))
}

fn show_page<E: SiteEntity>(
    request: &EntityRequest<E>,
    username: Username,
    access: &Access<E>,
    form: Form,
) -> Page<Show> {
    let mut checkboxes = checkboxes::<E>(&access.rights);
    // A collaborator may keep rights that the viewer could not grant.
    checkboxes.iter_mut().for_each(|right| right.grantable |= form.ticked("rights", right.name));
    Page::new(Show { frame: request.frame(), entity: EntityLink::of::<E>(&request.id), username, checkboxes, form })
}
