//! Path parameters: the ids of entities and services.

use std::str::FromStr;

use axum::{
    extract::{FromRequestParts, Path},
    http::request::Parts,
};
use types::ServiceName;

use super::error::HttpError;
use crate::{
    Account, Error,
    entity::{
        Entity,
        application::Application,
        component::{Component, ServiceAndId},
        gateway::Gateway,
    },
};

pub(crate) struct EntityPath<E: Entity>(pub(crate) E::Id);

/// The entity id in the path, and the parameter after it.
pub(crate) struct EntityPathAnd<E: Entity, T>(pub(crate) E::Id, pub(crate) T);

pub(crate) struct IdPath<T>(pub(crate) T);

/// A service in the path, such as `handlers`.
pub(crate) struct ServicePath(pub(crate) ServiceName);

/// An entity that has routes of its own.
pub(crate) trait EntityInPath: Entity {
    /// Parses the id from the first path parameters, and returns the remaining ones.
    fn parse_path(parameters: &[String]) -> Result<(Self::Id, &[String]), Error>;
}

impl EntityInPath for Application {
    fn parse_path(parameters: &[String]) -> Result<(Self::Id, &[String]), Error> {
        one(parameters)
    }
}

impl EntityInPath for Gateway {
    fn parse_path(parameters: &[String]) -> Result<(Self::Id, &[String]), Error> {
        one(parameters)
    }
}

impl EntityInPath for Component {
    fn parse_path(parameters: &[String]) -> Result<(Self::Id, &[String]), Error> {
        let (services, rest) = parameters.split_first().ok_or(MALFORMED)?;
        let (id, rest) = one(rest)?;
        Ok((ServiceAndId { service: service(services)?, id }, rest))
    }
}

impl<E: EntityInPath> FromRequestParts<Account> for EntityPath<E> {
    type Rejection = HttpError;

    async fn from_request_parts(parts: &mut Parts, account: &Account) -> Result<Self, HttpError> {
        let parameters = parameters(parts, account).await?;
        Ok(Self(E::parse_path(&parameters)?.0))
    }
}

impl<E: EntityInPath, T: FromStr<Err: Into<Error>>> FromRequestParts<Account> for EntityPathAnd<E, T> {
    type Rejection = HttpError;

    async fn from_request_parts(parts: &mut Parts, account: &Account) -> Result<Self, HttpError> {
        let parameters = parameters(parts, account).await?;
        let (id, rest) = E::parse_path(&parameters)?;
        Ok(Self(id, one(rest)?.0))
    }
}

impl<T: FromStr<Err: Into<Error>>> FromRequestParts<Account> for IdPath<T> {
    type Rejection = HttpError;

    async fn from_request_parts(parts: &mut Parts, account: &Account) -> Result<Self, HttpError> {
        Ok(Self(one(&parameters(parts, account).await?)?.0))
    }
}

impl FromRequestParts<Account> for ServicePath {
    type Rejection = HttpError;

    async fn from_request_parts(parts: &mut Parts, account: &Account) -> Result<Self, HttpError> {
        let parameters = parameters(parts, account).await?;
        Ok(Self(service(parameters.first().ok_or(MALFORMED)?)?))
    }
}

const MALFORMED: Error = Error::Invalid { what: "path", must: "must be UTF-8 text" };

async fn parameters(parts: &mut Parts, account: &Account) -> Result<Vec<String>, Error> {
    let path = Path::<Vec<String>>::from_request_parts(parts, account).await;
    path.map(|Path(parameters)| parameters).map_err(|_| MALFORMED)
}

fn one<T: FromStr<Err: Into<Error>>>(parameters: &[String]) -> Result<(T, &[String]), Error> {
    let (first, rest) = parameters.split_first().ok_or(MALFORMED)?;
    Ok((first.parse().map_err(Into::into)?, rest))
}

/// Unknown services are answered with 404, like unknown paths.
fn service(plural: &str) -> Result<ServiceName, Error> {
    let singular = plural.strip_suffix('s').and_then(|singular| singular.parse().ok());
    singular.ok_or_else(|| Error::NotFound { what: "sort of component", id: plural.escape_debug().to_string() })
}
