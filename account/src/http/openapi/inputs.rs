//! Contributions of each extractor to the OpenAPI description of an operation.

use aide::{OperationInput, generate::GenContext, openapi::Operation};
use axum::http::StatusCode;
use schemars::JsonSchema;
use server::openapi::{body, path_parameter, query_parameters, refuse};
use types::{AppId, ComponentId, GatewayId};

use crate::{
    AuthenticatedUser, Session,
    entity::{access::Caller, application::Application, component::Component, gateway::Gateway},
    http::{
        base_url::Address,
        body::{AnyBody, JsonBody},
        credentials::{ParsesCreated, RequestAuth, WantsJson},
        paging::PageQuery,
        path::{EntityInPath, EntityPath, EntityPathAnd, IdPath, ServicePath},
        peer::Peer,
        site::MaybeViewer,
    },
};

/// The path parameters that name an entity.
pub(crate) trait Described {
    fn describe(context: &mut GenContext, operation: &mut Operation);
}

/// The service of the component, in the plural.
#[derive(JsonSchema)]
#[schemars(inline, rename_all = "lowercase")]
#[expect(dead_code, reason = "only its schema is used")]
enum Services {
    Handlers,
    Routers,
    Brokers,
}

/// The query of a paginated list.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "only its schema is used")]
struct AfterQuery {
    /// Lists what others shared with you, starting after this id. Without it, what you created comes first.
    #[schemars(length(min = 1))]
    after: Option<String>,
}

impl Described for Application {
    fn describe(context: &mut GenContext, operation: &mut Operation) {
        path_parameter::<AppId>(context, operation);
    }
}

impl Described for Gateway {
    fn describe(context: &mut GenContext, operation: &mut Operation) {
        path_parameter::<GatewayId>(context, operation);
    }
}

impl Described for Component {
    fn describe(context: &mut GenContext, operation: &mut Operation) {
        path_parameter::<Services>(context, operation);
        path_parameter::<ComponentId>(context, operation);
    }
}

impl<E: EntityInPath + Described> OperationInput for EntityPath<E> {
    fn operation_input(context: &mut GenContext, operation: &mut Operation) {
        E::describe(context, operation);
        refuse(operation, StatusCode::NOT_FOUND);
    }
}

impl<E: EntityInPath + Described, T: JsonSchema> OperationInput for EntityPathAnd<E, T> {
    fn operation_input(context: &mut GenContext, operation: &mut Operation) {
        EntityPath::<E>::operation_input(context, operation);
        path_parameter::<T>(context, operation);
    }
}

impl<T: JsonSchema> OperationInput for IdPath<T> {
    fn operation_input(context: &mut GenContext, operation: &mut Operation) {
        path_parameter::<T>(context, operation);
        refuse(operation, StatusCode::NOT_FOUND);
    }
}

impl OperationInput for ServicePath {
    fn operation_input(context: &mut GenContext, operation: &mut Operation) {
        path_parameter::<Services>(context, operation);
        refuse(operation, StatusCode::NOT_FOUND);
    }
}

impl<Id> OperationInput for PageQuery<Id> {
    fn operation_input(context: &mut GenContext, operation: &mut Operation) {
        query_parameters::<AfterQuery>(context, operation);
    }
}

impl<T: JsonSchema> OperationInput for JsonBody<T> {
    fn operation_input(context: &mut GenContext, operation: &mut Operation) {
        body::<T>(context, operation, &["application/json"]);
    }
}

impl<T: JsonSchema> OperationInput for AnyBody<T> {
    fn operation_input(context: &mut GenContext, operation: &mut Operation) {
        body::<T>(context, operation, &["application/json", "application/x-www-form-urlencoded"]);
        refuse(operation, StatusCode::UNSUPPORTED_MEDIA_TYPE);
    }
}

impl OperationInput for Caller {
    fn operation_input(_: &mut GenContext, operation: &mut Operation) {
        accept(operation, &["token"]);
    }
}

impl OperationInput for AuthenticatedUser {
    fn operation_input(_: &mut GenContext, operation: &mut Operation) {
        accept(operation, &["token", "session"]);
    }
}

impl OperationInput for Session {
    fn operation_input(_: &mut GenContext, operation: &mut Operation) {
        accept(operation, &["session"]);
    }
}

impl OperationInput for RequestAuth {
    fn operation_input(_: &mut GenContext, operation: &mut Operation) {
        accept(operation, &["client"]);
    }
}

/// The client's address is needed only for rate limits.
impl OperationInput for Peer {
    fn operation_input(_: &mut GenContext, operation: &mut Operation) {
        refuse(operation, StatusCode::TOO_MANY_REQUESTS);
    }
}

impl OperationInput for Address {}
impl OperationInput for WantsJson {}

impl OperationInput for ParsesCreated {}
impl OperationInput for MaybeViewer {}

/// Adds alternative credentials, each of which suffices.
fn accept(operation: &mut Operation, schemes: &[&str]) {
    operation.security.extend(schemes.iter().map(|scheme| [((*scheme).to_owned(), Vec::new())].into()));
}
