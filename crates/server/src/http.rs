//! Parts of services over HTTP: JSON bodies, bodies of errors, OpenAPI documents, and pages for browsers.

pub mod error_response;
pub mod json;
pub mod openapi;
pub mod site;
