//! Refuses changes that another site caused.

use axum::{
    extract::{Request, State},
    middleware::Next,
    response::Response,
};
use server::site::{Origin, origin};

use super::failure::Failure;
use crate::{Console, Error};

/// Passes requests that are safe, and those that come from a page of this site.
///
/// Nobody but browsers uses these pages, so a request that does not say where it comes from is refused, too.
pub(super) async fn check(State(console): State<Console>, request: Request, next: Next) -> Result<Response, Failure> {
    let own = console.place.public_url();
    if request.method().is_safe() || origin(request.headers(), own) == Origin::SameSite {
        return Ok(next.run(request).await);
    }
    Err(Error::OtherSite(own.to_owned()).into())
}
