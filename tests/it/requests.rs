//! Requests to the services: who may make them, what is refused, and what the documents say of them.

mod audit;
mod error_kinds;
mod fairness;
mod handler_status;
mod instances;
mod invalid_requests;
mod malformed_input;
mod openapi;
mod rate_limits;
mod rights;
mod schemathesis;
mod secrets;
