//! Errors of the handler from others that are not their source.

use super::{Error, FunctionError};

impl From<FunctionError> for Error {
    fn from(error: FunctionError) -> Self {
        Self::Function(Box::new(error))
    }
}
