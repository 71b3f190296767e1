//! Response types that also describe their status, headers and body in the OpenAPI document.

use aide::{
    OperationOutput,
    generate::GenContext,
    openapi::{Operation, Response as Description, StatusCode as Code},
};
use axum::{
    Json,
    http::{HeaderName, StatusCode, header},
    response::{IntoResponse, Response},
};
use axum_extra::extract::cookie::CookieJar;
use schemars::JsonSchema;
use serde::Serialize;
use server::openapi::{refuse, response, with_headers};

use crate::http::error::{ExchangeError, HttpError};

/// 201 with what was created.
pub(crate) struct Created<T>(pub(crate) T);

/// 204 after a change, which fails with 409 if it conflicts with another one.
pub(crate) struct Changed;

/// 200 with `Cache-Control: no-store`.
pub(crate) struct NoStore<T>(pub(crate) T);

/// 200 with `Cache-Control: public`, for what changes rarely.
pub(crate) struct Public<T>(pub(crate) T);

/// 200 with one page of a list, a link to the next one, and `Cache-Control: no-store`.
pub(crate) struct Page<T> {
    pub(crate) next: Option<[(HeaderName, String); 1]>,
    pub(crate) items: Vec<T>,
}

/// A response that sets cookies.
pub(crate) struct WithCookies<R>(pub(crate) CookieJar, pub(crate) R);

type Responses = Vec<(Option<Code>, Description)>;

impl<T: Serialize> IntoResponse for Created<T> {
    fn into_response(self) -> Response {
        (StatusCode::CREATED, Json(self.0)).into_response()
    }
}

impl<T: JsonSchema> OperationOutput for Created<T> {
    type Inner = T;

    fn inferred_responses(context: &mut GenContext, operation: &mut Operation) -> Responses {
        refuse(operation, StatusCode::CONFLICT);
        vec![(Some(Code::Code(201)), response::<T>(context))]
    }
}

impl IntoResponse for Changed {
    fn into_response(self) -> Response {
        StatusCode::NO_CONTENT.into_response()
    }
}

impl OperationOutput for Changed {
    type Inner = Self;

    fn inferred_responses(_: &mut GenContext, operation: &mut Operation) -> Responses {
        refuse(operation, StatusCode::CONFLICT);
        let description = "The change was made; there is no body.".to_owned();
        vec![(Some(Code::Code(204)), Description { description, ..Description::default() })]
    }
}

impl<T: Serialize> IntoResponse for NoStore<T> {
    fn into_response(self) -> Response {
        ([(header::CACHE_CONTROL, "no-store")], Json(self.0)).into_response()
    }
}

impl<T: JsonSchema> OperationOutput for NoStore<T> {
    type Inner = T;

    fn inferred_responses(context: &mut GenContext, _: &mut Operation) -> Responses {
        let headers = [("Cache-Control", "string", "`no-store`.")];
        vec![(Some(Code::Code(200)), with_headers(response::<T>(context), &headers))]
    }
}

impl<T: Serialize> IntoResponse for Public<T> {
    fn into_response(self) -> Response {
        ([(header::CACHE_CONTROL, "public, max-age=300")], Json(self.0)).into_response()
    }
}

impl<T: JsonSchema> OperationOutput for Public<T> {
    type Inner = T;

    fn inferred_responses(context: &mut GenContext, _: &mut Operation) -> Responses {
        vec![(Some(Code::Code(200)), response::<T>(context))]
    }
}

impl<T: Serialize> IntoResponse for Page<T> {
    fn into_response(self) -> Response {
        ([(header::CACHE_CONTROL, "no-store")], self.next, Json(self.items)).into_response()
    }
}

impl<T: JsonSchema> OperationOutput for Page<T> {
    type Inner = Vec<T>;

    fn inferred_responses(context: &mut GenContext, _: &mut Operation) -> Responses {
        let headers =
            [("Link", "string", "The next page, if there is one."), ("Cache-Control", "string", "`no-store`.")];
        vec![(Some(Code::Code(200)), with_headers(response::<Vec<T>>(context), &headers))]
    }
}

impl<R: IntoResponse> IntoResponse for WithCookies<R> {
    fn into_response(self) -> Response {
        (self.0, self.1).into_response()
    }
}

impl<R: OperationOutput> OperationOutput for WithCookies<R> {
    type Inner = R::Inner;

    fn inferred_responses(context: &mut GenContext, operation: &mut Operation) -> Responses {
        R::inferred_responses(context, operation)
    }
}

/// Describes nothing: [`server::openapi`] describes errors by their kind.
impl OperationOutput for HttpError {
    type Inner = Self;
}

impl OperationOutput for ExchangeError {
    type Inner = Self;
}
