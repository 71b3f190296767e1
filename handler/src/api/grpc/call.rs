//! What all calls share: reading the caller, and writing errors as a gRPC status.

use api::status::with_detail;
use server::{
    auth::Caller,
    status::{grpc, to_status},
};
use tonic::{
    Request, Status,
    metadata::{MetadataMap, MetadataValue},
};
use types::{Kind, Kinded};

use crate::Error;

/// The caller and the message of a request.
pub(super) fn split<T>(request: Request<T>) -> Result<(Caller, T), Status> {
    let (metadata, extensions, message) = request.into_parts();
    let caller = Caller::of(&metadata.into_headers(), &extensions).map_err(|error| to_status(&error))?;
    Ok((caller, message))
}

/// A number in the metadata; zero if it is missing.
pub(super) fn number(metadata: &MetadataMap, name: &'static str) -> Result<usize, Error> {
    let Some(value) = metadata.get(name) else { return Ok(0) };
    let number = value.to_str().ok().and_then(|text| text.parse().ok());
    number.ok_or_else(|| Error::invalid(name, "must be a whole number from 0 up"))
}

impl From<Error> for Status {
    fn from(error: Error) -> Self {
        match &error {
            Error::Function(function) if error.kind() == Kind::Invalid => {
                with_detail(grpc(Kind::Invalid), &error.to_string(), &function.for_header())
            }
            Error::RateLimited { exceeded, .. } => {
                let mut status = to_status(&error);
                status.metadata_mut().insert("retry-after", MetadataValue::from(exceeded.wait_s));
                status
            }
            _ => to_status(&error),
        }
    }
}
