//! Requests to the service: who may make them, what is refused, and what the documents say of them.

mod access_matrix;
mod authorization;
mod client_library;
mod endpoints;
mod errors;
mod first_steps;
mod openapi;
mod rate_limits;
mod schemathesis;
mod secrets;
