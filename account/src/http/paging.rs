//! Paginated lists: the `after` parameter of a request and the `Link` header of its response.

use axum::{
    extract::{FromRequestParts, Query},
    http::{HeaderName, header, request::Parts},
};
use serde::{Deserialize, de::DeserializeOwned};

use super::error::HttpError;
use crate::{Account, Error};

/// Requested page of a list: the one after this id, or the first.
#[derive(Deserialize)]
pub(crate) struct PageQuery<Id> {
    pub(crate) after: Option<Id>,
}

/// The `Link` header to the next page, unless this is the last one.
pub(crate) type NextLink = Option<[(HeaderName, String); 1]>;

impl<Id: DeserializeOwned> FromRequestParts<Account> for PageQuery<Id> {
    type Rejection = HttpError;

    async fn from_request_parts(parts: &mut Parts, _: &Account) -> Result<Self, HttpError> {
        let query = Query::<Self>::try_from_uri(&parts.uri);
        query.map(|Query(query)| query).map_err(|error| Error::Body(error.body_text()).into())
    }
}

/// Links to the page after the id `next`. `query` holds the other parameters, each followed by `&`.
pub(crate) fn next_link(next: Option<String>, query: &str) -> NextLink {
    next.map(|id| [(header::LINK, format!("<?{query}after={id}>; rel=\"next\""))])
}
