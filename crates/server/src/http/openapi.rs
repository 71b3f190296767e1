//! OpenAPI documents, generated from the routers that serve them.
//!
//! The types in a handler's signature describe its parameters, credentials, body and responses; its route adds an
//! operation id and a summary. This module adds the parts that all operations share: error responses and the order of
//! operations.

mod credential;
mod error;
mod parameter;
mod response;
mod schema;

use aide::{
    axum::ApiRouter,
    generate::in_context,
    openapi::{self, Info, OpenApi, Operation, PathItem, ReferenceOr, Tag},
    transform::TransformOperation,
};
use axum::{
    Router,
    body::Bytes,
    http::{StatusCode, header::CONTENT_TYPE},
    routing::{MethodRouter, get},
};
use schemars::JsonSchema;
use types::Kind;

pub use self::{
    credential::{SecurityScheme, basic, bearer, cookie, header},
    error::refuse,
    parameter::{path_parameter, query_parameters},
    response::{Header, response, with_headers},
    schema::body,
};
use crate::{error::status, http::error_response::ErrorFormat};

/// The parts of a document that do not come from the routes.
pub struct About {
    /// The name of the service.
    pub title: &'static str,
    /// One paragraph or more, with an empty line between them.
    pub description: &'static str,
    /// The groups of operations, in order; none when the operations have no tags.
    pub tags: &'static [&'static str],
    /// The credentials that operations refer to.
    pub credentials: Vec<(&'static str, SecurityScheme)>,
    /// The body of errors.
    pub errors: ErrorFormat,
    /// The failures that any operation may return.
    pub failures: &'static [Kind],
}

/// Documents an operation; see [`OperationExt::doc`].
pub fn doc(id: &str, text: &str) -> impl for<'t> FnOnce(TransformOperation<'t>) -> TransformOperation<'t> {
    move |operation| operation.doc(id, text)
}

/// Describes an operation where its route is defined.
pub trait OperationExt: Sized {
    /// Sets the id, and a text whose first sentence is the summary.
    fn doc(self, id: &str, text: &str) -> Self;

    /// Adds the error responses for these kinds.
    fn fails(self, kinds: &[Kind]) -> Self;

    /// Describes an error response with a body of its own.
    fn fails_with<T: JsonSchema>(self, status: StatusCode) -> Self;

    /// States that the operation also works without a credential.
    fn public(self) -> Self;
}

impl OperationExt for TransformOperation<'_> {
    fn doc(self, id: &str, text: &str) -> Self {
        match text.split_once(". ") {
            Some((summary, description)) => self.id(id).summary(summary).description(description),
            None => self.id(id).summary(text),
        }
    }

    fn fails(mut self, kinds: &[Kind]) -> Self {
        for kind in kinds {
            refuse(self.inner_mut(), status::http(*kind));
        }
        self
    }

    fn fails_with<T: JsonSchema>(mut self, status: StatusCode) -> Self {
        let response = in_context(|context| response::<T>(context));
        let responses = &mut self.inner_mut().responses.get_or_insert_default().responses;
        responses.insert(openapi::StatusCode::Code(status.as_u16()), ReferenceOr::Item(response));
        self
    }

    fn public(mut self) -> Self {
        self.inner_mut().security.push([].into());
        self
    }
}

/// Builds a router and the document that describes it.
///
/// The builder runs inside, because aide collects schemas per thread while routes are added.
pub fn generate<S>(about: About, routes: impl FnOnce() -> ApiRouter<S>) -> (Router<S>, OpenApi)
where
    S: Clone + Send + Sync + 'static,
{
    in_context(|context| context.schema = schema::generator());
    let mut document = OpenApi {
        info: Info {
            title: about.title.to_owned(),
            version: "2".to_owned(),
            description: Some(about.description.to_owned()),
            ..Info::default()
        },
        tags: about.tags.iter().map(|name| Tag { name: (*name).to_owned(), ..Tag::default() }).collect(),
        ..OpenApi::default()
    };
    let routes = routes();
    let error = in_context(|context| error::body(context, about.errors));
    let router = routes.finish_api(&mut document);
    let mut refusals = Vec::new();
    for (path, item) in document.paths.iter_mut().flat_map(|paths| &mut paths.paths) {
        let names: Vec<_> = path.split(['{', '}']).skip(1).step_by(2).collect();
        for operation in item.as_item_mut().into_iter().flat_map(operations) {
            parameter::name(operation, &names);
            add_failures(operation, about.failures);
            refusals.extend(operation.responses.iter().flat_map(|responses| responses.responses.keys().cloned()));
        }
    }
    let components = document.components.get_or_insert_default();
    components.responses = error::responses(&refusals, &error);
    let schemes = about.credentials.into_iter();
    components.security_schemes = schemes.map(|(name, scheme)| (name.to_owned(), ReferenceOr::Item(scheme))).collect();
    (router, document)
}

/// A route that serves a document, which is serialized only once.
pub fn serve<S>(document: &OpenApi) -> MethodRouter<S>
where
    S: Clone + Send + Sync + 'static,
{
    let json = Bytes::from(serde_json::to_vec(document).unwrap_or_default());
    get(async move || ([(CONTENT_TYPE, "application/json")], json))
}

fn operations(item: &mut PathItem) -> impl Iterator<Item = &mut Operation> {
    let PathItem { get, put, post, delete, patch, .. } = item;
    [get, put, post, delete, patch].into_iter().flatten()
}

/// Adds the failures that follow from the inputs of an operation.
fn add_failures(operation: &mut Operation, common: &[Kind]) {
    let takes_body = operation.request_body.is_some();
    if takes_body || !operation.parameters.is_empty() {
        refuse(operation, status::http(Kind::Invalid));
    }
    if takes_body {
        refuse(operation, StatusCode::PAYLOAD_TOO_LARGE);
    }
    if !operation.security.is_empty() && operation.security.iter().all(|one| !one.is_empty()) {
        refuse(operation, status::http(Kind::Unauthenticated));
        refuse(operation, status::http(Kind::Denied));
    }
    for kind in common {
        refuse(operation, status::http(*kind));
    }
    if let Some(responses) = &mut operation.responses {
        responses.responses.sort_keys();
    }
}
