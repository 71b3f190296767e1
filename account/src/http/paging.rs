//! Pagination of lists: the id after which a page starts, and the link to the next.

use axum::{
    extract::{FromRequestParts, Query},
    http::{HeaderName, header, request::Parts},
};
use serde::{Deserialize, de::DeserializeOwned};

use super::reply::Reply;
use crate::{Account, Error};

/// The id after which a page starts; none for the first.
#[derive(Deserialize)]
pub(crate) struct After<Id> {
    pub(crate) after: Option<Id>,
}

/// Says where the next page is, if there is one.
pub(crate) type Next = Option<[(HeaderName, String); 1]>;

impl<Id: DeserializeOwned> FromRequestParts<Account> for After<Id> {
    type Rejection = Reply;

    async fn from_request_parts(parts: &mut Parts, _: &Account) -> Result<Self, Reply> {
        let query = Query::<Self>::try_from_uri(&parts.uri);
        query.map(|Query(after)| after).map_err(|error| Error::Body(error.body_text()).into())
    }
}

/// The header for a list that continues after `next`; `asked` is the rest of its query, ending with `&`.
pub(crate) fn next_page(next: Option<String>, asked: &str) -> Next {
    next.map(|id| [(header::LINK, format!("<?{asked}after={id}>; rel=\"next\""))])
}
