//! Errors as a gRPC status.

use api::status::with_detail;
use server::status::{grpc, to_status};
use tonic::Status;
use types::{Kind, Kinded};

use crate::Error;

impl From<Error> for Status {
    fn from(error: Error) -> Self {
        match &error {
            Error::Function(function) if error.kind() == Kind::Invalid => {
                with_detail(grpc(Kind::Invalid), &error.to_string(), &function.for_header())
            }
            _ => to_status(&error),
        }
    }
}
