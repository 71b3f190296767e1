//! Request bodies: limited in size, with this API's own error messages.

use axum::{
    body::{Bytes, to_bytes},
    extract::{Form, FromRequest, Request},
    http::header,
};
use serde::de::DeserializeOwned;

use super::error::HttpError;
use crate::{Account, Error};

pub(crate) const BYTES_MAX: usize = 64 * 1024;

/// A JSON body with any content type, because v2 clients do not always send one.
pub(crate) struct JsonBody<T>(pub(crate) T);

/// A JSON or form body.
pub(crate) struct AnyBody<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequest<Account> for JsonBody<T> {
    type Rejection = HttpError;

    async fn from_request(request: Request, _: &Account) -> Result<Self, HttpError> {
        Ok(Self(json(&read(request).await?)?))
    }
}

impl<T: DeserializeOwned> FromRequest<Account> for AnyBody<T> {
    type Rejection = HttpError;

    async fn from_request(request: Request, _: &Account) -> Result<Self, HttpError> {
        let sort = media_type(&request);
        let body = read(request).await?;
        match sort.as_str() {
            // One v2 client sends JSON as text/plain.
            "application/json" | "text/plain" => Ok(Self(json(&body)?)),
            "application/x-www-form-urlencoded" => form(body).await.map(Self).map_err(HttpError::from),
            _ => Err(Error::ContentType("application/json or application/x-www-form-urlencoded").into()),
        }
    }
}

/// The content type in lower case, without parameters.
fn media_type(request: &Request) -> String {
    let value = request.headers().get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    value.and_then(|value| value.split(';').next()).unwrap_or_default().trim().to_ascii_lowercase()
}

async fn read(request: Request) -> Result<Bytes, Error> {
    to_bytes(request.into_body(), BYTES_MAX).await.map_err(|_| Error::BodySize { bytes_max: BYTES_MAX })
}

fn json<T: DeserializeOwned>(body: &[u8]) -> Result<T, Error> {
    serde_json::from_slice(body).map_err(|error| Error::Body(error.to_string()))
}

async fn form<T: DeserializeOwned>(body: Bytes) -> Result<T, Error> {
    let content_type = "application/x-www-form-urlencoded";
    let request = Request::post("/").header(header::CONTENT_TYPE, content_type).body(body.into());
    let request = request.map_err(|_| Error::Crypto("read a form"))?;
    let read = Form::<T>::from_request(request, &()).await;
    read.map(|Form(form)| form).map_err(|error| Error::Body(error.body_text()))
}
