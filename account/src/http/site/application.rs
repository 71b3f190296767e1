//! The list of applications, and the page of each.

pub(in crate::http::site) mod access_keys;
pub(in crate::http::site) mod euis;

use api::rest::account::{AccessKey, Collaborator, NewApplication};
use askama::Template;
use axum::{
    extract::State,
    http::StatusCode,
    response::{IntoResponse, Redirect, Response},
};
use types::{AppEui, AppId, ApplicationRight, UserId};

use super::{
    entity::{RightCheckbox, checkboxes, path},
    page::{
        Frame, Page,
        confirm::ConfirmPage,
        done,
        form::{Fields, Form},
        labels::{self, day},
        notice::Notice,
        viewer::{EntityRequest, Viewer},
    },
};
use crate::{
    Account, Error,
    entity::{
        Entity, EntityPage,
        access::{Access, Deleted},
        application::{Application, ApplicationRights},
    },
    http::{error::HttpError, paging::PageQuery},
};

#[derive(Template)]
#[template(path = "applications.html")]
pub(in crate::http::site) struct List {
    frame: Frame,
    applications: Vec<Application>,
    /// Those that the viewer can restore.
    deleted: Vec<Application>,
    /// The id after which the next page starts, if there is one.
    next: Option<String>,
}

#[derive(Template)]
#[template(path = "new_application.html")]
pub(in crate::http::site) struct New {
    frame: Frame,
    form: Form,
}

/// The page of an application, as far as the viewer may see it.
#[derive(Template)]
#[template(path = "application.html")]
pub(in crate::http::site) struct Show {
    frame: Frame,
    id: String,
    name: String,
    created: String,
    euis: Vec<AppEui>,
    access_keys: Vec<AccessKey>,
    collaborators: Vec<Collaborator<ApplicationRight>>,
    rights: ApplicationRights,
    checkboxes: Vec<RightCheckbox>,
    forms: Forms,
}

/// The forms of the page. A refused form keeps what the viewer entered.
#[derive(Debug, Default)]
pub(in crate::http::site) struct Forms {
    pub(in crate::http::site) name: Option<Form>,
    pub(in crate::http::site) eui: Form,
    pub(in crate::http::site) key: Form,
}

impl Show {
    fn may(&self, right: ApplicationRight) -> bool {
        self.rights.contains(&right)
    }

    fn label(&self, right: &ApplicationRight) -> &'static str {
        labels::application_right(*right)
    }

    fn is_refused(&self) -> bool {
        let Forms { name, eui, key } = &self.forms;
        name.iter().chain([eui, key]).any(|form| form.problem().is_some())
    }

    fn name_form(&self) -> Form {
        Form::with([("name", self.name.clone())])
    }
}

pub(in crate::http::site) async fn list(
    State(account): State<Account>,
    viewer: Viewer,
    PageQuery { after }: PageQuery<AppId>,
) -> Result<Page<List>, HttpError> {
    let user_id = viewer.session.user_id();
    let after = after.as_ref().map(AppId::as_str);
    let EntityPage { entities, next } = account.entities_of::<Application>(user_id, after).await?;
    let (mut deleted, applications): (Vec<_>, Vec<_>) =
        entities.into_iter().partition(|application| application.deleted.is_some());
    deleted.retain(|application| may_restore(application, user_id));
    Ok(Page::new(List { frame: viewer.frame(), applications, deleted, next }))
}

pub(in crate::http::site) async fn new(viewer: Viewer) -> Page<New> {
    Page::new(New { frame: viewer.frame(), form: Form::default() })
}

pub(in crate::http::site) async fn create(
    State(account): State<Account>,
    viewer: Viewer,
    fields: Fields,
) -> Result<Response, HttpError> {
    let created = match fields.text("id").parse() {
        Ok(id) => {
            let name = fields.text("name").to_owned();
            let new = NewApplication { id, name, euis: Vec::new(), access_keys: Vec::new() };
            account.create_application(viewer.session.user_id(), new).await
        }
        Err(error) => Err(Error::from(error)),
    };
    match created {
        Ok(application) => Ok(done(&path::<Application>(&application.id), Notice::Created).into_response()),
        Err(error) => {
            let (form, status) = Form::refused(&fields, error)?;
            Ok(Page::new(New { frame: viewer.frame(), form }).with_status(status).into_response())
        }
    }
}

pub(in crate::http::site) async fn show(request: EntityRequest<Application>) -> Result<Page<Show>, HttpError> {
    Ok(page(&request, Forms::default()).await?)
}

pub(in crate::http::site) async fn rename(
    request: EntityRequest<Application>,
    fields: Fields,
) -> Result<Response, HttpError> {
    let renamed = request.account.rename_application(&request.caller, &request.id, fields.text("name")).await;
    let Err(error) = renamed else { return Ok(done(&request.path(), Notice::Saved).into_response()) };
    let (form, status) = Form::refused(&fields, error)?;
    refused(&request, (Forms { name: Some(form), ..Forms::default() }, status)).await
}

pub(in crate::http::site) async fn ask_delete(
    request: EntityRequest<Application>,
) -> Result<Page<ConfirmPage>, HttpError> {
    request.account.access_with::<Application>(&request.caller, &request.id, ApplicationRight::Delete).await?;
    let text = "Its access keys stop working and its collaborators cannot see it any more. It can be restored: \
                the ID stays taken, and everything that belongs to the application is kept.";
    let (title, back) = (format!("Delete application {}?", request.id), request.path());
    Ok(Page::new(ConfirmPage { frame: request.frame(), title, text, button: "Delete application", back }))
}

pub(in crate::http::site) async fn delete(request: EntityRequest<Application>) -> Result<Redirect, HttpError> {
    request.account.delete_application(&request.caller, &request.id).await?;
    Ok(done("/my/applications", Notice::Deleted))
}

pub(in crate::http::site) async fn restore(request: EntityRequest<Application>) -> Result<Redirect, HttpError> {
    request.account.restore_application(&request.caller, &request.id).await?;
    Ok(done(&request.path(), Notice::Restored))
}

/// Shows the page again with a refused form.
pub(in crate::http::site) async fn refused(
    request: &EntityRequest<Application>,
    (forms, status): (Forms, StatusCode),
) -> Result<Response, HttpError> {
    Ok(page(request, forms).await?.with_status(status).into_response())
}

async fn page(request: &EntityRequest<Application>, forms: Forms) -> Result<Page<Show>, Error> {
    let EntityRequest { account, caller, id, .. } = request;
    let Access { mut entity, rights, .. } = account.access::<Application>(caller, id, Deleted::Excluded).await?;
    account.complete_claims(&mut entity.value).await?;
    let application = entity.value;
    let access_keys = account.keys_for(&application, &rights)?.unwrap_or_default();
    let collaborators = account.collaborators_for(&application, &rights).await?.unwrap_or_default();
    Ok(Page::new(Show {
        frame: request.frame(),
        id: application.id.to_string(),
        name: application.name,
        created: day(application.created),
        euis: application.euis,
        access_keys,
        collaborators,
        checkboxes: checkboxes::<Application>(&rights),
        rights,
        forms,
    }))
}

fn may_restore(application: &Application, user_id: &UserId) -> bool {
    application.rights_of(user_id).contains(&ApplicationRight::Delete)
}
