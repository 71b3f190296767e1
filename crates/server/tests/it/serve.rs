//! Requests over real connections: whose run, wait and are refused.

mod admission;
mod connections;
mod error_response;
mod flooding;
mod request_bodies;
mod requests;
mod tls;
