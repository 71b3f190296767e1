//! The list of gateways, and the page of each.

mod form;

use api::rest::account::{Collaborator, NewGateway, Router};
use askama::Template;
use axum::{
    extract::State,
    response::{IntoResponse, Redirect, Response},
};
use types::{AccessKey, GatewayId, GatewayRight};

use self::form::{Plan, plans};
use super::{
    entity::path,
    page::{
        Frame, Page,
        confirm::ConfirmPage,
        done,
        form::{Fields, Form},
        labels::day,
        notice::Notice,
        viewer::{EntityRequest, Viewer},
    },
};
use crate::{
    Account, Error,
    entity::{
        Entity, EntityPage,
        access::{Access, Deleted},
        gateway::{Gateway, GatewayRights},
    },
    http::{error::HttpError, paging::PageQuery},
};

#[derive(Template)]
#[template(path = "gateways.html")]
pub(in crate::http::site) struct List {
    frame: Frame,
    gateways: Vec<Gateway>,
    /// The id after which the next page starts, if there is one.
    next: Option<String>,
}

#[derive(Template)]
#[template(path = "new_gateway.html")]
pub(in crate::http::site) struct New {
    frame: Frame,
    plans: Vec<Plan>,
    form: Form,
}

/// The page of a gateway, as far as the viewer may see it.
#[derive(Template)]
#[template(path = "gateway.html")]
pub(in crate::http::site) struct Show {
    frame: Frame,
    id: String,
    created: String,
    activated: bool,
    /// Only for viewers who have all rights that the key gives.
    key: Option<AccessKey>,
    plan: String,
    router: Option<Router>,
    collaborators: Vec<Collaborator<GatewayRight>>,
    rights: GatewayRights,
    plans: Vec<Plan>,
    routers: Vec<String>,
    form: Form,
}

impl Show {
    fn may(&self, right: GatewayRight) -> bool {
        self.rights.contains(&right)
    }
}

pub(in crate::http::site) async fn list(
    State(account): State<Account>,
    viewer: Viewer,
    PageQuery { after }: PageQuery<GatewayId>,
) -> Result<Page<List>, HttpError> {
    let after = after.as_ref().map(GatewayId::as_str);
    let listing = account.entities_of::<Gateway>(viewer.session.user_id(), after).await?;
    let EntityPage { entities: mut gateways, next } = listing;
    gateways.retain(|gateway| !gateway.is_deleted());
    Ok(Page::new(List { frame: viewer.frame(), gateways, next }))
}

pub(in crate::http::site) async fn new(State(account): State<Account>, viewer: Viewer) -> Page<New> {
    Page::new(New { frame: viewer.frame(), plans: plans(&account), form: Form::default() })
}

pub(in crate::http::site) async fn create(
    State(account): State<Account>,
    viewer: Viewer,
    fields: Fields,
) -> Result<Response, HttpError> {
    let created = match read_new(&fields) {
        Ok(new) => account.create_gateway(viewer.session.user_id(), new).await,
        Err(error) => Err(error),
    };
    match created {
        Ok(gateway) => Ok(done(&path::<Gateway>(&gateway.id), Notice::Created).into_response()),
        Err(error) => {
            let (form, status) = Form::refused(&fields, error)?;
            let page = New { frame: viewer.frame(), plans: plans(&account), form };
            Ok(Page::new(page).with_status(status).into_response())
        }
    }
}

pub(in crate::http::site) async fn show(request: EntityRequest<Gateway>) -> Result<Page<Show>, HttpError> {
    Ok(page(&request, None).await?)
}

pub(in crate::http::site) async fn change(
    request: EntityRequest<Gateway>,
    fields: Fields,
) -> Result<Response, HttpError> {
    let EntityRequest { account, caller, id, .. } = &request;
    let rights = account.access::<Gateway>(caller, id, Deleted::Excluded).await?.rights;
    let changed = match form::read(&fields, &rights) {
        Ok(update) => account.update_gateway(caller, id, &update).await,
        Err(error) => Err(error),
    };
    let Err(error) = changed else { return Ok(done(&request.path(), Notice::Saved).into_response()) };
    let (form, status) = Form::refused(&fields, error)?;
    Ok(page(&request, Some(form)).await?.with_status(status).into_response())
}

pub(in crate::http::site) async fn ask_delete(request: EntityRequest<Gateway>) -> Result<Page<ConfirmPage>, HttpError> {
    request.account.access_with::<Gateway>(&request.caller, &request.id, GatewayRight::Delete).await?;
    let text = "Its key stops working, and its location and attributes are forgotten. This cannot be undone, \
                and the ID stays taken.";
    let (title, back) = (format!("Delete gateway {}?", request.id), request.path());
    Ok(Page::new(ConfirmPage { frame: request.frame(), title, text, button: "Delete gateway", back }))
}

pub(in crate::http::site) async fn delete(request: EntityRequest<Gateway>) -> Result<Redirect, HttpError> {
    request.account.delete_gateway(&request.caller, &request.id).await?;
    Ok(done("/my/gateways", Notice::Deleted))
}

fn read_new(fields: &Fields) -> Result<NewGateway, Error> {
    let id: GatewayId = fields.text("id").parse().map_err(Error::from)?;
    Ok(NewGateway { id, settings: form::read_new(fields)? })
}

async fn page(request: &EntityRequest<Gateway>, form: Option<Form>) -> Result<Page<Show>, Error> {
    let EntityRequest { account, caller, id, .. } = request;
    let Access { entity, rights, .. } = account.access::<Gateway>(caller, id, Deleted::Excluded).await?;
    let gateway = entity.value;
    let collaborators = account.collaborators_for(&gateway, &rights).await?.unwrap_or_default();
    let router = account.router_of(&gateway);
    let router_id = router.as_ref().map(|router| router.id.to_string()).unwrap_or_default();
    let form = form.unwrap_or_else(|| form::filled(&gateway, &router_id, rights.contains(&GatewayRight::Location)));
    Ok(Page::new(Show {
        frame: request.frame(),
        id: gateway.id.to_string(),
        created: day(gateway.created),
        activated: gateway.activated,
        key: account.gateway_key_for(&gateway, &rights)?,
        plan: account.frequency_plans.get(&gateway.frequency_plan)?.name.clone(),
        router,
        collaborators,
        rights,
        plans: plans(account),
        routers: account.settings.routers.iter().map(|router| router.id.to_string()).collect(),
        form,
    }))
}
